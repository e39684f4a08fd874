// The element-wise functions of one argument, shared by the operator `unary` and by the activations that other
// operators fuse into their last step.
#pragma once

#include <cstdint>
#include <iterator>
#include <span>
#include <string_view>

#include "bantam/status.h"

namespace bantam::ops {

/// Values are stored in packages: append only. `a` and `b` are the parameters alpha and beta.
enum class UnaryFunction : std::int32_t {
  kIdentity = 0,
  kAbs,
  kNeg,
  kSign,
  kExp,
  kLog,
  kSqrt,
  kRsqrt,
  kReciprocal,
  kSquare,
  kFloor,
  kCeil,
  kRound,  ///< half to even
  kSin,
  kCos,
  kTan,
  kAsin,
  kAcos,
  kAtan,
  kSinh,
  kCosh,
  kTanh,
  kAsinh,
  kAcosh,
  kAtanh,
  kErf,
  kSigmoid,
  kRelu,
  kClip,       ///< min(max(x, a), b)
  kLeakyRelu,  ///< x < 0 ? a x : x
  kElu,        ///< x < 0 ? a (exp(x) - 1) : x
  kSelu,       ///< b * (x < 0 ? a (exp(x) - 1) : x)
  kCelu,       ///< max(0, x) + min(0, a (exp(x / a) - 1))
  kSoftplus,
  kSoftsign,
  kHardSigmoid,      ///< max(0, min(1, a x + b))
  kHardSwish,        ///< x * max(0, min(1, x / 6 + 1 / 2))
  kMish,             ///< x tanh(softplus(x))
  kGelu,             ///< 0.5 x (1 + erf(x / sqrt 2))
  kGeluTanh,         ///< the tanh approximation of Gelu
  kSilu,             ///< x sigmoid(x)
  kThresholdedRelu,  ///< x > a ? x : 0
  kIsNan,            ///< result type bool
  kIsInf,            ///< result type bool; a != 0 detects -inf, b != 0 detects +inf
  kNot,              ///< bool
  kBitNot,           ///< integers
  kCount,
};

/// Names in the order of the enumeration; parameter tables refer to them.
inline constexpr std::string_view kUnaryFunctionNames[] = {
    "identity",     "abs",        "neg",    "sign",   "exp",       "log",      "sqrt",
    "rsqrt",        "reciprocal", "square", "floor",  "ceil",      "round",    "sin",
    "cos",          "tan",        "asin",   "acos",   "atan",      "sinh",     "cosh",
    "tanh",         "asinh",      "acosh",  "atanh",  "erf",       "sigmoid",  "relu",
    "clip",         "leaky_relu", "elu",    "selu",   "celu",      "softplus", "softsign",
    "hard_sigmoid", "hard_swish", "mish",   "gelu",   "gelu_tanh", "silu",     "thresholded_relu",
    "is_nan",       "is_inf",     "not",    "bit_not"};
static_assert(std::size(kUnaryFunctionNames) == static_cast<std::size_t>(UnaryFunction::kCount));

/// Names in the order of the enumeration ("identity", "abs", ...).
inline std::span<const std::string_view> unary_function_names() noexcept { return kUnaryFunctionNames; }

/// An activation fused into another operator's result: y = function(y). kIdentity means none. Float operators may fuse
/// kRelu, kClip, kLeakyRelu, kSigmoid, kTanh, kHardSwish, kHardSigmoid, kSilu, kGelu and kElu.
struct Activation {
  UnaryFunction function = UnaryFunction::kIdentity;
  float a = 0.0F;
  float b = 0.0F;
};

/// True for the functions that float operators may fuse.
bool is_fusible(UnaryFunction function) noexcept;

/// f(x) for every float function: the definition that reference kernels use. is_nan and is_inf give 0 or 1; `not` and
/// `bit_not`, which have no float form, and values outside the enumeration give x.
float apply_unary(float x, UnaryFunction function, float a, float b) noexcept;
double apply_unary(double x, UnaryFunction function, float a, float b) noexcept;

/// y = activation(x), by apply_unary.
inline float apply_activation(float x, const Activation& activation) noexcept {
  return apply_unary(x, activation.function, activation.a, activation.b);
}

/// Fails unless the activation is none or fusible. Its parameters may have any value.
Status check_activation(const Activation& activation) noexcept;

}  // namespace bantam::ops
