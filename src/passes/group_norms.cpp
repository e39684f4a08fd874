// Normalises groups of channels where they lie. Exporters write group normalisation, and normalisation over all of an
// image, as a reshape that brings a group's elements into one row, a normalisation of rows, a reshape back, and a scale
// and bias of channels; the rows exist in one layout only.
//
//   reshape(norm(reshape(x))), x [B,C,...] and rows [B,G,C/G * ...] -> norm over all axes of x but the first, if G = 1;
//     over all but the first two, if G = C; else of x with channels as two axes, groups and members of one
//   that * or + one number per channel -> scale or bias of the norm
//
// The same sums over the reals; float results differ by a few units in the last place.
#include <algorithm>

#include "ops/data/reshape/reshape.h"
#include "ops/nn/norm/norm.h"
#include "passes/list.h"
#include "passes/rewriter.h"

namespace bantam::passes {
namespace {

using graph::kNone;
using graph::Node;
using graph::ValueId;
using ops::BinaryFunction;
using Replacement = std::optional<ValueId>;

/// Are these the same as absent ones: factors of 1, terms of 0?
bool changes_nothing(const Rewriter& rewriter, const Node& norm) {
  for (std::size_t i = 1; i < norm.inputs.size(); ++i)
    if (norm.inputs[i] != kNone && !is_splat(rewriter.graph(), norm.inputs[i], i == 1 ? 1 : 0)) return false;
  return true;
}

/// Groups of the channels of x that are the rows of `rows`: the dimension of that name; 0 when they are no groups.
std::int32_t groups_of(const TensorDesc& x, const TensorDesc& rows, const ops::IntList& axes) {
  if (x.rank < 3 || rows.rank < 3 || x.elements() == 0 || rows.dims[0] != x.dims[0] || x.dims[1] % rows.dims[1] != 0)
    return 0;
  if (axes.size != rows.rank - 2) return 0;
  for (int i = 0; i < axes.size; ++i)
    if (axes[i] != i + 2) return 0;
  return rows.dims[1];
}

/// x with channels as two axes, groups and members of one.
TensorDesc with_groups(TensorDesc x, std::int32_t groups) {
  std::copy_backward(x.dims + 2, x.dims + x.rank, x.dims + x.rank + 1);
  x.dims[2] = x.dims[1] / groups;
  x.dims[1] = groups;
  ++x.rank;
  return x;
}

ops::NormParams over_axes(const Node& norm, int first, int rank) {
  ops::NormParams params = norm.as<ops::NormParams>();
  params.axes.size = 0;
  for (int axis = first; axis < rank; ++axis) params.axes.v[params.axes.size++] = axis;
  return params;
}

Replacement normalise_in_place(Rewriter& rewriter, const Node& node) {
  const Node* norm = rewriter.only_producer(node.inputs[0], ops::kNorm);
  const Node* before = norm != nullptr ? rewriter.only_producer(norm->inputs[0], ops::kReshape) : nullptr;
  if (before == nullptr || !changes_nothing(rewriter, *norm)) return std::nullopt;
  const ValueId x = before->inputs[0];
  const TensorDesc desc = rewriter.desc(x);
  if (!same_shape_and_type(desc, rewriter.desc(node.outputs[0]))) return std::nullopt;
  const std::int32_t groups = groups_of(desc, rewriter.desc(norm->inputs[0]), norm->as<ops::NormParams>().axes);
  if (groups == 0) return std::nullopt;
  rewriter.set_source(norm->name, norm->origin);
  if (groups == 1) return rewriter.emit(ops::kNorm, over_axes(*norm, 1, desc.rank), {x});
  if (groups == desc.dims[1]) return rewriter.emit(ops::kNorm, over_axes(*norm, 2, desc.rank), {x});
  if (desc.rank == kMaxRank) return std::nullopt;
  const ops::NormParams params = over_axes(*norm, 2, desc.rank + 1);
  const auto apart = rewriter.reshape(x, with_groups(desc, groups));
  const auto y = apart ? rewriter.emit(ops::kNorm, params, {*apart}) : std::nullopt;
  return y ? rewriter.reshape(*y, desc) : std::nullopt;
}

/// A constant with a number for each channel of x, or for all, as it broadcasts to x with groups.
Replacement beside_groups(Rewriter& rewriter, ValueId constant, const TensorDesc& x, const TensorDesc& grouped) {
  const TensorDesc& c = rewriter.desc(constant);
  const bool per_channel = c.elements() == x.dims[1] && c.rank >= x.rank - 1 && c.last(x.rank - 2) == x.dims[1];
  if (!rewriter.graph().is_constant(constant) || c.type != x.type || c.rank > x.rank ||
      (c.elements() != 1 && !per_channel))
    return std::nullopt;
  TensorDesc wide = grouped;
  std::fill_n(wide.dims, wide.rank, 1);
  if (per_channel) std::copy_n(grouped.dims + 1, 2, wide.dims + 1);
  return rewriter.reshape(constant, wide);
}

/// Scale (slot 1) or bias (2) of channels behind the norm of groups.
Replacement take_in(Rewriter& rewriter, const Node& node, std::size_t slot) {
  for (const std::size_t i : {std::size_t{0}, std::size_t{1}}) {
    const Node* back = rewriter.only_producer(node.inputs[i], ops::kReshape);
    const Node* norm = back != nullptr ? rewriter.only_producer(back->inputs[0], ops::kNorm) : nullptr;
    if (norm == nullptr) continue;
    const TensorDesc x = rewriter.desc(node.inputs[i]);
    const TensorDesc grouped = rewriter.desc(norm->inputs[0]);
    if (x.rank < 3 || x.rank == kMaxRank || !same_shape_and_type(x, rewriter.desc(node.outputs[0])) ||
        grouped.dims[1] == 0 || !same_shape_and_type(with_groups(x, grouped.dims[1]), grouped))
      continue;
    std::vector<ValueId> inputs = norm->inputs;
    inputs.resize(3, kNone);
    // A scale must come before the bias, and neither twice.
    if (inputs[2] != kNone || inputs[slot] != kNone) continue;
    const auto parameter = beside_groups(rewriter, node.inputs[1 - i], x, grouped);
    if (!parameter) continue;
    inputs[slot] = *parameter;
    rewriter.set_fused_source(*norm, node);
    const auto y = rewriter.emit(ops::kNorm, norm->params, std::move(inputs));
    return y ? rewriter.reshape(*y, x) : std::nullopt;
  }
  return std::nullopt;
}

Replacement rewrite(Rewriter& rewriter, const Node& node) {
  if (node.is(ops::kReshape)) return normalise_in_place(rewriter, node);
  if (is_plain_binary(node, BinaryFunction::kMul)) return take_in(rewriter, node, 1);
  if (is_plain_binary(node, BinaryFunction::kAdd)) return take_in(rewriter, node, 2);
  return std::nullopt;
}

}  // namespace

Result<bool> group_norms(graph::Graph& graph) { return Rewriter(graph).sweep(rewrite); }

}  // namespace bantam::passes
