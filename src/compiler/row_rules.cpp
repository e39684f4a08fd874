#include "compiler/row_rules.h"

#include <algorithm>

#include "ops/data/concat/concat.h"
#include "ops/data/copy/copy.h"
#include "ops/data/pad/pad.h"
#include "ops/data/slice/slice.h"
#include "ops/data/transpose/transpose.h"
#include "ops/elementwise/activation_i16/activation_i16.h"
#include "ops/elementwise/binary/binary.h"
#include "ops/elementwise/binary_affine/binary_affine.h"
#include "ops/elementwise/binary_q/binary_q.h"
#include "ops/elementwise/cast/cast.h"
#include "ops/elementwise/dequantize/dequantize.h"
#include "ops/elementwise/lookup8/lookup8.h"
#include "ops/elementwise/multiply_add/multiply_add.h"
#include "ops/elementwise/quantize/quantize.h"
#include "ops/elementwise/requantize/requantize.h"
#include "ops/elementwise/select/select.h"
#include "ops/elementwise/unary/unary.h"
#include "ops/nn/conv2d/conv2d.h"
#include "ops/nn/conv2d_affine/conv2d_affine.h"
#include "ops/nn/depthwise_conv2d/depthwise_conv2d.h"
#include "ops/nn/matmul/matmul.h"
#include "ops/nn/matmul_affine/matmul_affine.h"
#include "ops/nn/norm/norm.h"
#include "ops/nn/planar_conv2d/planar_conv2d.h"
#include "ops/nn/pool2d/pool2d.h"
#include "ops/nn/resize/resize.h"
#include "ops/nn/resize/sampling.h"
#include "ops/nn/resize_affine/resize_affine.h"
#include "ops/nn/separable_conv2d/separable_conv2d.h"
#include "ops/nn/separable_conv2d_affine/separable_conv2d_affine.h"

