// Sliding windows along one axis of an image: how many positions fit, and which taps of a window lie inside the image.
// Shared by convolutions and pooling. Freestanding, pure, defined for all arguments (parameters of packages are not
// trusted).
#pragma once

#include <algorithm>
#include <cstdint>

#include "bantam/status.h"
#include "base/shape.h"

namespace bantam::ops {

struct WindowAxis {
  std::int32_t kernel = 1;
  std::int32_t stride = 1;
  std::int32_t dilation = 1;
  std::int32_t pad_before = 0;
  std::int32_t pad_after = 0;
};

/// The number of window positions along an image of `extent` elements. With `ceil_mode` a last, partial window counts
/// unless it would begin beyond the image and its leading padding.
inline Status window_positions(const WindowAxis& axis, std::int64_t extent, bool ceil_mode, std::int64_t* positions) {
  if (axis.kernel < 1) return failure(StatusCode::kInvalidModel, "window size must be positive", axis.kernel, 1);
  if (axis.stride < 1) return failure(StatusCode::kInvalidModel, "stride must be positive", axis.stride, 1);
  if (axis.dilation < 1) return failure(StatusCode::kInvalidModel, "dilation must be positive", axis.dilation, 1);
  if (axis.pad_before < 0 || axis.pad_after < 0)
    return failure(StatusCode::kInvalidModel, "padding must not be negative", std::min(axis.pad_before, axis.pad_after),
                   0);
  // All summands are below 2^62 in magnitude.
  const std::int64_t padded = extent + axis.pad_before + axis.pad_after;
  const std::int64_t reach = static_cast<std::int64_t>(axis.kernel - 1) * axis.dilation + 1;
  if (reach > padded)
    return failure(StatusCode::kInvalidModel, "window is larger than the padded image", reach, padded);
  const std::int64_t room = padded - reach;
  *positions = room / axis.stride + 1;
  if (ceil_mode && room % axis.stride != 0 && *positions * axis.stride < extent + axis.pad_before) ++*positions;
  if (*positions > kMaxElements)
    return failure(StatusCode::kUnsupported, "window has too many positions", *positions, kMaxElements);
  return ok_status();
}

/// Taps [first, last) of a window; empty when first >= last.
struct TapRange {
  std::int32_t first = 0;
  std::int32_t last = 0;

  constexpr std::int32_t size() const noexcept { return std::max<std::int32_t>(last - first, 0); }
};

/// The taps of the window whose tap 0 lies at `origin` that lie inside [low, high).
constexpr TapRange taps_inside(const WindowAxis& axis, std::int64_t origin, std::int64_t low,
                               std::int64_t high) noexcept {
  const auto taps_before = [&](std::int64_t bound) {
    if (bound <= origin) return std::int64_t{0};
    const std::int64_t gap = bound - origin;
    // Cores without a 64-bit divider would take a hundred instructions to divide by one.
    const std::int64_t taps = axis.dilation == 1 ? gap : (gap + axis.dilation - 1) / axis.dilation;
    return std::min<std::int64_t>(taps, axis.kernel);
  };
  return {static_cast<std::int32_t>(taps_before(low)), static_cast<std::int32_t>(taps_before(high))};
}

/// Where tap 0 of window `position` lies; negative inside the leading padding.
constexpr std::int64_t window_origin(const WindowAxis& axis, std::int64_t position) noexcept {
  return position * axis.stride - axis.pad_before;
}

}  // namespace bantam::ops
