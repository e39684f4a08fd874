// ONNX operators that sample images at computed places: GridSample, AffineGrid, RoiAlign, MaxRoiPool, DeformConv.
#include <fmt/format.h>

#include <algorithm>

#include "import/onnx/spatial.h"
#include "ops/nn/deform_conv2d/deform_conv2d.h"
#include "ops/nn/grid_sample/grid_sample.h"
#include "ops/nn/roi_pool/roi_pool.h"

namespace bantam::import::onnx {
namespace {

ops::GridSampleMode grid_sample_mode(NodeLowering& n) {
  const std::string_view mode = n.attr_string("mode", "linear");
  if (mode == "linear" || mode == "bilinear") return ops::GridSampleMode::kLinear;
  if (mode == "nearest") return ops::GridSampleMode::kNearest;
  if (mode == "cubic" || mode == "bicubic") return ops::GridSampleMode::kCubic;
  n.fail(fmt::format("attribute 'mode' = '{}' is not supported, only linear, nearest and cubic", printable(mode)));
  return ops::GridSampleMode::kLinear;
}

ops::GridSamplePadding grid_sample_padding(NodeLowering& n) {
  const std::string_view mode = n.attr_string("padding_mode", "zeros");
  if (mode == "zeros") return ops::GridSamplePadding::kZeros;
  if (mode == "border") return ops::GridSamplePadding::kBorder;
  if (mode == "reflection") return ops::GridSamplePadding::kReflection;
  n.fail(fmt::format("attribute 'padding_mode' = '{}' is not supported, only zeros, border and reflection",
                     printable(mode)));
  return ops::GridSamplePadding::kZeros;
}

/// Axis 1 to the end, and back; unlike to_channels_last a single spatial axis stays alone.
ValueId move_channels(NodeLowering& n, ValueId x, bool to_the_end) {
  const int rank = n.rank(x);
  if (n.failed()) return kNone;
  if (rank < 3) {
    n.fail(fmt::format("an operand of rank {} has no spatial axes, expected [N, C, ...]", rank),
           StatusCode::kInvalidModel);
    return kNone;
  }
  std::vector<int> perm{0};
  if (!to_the_end) perm.push_back(rank - 1);
  for (int i = to_the_end ? 2 : 1; i < (to_the_end ? rank : rank - 1); ++i) perm.push_back(i);
  if (to_the_end) perm.push_back(1);
  return n.transpose(x, perm);
}

void lower_grid_sample(NodeLowering& n) {
  ops::GridSampleParams params;
  params.mode = grid_sample_mode(n);
  params.padding = grid_sample_padding(n);
  params.align_corners = n.attr_int("align_corners", 0) != 0 ? 1 : 0;
  const ValueId y = n.emit(ops::kGridSample, params, {move_channels(n, n.input(0), true), n.input(1)});
  n.set_output(0, move_channels(n, y, false));
}

/// Coordinates of the centres of `size` elements, the first and the last one at -1 and 1 with align_corners.
std::vector<float> centres(std::int64_t size, bool align_corners) {
  std::vector<float> result;
  for (std::int64_t i = 0; i < size; ++i) {
    const double step =
        align_corners ? (size > 1 ? 2.0 / static_cast<double>(size - 1) : 0.0) : 2.0 / static_cast<double>(size);
    const double start = align_corners ? -1.0 : -1.0 + step / 2;
    result.push_back(static_cast<float>(start + step * static_cast<double>(i)));
  }
  return result;
}

/// theta [N, k, k + 1] applied to the coordinates (x, y, ..., 1) of every element of an image of k axes: per axis the
/// products of its coordinates with one column, added from the last axis to the first, so that only the last sum is as
/// large as the result.
void lower_affine_grid(NodeLowering& n) {
  const ValueId theta = n.input(0);
  const auto size = n.integers(1, "size");
  const bool align_corners = n.attr_int("align_corners", 0) != 0;
  if (n.failed()) return;
  const auto axes = static_cast<int>(size.size()) - 2;
  if (axes != 2 && axes != 3)
    return n.fail(fmt::format("operand 1 (size) has {} entries, expected 4 or 5", size.size()),
                  StatusCode::kInvalidModel);
  const TensorDesc t = n.desc(theta);
  if (t.rank != 3 || t.dims[0] != size[0] || t.dims[1] != axes || t.dims[2] != axes + 1)
    return n.fail(
        fmt::format("operand 0 (theta) must be [{}, {}, {}], it is {}", size[0], axes, axes + 1, format_desc(t)),
        StatusCode::kInvalidModel);
  constexpr std::int64_t kMaxSize = 1 << 20;
  if (*std::min_element(size.begin() + 2, size.end()) < 0 || *std::max_element(size.begin() + 2, size.end()) > kMaxSize)
    return n.fail(fmt::format("operand 1 (size) is out of range, at most {} per axis are supported", kMaxSize));
  // Column c of theta as [N, 1, ..., 1, k].
  const auto column = [&](int c) {
    std::vector<std::int64_t> dims(static_cast<std::size_t>(axes) + 2, 1);
    dims.front() = size[0];
    dims.back() = axes;
    return n.reshape(n.slice(theta, 2, c, 1), dims);
  };
  ValueId sum = column(axes);
  for (int axis = axes - 1; axis >= 0; --axis) {
    const auto along = centres(size[static_cast<std::size_t>(axis) + 2], align_corners);
    std::vector<std::int64_t> dims(static_cast<std::size_t>(axes) + 2, 1);
    dims[static_cast<std::size_t>(axis) + 1] = static_cast<std::int64_t>(along.size());
    const ValueId coordinates = n.builder().constant<float>("", dims, std::span<const float>(along));
    const ValueId product = n.binary(ops::BinaryFunction::kMul, coordinates, column(axes - 1 - axis));
    sum = n.binary(ops::BinaryFunction::kAdd, sum, product);
  }
  n.set_output(0, sum);
}

ValueId emit_roi_pool(NodeLowering& n, const ops::RoiPoolParams& params, ValueId x, ValueId regions, ValueId images) {
  return n.transpose(n.emit(ops::kRoiPool, params, {n.transpose(x, {0, 2, 3, 1}), regions, images}), {0, 3, 1, 2});
}

bool is_image(NodeLowering& n, ValueId x) {
  if (!n.failed() && n.rank(x) != 4)
    n.fail(fmt::format("operand 0 must be [N, C, H, W], it is {}", format_desc(n.desc(x))), StatusCode::kInvalidModel);
  return !n.failed();
}

/// Before operator set 16 regions are not moved by half a pixel.
void lower_roi_align(NodeLowering& n) {
  ops::RoiPoolParams params;
  const std::string_view mode = n.attr_string("mode", "avg");
  if (mode != "avg" && mode != "max")
    n.fail(fmt::format("attribute 'mode' = '{}' is not supported, only avg and max", printable(mode)));
  const std::string_view coordinates =
      n.attr_string("coordinate_transformation_mode", n.opset() < 16 ? "output_half_pixel" : "half_pixel");
  if (coordinates != "half_pixel" && coordinates != "output_half_pixel")
    n.fail(
        fmt::format("attribute 'coordinate_transformation_mode' = '{}' is not supported, only half_pixel and "
                    "output_half_pixel",
                    printable(coordinates)));
  params.mode = mode == "max" ? ops::RoiPoolMode::kMax : ops::RoiPoolMode::kAverage;
  params.half_pixel = coordinates == "half_pixel" ? 1 : 0;
  params.output_h = n.attr_int32("output_height", 1);
  params.output_w = n.attr_int32("output_width", 1);
  params.samples = n.attr_int32("sampling_ratio", 0);
  params.spatial_scale = n.attr_float("spatial_scale", 1.0F);
  const ValueId x = n.input(0);
  if (is_image(n, x)) n.set_output(0, emit_roi_pool(n, params, x, n.input(1), n.input(2)));
}

/// Regions are [image, x1, y1, x2, y2].
void lower_max_roi_pool(NodeLowering& n) {
  ops::RoiPoolParams params;
  params.mode = ops::RoiPoolMode::kRoundedMax;
  const auto shape = n.attr_ints("pooled_shape");
  params.spatial_scale = n.attr_float("spatial_scale", 1.0F);
  const ValueId x = n.input(0);
  const ValueId regions = n.input(1);
  if (!is_image(n, x)) return;
  const TensorDesc r = n.desc(regions);
  if (r.rank != 2 || r.dims[1] != 5)
    return n.fail(fmt::format("operand 1 (rois) must be [R, 5], it is {}", format_desc(r)), StatusCode::kInvalidModel);
  if (shape.size() != 2 || *std::min_element(shape.begin(), shape.end()) < 1 ||
      *std::max_element(shape.begin(), shape.end()) > kMaxElements)
    return n.fail("attribute 'pooled_shape' must be two positive sizes", StatusCode::kInvalidModel);
  params.output_h = static_cast<std::int32_t>(shape[0]);
  params.output_w = static_cast<std::int32_t>(shape[1]);
  const ValueId images = n.cast(n.reshape(n.slice(regions, 1, 0, 1), {r.dims[0]}), ElementType::kI32);
  n.set_output(0, emit_roi_pool(n, params, x, n.slice(regions, 1, 1, 4), images));
}

void lower_deform_conv(NodeLowering& n) {
  const ValueId x = n.input(0);
  const ValueId weights = n.input(1);
  if (!is_image(n, x)) return;
  const TensorDesc w = n.desc(weights);
  if (w.rank != 4)
    return n.fail(fmt::format("operand 1 (weights) must have rank 4, it is {}", format_desc(w)),
                  StatusCode::kInvalidModel);
  const std::vector<std::int32_t> kernel{w.dims[2], w.dims[3]};
  if (n.has_attr("kernel_shape") && read_spatial(n, "kernel_shape", 4, 1) != kernel)
    n.fail(fmt::format("attribute 'kernel_shape' does not agree with the weights, {}", format_desc(w)),
           StatusCode::kInvalidModel);
  const auto window = read_window(n, x, kernel);
  if (n.failed()) return;
  ops::DeformConv2dParams params;
  set_window(params, window[0], window[1]);
  params.groups = n.attr_int32("group", 1);
  params.offset_groups = n.attr_int32("offset_group", 1);
  const auto last = [&](ValueId id) { return id == kNone ? kNone : n.transpose(id, {0, 2, 3, 1}); };
  const ValueId y = n.emit(ops::kDeformConv2d, params,
                           {last(x), last(weights), last(n.input(2)), n.optional(3), last(n.optional(4))});
  n.set_output(0, n.transpose(y, {0, 3, 1, 2}));
}

constexpr OperatorRow kSamplingOperators[] = {
    {"", "AffineGrid", 20, kNewest, lower_affine_grid}, {"", "DeformConv", 19, kNewest, lower_deform_conv},
    {"", "GridSample", 16, kNewest, lower_grid_sample}, {"", "MaxRoiPool", 1, kNewest, lower_max_roi_pool},
    {"", "RoiAlign", 10, kNewest, lower_roi_align},
};

}  // namespace

std::span<const OperatorRow> sampling_operators() { return kSamplingOperators; }

}  // namespace bantam::import::onnx