namespace bantam::compiler {
namespace {

using graph::Graph;
using graph::Node;

const TensorDesc& operand(const Graph& graph, const Node& node, std::size_t i) {
  return graph.value(node.inputs[i]).desc;
}

/// Everything whole, parameters as they are: what rules start from.
RowBand whole(const Node& node) { return {node.params, std::vector<RowOperand>(node.inputs.size())}; }

/// The members of one axis of a sliding window, in any operator's parameters.
struct Window {
  std::int64_t kernel, stride, dilation;
  std::int32_t* pad_before;
  std::int32_t* pad_after;
};

/// Height is axis 1 of an image, width axis 2.
template <typename P>
Window window_of(P& params, int axis, std::int64_t kernel) {
  if (axis == 1) return {kernel, params.stride_h, params.dilation_h, &params.pad_top, &params.pad_bottom};
  return {kernel, params.stride_w, params.dilation_w, &params.pad_left, &params.pad_right};
}

/// The rows of the image under the windows of `rows`; what lies beyond it becomes padding. Nothing when some rows would
/// see padding alone.
std::optional<RowRange> under_windows(const Window& w, std::int64_t extent, RowRange rows) {
  const std::int64_t begin = rows.first * w.stride - *w.pad_before;
  const std::int64_t end = (rows.last - 1) * w.stride - *w.pad_before + (w.kernel - 1) * w.dilation + 1;
  const RowRange inside{std::max<std::int64_t>(begin, 0), std::min(end, extent)};
  if (inside.size() < 1) return std::nullopt;
  *w.pad_before = static_cast<std::int32_t>(inside.first - begin);
  *w.pad_after = static_cast<std::int32_t>(end - inside.last);
  return inside;
}

/// `image_axis`: where the rows are counted in the image, as `axis` in the result.
template <typename P>
std::optional<RowBand> windowed(const Graph& graph, const Node& node, int axis, RowRange rows, std::int64_t kernel,
                                int image_axis) {
  if (axis != 1 && axis != 2) return std::nullopt;
  RowBand band = whole(node);
  const auto inside =
      under_windows(window_of(band.params.as<P>(), axis, kernel), operand(graph, node, 0).dims[image_axis], rows);
  if (!inside) return std::nullopt;
  band.operands[0] = {image_axis, *inside};
  return band;
}

template <typename P>
std::optional<RowBand> windowed(const Graph& graph, const Node& node, int axis, RowRange rows, std::int64_t kernel) {
  return windowed<P>(graph, node, axis, rows, kernel, axis);
}

/// A hybrid convolution quantises all of its image by the image's largest element.
bool is_hybrid(const Graph& graph, const Node& node) {
  return operand(graph, node, 0).type == ElementType::kF32 && operand(graph, node, 1).type != ElementType::kF32;
}

std::optional<RowBand> conv2d(const Graph& graph, const Node& node, int axis, RowRange rows) {
  if (is_hybrid(graph, node)) return std::nullopt;
  return windowed<ops::Conv2dParams>(graph, node, axis, rows, operand(graph, node, 1).dims[axis]);
}

/// Height and width come behind the channels of the image.
std::optional<RowBand> planar_conv2d(const Graph& graph, const Node& node, int axis, RowRange rows) {
  return windowed<ops::Conv2dParams>(graph, node, axis, rows, operand(graph, node, 1).dims[axis], axis + 1);
}

std::optional<RowBand> depthwise_conv2d(const Graph& graph, const Node& node, int axis, RowRange rows) {
  if (is_hybrid(graph, node) || axis < 1) return std::nullopt;
  return windowed<ops::Conv2dParams>(graph, node, axis, rows, operand(graph, node, 1).dims[axis - 1]);
}

std::optional<RowBand> separable_conv2d(const Graph& graph, const Node& node, int axis, RowRange rows) {
  return axis < 1 ? std::nullopt
                  : windowed<ops::Conv2dParams>(graph, node, axis, rows, operand(graph, node, 1).dims[axis - 1]);
}

std::optional<RowBand> conv2d_affine(const Graph& graph, const Node& node, int axis, RowRange rows) {
  return windowed<ops::Conv2dAffineParams>(graph, node, axis, rows, operand(graph, node, 1).dims[axis]);
}

std::optional<RowBand> pool2d(const Graph& graph, const Node& node, int axis, RowRange rows) {
  const auto& p = node.as<ops::Pool2dParams>();
  // With ceil_mode the last window reaches beyond the padding, into what is never counted: as padding it would be.
  if (p.ceil_mode != 0 && p.count_include_pad != 0) return std::nullopt;
  auto band = windowed<ops::Pool2dParams>(graph, node, axis, rows, axis == 1 ? p.kernel_h : p.kernel_w);
  if (!band || p.ceil_mode == 0) return band;
  // The other axis keeps its own rounding: what it adds there is written as padding too.
  auto& params = band->params.as<ops::Pool2dParams>();
  const int other = axis == 1 ? 2 : 1;
  const Window w = window_of(params, other, other == 1 ? p.kernel_h : p.kernel_w);
  const std::int64_t positions = graph.value(node.outputs[0]).desc.dims[other];
  const std::int64_t end = (positions - 1) * w.stride - *w.pad_before + (w.kernel - 1) * w.dilation + 1;
  *w.pad_after = static_cast<std::int32_t>(std::max<std::int64_t>(end - operand(graph, node, 0).dims[other], 0));
  params.ceil_mode = 0;
  return band;
}

/// PyTorch's half pixels are half pixels, but for axes of one element.
ops::ResizeCoordinates plain_coordinates(const ops::ResizeParams& p, const TensorDesc& x) {
  if (p.coordinates != ops::ResizeCoordinates::kPytorchHalfPixel) return p.coordinates;
  for (int axis = 0; axis < x.rank; ++axis)
    if (p.sizes[axis] < 2 && ops::resize::is_resampled(p, x, axis)) return p.coordinates;
  return ops::ResizeCoordinates::kHalfPixel;
}

/// The part of the image that these rows are sampled from, as `p`, parameters of `band`, say. Coordinates must not
/// depend on sizes.
std::optional<RowBand> resized(const TensorDesc& x, int axis, RowRange rows, RowBand band, ops::ResizeParams& p) {
  p.coordinates = plain_coordinates(p, x);
  const bool relative =
      p.coordinates == ops::ResizeCoordinates::kHalfPixel || p.coordinates == ops::ResizeCoordinates::kAsymmetric;
  if (!relative || p.antialias != 0) return std::nullopt;
  RowRange sampled = rows;
  if (ops::resize::is_resampled(p, x, axis)) {
    const auto taps = [&](std::int64_t row) {
      return ops::resize::taps_at(p, x, axis, static_cast<std::int32_t>(row));
    };
    const ops::resize::Taps first = taps(rows.first);
    const ops::resize::Taps last = taps(rows.last - 1);
    sampled = {*std::min_element(first.index, first.index + first.count),
               *std::max_element(last.index, last.index + last.count) + 1};
  }
  for (ops::IntList* list : {&p.first_output, &p.first_input}) list->size = x.rank;
  p.first_output.v[axis] += static_cast<std::int32_t>(rows.first);
  p.first_input.v[axis] += static_cast<std::int32_t>(sampled.first);
  p.sizes.v[axis] = static_cast<std::int32_t>(rows.size());
  band.operands[0] = {axis, sampled};
  return band;
}

std::optional<RowBand> resize(const Graph& graph, const Node& node, int axis, RowRange rows) {
  RowBand band = whole(node);
  auto& p = band.params.as<ops::ResizeParams>();
  return resized(operand(graph, node, 0), axis, rows, std::move(band), p);
}

std::optional<RowBand> resize_affine(const Graph& graph, const Node& node, int axis, RowRange rows) {
  RowBand band = whole(node);
  auto& p = band.params.as<ops::ResizeAffineParams>();
  return resized(operand(graph, node, 0), axis, rows, std::move(band), p.resize);
}

/// Operands that broadcast along the rows are needed whole.
std::optional<RowBand> elementwise(const Graph& graph, const Node& node, int axis, RowRange rows) {
  const TensorDesc& result = graph.value(node.outputs[0]).desc;
  RowBand band = whole(node);
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] == graph::kNone) continue;
    const TensorDesc& x = operand(graph, node, i);
    const int own = axis - (result.rank - x.rank);
    if (own >= 0 && x.dims[own] == result.dims[axis] && x.dims[own] != 1) band.operands[i] = {own, rows};
  }
  return band;
}

