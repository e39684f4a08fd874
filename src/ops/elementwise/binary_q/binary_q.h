// Quantised arithmetic and comparison of two operands with broadcasting, to the bit as TFLite's reference kernels
// compute them. a and b are stored values less their zero points; "output" stands for the output's multiplier and
// shift, then its zero point, then the clamp; scaled(x) is (x << left_shift) times the operand's own multiplier and
// shift.
//   add, sub             output(scaled(a) +- scaled(b))
//   mul                  output(a * b)
//   squared_difference   output((scaled(a) - scaled(b))^2)
//   div                  output(a / b), the quotient in fixed point of 31 bits; b = 0 counts as the smallest number
//   prelu                output(a) where a >= 0, else the same with a's multiplier and shift of a * b
//   equal ... greater_equal: scaled(a) against scaled(b); the result is bool
// Operands 0 and 1: i8, u8 or i16, both the same; so is the result but for comparisons. Exact. Accepts strided
// operands. Zero points and the clamp lie within the element type, multipliers are >= 0, shifts in [-31, 30],
// left_shift in [0, 30]. 32-bit intermediate values wrap.
#pragma once

#include "ops/op.h"

namespace bantam::ops {

enum class BinaryQFunction : std::int32_t {
  kAdd = 0,
  kSub,
  kMul,
  kSquaredDifference,
  kDiv,
  kPrelu,
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kCount,
};

inline constexpr std::string_view kBinaryQFunctionNames[] = {"add",  "sub",        "mul",     "squared_difference",
                                                             "div",  "prelu",      "equal",   "not_equal",
                                                             "less", "less_equal", "greater", "greater_equal"};

constexpr bool is_comparison(BinaryQFunction function) noexcept { return function >= BinaryQFunction::kEqual; }

struct BinaryQParams {
  BinaryQFunction function = BinaryQFunction::kAdd;
  std::int32_t a_zero_point = 0;
  std::int32_t b_zero_point = 0;
  std::int32_t output_zero_point = 0;
  std::int32_t left_shift = 20;  ///< of scaled(x); unused by mul, div and prelu
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
