// A depthwise convolution of bytes as its kernels for x86 and for Arm's dot products see it.
#pragma once

#include <cstdint>

#include "ops/nn/conv2d/geometry.h"
#include "ops/nn/gemm/gemm_i8.h"

namespace bantam::ops::depthwise {

/// Results have bytes, and their channels follow each other, as those of x do.
struct ByteImages {
  const ConvGeometry& g;
  const std::uint8_t* x;
  gemm::ByteForm form;
  const std::int8_t* w;  ///< [KH,KW,C]
  std::uint8_t* y;
  bool overlaps;  ///< y is written over x, kMaxRunPixels at a time
};

/// Do the pixels of a row follow each other, in x and in y?
inline bool is_dense_row(const ConvGeometry& g) { return g.x.w_stride == g.x.c && g.y.w_stride == g.x.c; }

}  // namespace bantam::ops::depthwise
