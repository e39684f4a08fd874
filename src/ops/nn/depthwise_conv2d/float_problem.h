// What the parts of depthwise_conv2d's f32 kernel with multiplier 1 know of a convolution. Freestanding.
#pragma once

#include <algorithm>
#include <cstdint>

#include "ops/nn/conv2d/geometry.h"
#include "ops/nn/depthwise_conv2d/pixel_run.h"

namespace bantam::ops::depthwise {

/// One convolution, and what of it all rows have in common. Weights are [KH,KW,C], `bias` may be null.
struct FloatProblem {
  ConvGeometry g;
  const float* x;
  const float* w;
  const float* bias;
  float* y;
  Activation activation;
  bool separate;              ///< the result overwrites the image
  std::int64_t inside_first;  ///< output columns [inside_first, inside_last) have their whole window inside the image
  std::int64_t inside_last;
};

/// The columns that neighbouring windows of neighbouring columns read: the first one's place in an image row, and which
/// of them lie inside the image.
struct Columns {
  std::int64_t origin;
  TapRange inside;
};

/// The `needed` columns from the window of output column ox on.
inline Columns columns_of(const ConvGeometry& g, std::int64_t ox, std::int64_t needed) {
  const std::int64_t origin = window_origin(g.horizontal, ox);
  return {origin,
          {static_cast<std::int32_t>(std::clamp<std::int64_t>(-origin, 0, needed)),
           static_cast<std::int32_t>(std::clamp<std::int64_t>(g.x.w - origin, 0, needed))}};
}

/// Output columns of a strip: at most as many as have room for their sums in three rows, and common widths are
/// multiples of; any row of at least kLeastStrip is made of such strips.
inline constexpr int kMostStrip = 7;
inline constexpr int kLeastStrip = 4;

/// 3x3 with equal strides of 1 or 2, and at most one column of any window outside the image.
inline bool suits_strips(const ConvGeometry& g) {
  const std::int32_t stride = g.horizontal.stride;
  const auto fits = [&](const WindowAxis& axis) {
    return axis.kernel == 3 && axis.stride == stride && axis.dilation == 1;
  };
  return stride <= 2 && fits(g.horizontal) && fits(g.vertical) && g.y.w >= kLeastStrip &&
         g.horizontal.pad_before <= 1 && window_origin(g.horizontal, g.y.w - 1) + 2 <= g.x.w;
}

/// May rows go in strips one by one, where they overwrite the image? Those of stride 1 and few strips, but not those of
/// one run: of wider ones runs of few pixels take less time.
inline bool suits_strips_of_rows(const ConvGeometry& g) {
  return suits_strips(g) && g.horizontal.stride == 1 && g.y.w > kMaxRunPixels && g.y.w <= 2 * kMostStrip;
}

/// How a row of results is cut into strips: about equal ones, the first of them the widest.
struct StripWidths {
  explicit StripWidths(const ConvGeometry& g)
      : count((g.y.w + kMostStrip - 1) / kMostStrip), least(g.y.w / count), wider(g.y.w % count) {}

  /// Output columns of strip `index`.
  std::int64_t of(std::int64_t index) const { return index < wider ? least + 1 : least; }

  std::int64_t count;
  std::int64_t least;
  std::int64_t wider;  ///< strips of least + 1
};

}  // namespace bantam::ops::depthwise
