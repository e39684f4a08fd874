// Max and average pooling, channels last. Operand 0: x [N,H,W,C]; result: y [N,OH,OW,C], OH = ceil or floor as
// `ceil_mode` says of (H + pad_top + pad_bottom - dilation_h (kernel_h - 1) - 1) / stride_h, + 1; with ceil_mode a last
// window that would start beyond the image and its leading padding is dropped.
// Types: f32, and i8/u8/i16 with TFLite's arithmetic (average: sum of the window, rounded half away from zero,
// clamped). Average divides by the number of elements inside the image, or inside image and padding with
// count_include_pad (never by elements that only ceil_mode added). Maximum ignores padding. Exact for integers. A
// window that meets no element of the image gives 0 in an average and the lowest value (-infinity) in a maximum; NaNs
// do not count in a maximum. minimum..maximum must be a range of the element type: importers set those of u8 and i16.
// Accepts strided operands and results.
#pragma once

#include "ops/elementwise/unary/function.h"
#include "ops/op.h"

namespace bantam::ops {

enum class PoolKind : std::int32_t { kMax = 0, kAverage, kCount };

struct Pool2dParams {
  PoolKind kind = PoolKind::kMax;
  std::int32_t kernel_h = 1;
  std::int32_t kernel_w = 1;
  std::int32_t stride_h = 1;
  std::int32_t stride_w = 1;
  std::int32_t dilation_h = 1;
  std::int32_t dilation_w = 1;
  std::int32_t pad_top = 0;
  std::int32_t pad_left = 0;
  std::int32_t pad_bottom = 0;
  std::int32_t pad_right = 0;
  std::int32_t ceil_mode = 0;
  std::int32_t count_include_pad = 0;
  Activation activation{};      ///< f32
  std::int32_t minimum = -128;  ///< integers
  std::int32_t maximum = 127;
};

extern const OpDef kPool2d;  // "pool2d". Accuracy: bound 2e-06

}  // namespace bantam::ops