/// Operand 0 element by element, the others by channel or the same for all.
std::optional<RowBand> first_operand(const Graph& graph, const Node& node, int axis, RowRange rows) {
  if (operand(graph, node, 0).rank != graph.value(node.outputs[0]).desc.rank) return std::nullopt;
  RowBand band = whole(node);
  band.operands[0] = {axis, rows};
  return band;
}

template <typename P>
std::optional<RowBand> scaled(const Graph& graph, const Node& node, int axis, RowRange rows) {
  if (operand(graph, node, 1).elements() > 1 && node.as<P>().axis == axis) return std::nullopt;
  return first_operand(graph, node, axis, rows);
}

std::optional<RowBand> transpose(const Graph& /*graph*/, const Node& node, int axis, RowRange rows) {
  RowBand band = whole(node);
  band.operands[0] = {node.as<ops::TransposeParams>().perm[axis], rows};
  return band;
}

std::optional<RowBand> concat(const Graph& /*graph*/, const Node& node, int axis, RowRange rows) {
  if (node.as<ops::ConcatParams>().axis == axis) return std::nullopt;
  RowBand band = whole(node);
  for (RowOperand& x : band.operands) x = {axis, rows};
  return band;
}

std::optional<RowBand> slice(const Graph& /*graph*/, const Node& node, int axis, RowRange rows) {
  RowBand band = whole(node);
  auto& p = band.params.as<ops::SliceParams>();
  if (p.steps[axis] < 1) return std::nullopt;
  const std::int64_t first = p.starts[axis] + rows.first * p.steps[axis];
  band.operands[0] = {axis, {first, p.starts[axis] + (rows.last - 1) * p.steps[axis] + 1}};
  p.starts.v[axis] = 0;
  p.sizes.v[axis] = static_cast<std::int32_t>(rows.size());
  return band;
}

std::optional<RowBand> pad(const Graph& graph, const Node& node, int axis, RowRange rows) {
  RowBand band = whole(node);
  auto& p = band.params.as<ops::PadParams>();
  if (p.before[axis] == 0 && p.after[axis] == 0) {
    band.operands[0] = {axis, rows};
    return band;
  }
  if (p.mode != ops::PadMode::kConstant || p.before[axis] < 0 || p.after[axis] < 0) return std::nullopt;
  const std::int64_t extent = operand(graph, node, 0).dims[axis];
  const std::int64_t first = p.before[axis];
  const Window w{1, 1, 1, &p.before.v[axis], &p.after.v[axis]};
  if (const auto inside = under_windows(w, extent, rows)) {
    band.operands[0] = {axis, *inside};
    return band;
  }
  // Nothing but padding: some row is read and cropped again.
  const bool above = rows.last <= first;
  band.operands[0] = {axis, above ? RowRange{0, 1} : RowRange{extent - 1, extent}};
  (above ? p.before : p.after).v[axis] = static_cast<std::int32_t>(rows.size());
  (above ? p.after : p.before).v[axis] = -1;
  return band;
}

/// Rows of the left matrix, or of whole products of a batch, where the right matrix is one for all.
std::optional<RowBand> rows_of_product(const Graph& graph, const Node& node, int axis, RowRange rows) {
  const TensorDesc& y = graph.value(node.outputs[0]).desc;
  if (axis == y.rank - 1 || operand(graph, node, 0).rank != y.rank || operand(graph, node, 1).rank != 2)
    return std::nullopt;
  return first_operand(graph, node, axis, rows);
}

