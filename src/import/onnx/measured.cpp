#include "import/onnx/measured.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "ops/data/concat/concat.h"
#include "ops/data/copy/copy.h"
#include "ops/data/gather/gather.h"
#include "ops/data/reshape/reshape.h"
#include "ops/data/slice/slice.h"
#include "ops/elementwise/binary/binary.h"
#include "ops/elementwise/cast/cast.h"

namespace bantam::import::onnx {
namespace {

using graph::Graph;
using graph::kNone;
using graph::Node;
using graph::ValueId;

bool is_count(ElementType type) { return type == ElementType::kI32 || type == ElementType::kI64; }

/// An operand's element that a result's element is, plus `offset`.
struct Origin {
  ValueId value = kNone;
  std::int64_t index = 0;
  std::int64_t offset = 0;
};

/// Element `index` of an integer constant, which may be a single one for all.
std::optional<std::int64_t> constant_element(const Graph& graph, ValueId id, std::int64_t index) {
  const auto values = graph::constant_integers(graph, id);
  if (!values || values->empty()) return std::nullopt;
  if (values->size() == 1) return values->front();
  return index < static_cast<std::int64_t>(values->size()) ? std::optional((*values)[static_cast<std::size_t>(index)])
                                                           : std::nullopt;
}

std::optional<Origin> source_in_concat(const Graph& graph, const Node& node, std::int64_t index) {
  for (const ValueId part : node.inputs) {
    const std::int64_t elements = graph.value(part).desc.elements();
    if (index < elements) return Origin{part, index};
    index -= elements;
  }
  return std::nullopt;
}

/// A sum with a constant, of tensors with as many elements as the result or with one.
std::optional<Origin> source_in_sum(const Graph& graph, const Node& node, std::int64_t index) {
  const auto function = node.as<ops::BinaryParams>().function;
  const bool subtract = function == ops::BinaryFunction::kSub;
  if (function != ops::BinaryFunction::kAdd && !subtract) return std::nullopt;
  const std::int64_t elements = graph.value(node.outputs[0]).desc.elements();
  for (const ValueId id : node.inputs)
    if (const std::int64_t own = graph.value(id).desc.elements(); own != 1 && own != elements) return std::nullopt;
  for (const std::size_t i : {std::size_t{0}, std::size_t{1}}) {
    if (i == 1 && subtract) continue;
    const auto amount = constant_element(graph, node.inputs[1 - i], index);
    if (!amount || graph.is_constant(node.inputs[i])) continue;
    const bool single = graph.value(node.inputs[i]).desc.elements() == 1;
    return Origin{node.inputs[i], single ? 0 : index, subtract ? -*amount : *amount};
  }
  return std::nullopt;
}

/// Where element `index` of the node's result comes from, when the node only moves it or adds a constant.
std::optional<Origin> source_of(const Graph& graph, const Node& node, std::int64_t index) {
  const TensorDesc& x = graph.value(node.inputs[0]).desc;
  if (node.is(ops::kReshape) || node.is(ops::kCopy)) return Origin{node.inputs[0], index};
  if (node.is(ops::kCast) && is_count(x.type)) return Origin{node.inputs[0], index};
  if (node.is(ops::kBinary)) return source_in_sum(graph, node, index);
  if (x.rank != 1) return std::nullopt;
  if (node.is(ops::kConcat)) return source_in_concat(graph, node, index);
  if (node.is(ops::kSlice)) {
    const auto& p = node.as<ops::SliceParams>();
    return Origin{node.inputs[0], p.starts[0] + index * p.steps[0]};
  }
  if (node.is(ops::kGather)) {
    const auto at = constant_element(graph, node.inputs[1], index);
    if (at) return Origin{node.inputs[0], *at < 0 ? *at + x.dims[0] : *at};
  }
  return std::nullopt;
}

}  // namespace

MeasuredSizes::Element MeasuredSizes::trace(ValueId id, std::int64_t index) {
  const Graph& graph = builder_.graph();
  std::int64_t offset = 0;
  // Producers come before their readers, so the walk ends.
  while (!graph.is_constant(id) && graph.value(id).producer != kNone) {
    const auto source = source_of(graph, graph.node(graph.value(id).producer), index);
    std::int64_t sum = 0;
    if (!source || __builtin_add_overflow(offset, source->offset, &sum)) break;
    id = source->value;
    index = source->index;
    offset = sum;
  }
  if (const auto constant = constant_element(graph, id, index)) return {kNone, *constant + offset};
  if (graph.value(id).desc.elements() == 1) return {id, offset};
  ops::SliceParams params;
  params.starts = {1, {static_cast<std::int32_t>(index)}};
  params.steps = params.sizes = {1, {1}};
  const std::string name = graph.value(id).name.empty() ? "" : fmt::format("{}[{}]", graph.value(id).name, index);
  auto flat = builder_.reshape(id, std::vector{graph.value(id).desc.elements()});
  auto element = flat ? builder_.emit1(ops::kSlice, params, {*flat}, name) : flat;
  return element ? Element{*element, offset} : Element{id, offset};
}

int MeasuredSizes::number(Expression expression) {
  const auto [it, added] = expressions_.try_emplace(std::move(expression), count_);
  if (added) ++count_;
  return it->second;
}

int MeasuredSizes::number(ValueId id) {
  if (id == kNone) return -1;
  const Graph& graph = builder_.graph();
  std::vector<ValueId> open = {id};
  while (!open.empty()) {
    const ValueId value = open.back();
    const graph::Value& v = graph.value(value);
    if (numbers_.contains(value)) {
      open.pop_back();
    } else if (v.constant) {
      const auto bytes = v.constant->bytes;
      const std::pair key(graph::format_desc(v.desc),
                          std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
      const auto [it, added] = constants_.try_emplace(key, count_);
      if (added) ++count_;
      numbers_[value] = it->second;
    } else if (v.producer == kNone) {
      numbers_[value] = count_++;
    } else {
      const Node& node = graph.node(v.producer);
      const std::size_t before = open.size();
      std::ranges::copy_if(node.inputs, std::back_inserter(open),
                           [&](ValueId input) { return input != kNone && !numbers_.contains(input); });
      if (open.size() != before) continue;
      const auto o = std::ranges::find(node.outputs, value) - node.outputs.begin();
      std::vector<int> inputs;
      for (const ValueId input : node.inputs) inputs.push_back(input == kNone ? -1 : numbers_.at(input));
      numbers_[value] =
          number({node.op, std::string(reinterpret_cast<const char*>(node.params.data()), node.params.size()),
                  std::move(inputs), static_cast<std::size_t>(o)});
    }
  }
  return numbers_.at(id);
}

std::string MeasuredSizes::name_of_number(int number, const std::string& proposed) {
  if (const auto known = names_.find(number); known != names_.end()) return known->second;
  std::string name = proposed;
  const auto taken = [&] {
    return std::ranges::any_of(names_, [&](const auto& known) { return known.second == name; });
  };
  for (int i = 2; taken(); ++i) name = fmt::format("{}#{}", proposed, i);
  names_[number] = name;
  return name;
}

std::string MeasuredSizes::name_of(ValueId value, const std::string& proposed) {
  return name_of_number(number(value), proposed);
}

std::string MeasuredSizes::name_of(const ops::OpDef& op, const graph::Params& params,
                                   const std::vector<ValueId>& inputs, const std::string& proposed) {
  std::vector<int> numbers;
  for (const ValueId id : inputs) numbers.push_back(number(id));
  const std::string bytes(reinterpret_cast<const char*>(params.data()), params.size());
  return name_of_number(number({&op, bytes, std::move(numbers), static_cast<std::size_t>(op.outputs)}), proposed);
}

std::optional<std::int64_t> MeasuredSizes::bound(const std::string& name, std::optional<std::int64_t> most) const {
  const auto given = options_.bounds.find(name);
  return given != options_.bounds.end() ? std::optional(given->second) : most;
}

std::int64_t MeasuredSizes::measure(const std::string& name, ValueId value, std::int64_t bound) {
  if (bounds_.try_emplace(name, bound).second) builder_.graph().measured.push_back({name, value, bound});
  const auto assumed = options_.dims.find(name);
  return assumed != options_.dims.end() ? assumed->second : bound;
}

}  // namespace bantam::import::onnx
