// Fused activations of results that lie in memory: the last step of SIMD kernels whose inner loops should not know
// every function. Compiled once per instruction set, whatever the number of kernels. Freestanding, re-entrant; nothing
// is allocated. Results do not depend on where a number lies.
#pragma once

#include <cstdint>

#include "ops/common/affine_form.h"
#include "ops/elementwise/unary/function.h"

namespace bantam::ops {

/// y[r * stride + c] = activation(y[r * stride + c]) for `rows` rows and `columns` columns; is_fusible functions, any
/// other leaves y as it is. Accuracy: activation_simd-inl.h.
void activate_rows(const Activation& activation, float* y, std::int64_t rows, std::int64_t stride,
                   std::int64_t columns);

/// 8-bit results with an activation, in place: `numbers` are the bits of `count` f32 results before the activation, and
/// become steps from the zero point, rounded to integers; NaN becomes 0. What exceeds the scaler's limits only does so
/// on its side: the caller adds the zero point and limits.
void round_activated(const AffineScaler& scaler, std::int32_t* numbers, std::int64_t count);

}  // namespace bantam::ops
