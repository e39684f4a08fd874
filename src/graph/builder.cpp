#include "graph/builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "base/shape.h"
#include "graph/control.h"
#include "graph/quantized_source.h"
#include "ops/data/reshape/reshape.h"
#include "ops/data/transpose/transpose.h"
#include "ops/elementwise/cast/cast.h"

namespace bantam::graph {
namespace {

/// Folding must not turn a small model into a large one: results beyond this size stay computed at run time.
constexpr std::int64_t kMaxFoldedBytes = std::int64_t{64} << 20;

/// Bounds on what one model may make the host compute and keep before it runs, whatever the model says: beyond them
/// nodes stay in the graph.
constexpr std::int64_t kMaxFoldedBytesInAll = std::int64_t{1} << 30;
constexpr std::int64_t kMaxFoldedWork = std::int64_t{1} << 31;

struct AlignedFree {
  void operator()(std::byte* p) const { std::free(p); }
};
using AlignedBytes = std::unique_ptr<std::byte, AlignedFree>;

/// At least one byte, kAlignment-aligned, zeroed. Null when memory is exhausted.
AlignedBytes allocate_aligned(std::int64_t bytes) {
  const auto size = static_cast<std::size_t>(align_up(std::max<std::int64_t>(bytes, 1), ops::kAlignment));
  AlignedBytes memory(static_cast<std::byte*>(std::aligned_alloc(ops::kAlignment, size)));
  if (memory) std::memset(memory.get(), 0, size);
  return memory;
}

tl::unexpected<Error> out_of_memory(std::int64_t bytes) {
  return fail(StatusCode::kUnsupported, fmt::format("the host has no {} bytes left to fold a constant", bytes),
              "free memory or use a smaller model");
}

Error node_error(const Status& status, const std::string& node, const std::string& origin, const ops::OpDef& op,
                 std::span<const Tensor> inputs) {
  std::string shapes;
  for (const Tensor& t : inputs) {
    if (!shapes.empty()) shapes += ", ";
    shapes += t.desc->present() ? format_desc(*t.desc) : "-";
  }
  Error error = error_from(status);
  error.message =
      fmt::format("node '{}' ({}, lowered to {}) with operands ({}): {}", node, origin, op.name, shapes, error.message);
  return error;
}

bool all_constant(const Graph& graph, std::span<const ValueId> inputs) {
  return std::all_of(inputs.begin(), inputs.end(), [&](ValueId id) { return id == kNone || graph.is_constant(id); });
}

}  // namespace

Result<std::vector<Constant>> evaluate(const ops::OpDef& op, const Params& params, std::span<const Tensor> inputs,
                                       std::span<const TensorDesc> outputs) {
  const ops::KernelVariant& variant = ops::reference_variant(op);
  // Aligned copies of operands that lie unaligned in a model file, and places for those without elements: kernels may
  // copy no bytes from such a place, but not from null.
  std::vector<AlignedBytes> keep;
  std::vector<Tensor> in(inputs.begin(), inputs.end());
  for (Tensor& t : in) {
    const bool aligned = reinterpret_cast<std::uintptr_t>(t.data) % ops::kAlignment == 0;
    if (!t.desc->present() || (t.data != nullptr && aligned)) continue;
    keep.push_back(allocate_aligned(t.desc->bytes()));
    if (!keep.back()) return out_of_memory(t.desc->bytes());
    if (t.desc->bytes() != 0) std::memcpy(keep.back().get(), t.data, static_cast<std::size_t>(t.desc->bytes()));
    t.data = keep.back().get();
  }
  std::vector<Constant> results;
  std::vector<Tensor> out;
  for (const TensorDesc& desc : outputs) {
    AlignedBytes memory = allocate_aligned(desc.present() ? desc.bytes() : 0);
    if (!memory) return out_of_memory(desc.bytes());
    std::byte* data = memory.get();
    const auto size = static_cast<std::size_t>(desc.present() ? desc.bytes() : 0);
    results.push_back({{data, size}, std::shared_ptr<const void>(memory.release(), AlignedFree{})});
    out.push_back({data, &desc});
  }
  const ops::OpCall call{params.data(), in, out};
  const ops::Footprint footprint = ops::footprint(variant, call, 1);
  AlignedBytes scratch = allocate_aligned(footprint.scratch_bytes);
  if (!scratch) return out_of_memory(footprint.scratch_bytes);
  const ops::Threads threads;
  const Status status = variant.run({params.data(), in, out, scratch.get(), &threads, footprint.scratch_bytes});
  if (!status.ok()) return fail(error_from(status));
  return results;
}

ValueId Builder::input(std::string name, TensorDesc desc) {
  desc.set_dense_strides();
  Value v;
  v.name = name;
  v.desc = desc;
  const ValueId id = graph_.add_value(std::move(v));
  graph_.inputs.push_back({std::move(name), id});
  return id;
}

ValueId Builder::state(std::string name, TensorDesc desc, std::optional<Constant> initial) {
  desc.set_dense_strides();
  Value v;
  v.name = name;
  v.desc = desc;
  const ValueId id = graph_.add_value(std::move(v));
  graph_.states.push_back({std::move(name), id, kNone, std::move(initial)});
  return id;
}

ValueId Builder::constant(std::string name, TensorDesc desc, std::span<const std::byte> bytes,
                          std::shared_ptr<const void> owner) {
  desc.set_dense_strides();
  Value v;
  v.name = std::move(name);
  v.desc = desc;
  v.constant = Constant{bytes, std::move(owner)};
  return graph_.add_value(std::move(v));
}

ValueId Builder::scalar(float value) { return constant<float>("", {}, std::span<const float>(&value, 1)); }

ValueId Builder::integers(std::span<const std::int64_t> elements) {
  const std::int64_t dims[] = {static_cast<std::int64_t>(elements.size())};
  return constant<std::int64_t>("", dims, elements);
}

bool Builder::spend_folding(const ops::OpDef& op, const Node& node, const OperandTables& tables,
                            std::span<const TensorDesc> descs) {
  std::int64_t bytes = 0;
  std::vector<Tensor> outputs;
  for (const TensorDesc& d : descs) {
    bytes += d.present() ? d.bytes() : 0;
    outputs.push_back({nullptr, &d});
  }
  const std::int64_t work = op.work != nullptr ? op.work(ops::OpCall{node.params.data(), tables.inputs, outputs}) : 0;
  if (bytes > kMaxFoldedBytes || bytes > kMaxFoldedBytesInAll - budget_->bytes || work > kMaxFoldedWork - budget_->work)
    return false;
  budget_->bytes += bytes;
  budget_->work += work;
  return true;
}

Result<std::vector<ValueId>> Builder::emit(const ops::OpDef& op, Params params, std::vector<ValueId> inputs,
                                           const std::string& output_name) {
  Node node;
  node.op = &op;
  node.params = std::move(params);
  node.name = source_name_;
  node.origin = origin_;
  node.inputs = std::move(inputs);
  OperandTables tables = operand_tables(graph_, node);
  std::vector<TensorDesc> descs(static_cast<std::size_t>(op.outputs));
  const Status status = ops::infer(op, node.params.data(), tables.inputs, descs);
  if (!status.ok()) return fail(node_error(status, source_name_, origin_, op, tables.inputs));

  std::vector<Constant> folded;
  if (all_constant(graph_, node.inputs) && spend_folding(op, node, tables, descs)) {
    auto constants = evaluate(op, node.params, tables.inputs, descs);
    if (!constants) return fail(std::move(constants.error()).in(fmt::format("node '{}' ({})", source_name_, origin_)));
    folded = std::move(*constants);
  }

  const auto node_id = static_cast<NodeId>(graph_.nodes.size());
  for (std::size_t i = 0; i < descs.size(); ++i) {
    Value v;
    v.desc = descs[i];
    if (i == 0) v.name = output_name;
    if (folded.empty()) {
      v.producer = node_id;
    } else {
      v.constant = std::move(folded[i]);
      v.quantized_source = quantized_source_of(graph_, node);
    }
    node.outputs.push_back(descs[i].present() ? graph_.add_value(std::move(v)) : kNone);
  }
  std::vector<ValueId> outputs = node.outputs;
  if (folded.empty()) graph_.nodes.push_back(std::move(node));
  return outputs;
}

Result<std::vector<ValueId>> Builder::emit_control(const ops::OpDef& op, Params params, std::vector<ValueId> inputs,
                                                   std::vector<Graph> bodies) {
  Node node;
  node.op = &op;
  node.params = std::move(params);
  node.name = source_name_;
  node.origin = origin_;
  node.inputs = std::move(inputs);
  node.bodies = std::move(bodies);
  const std::size_t conditions = node.is(kLoop) ? 1 : 0;
  node.outputs.assign(node.bodies.front().outputs.size() - conditions, kNone);
  if (auto sound = check_control(graph_, node, 0); !sound)
    return fail(std::move(sound.error()).in(fmt::format("node '{}' ({})", source_name_, origin_)));
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    Value v;
    v.desc = control_result(node, i);
    v.producer = static_cast<NodeId>(graph_.nodes.size());
    node.outputs[i] = graph_.add_value(std::move(v));
  }
  std::vector<ValueId> outputs = node.outputs;
  graph_.nodes.push_back(std::move(node));
  return outputs;
}