std::optional<RowBand> matmul(const Graph& graph, const Node& node, int axis, RowRange rows) {
  if (node.as<ops::MatmulParams>().transpose_a != 0) return std::nullopt;
  return rows_of_product(graph, node, axis, rows);
}

/// Zero points of single rows are not cut.
std::optional<RowBand> matmul_affine(const Graph& graph, const Node& node, int axis, RowRange rows) {
  if (node.inputs.size() > 4 && node.inputs[4] != graph::kNone && operand(graph, node, 4).elements() != 1)
    return std::nullopt;
  return rows_of_product(graph, node, axis, rows);
}

std::optional<RowBand> norm(const Graph& graph, const Node& node, int axis, RowRange rows) {
  const ops::IntList& axes = node.as<ops::NormParams>().axes;
  if (std::find(axes.v, axes.v + axes.size, axis) != axes.v + axes.size) return std::nullopt;
  return elementwise(graph, node, axis, rows);
}

/// What says along which axis an operator's rows are counted, where its neighbours do not.
enum class OwnAxis : std::uint8_t {
  kNeighbours,  ///< nothing
  kWindow,      ///< height, or width where the height is one
  kLongest,     ///< of matrix products: height too, or the longest axis of what is no image
};

struct RowRule {
  const ops::OpDef* op;
  std::optional<RowBand> (*band)(const Graph& graph, const Node& node, int axis, RowRange rows);
  OwnAxis own_axis = OwnAxis::kNeighbours;
};

constexpr RowRule kRules[] = {
    {&ops::kConv2d, conv2d, OwnAxis::kWindow},
    {&ops::kPlanarConv2d, planar_conv2d, OwnAxis::kWindow},
    {&ops::kDepthwiseConv2d, depthwise_conv2d, OwnAxis::kWindow},
    {&ops::kSeparableConv2d, separable_conv2d, OwnAxis::kWindow},
    {&ops::kConv2dAffine, conv2d_affine, OwnAxis::kWindow},
    {&ops::kSeparableConv2dAffine, conv2d_affine, OwnAxis::kWindow},
    {&ops::kPool2d, pool2d, OwnAxis::kWindow},
    {&ops::kResize, resize},
    {&ops::kResizeAffine, resize_affine},
    {&ops::kMatmul, matmul, OwnAxis::kLongest},
    {&ops::kMatmulAffine, matmul_affine, OwnAxis::kLongest},
    {&ops::kNorm, norm},
    {&ops::kUnary, first_operand},
    {&ops::kCast, first_operand},
    {&ops::kCopy, first_operand},
    {&ops::kLookup8, first_operand},
    {&ops::kRequantize, first_operand},
    {&ops::kActivationI16, first_operand},
    {&ops::kQuantize, scaled<ops::QuantizeParams>},
    {&ops::kDequantize, scaled<ops::DequantizeParams>},
    {&ops::kBinary, elementwise},
    {&ops::kBinaryQ, elementwise},
    {&ops::kBinaryAffine, elementwise},
    {&ops::kSelect, elementwise},
    {&ops::kMultiplyAdd, elementwise},
    {&ops::kTranspose, transpose},
    {&ops::kConcat, concat},
    {&ops::kSlice, slice},
    {&ops::kPad, pad},
};

const RowRule* rule_of(const Node& node) {
  const auto it = std::ranges::find(kRules, node.op, &RowRule::op);
  return it == std::end(kRules) ? nullptr : it;
}

}  // namespace

std::optional<RowBand> row_band(const Graph& graph, const Node& node, int axis, RowRange rows) {
  const RowRule* rule = rule_of(node);
  return rule == nullptr ? std::nullopt : rule->band(graph, node, axis, rows);
}

bool has_row_rule(const Node& node) { return rule_of(node) != nullptr; }

int own_row_axis(const Graph& graph, const Node& node) {
  const RowRule* rule = rule_of(node);
  const TensorDesc& y = graph.value(node.outputs[0]).desc;
  const bool is_image = y.rank == 4 && (y.dims[1] > 1 || operand(graph, node, 0).dims[1] > 1);
  if (rule == nullptr || rule->own_axis == OwnAxis::kNeighbours) return -1;
  if (is_image) return 1;
  return rule->own_axis == OwnAxis::kWindow ? 2
                                            : static_cast<int>(std::max_element(y.dims, y.dims + y.rank - 1) - y.dims);
}

}  // namespace bantam::compiler
