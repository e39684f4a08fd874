// Drops the taps of convolutions that meet nothing but padding: of a 3x3 window on an image of one pixel eight of nine,
// of a dilated one all that reach beyond a small image. Their weights are neither stored nor read. Padding contributes
// nothing, whatever the weights: exact for integers; for f32 exact but for the sign of a zero, and for weights that are
// no numbers.
#include <algorithm>

#include "ops/data/slice/slice.h"
#include "ops/nn/conv2d/conv2d.h"
#include "ops/nn/conv2d_affine/conv2d_affine.h"
#include "ops/nn/depthwise_conv2d/depthwise_conv2d.h"
#include "passes/list.h"
#include "passes/rewriter.h"

namespace bantam::passes {
namespace {

using graph::Node;
using graph::ValueId;
using Replacement = std::optional<ValueId>;

/// One axis of a convolution: its members of the parameters, and sizes.
struct Axis {
  std::int32_t& dilation;
  std::int32_t& pad_before;
  std::int32_t& pad_after;
  std::int64_t stride;
  std::int64_t taps;
  std::int64_t image;
  std::int64_t results;
};

/// Is tap `tap` of any window inside the image?
bool meets_image(const Axis& axis, std::int64_t tap) {
  const std::int64_t origin = tap * axis.dilation - axis.pad_before;
  const std::int64_t first = origin >= 0 ? 0 : (-origin + axis.stride - 1) / axis.stride;
  return first < axis.results && origin + first * axis.stride < axis.image;
}

/// Taps of one axis.
struct Taps {
  std::int64_t first = 0;
  std::int64_t last = 0;
};

/// From the first to the last that meets the image, and the axis as it is with these alone; all of them where there are
/// none, or where the first or last window would begin or end inside the image.
Taps trim(const Axis& axis) {
  Taps taps{0, axis.taps};
  while (taps.first < taps.last && !meets_image(axis, taps.first)) ++taps.first;
  while (taps.last > taps.first && !meets_image(axis, taps.last - 1)) --taps.last;
  const std::int64_t before = axis.pad_before - taps.first * axis.dilation;
  const std::int64_t after = axis.pad_after - (axis.taps - taps.last) * axis.dilation;
  if (taps.first == taps.last || before < 0 || after < 0) return {0, axis.taps};
  axis.pad_before = static_cast<std::int32_t>(before);
  axis.pad_after = static_cast<std::int32_t>(after);
  if (taps.last - taps.first == 1) axis.dilation = 1;
  return taps;
}

/// `rows`: the dimension of the weights that counts the rows of a window; columns are the next.
template <typename P>
Replacement trim_window(Rewriter& rewriter, const Node& node, int rows) {
  const ValueId w = node.inputs[1];
  if (!rewriter.graph().is_constant(w) || rewriter.value(w).quantized_source != nullptr) return std::nullopt;
  const TensorDesc& x = rewriter.desc(node.inputs[0]);
  const TensorDesc& y = rewriter.desc(node.outputs[0]);
  const TensorDesc& weights = rewriter.desc(w);
  P p = node.as<P>();
  const Taps taps[] = {
      trim({p.dilation_h, p.pad_top, p.pad_bottom, p.stride_h, weights.dims[rows], x.dims[1], y.dims[1]}),
      trim({p.dilation_w, p.pad_left, p.pad_right, p.stride_w, weights.dims[rows + 1], x.dims[2], y.dims[2]})};
  ops::SliceParams slice;
  slice.starts.size = slice.steps.size = slice.sizes.size = weights.rank;
  for (int d = 0; d < weights.rank; ++d) {
    slice.steps.v[d] = 1;
    slice.sizes.v[d] = weights.dims[d];
  }
  bool all = true;
  for (int i = 0; i < 2; ++i) {
    all = all && taps[i].last - taps[i].first == weights.dims[rows + i];
    slice.starts.v[rows + i] = static_cast<std::int32_t>(taps[i].first);
    slice.sizes.v[rows + i] = static_cast<std::int32_t>(taps[i].last - taps[i].first);
  }
  if (all) return std::nullopt;
  const auto trimmed = rewriter.emit(ops::kSlice, slice, {w});
  if (!trimmed) return std::nullopt;
  std::vector<ValueId> inputs = node.inputs;
  inputs[1] = *trimmed;
  return rewriter.emit(*node.op, p, std::move(inputs));
}

}  // namespace

Result<bool> trim_windows(graph::Graph& graph) {
  return Rewriter(graph).sweep([](Rewriter& rewriter, const Node& node) -> Replacement {
    if (node.is(ops::kConv2d)) return trim_window<ops::Conv2dParams>(rewriter, node, 1);
    if (node.is(ops::kDepthwiseConv2d)) return trim_window<ops::Conv2dParams>(rewriter, node, 0);
    if (node.is(ops::kConv2dAffine)) return trim_window<ops::Conv2dAffineParams>(rewriter, node, 1);
    return std::nullopt;
  });
}

/// Other sizes of the image meet other taps.
Result<bool> trim_windows_at_any_size(graph::Graph& /*graph*/) { return false; }

}  // namespace bantam::passes