Result<ValueId> Builder::emit1(const ops::OpDef& op, Params params, std::vector<ValueId> inputs,
                               const std::string& output_name) {
  auto outputs = emit(op, std::move(params), std::move(inputs), output_name);
  if (!outputs) return fail(std::move(outputs.error()));
  return outputs->front();
}

Result<ValueId> Builder::transpose(ValueId x, std::span<const int> perm) {
  bool identity = true;
  ops::TransposeParams params;
  params.perm.size = static_cast<std::int32_t>(perm.size());
  for (std::size_t i = 0; i < perm.size() && i < static_cast<std::size_t>(kMaxRank); ++i) {
    params.perm.v[i] = perm[i];
    identity = identity && perm[i] == static_cast<int>(i);
  }
  if (identity && perm.size() == desc(x).rank) return x;
  return emit1(ops::kTranspose, params, {x});
}

Result<ValueId> Builder::reshape(ValueId x, std::span<const std::int64_t> dims) {
  TensorDesc wanted;
  const Status status = make_desc(desc(x).type, dims.data(), static_cast<int>(dims.size()), &wanted);
  if (!status.ok()) return fail(error_from(status).in(fmt::format("node '{}' ({})", source_name_, origin_)));
  if (same_shape_and_type(wanted, desc(x))) return x;
  ops::ReshapeParams params;
  params.shape.size = wanted.rank;
  std::copy_n(wanted.dims, wanted.rank, params.shape.v);
  return emit1(ops::kReshape, params, {x});
}

Result<ValueId> Builder::cast(ValueId x, ElementType to) {
  if (desc(x).type == to) return x;
  return emit1(ops::kCast, ops::CastParams{to}, {x});
}

}  // namespace bantam::graph
