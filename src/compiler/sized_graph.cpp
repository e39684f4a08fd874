#include "compiler/sized_graph.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <tuple>

#include "base/shape.h"
#include "ops/data/integers/integers.h"
#include "ops/data/slice/slice.h"

namespace bantam::compiler {
namespace {

using graph::Graph;
using graph::kNone;
using graph::Node;
using graph::ValueId;

std::int32_t word_at(const graph::Params& params, std::size_t word) {
  std::int32_t value = 0;
  std::memcpy(&value, params.data() + 4 * word, 4);
  return value;
}

void set_word(graph::Params& params, std::size_t word, std::int32_t value) {
  std::memcpy(params.data() + 4 * word, &value, 4);
}

/// Whether each word of an operator's parameters counts something, so that it may follow a size. The length of a list
/// does not.
std::vector<bool> counting_words(const ops::OpDef& op) {
  std::vector<bool> result(op.params_bytes / 4, false);
  for (const ops::ParamField& field : op.fields) {
    const std::size_t first = field.offset / 4;
    if (field.kind == ops::ParamField::Kind::kI32)
      for (std::size_t i = 0; i < field.count; ++i) result[first + i] = true;
    if (field.kind == ops::ParamField::Kind::kIntList)
      for (std::size_t i = 0; i < kMaxRank; ++i) result[first + 1 + i] = true;
  }
  return result;
}

bool equal_constants(const graph::Value& a, const graph::Value& b) {
  return same_shape_and_type(a.desc, b.desc) && (a.constant->bytes.data() == b.constant->bytes.data() ||
                                                 std::ranges::equal(a.constant->bytes, b.constant->bytes));
}

std::string describe(const Node& node) {
  return fmt::format("node '{}' ({}, lowered to {})", node.name, node.origin, node.op->name);
}

std::string value_difference(const graph::Value& a, const graph::Value& b) {
  if (a.desc.type != b.desc.type || a.desc.rank != b.desc.rank)
    return fmt::format("value '{}' is {} or {}", a.name, graph::format_desc(a.desc), graph::format_desc(b.desc));
  if (a.constant.has_value() != b.constant.has_value()) return fmt::format("value '{}' is constant or not", a.name);
  return {};
}

std::string node_difference(const Node& a, const Node& b) {
  if (a.op != b.op || a.inputs != b.inputs || a.outputs != b.outputs) return describe(a) + " or " + describe(b);
  const std::vector<bool> counting = counting_words(*a.op);
  for (std::size_t w = 0; w < counting.size(); ++w)
    if (!counting[w] && word_at(a.params, w) != word_at(b.params, w)) return describe(a) + " has other parameters";
  return {};
}

std::vector<ValueId> port_values(const std::vector<graph::Port>& ports) {
  std::vector<ValueId> values;
  for (const graph::Port& port : ports) values.push_back(port.value);
  return values;
}

/// Numbers expressions so that equal ones have equal numbers, over several graphs.
class Numbering {
 public:
  /// The numbers of the results: outputs, then the states' next values.
  std::vector<int> results(const Graph& graph) {
    std::vector<int> number(graph.values.size(), -1);
    for (std::size_t i = 0; i < graph.inputs.size(); ++i) set(number, graph.inputs[i].value, fresh("input", i));
    for (std::size_t i = 0; i < graph.states.size(); ++i) set(number, graph.states[i].in, fresh("state", i));
    for (std::size_t i = 0; i < graph.values.size(); ++i)
      if (graph.values[i].constant) number[i] = constant(graph.values[i]);
    for (const Node& node : graph.nodes) {
      std::vector<int> operands;
      for (const ValueId id : node.inputs) operands.push_back(id == kNone ? -1 : number[static_cast<std::size_t>(id)]);
      const std::string params(reinterpret_cast<const char*>(node.params.data()), node.params.size());
      for (std::size_t o = 0; o < node.outputs.size(); ++o)
        set(number, node.outputs[o], next(calls_, std::tuple(node.op, params, operands, o)));
    }
    std::vector<int> results;
    for (const graph::Port& port : graph.outputs) results.push_back(number[static_cast<std::size_t>(port.value)]);
    for (const graph::State& state : graph.states)
      results.push_back(number[static_cast<std::size_t>(state.out == kNone ? state.in : state.out)]);
    for (const graph::MeasuredSize& size : graph.measured)
      results.push_back(number[static_cast<std::size_t>(size.value)]);
    return results;
  }

