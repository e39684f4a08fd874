// The arithmetic of ONNX's quantised operators in tests of conv2d_affine and conv_transpose2d_affine.
#pragma once

#include <cstdint>

#include "ops/common/affine_form.h"

namespace bantam::ops::testing {

/// Results of this type over its whole range, without an activation.
inline AffineForm form_to(ElementType to, std::int32_t x_zero = 0, std::int32_t w_zero = 0, std::int32_t y_zero = 0) {
  const bool is_unsigned = to == ElementType::kU8;
  return {to, x_zero, w_zero, y_zero, is_unsigned ? 0 : -128, is_unsigned ? 255 : 127, {}, 1.0F};
}

}  // namespace bantam::ops::testing
