// The geometry of planar_conv2d: the image's pixels, whatever the order of its axes.
#pragma once

#include "ops/nn/conv2d/geometry.h"

namespace bantam::ops::planar_conv2d {

/// The desc of an image [N,C,H,W] as [N,H,W,C], with its strides.
inline TensorDesc channels_last(const TensorDesc& x) noexcept {
  TensorDesc result = x;
  constexpr int kOrder[] = {0, 2, 3, 1};
  for (int i = 0; i < 4; ++i) {
    result.dims[i] = x.dims[kOrder[i]];
    result.strides[i] = x.strides[kOrder[i]];
  }
  return result;
}

inline ConvGeometry geometry(const Conv2dParams& params, const TensorDesc& x, const TensorDesc& w,
                             const TensorDesc& y) noexcept {
  return conv_geometry(params, channels_last(x), y, w.dims[1], w.dims[2]);
}

}  // namespace bantam::ops::planar_conv2d