 private:
  static void set(std::vector<int>& number, ValueId id, int n) {
    if (id != kNone) number[static_cast<std::size_t>(id)] = n;
  }
  template <typename Key>
  int next(std::map<Key, int>& numbers, const Key& key) {
    const auto [it, added] = numbers.try_emplace(key, count_);
    if (added) ++count_;
    return it->second;
  }
  int fresh(const char* kind, std::size_t index) { return next(sources_, std::pair(std::string(kind), index)); }
  int constant(const graph::Value& value) {
    for (const auto& [known, number] : constants_)
      if (equal_constants(*known, value)) return number;
    constants_.emplace_back(&value, count_);
    return count_++;
  }

  std::map<std::tuple<const ops::OpDef*, std::string, std::vector<int>, std::size_t>, int> calls_;
  std::map<std::pair<std::string, std::size_t>, int> sources_;
  std::vector<std::pair<const graph::Value*, int>> constants_;
  int count_ = 0;
};

/// Where the smaller of two tensors would lie in the larger: at the beginning or at the end of each axis.
using Ends = std::vector<bool>;

/// Is `part` the piece of `whole` at these ends?
bool is_piece(const graph::Value& whole, const graph::Value& part, const Ends& ends) {
  const TensorDesc& w = whole.desc;
  const TensorDesc& p = part.desc;
  std::int64_t start = 0;
  for (int i = 0; i < w.rank; ++i) {
    if (p.dims[i] > w.dims[i]) return false;
    if (ends[static_cast<std::size_t>(i)]) start += std::int64_t{w.strides[i]} * (w.dims[i] - p.dims[i]);
  }
  const std::int64_t size = element_size(w.type);
  if (size == 0 || p.elements() == 0) return size != 0;
  const std::int64_t row = w.rank == 0 ? 1 : p.dims[p.rank - 1];
  std::int32_t index[kMaxRank] = {};
  for (std::int64_t r = 0; r < p.elements() / row; ++r) {
    std::int64_t from = start;
    for (int i = 0; i + 1 < w.rank; ++i) from += std::int64_t{w.strides[i]} * index[i];
    if (std::memcmp(whole.constant->bytes.data() + from * size, part.constant->bytes.data() + r * row * size,
                    static_cast<std::size_t>(row * size)) != 0)
      return false;
    for (int i = w.rank - 2; i >= 0 && ++index[i] == p.dims[i]; --i) index[i] = 0;
  }
  return true;
}

/// Replaces constants that differ between samples by slices of the largest one, or by integers that follow the sizes.
class ConstantUnifier {
 public:
  explicit ConstantUnifier(std::vector<SizedGraph>& samples) : samples_(samples) {}

  Result<void> run() {
    for (std::size_t v = 0; v < samples_.front().graph.values.size(); ++v) {
      const auto id = static_cast<ValueId>(v);
      if (!samples_.front().graph.value(id).constant || is_fixed(id)) continue;
      if (auto done = unify(id); !done) return done;
    }
    for (SizedGraph& sample : samples_) {
      for (std::size_t n = 0; n < sample.graph.nodes.size(); ++n)
        for (const ValueId out : sample.graph.nodes[n].outputs)
          if (out != kNone) sample.graph.value(out).producer = static_cast<graph::NodeId>(n);
    }
    return {};
  }

 private:
  bool is_fixed(ValueId id) const {
    return std::ranges::all_of(samples_, [&](const SizedGraph& s) {
      return equal_constants(samples_.front().graph.value(id), s.graph.value(id));
    });
  }

  const graph::Value& largest(ValueId id) const {
    return std::ranges::max_element(samples_, {},
                                    [&](const SizedGraph& s) { return s.graph.value(id).desc.elements(); })
        ->graph.value(id);
  }

  Result<void> unify(ValueId id) {
    const graph::Value whole = largest(id);
    for (std::uint32_t ends = 0; ends < (1U << whole.desc.rank); ++ends) {
      Ends at_end;
      for (int i = 0; i < whole.desc.rank; ++i) at_end.push_back(((ends >> i) & 1U) != 0);
      if (!std::ranges::all_of(samples_,
                               [&](const SizedGraph& s) { return is_piece(whole, s.graph.value(id), at_end); }))
        continue;
      for (SizedGraph& sample : samples_) slice(sample.graph, id, whole, at_end);
      return {};
    }
    if (std::ranges::all_of(samples_, [&](const SizedGraph& s) { return as_integers(s.graph, id).has_value(); })) {
      for (SizedGraph& sample : samples_)
        replace(sample.graph, id, ops::kIntegers, graph::Params::of(*as_integers(sample.graph, id)), {});
      return {};
    }
    return fail(StatusCode::kUnsupported,
                fmt::format("{} reads a constant, {}, whose contents change with the size", reader(id),
                            graph::format_desc(whole.desc)),
                "fix the dimension with --dim instead of --bound");
  }

