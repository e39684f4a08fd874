#include "compiler/weight_streams.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <string_view>

#include "base/shape.h"
#include "ops/data/copy/copy.h"
#include "ops/nn/gemm/gemm_f32.h"

namespace bantam::compiler {
namespace {

/// A smaller copy is not worth a step.
constexpr std::int64_t kLeastBytes = 256;

/// The most rows of the other operand that a kernel has at hand for one read of its weights: a tile of the vector
/// kernels, which the portable ones' pairs (ops/common/dot_i8.h) do not reach.
std::int64_t rows_at_once(const ops::KernelVariant& variant) {
  constexpr std::int64_t kPair = 2;
  return variant.name.ends_with("__simd") ? ops::gemm::kMaxTileRows : kPair;
}

/// Multiplications that each element of the constant matrices takes part in.
std::int64_t uses_of_matrices(const graph::Graph& graph, const graph::Node& node, const ops::OpCall& call) {
  std::int64_t elements = 0;
  for (const graph::ValueId id : node.inputs)
    if (graph.is_constant(id) && graph.value(id).desc.rank >= 2) elements += graph.value(id).desc.elements();
  return elements == 0 || node.op->work == nullptr ? 1 : node.op->work(call) / elements;
}

bool runs_node(const PlannedStep& step) { return step.variant != nullptr && step.stream < 0; }

/// Does the step's kernel take this operand from the activations, besides those that `call` has there already? On
/// success `inputs`, which `call` refers to, is left so.
bool takes_copy(const ops::KernelVariant& variant, const graph::Node& node, const ops::OpCall& call, Tensor& input) {
  void* const data = input.data;
  input.data = nullptr;
  TensorDesc results[ops::kMaxOutputs];
  const std::span<TensorDesc> outputs(results, node.outputs.size());
  if (ops::infer(*node.op, node.params.data(), call.inputs, outputs).ok() && ops::supports(variant, call)) return true;
  input.data = data;
  return false;
}

}  // namespace

std::vector<PlannedStream> weight_reads(const PlannedModel& model) {
  std::vector<PlannedStream> result;
  for (const PlannedStep& step : model.steps) {
    if (!runs_node(step)) continue;
    const graph::Node& node = model.graph.node(step.node);
    const graph::OperandTables tables = graph::operand_tables(model.graph, node);
    const ops::OpCall call = tables.call(node);
    const std::int64_t rows = rows_at_once(*step.variant);
    const std::int64_t reads = std::max<std::int64_t>(1, (uses_of_matrices(model.graph, node, call) + rows - 1) / rows);
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (!model.graph.is_constant(node.inputs[i])) continue;
      const TensorDesc& desc = model.graph.value(node.inputs[i]).desc;
      const std::int64_t packed = ops::packed_bytes(*step.variant, call, static_cast<int>(i));
      result.push_back({step.node, static_cast<std::int32_t>(i), packed > 0 ? packed : desc.bytes(), packed > 0,
                        desc.rank >= 2 ? reads : 1, -1});
    }
  }
  return result;
}

double saving(const PlannedStream& stream, double weights_cost, double cost) {
  const auto reads = static_cast<double>(stream.reads);
  return static_cast<double>(stream.bytes) * ((reads - 1) * weights_cost - (reads + 1) * cost);
}

std::vector<PlannedStream> copyable_weights(const PlannedModel& model) {
  if (!model.instances.empty()) return {};
  const std::vector<PlannedStream> all = weight_reads(model);
  std::vector<PlannedStream> found;
  auto read = all.begin();
  for (const PlannedStep& step : model.steps) {
    if (!runs_node(step)) continue;
    const graph::Node& node = model.graph.node(step.node);
    graph::OperandTables tables = graph::operand_tables(model.graph, node);
    const ops::OpCall call = tables.call(node);
    for (; read != all.end() && read->node == step.node; ++read) {
      Tensor& input = tables.inputs[static_cast<std::size_t>(read->input)];
      if (read->bytes < kLeastBytes || element_size(input.desc->type) == 0) continue;
      if (read->packed || takes_copy(*step.variant, node, call, input)) found.push_back(*read);
    }
  }
  return found;
}

std::vector<PlannedStream> find_streams(const PlannedModel& model, double weights_cost, double least_cost) {
  if (!model.flow.kinds.empty()) return {};
  std::vector<PlannedStream> found = copyable_weights(model);
  const auto saves = [&](const PlannedStream& s) { return saving(s, weights_cost, least_cost); };
  std::erase_if(found, [&](const PlannedStream& s) { return saves(s) <= 0; });
  std::ranges::stable_sort(found, std::greater<>(), saves);
  return found;
}

void set_streams(PlannedModel& model, std::span<const PlannedStream> streams) {
  model.blocks.resize(model.blocks.size() - model.streams.size());
  model.streams.assign(streams.begin(), streams.end());
  std::ranges::sort(model.streams, [](const PlannedStream& a, const PlannedStream& b) {
    return std::pair(a.node, a.input) < std::pair(b.node, b.input);
  });
  for (PlannedStream& stream : model.streams) {
    stream.block = static_cast<std::int32_t>(model.blocks.size());
    const graph::Node& node = model.graph.node(stream.node);
    const TensorDesc& desc = model.graph.value(node.inputs[static_cast<std::size_t>(stream.input)]).desc;
    PlanBlock block;
    block.name = node.name;
    block.kind = PlanBlock::Kind::kWeights;
    block.detail =
        fmt::format("weights {} of {}, read {} times", graph::format_desc(desc), node.op->name, stream.reads);
    block.lower = stream.node;
    block.upper = stream.node + 1;
    block.bytes = stream.bytes;
    model.blocks.push_back(std::move(block));
  }
}

std::int64_t weight_bytes_read(const PlannedModel& model) {
  std::int64_t bytes = 0;
  for (const PlannedStream& read : weight_reads(model)) bytes += read.reads * read.bytes;
  for (const PlannedStream& stream : model.streams) bytes -= (stream.reads - 1) * stream.bytes;
  for (const PlannedStream& resident : model.residents) bytes -= resident.reads * resident.bytes;
  return bytes;
}

std::int64_t resident_offset(const PlannedModel& model) {
  return align_up(model.state_bytes, static_cast<std::int64_t>(ops::kAlignment));
}

void keep_resident(PlannedModel& model, const PlannedStream& weights) {
  std::vector<PlannedStream> streams = model.streams;
  if (std::erase_if(streams, [&](const PlannedStream& s) { return same_operand(s, weights); }) > 0)
    set_streams(model, streams);
  PlannedStream resident = weights;
  resident.block = -1;
  resident.offset = resident_offset(model);
  model.state_bytes = resident.offset + resident.bytes;
  model.residents.push_back(resident);
}

void insert_copies(PlannedModel& model) {
  std::vector<PlannedStep> steps;
  std::size_t next = 0;
  for (PlannedStep& step : model.steps) {
    for (; next < model.streams.size() && model.streams[next].node == step.node; ++next) {
      PlannedStep copy;
      copy.node = step.node;
      copy.variant = &ops::reference_variant(ops::kCopy);
      copy.outputs = step.outputs;
      copy.stream = static_cast<std::int32_t>(next);
      steps.push_back(copy);
    }
    steps.push_back(std::move(step));
  }
  model.steps = std::move(steps);
}

}  // namespace bantam::compiler
