// Quantised add, subtract and multiply with broadcasting, to the bit as TFLite's reference kernels (int8 and int16).
// add/sub: each side is (x - zero_point) << left_shift, multiplied by its multiplier/shift; the sum or difference by
// the output's; plus output zero point; clamped. mul: (a - za) * (b - zb) times the output multiplier/shift; plus zero
// point; clamped. Operands 0 and 1 and the result: i8, u8 or i16, all the same. Exact. Accepts strided operands.
// Zero points and the clamp lie within the element type, multipliers are >= 0, shifts in [-31, 30], left_shift in [0,
// 30].
#pragma once

#include "ops/op.h"

namespace bantam::ops {

enum class BinaryQFunction : std::int32_t { kAdd = 0, kSub, kMul, kCount };

inline constexpr std::string_view kBinaryQFunctionNames[] = {"add", "sub", "mul"};

struct BinaryQParams {
  BinaryQFunction function = BinaryQFunction::kAdd;
  std::int32_t a_zero_point = 0;
  std::int32_t b_zero_point = 0;
  std::int32_t output_zero_point = 0;
  std::int32_t left_shift = 20;  ///< 20 for 8-bit, 15 for 16-bit (TFLite); unused by mul
  std::int32_t a_multiplier = 0;
  std::int32_t a_shift = 0;
  std::int32_t b_multiplier = 0;
  std::int32_t b_shift = 0;
  std::int32_t output_multiplier = 0;
  std::int32_t output_shift = 0;
  std::int32_t minimum = -128;  ///< clamp after adding the zero point (fused activation)
  std::int32_t maximum = 127;
};

extern const OpDef kBinaryQ;  // "binary_q". Accuracy: exact

}  // namespace bantam::ops