  std::string reader(ValueId id) const {
    for (const Node& node : samples_.front().graph.nodes)
      if (std::ranges::find(node.inputs, id) != node.inputs.end()) return describe(node);
    return "the model";
  }

  /// Makes value `id` the result of slicing `whole`.
  static void slice(Graph& graph, ValueId id, const graph::Value& whole, const Ends& at_end) {
    const TensorDesc part = graph.value(id).desc;
    graph::Value source = whole;
    const ValueId source_id = graph.add_value(std::move(source));
    ops::SliceParams params;
    params.starts.size = params.steps.size = params.sizes.size = part.rank;
    for (int i = 0; i < part.rank; ++i) {
      params.steps.v[i] = 1;
      params.sizes.v[i] = part.dims[i];
      params.starts.v[i] = at_end[static_cast<std::size_t>(i)] ? whole.desc.dims[i] - part.dims[i] : 0;
    }
    replace(graph, id, ops::kSlice, graph::Params::of(params), {source_id});
  }

  /// A constant of a few integers as parameters, which can follow sizes: what was computed from shapes, say.
  static std::optional<ops::IntegersParams> as_integers(const Graph& graph, ValueId id) {
    const TensorDesc& desc = graph.value(id).desc;
    const auto values = graph::constant_integers(graph, id);
    const bool counts = desc.type == ElementType::kI32 || desc.type == ElementType::kI64;
    if (!counts || !values || values->size() > static_cast<std::size_t>(kMaxRank)) return std::nullopt;
    ops::IntegersParams params;
    params.to = desc.type;
    params.shape.size = desc.rank;
    std::copy_n(desc.dims, desc.rank, params.shape.v);
    params.values.size = static_cast<std::int32_t>(values->size());
    for (std::size_t i = 0; i < values->size(); ++i) {
      if ((*values)[i] != static_cast<std::int32_t>((*values)[i])) return std::nullopt;
      params.values.v[i] = static_cast<std::int32_t>((*values)[i]);
    }
    return params;
  }

  /// Makes value `id`, a constant so far, the result of a node just before it is read first.
  static void replace(Graph& graph, ValueId id, const ops::OpDef& op, graph::Params params,
                      std::vector<ValueId> inputs) {
    Node node;
    node.op = &op;
    node.params = std::move(params);
    node.name = graph.value(id).name;
    node.origin = "Constant";
    node.inputs = std::move(inputs);
    node.outputs = {id};
    graph.value(id).constant.reset();
    const auto reader = std::ranges::find_if(
        graph.nodes, [&](const Node& n) { return std::ranges::find(n.inputs, id) != n.inputs.end(); });
    graph.nodes.insert(reader, std::move(node));
  }

