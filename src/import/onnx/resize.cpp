// ONNX Resize and its forerunner Upsample.
#include "ops/nn/resize/resize.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/shape.h"
#include "import/onnx/lowering.h"

namespace bantam::import::onnx {
namespace {

ops::ResizeMode resize_mode(NodeLowering& n) {
  const std::string_view mode = n.attr_string("mode", "nearest");
  if (mode == "nearest") return ops::ResizeMode::kNearest;
  if (mode == "linear" || mode == "bilinear") return ops::ResizeMode::kLinear;
  if (mode == "cubic") return ops::ResizeMode::kCubic;
  n.fail(fmt::format("attribute 'mode' = '{}' is not supported, only nearest, linear and cubic", printable(mode)));
  return ops::ResizeMode::kNearest;
}

ops::ResizeCoordinates coordinates(NodeLowering& n) {
  const std::string_view name = n.attr_string("coordinate_transformation_mode", "half_pixel");
  if (name == "half_pixel") return ops::ResizeCoordinates::kHalfPixel;
  if (name == "asymmetric") return ops::ResizeCoordinates::kAsymmetric;
  if (name == "align_corners") return ops::ResizeCoordinates::kAlignCorners;
  if (name == "pytorch_half_pixel") return ops::ResizeCoordinates::kPytorchHalfPixel;
  if (name == "half_pixel_symmetric") return ops::ResizeCoordinates::kHalfPixelSymmetric;
  if (name == "tf_crop_and_resize") return ops::ResizeCoordinates::kCropAndResize;
  n.fail(fmt::format("attribute 'coordinate_transformation_mode' = '{}' is not supported", printable(name)));
  return ops::ResizeCoordinates::kHalfPixel;
}

ops::ResizeNearest nearest(NodeLowering& n) {
  const std::string_view name = n.attr_string("nearest_mode", "round_prefer_floor");
  if (name == "round_prefer_floor" || name.empty()) return ops::ResizeNearest::kRoundPreferFloor;
  if (name == "round_prefer_ceil") return ops::ResizeNearest::kRoundPreferCeil;
  if (name == "floor") return ops::ResizeNearest::kFloor;
  if (name == "ceil") return ops::ResizeNearest::kCeil;
  n.fail(fmt::format("attribute 'nearest_mode' = '{}' is not supported", printable(name)));
  return ops::ResizeNearest::kRoundPreferFloor;
}

/// Sets the size of an axis; beyond int32 it is a failure.
void set_size(NodeLowering& n, ops::ResizeParams& params, int axis, double size) {
  if (size >= 0.0 && size <= static_cast<double>(kMaxElements)) {
    params.sizes.v[axis] = static_cast<std::int32_t>(size);
    return;
  }
  n.fail(fmt::format("size {} of axis {} is out of range", size, axis), StatusCode::kInvalidModel);
}

void apply_scales(NodeLowering& n, ops::ResizeParams& params, const TensorDesc& d, std::span<const float> scales,
                  std::span<const int> axes) {
  if (scales.size() != axes.size())
    return n.fail(fmt::format("{} scales are given for {} axes", scales.size(), axes.size()),
                  StatusCode::kInvalidModel);
  for (std::size_t i = 0; i < axes.size() && !n.failed(); ++i) {
    if (!(scales[i] > 0.0F))
      return n.fail(fmt::format("scale {} is not positive", scales[i]), StatusCode::kInvalidModel);
    params.scales[axes[i]] = scales[i];
    const double length = params.coordinates == ops::ResizeCoordinates::kCropAndResize
                              ? params.roi_end[axes[i]] - params.roi_start[axes[i]]
                              : 1.0;
    set_size(n, params, axes[i], std::floor(d.dims[axes[i]] * length * static_cast<double>(scales[i])));
  }
}

void apply_sizes(NodeLowering& n, ops::ResizeParams& params, const TensorDesc& d, std::span<const std::int64_t> sizes,
                 std::span<const int> axes) {
  const std::string_view policy = n.attr_string("keep_aspect_ratio_policy", "stretch");
  if (policy != "stretch" && policy != "not_larger" && policy != "not_smaller")
    n.fail(fmt::format("attribute 'keep_aspect_ratio_policy' = '{}' is not supported", printable(policy)));
  if (sizes.size() != axes.size())
    return n.fail(fmt::format("{} sizes are given for {} axes", sizes.size(), axes.size()), StatusCode::kInvalidModel);
  std::vector<float> scales;
  for (std::size_t i = 0; i < axes.size(); ++i)
    scales.push_back(d.dims[axes[i]] > 0 ? static_cast<float>(sizes[i]) / static_cast<float>(d.dims[axes[i]]) : 1.0F);
  if (n.failed() || scales.empty()) return;
  const float common = policy == "not_larger" ? *std::min_element(scales.begin(), scales.end())
                                              : *std::max_element(scales.begin(), scales.end());
  for (std::size_t i = 0; i < axes.size() && !n.failed(); ++i) {
    const bool stretch = policy == "stretch";
    params.scales[axes[i]] = stretch ? scales[i] : common;
    set_size(n, params, axes[i],
             stretch ? static_cast<double>(sizes[i]) : std::floor(static_cast<double>(common) * d.dims[axes[i]] + 0.5));
  }
}

/// Antialiasing takes one axis at a time, the last one first.
ValueId resample(NodeLowering& n, ValueId x, const ops::ResizeParams& params) {
  if (params.antialias == 0) return n.emit(ops::kResize, params, {x});
  for (int axis = params.sizes.size - 1; axis >= 0 && !n.failed(); --axis) {
    ops::ResizeParams single = params;
    for (int i = 0; i < params.sizes.size; ++i) {
      if (i == axis) continue;
      single.sizes.v[i] = n.desc(x).dims[i];
      single.scales[i] = 1.0F;
    }
    if (params.sizes.v[axis] != n.desc(x).dims[axis] || params.scales[axis] != 1.0F)
      x = n.emit(ops::kResize, single, {x});
  }
  return x;
}

/// Elements that are mixed are mixed as float; integers drop the fraction then, as in ONNX Runtime.
ValueId resample_as_float(NodeLowering& n, ValueId x, const ops::ResizeParams& params) {
  const bool mixed =
      params.mode != ops::ResizeMode::kNearest || params.coordinates == ops::ResizeCoordinates::kCropAndResize;
  if (!mixed) return resample(n, x, params);
  const ElementType type = n.type(x);
  return n.cast(resample(n, n.cast(x, ElementType::kF32), params), type);
}

/// Emits the resampling; images of which only height and width change go through channels-last.
void emit_resize(NodeLowering& n, ValueId x, const ops::ResizeParams& params) {
  if (n.failed()) return;
  const TensorDesc d = n.desc(x);
  const bool image = d.rank == 4 && params.sizes.v[0] == d.dims[0] && params.sizes.v[1] == d.dims[1] &&
                     params.scales[0] == 1.0F && params.scales[1] == 1.0F;
  if (!image) return n.set_output(0, resample_as_float(n, x, params));
  constexpr int kToLast[] = {0, 2, 3, 1};
  ops::ResizeParams turned = params;
  for (int i = 0; i < 4; ++i) {
    turned.sizes.v[i] = params.sizes.v[kToLast[i]];
    turned.scales[i] = params.scales[kToLast[i]];
    turned.roi_start[i] = params.roi_start[kToLast[i]];
    turned.roi_end[i] = params.roi_end[kToLast[i]];
  }
  const ValueId y = resample_as_float(n, n.transpose(x, kToLast), turned);
  n.set_output(0, n.transpose(y, {0, 3, 1, 2}));
}

ops::ResizeParams unchanged(const TensorDesc& d) {
  ops::ResizeParams params;
  params.sizes.size = d.rank;
  std::copy_n(d.dims, d.rank, params.sizes.v);
  return params;
}

std::vector<int> first_axes(int rank) {
  std::vector<int> axes(static_cast<std::size_t>(rank));
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

/// Upsample, and Resize of operator set 10: coordinates are divided by the scale and rounded down.
void lower_upsample(NodeLowering& n) {
  const ValueId x = n.input(0);
  const TensorDesc d = n.desc(x);
  ops::ResizeParams params = unchanged(d);
  params.mode = resize_mode(n);
  params.coordinates = ops::ResizeCoordinates::kAsymmetric;
  params.nearest = ops::ResizeNearest::kFloor;
  const auto scales = n.has_attr("scales") ? n.attr_floats("scales") : n.floats(1, "scales");
  if (n.failed()) return;
  apply_scales(n, params, d, scales, first_axes(d.rank));
  emit_resize(n, x, params);
}

void read_roi(NodeLowering& n, ops::ResizeParams& params, std::span<const int> axes) {
  const auto roi = n.floats(1, "roi");
  if (n.failed()) return;
  if (roi.size() != 2 * axes.size())
    return n.fail(fmt::format("roi has {} entries, expected {}", roi.size(), 2 * axes.size()),
                  StatusCode::kInvalidModel);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    params.roi_start[axes[i]] = roi[i];
    params.roi_end[axes[i]] = roi[i + axes.size()];
  }
}

/// The axes that scales, sizes and roi list, in their order.
std::vector<int> listed_axes(NodeLowering& n, int rank) {
  if (!n.has_attr("axes")) return first_axes(rank);
  const auto values = n.attr_ints("axes");
  n.axes(values, rank);  // refuses repeated and wrong axes
  std::vector<int> axes;
  for (const std::int64_t value : values) axes.push_back(n.axis(value, rank));
  return axes;
}

/// True when an optional operand is there and not empty: writers leave it out either way.
bool given(NodeLowering& n, int i) { return n.has(i) && n.desc(n.input(i)).elements() > 0; }

void lower_resize(NodeLowering& n) {
  const ValueId x = n.input(0);
  const TensorDesc d = n.desc(x);
  ops::ResizeParams params = unchanged(d);
  params.mode = resize_mode(n);
  params.coordinates = coordinates(n);
  params.nearest = nearest(n);
  params.cubic_coefficient = n.attr_float("cubic_coeff_a", -0.75F);
  params.exclude_outside = n.attr_int("exclude_outside", 0) != 0 ? 1 : 0;
  params.extrapolation = n.attr_float("extrapolation_value", 0.0F);
  // Elements are moved, not mixed: there is nothing to smooth.
  params.antialias = n.attr_int("antialias", 0) != 0 && params.mode != ops::ResizeMode::kNearest ? 1 : 0;
  const auto axes = listed_axes(n, d.rank);
  if (n.failed()) return;
  if (params.coordinates == ops::ResizeCoordinates::kCropAndResize) read_roi(n, params, axes);
  if (given(n, 3)) {
    apply_sizes(n, params, d, n.integers(3, "sizes"), axes);
  } else if (given(n, 2)) {
    n.ignore({"keep_aspect_ratio_policy"});  // applies to sizes only
    apply_scales(n, params, d, n.floats(2, "scales"), axes);
  } else {
    n.fail("neither scales nor sizes are given", StatusCode::kInvalidModel);
  }
  emit_resize(n, x, params);
}

constexpr OperatorRow kResizeOperators[] = {
    {"", "Resize", 10, 10, lower_upsample},
    {"", "Resize", 11, kNewest, lower_resize},
    {"", "Upsample", 7, 9, lower_upsample},
};

}  // namespace

std::span<const OperatorRow> resize_operators() { return kResizeOperators; }

}  // namespace bantam::import::onnx
