// The sizes and strides of one pooling, gathered once from the descs. Freestanding, values only.
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#include "ops/common/window.h"
#include "ops/nn/conv2d/overlap.h"
#include "ops/nn/pool2d/pool2d.h"

namespace bantam::ops {

struct PoolGeometry {
  ImageShape x;
  ImageShape y;
  WindowAxis vertical;
  WindowAxis horizontal;
};

inline PoolGeometry pool_geometry(const Pool2dParams& p, const TensorDesc& x, const TensorDesc& y) noexcept {
  return {ImageShape(x), ImageShape(y), WindowAxis{p.kernel_h, p.stride_h, p.dilation_h, p.pad_top, p.pad_bottom},
          WindowAxis{p.kernel_w, p.stride_w, p.dilation_w, p.pad_left, p.pad_right}};
}

/// What both kernels permit: they write one window's results after the other.
inline Footprint pool_footprint(const OpCall& call, int threads) noexcept {
  const PoolGeometry g = pool_geometry(call.as<Pool2dParams>(), call.in(0), call.out());
  return {.lead_bytes = lead_bytes(call, {g.x, g.y, g.vertical, g.horizontal}, 1, threads)};
}

/// The taps of one window along one axis: those inside the image, and how many count in an average.
struct PoolTaps {
  std::int64_t origin = 0;
  TapRange inside;
  std::int64_t counted = 0;
};

inline PoolTaps pool_taps(const WindowAxis& axis, std::int64_t position, std::int32_t extent,
                          bool count_padding) noexcept {
  PoolTaps taps;
  taps.origin = window_origin(axis, position);
  taps.inside = taps_inside(axis, taps.origin, 0, extent);
  taps.counted = count_padding ? taps_inside(axis, taps.origin, -static_cast<std::int64_t>(axis.pad_before),
                                             static_cast<std::int64_t>(extent) + axis.pad_after)
                                     .size()
                               : taps.inside.size();
  return taps;
}

/// Columns from the first that a window sees to the last.
inline std::int64_t window_columns(const WindowAxis& axis) noexcept {
  return (axis.kernel - std::int64_t{1}) * axis.dilation + 1;
}

/// The smallest value of T: what a maximum over nothing yields.
template <typename T>
inline constexpr T kPoolLowest = std::is_floating_point_v<T> ? -std::numeric_limits<T>::infinity()
                                                             : std::numeric_limits<T>::lowest();

}  // namespace bantam::ops