  std::vector<SizedGraph>& samples_;
};

std::vector<Sizes> sizes_of(const std::vector<SizedGraph>& samples) {
  std::vector<Sizes> sizes;
  for (const SizedGraph& sample : samples) sizes.push_back(sample.sizes);
  return sizes;
}

tl::unexpected<Error> follows_nothing(const std::string& what, std::span<const std::int64_t> numbers,
                                      std::span<const Sizes> sizes) {
  std::string samples;
  for (std::size_t i = 0; i < numbers.size() && i < 4; ++i)
    samples += fmt::format("{}{} at {}", i == 0 ? "" : ", ", numbers[i], fmt::join(sizes[i], "x"));
  return fail(StatusCode::kUnsupported,
              fmt::format("{} has a number that does not follow the model's sizes in a way that can be recomputed: {}",
                          what, samples),
              "fix the dimension with --dim instead of --bound");
}

}  // namespace

std::string structural_difference(const Graph& a, const Graph& b) {
  if (a.nodes.size() != b.nodes.size() || a.values.size() != b.values.size())
    return fmt::format("{} or {} nodes", a.nodes.size(), b.nodes.size());
  if (port_values(a.inputs) != port_values(b.inputs) || port_values(a.outputs) != port_values(b.outputs))
    return "other inputs or outputs";
  if (!std::ranges::equal(a.states, b.states,
                          [](const auto& x, const auto& y) { return x.in == y.in && x.out == y.out; }))
    return "other states";
  if (!std::ranges::equal(a.measured, b.measured,
                          [](const auto& x, const auto& y) { return x.name == y.name && x.value == y.value; }))
    return "other sizes that are computed from data";
  for (std::size_t i = 0; i < a.values.size(); ++i)
    if (auto found = value_difference(a.values[i], b.values[i]); !found.empty()) return found;
  for (std::size_t i = 0; i < a.nodes.size(); ++i)
    if (auto found = node_difference(a.nodes[i], b.nodes[i]); !found.empty()) return found;
  return {};
}

bool compute_the_same(const Graph& a, const Graph& b) {
  Numbering numbering;
  return numbering.results(a) == numbering.results(b);
}

Result<GraphTemplate> GraphTemplate::fit(std::vector<SizedGraph> samples) {
  if (auto unified = ConstantUnifier(samples).run(); !unified) return fail(std::move(unified.error()));
  const std::vector<Sizes> sizes = sizes_of(samples);
  GraphTemplate result;
  std::vector<std::int64_t> numbers(samples.size());
  const Graph& first = samples.front().graph;
  for (std::size_t i = 0; i < first.inputs.size(); ++i) {
    for (int d = 0; d < first.value(first.inputs[i].value).desc.rank; ++d) {
      for (std::size_t s = 0; s < samples.size(); ++s)
        numbers[s] = samples[s].graph.value(first.inputs[i].value).desc.dims[d];
      const auto expression = fit_sizes(numbers, sizes);
      if (!expression) return follows_nothing(fmt::format("input '{}'", first.inputs[i].name), numbers, sizes);
      if (!expression->is_constant()) result.input_dims_.push_back({i, d, *expression});
    }
  }
  for (std::size_t n = 0; n < first.nodes.size(); ++n) {
    for (std::size_t w = 0; w < first.nodes[n].params.size() / 4; ++w) {
      for (std::size_t s = 0; s < samples.size(); ++s) numbers[s] = word_at(samples[s].graph.nodes[n].params, w);
      const auto expression = fit_sizes(numbers, sizes);
      if (!expression) return follows_nothing(describe(first.nodes[n]), numbers, sizes);
      if (!expression->is_constant()) result.param_words_.push_back({n, w, *expression});
    }
  }
  for (const graph::State& state : first.states)
    for (const SizedGraph& sample : samples)
      if (!same_shape_and_type(first.value(state.in).desc, sample.graph.value(state.in).desc))
        return fail(StatusCode::kUnsupported, fmt::format("state '{}' changes its shape with the size", state.name),
                    "keep it an input and an output, or fix the dimension with --dim instead of --bound");
  result.graph_ = std::move(samples.front().graph);
  return result;
}

Result<Graph> GraphTemplate::at(const Sizes& sizes) const {
  Graph graph = graph_;
  for (const InputDim& d : input_dims_) {
    TensorDesc& desc = graph.value(graph.inputs[d.input].value).desc;
    desc.dims[d.dim] = static_cast<std::int32_t>(evaluate(d.expression, sizes));
    if (const Status sound = check_shape(desc); !sound.ok())
      return fail(error_from(sound).in(fmt::format("input '{}'", graph.inputs[d.input].name)));
  }
  for (const graph::Port& port : graph.inputs) graph.value(port.value).desc.set_dense_strides();
  for (const ParamWord& p : param_words_)
    set_word(graph.nodes[p.node].params, p.word, static_cast<std::int32_t>(evaluate(p.expression, sizes)));
  for (const Node& node : graph.nodes) {
    TensorDesc descs[ops::kMaxOutputs];
    const graph::OperandTables tables = graph::operand_tables(graph, node);
    const Status inferred =
        ops::infer(*node.op, node.params.data(), tables.inputs, std::span(descs).first(node.outputs.size()));
    if (!inferred.ok()) return fail(error_from(inferred).in(describe(node)));
    for (std::size_t o = 0; o < node.outputs.size(); ++o)
      if (node.outputs[o] != kNone) graph.value(node.outputs[o]).desc = descs[o];
  }
  if (auto sound = graph::verify(graph); !sound) return fail(std::move(sound.error()));
  return graph;
}

}  // namespace bantam::compiler
