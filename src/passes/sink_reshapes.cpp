// Moves reshapes behind element-wise operators, next to what else they stand beside, so that operators meet which later
// passes fuse: a convolution of a sequence and its normalisation and activation, say, have a reshape between them.
//
// f(reshape(x)) becomes reshape(f(x)) for unary and cast, and for binary with one other number, or with one number per
// channel when the reshape keeps the last axis. Only when nobody else reads the reshaped value. Bit for bit the same.
#include <algorithm>
#include <utility>

#include "ops/data/reshape/reshape.h"
#include "ops/elementwise/binary/binary.h"
#include "ops/elementwise/cast/cast.h"
#include "ops/elementwise/unary/unary.h"
#include "passes/list.h"
#include "passes/rewriter.h"

namespace bantam::passes {
namespace {

using graph::Node;
using graph::ValueId;
using Replacement = std::optional<ValueId>;

/// The reshape whose result is operand `i`, and is read by the node alone; null if there is none.
const Node* reshape_before(const Rewriter& rewriter, const Node& node, std::size_t i) {
  return rewriter.only_producer(node.inputs[i], ops::kReshape);
}

/// The node with these operands, then the reshape.
Replacement with_operands(Rewriter& rewriter, const Node& node, std::vector<ValueId> inputs, graph::Params reshape) {
  rewriter.set_source(node.name, node.origin);
  const auto y = rewriter.emit(*node.op, node.params, std::move(inputs));
  return y ? rewriter.emit(ops::kReshape, std::move(reshape), {*y}) : std::nullopt;
}

bool same_dims(const TensorDesc& a, const TensorDesc& b) {
  return a.rank == b.rank && std::equal(a.dims, a.dims + a.rank, b.dims);
}

/// `other` as it broadcasts against `x` in place of `y`, x reshaped.
Replacement beside(Rewriter& rewriter, ValueId other, const TensorDesc& x, const TensorDesc& y) {
  TensorDesc desc = rewriter.desc(other);
  const std::int64_t n = desc.elements();
  const bool per_channel = x.rank > 0 && y.rank > 0 && desc.rank > 0 && x.last(0) == y.last(0) && n == y.last(0) &&
                           desc.last(0) == y.last(0);
  if (desc.rank > y.rank || (n != 1 && !per_channel)) return std::nullopt;
  desc.rank = per_channel ? 1 : 0;
  desc.dims[0] = static_cast<std::int32_t>(n);
  return rewriter.reshape(other, desc);
}

Replacement sink_below_function(Rewriter& rewriter, const Node& node) {
  if (!node.is(ops::kUnary) && !node.is(ops::kCast)) return std::nullopt;
  const Node* reshape = reshape_before(rewriter, node, 0);
  return reshape != nullptr ? with_operands(rewriter, node, {reshape->inputs[0]}, reshape->params) : std::nullopt;
}

Replacement sink(Rewriter& rewriter, const Node& node) {
  if (!node.is(ops::kBinary)) return sink_below_function(rewriter, node);
  const TensorDesc y = rewriter.desc(node.outputs[0]);
  for (const std::size_t i : {0U, 1U}) {
    const Node* reshape = reshape_before(rewriter, node, i);
    if (reshape == nullptr || !same_dims(rewriter.desc(node.inputs[i]), y)) continue;
    const ValueId x = reshape->inputs[0];
    graph::Params params = reshape->params;
    const auto other = beside(rewriter, node.inputs[1 - i], rewriter.desc(x), y);
    if (!other) continue;
    return with_operands(rewriter, node, i == 0 ? std::vector{x, *other} : std::vector{*other, x}, std::move(params));
  }
  return std::nullopt;
}

}  // namespace

Result<bool> sink_reshapes(graph::Graph& graph) { return Rewriter(graph).sweep(sink); }

Result<bool> sink_reshapes_at_any_size(graph::Graph& graph) { return Rewriter(graph).sweep(sink_below_function); }

}  // namespace bantam::passes
