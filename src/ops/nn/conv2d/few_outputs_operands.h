// The operands of convolutions with few outputs (few_outputs.h), and windows on them. Internal.
#pragma once

#include <cstdint>

#include "ops/nn/conv2d/few_outputs.h"

namespace bantam::ops::conv2d::few_outputs {

/// Pixels whose results are finished together.
inline constexpr std::int64_t kPixels = 32;

struct FloatOperands {
  const Problem& p;
  const float* x;
  const float* w;
};

struct ByteOperands {
  const Problem& p;
  const std::uint8_t* x;
  const std::uint8_t* w;
  gemm::ByteForm form;
  std::uint8_t flip;
};

/// The taps of a window that lie inside the image, as runs of numbers.
template <typename X>
struct Window {
  const X* x;  ///< the first tap of the first pixel
  const X* w;
  std::int64_t rows;
  std::int64_t runs;  ///< of a row
  std::int64_t length;
  std::int64_t row_step;
  std::int64_t run_step;
  std::int64_t pixel_step;
  std::int64_t w_row_step;
  std::int64_t w_output_step;
};

}  // namespace bantam::ops::conv2d::few_outputs
