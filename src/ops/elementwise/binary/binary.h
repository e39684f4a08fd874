// y = f(a, b) with NumPy broadcasting, then an optional fused activation (f32 results only).
// Operands 0 and 1 have the same type, except pow (exponent may differ) and shifts. Comparisons and and/or/xor give
// bool. Integer arithmetic wraps; integer division truncates toward zero and by zero is a data-dependent fault
// (kOutOfRange); kMod follows the sign of the divisor (Python), kFmod that of the dividend (C). Accepts strided operands.
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

std::span<const std::string_view> binary_function_names() noexcept;

struct BinaryParams {
  BinaryFunction function = BinaryFunction::kAdd;
  Activation activation{};
};

extern const OpDef kBinary;  // "binary"

}  // namespace bantam::ops
