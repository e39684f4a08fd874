// What resize and resize_affine have in common at compile time: the parameters' description, their validation, and the
// amount of work. Freestanding, pure.
#pragma once

#include <array>

#include "ops/common/params.h"
#include "ops/nn/resize/resize.h"

namespace bantam::ops {

inline constexpr std::string_view kResizeModeNames[] = {"nearest", "linear", "cubic"};
inline constexpr std::string_view kResizeCoordinateNames[] = {
    "half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel", "half_pixel_symmetric", "crop_and_resize"};
inline constexpr std::string_view kResizeNearestNames[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"};
static_assert(std::size(kResizeModeNames) == static_cast<std::size_t>(ResizeMode::kCount));
static_assert(std::size(kResizeCoordinateNames) == static_cast<std::size_t>(ResizeCoordinates::kCount));
static_assert(std::size(kResizeNearestNames) == static_cast<std::size_t>(ResizeNearest::kCount));

/// Field rows of ResizeParams at `base` of the parameters.
constexpr auto resize_fields(std::size_t base) {
  return std::array{
      enum_field("mode", base + offsetof(ResizeParams, mode), kResizeModeNames),
      enum_field("coordinates", base + offsetof(ResizeParams, coordinates), kResizeCoordinateNames),
      enum_field("nearest", base + offsetof(ResizeParams, nearest), kResizeNearestNames),
      list_field("sizes", base + offsetof(ResizeParams, sizes)),
      f32_field("scales", base + offsetof(ResizeParams, scales), kMaxRank),
      f32_field("roi_start", base + offsetof(ResizeParams, roi_start), kMaxRank),
      f32_field("roi_end", base + offsetof(ResizeParams, roi_end), kMaxRank),
      f32_field("cubic_coefficient", base + offsetof(ResizeParams, cubic_coefficient)),
      bool_field("exclude_outside", base + offsetof(ResizeParams, exclude_outside)),
      f32_field("extrapolation", base + offsetof(ResizeParams, extrapolation)),
      bool_field("antialias", base + offsetof(ResizeParams, antialias)),
      list_field("first_output", base + offsetof(ResizeParams, first_output)),
      list_field("first_input", base + offsetof(ResizeParams, first_input)),
  };
}

/// Validates the parameters for operand x, but for its type, and makes the result's desc, of that type.
Status infer_resampling(const ResizeParams& p, const TensorDesc& x, ElementType type, TensorDesc* result);

/// Multiply-accumulate operations of linear and cubic resampling, as OpDef::work counts them.
std::int64_t resampling_work(const ResizeParams& p, const TensorDesc& x, const TensorDesc& result);

}  // namespace bantam::ops
