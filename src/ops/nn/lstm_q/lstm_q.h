// Quantised LSTM over a sequence, one direction, to the bit as TFLite Micro's integer kernels. H = hidden size.
//
// Operands: 0 x [T,B,I] i8 or i16; 1 w [4H,I] i8; 2 r [4H,H] i8 (gates in the order input, output, forget, cell, as in
// lstm.h); 3 b [4H], i32 for x of i8, i64 for i16; 4 h0 [B,H], x's type; 5 c0 [B,H] i16. Results: 0 y [T,B,H]; 1 y_h
// [B,H]; 2 y_c [B,H] i16. y_h may overwrite h0 and y_c c0. T = 0 is allowed.
//
// Per gate g: z = saturate16(scaled(sum((x - input_zero_point) * w) + b, input_*[g])) + saturate16(scaled(sum((h -
// hidden_zero_point) * r), recurrent_*[g])), saturated, in Q12; activated into Q15 by logistic, the cell gate by tanh
// (ops/fixed_point_i16.h). `scaled` is multiply_by_quantized_multiplier, for i16 its form for 64-bit sums.
//   c = saturate16(saturate16(scaled(forget * c, forget_*)) + saturate16(scaled(input * cell, cell_*))), limited to
//   [-cell_clip, cell_clip] where that is not 0;
//   h = saturate(scaled(tanh(c) * output, hidden_*) + hidden_zero_point).
// Exact. Sums wrap.
#pragma once

#include "ops/op.h"

namespace bantam::ops {

struct LstmQParams {
  std::int32_t input_zero_point = 0;
  std::int32_t hidden_zero_point = 0;
  std::int32_t input_multiplier[4] = {};
  std::int32_t input_shift[4] = {};
  std::int32_t recurrent_multiplier[4] = {};
  std::int32_t recurrent_shift[4] = {};
  std::int32_t forget_multiplier = 0;
  std::int32_t forget_shift = 0;
  std::int32_t cell_multiplier = 0;
  std::int32_t cell_shift = 0;
  std::int32_t hidden_multiplier = 0;
  std::int32_t hidden_shift = 0;
  std::int32_t tanh_multiplier = 3;   ///< brings c to the argument of tanh: ActivationInput16
  std::int32_t tanh_right_shift = 0;  ///< in [0, 31]
  std::int32_t cell_clip = 0;         ///< in [0, 32767]; 0: none
};

extern const OpDef kLstmQ;  // "lstm_q". Accuracy: exact

}  // namespace bantam::ops
