// The memory of a singular value decomposition filter (TFLite's SVDF): what follows its feature products, which are a
// matmul. Per filter the last M features are kept; `rank` filters make a unit.
//
// Operands: 0 features [B,F]; 1 state [B,F*M], per filter its features from the oldest to the newest; 2 w [F,M];
// 3 bias [F / rank] (optional). Results: 0 y [B,F / rank]; 1 the next state, in which every filter's oldest feature
// gave way to operand 0. The next state may overwrite the state.
//   f32:         y = activation(bias + sum over a unit's filters and their features of w * feature).
//   int8, int16: features, state and w i8, or i16; bias i32; y i8. Stored features have state_zero_point added, which
//                wraps. y = clamp(multiply_by_quantized_multiplier(bias + sum(w * (stored - state_zero_point)),
//                multiplier, shift) + output_zero_point): TFLite's reference arithmetic, exact (ops/fixed_point.h).
//                Sums wrap.
#pragma once

#include "ops/elementwise/unary/function.h"
#include "ops/op.h"

namespace bantam::ops {

struct SvdfParams {
  std::int32_t rank = 1;
  Activation activation{};            ///< float form
  std::int32_t state_zero_point = 0;  ///< integer forms, as the three below
  std::int32_t output_zero_point = 0;
  std::int32_t multiplier = 0;
  std::int32_t shift = 0;  ///< in [-31, 30]
};

extern const OpDef kSvdf;  // "svdf". Accuracy: bound 1e-05

}  // namespace bantam::ops
