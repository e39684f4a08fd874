// y = f(a, b) with NumPy broadcasting, then an optional fused activation (f32 results only).
// Operands 0 and 1 have the same type, except pow (exponent may differ) and shifts. Comparisons and and/or/xor give
// bool. Integer arithmetic wraps; integer division truncates toward zero and by zero is a data-dependent fault
// (kOutOfRange); kMod follows the sign of the divisor (Python), kFmod that of the dividend (C). Accepts strided
// operands. Types: add .. prelu any number type (atan2 floats only); equal and not_equal any type; other comparisons
// numbers; and/or/xor bool; bit functions and shifts integers. Min and max give NaN when either operand is NaN. Shifts
// by the width or more give 0 (-1 for negative a shifted right), and so do negative amounts; right shifts keep the sign
// of signed types. A pow of integers with a negative exponent truncates toward zero, of 0 it is a division by zero;
// with a float exponent it is computed as f64 and converted like `cast`.
#pragma once

#include "ops/elementwise/unary/function.h"
#include "ops/op.h"

namespace bantam::ops {

/// Values are stored in packages: append only.
enum class BinaryFunction : std::int32_t {
  kAdd = 0,
  kSub,
  kMul,
  kDiv,
  kPow,
  kMin,
  kMax,
  kMod,
  kFmod,
  kSquaredDifference,
  kFloorDiv,
  kPrelu,  ///< a < 0 ? a * b : a
  kAtan2,
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kAnd,
  kOr,
  kXor,
  kBitAnd,
  kBitOr,
  kBitXor,
  kShiftLeft,
  kShiftRight,
  kCount,
};

/// Names in the order of the enumeration.
inline constexpr std::string_view kBinaryFunctionNames[] = {
    "add",        "sub",        "mul",     "div",           "pow",
    "min",        "max",        "mod",     "fmod",          "squared_difference",
    "floor_div",  "prelu",      "atan2",   "equal",         "not_equal",
    "less",       "less_equal", "greater", "greater_equal", "and",
    "or",         "xor",        "bit_and", "bit_or",        "bit_xor",
    "shift_left", "shift_right"};
static_assert(std::size(kBinaryFunctionNames) == static_cast<std::size_t>(BinaryFunction::kCount));

inline std::span<const std::string_view> binary_function_names() noexcept { return kBinaryFunctionNames; }

/// True for the functions whose result is bool.
constexpr bool gives_bool(BinaryFunction function) noexcept {
  return function >= BinaryFunction::kEqual && function <= BinaryFunction::kXor;
}

struct BinaryParams {
  BinaryFunction function = BinaryFunction::kAdd;
  Activation activation{};
};

extern const OpDef kBinary;  // "binary". Accuracy: bound 1e-06

}  // namespace bantam::ops
