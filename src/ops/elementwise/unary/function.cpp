#include "ops/elementwise/unary/function.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace bantam::ops {
namespace {

/// max and min that let a NaN in x through, as the formats require of relu and clip.
template <typename T>
T at_least(T x, T low) noexcept {
  return x < low ? low : x;
}
template <typename T>
T at_most(T x, T high) noexcept {
  return x > high ? high : x;
}

template <typename T>
T sigmoid(T x) noexcept {
  // Only ever exponentiates a negative number, so nothing overflows.
  const T e = std::exp(-std::abs(x));
  return (x < T{0} ? e : T{1}) / (T{1} + e);
}

template <typename T>
T softplus(T x) noexcept {
  return at_least(x, T{0}) + std::log1p(std::exp(-std::abs(x)));
}

/// Ties to even whatever the rounding mode in force.
template <typename T>
T round_half_even(T x) noexcept {
  const T below = std::floor(x);
  const T fraction = x - below;
  if (!(std::abs(x) < T{1} / std::numeric_limits<T>::epsilon())) return x;
  const bool up = fraction > T{0.5} || (fraction == T{0.5} && std::fmod(below, T{2}) != T{0});
  return std::copysign(up ? below + T{1} : below, x);
}

template <typename T>
T gelu_tanh(T x) noexcept {
  const T root = std::sqrt(T{2} / std::numbers::pi_v<T>);
  // (1 + tanh u) / 2 = sigmoid(2 u), which keeps its relative accuracy for negative x.
  return x * sigmoid(T{2} * root * (x + static_cast<T>(0.044715) * x * x * x));
}

template <typename T>
T is_inf(T x, T negative, T positive) noexcept {
  return std::isinf(x) && (std::signbit(x) ? negative : positive) != T{0} ? T{1} : T{0};
}

template <typename T>
T apply(T x, UnaryFunction function, T a, T b) noexcept {
  switch (function) {
    case UnaryFunction::kAbs: return std::abs(x);
    case UnaryFunction::kNeg: return -x;
    case UnaryFunction::kSign: return x > T{0} ? T{1} : (x < T{0} ? T{-1} : x);
    case UnaryFunction::kExp: return std::exp(x);
    case UnaryFunction::kLog: return std::log(x);
    case UnaryFunction::kSqrt: return std::sqrt(x);
    case UnaryFunction::kRsqrt: return T{1} / std::sqrt(x);
    case UnaryFunction::kReciprocal: return T{1} / x;
    case UnaryFunction::kSquare: return x * x;
    case UnaryFunction::kFloor: return std::floor(x);
    case UnaryFunction::kCeil: return std::ceil(x);
    case UnaryFunction::kRound: return round_half_even(x);
    case UnaryFunction::kSin: return std::sin(x);
    case UnaryFunction::kCos: return std::cos(x);
    case UnaryFunction::kTan: return std::tan(x);
    case UnaryFunction::kAsin: return std::asin(x);
    case UnaryFunction::kAcos: return std::acos(x);
    case UnaryFunction::kAtan: return std::atan(x);
    case UnaryFunction::kSinh: return std::sinh(x);
    case UnaryFunction::kCosh: return std::cosh(x);
    case UnaryFunction::kTanh: return std::tanh(x);
    case UnaryFunction::kAsinh: return std::asinh(x);
    case UnaryFunction::kAcosh: return std::acosh(x);
    case UnaryFunction::kAtanh: return std::atanh(x);
    case UnaryFunction::kErf: return std::erf(x);
    case UnaryFunction::kSigmoid: return sigmoid(x);
    case UnaryFunction::kRelu: return at_least(x, T{0});
    case UnaryFunction::kClip: return at_most(at_least(x, a), b);
    case UnaryFunction::kLeakyRelu: return x < T{0} ? a * x : x;
    case UnaryFunction::kElu: return x < T{0} ? a * std::expm1(x) : x;
    case UnaryFunction::kSelu: return b * (x < T{0} ? a * std::expm1(x) : x);
    case UnaryFunction::kCelu: return x < T{0} ? a * std::expm1(x / a) : x;
    case UnaryFunction::kSoftplus: return softplus(x);
    case UnaryFunction::kSoftsign: return x / (T{1} + std::abs(x));
    case UnaryFunction::kHardSigmoid: return at_least(at_most(a * x + b, T{1}), T{0});
    case UnaryFunction::kHardSwish: return x * at_least(at_most(T{1} / T{6} * x + T{0.5}, T{1}), T{0});
    case UnaryFunction::kMish: return x * std::tanh(softplus(x));
    case UnaryFunction::kGelu: return T{0.5} * x * std::erfc(-x / std::numbers::sqrt2_v<T>);
    case UnaryFunction::kGeluTanh: return gelu_tanh(x);
    case UnaryFunction::kSilu: return x * sigmoid(x);
    case UnaryFunction::kThresholdedRelu: return x > a ? x : T{0};
    case UnaryFunction::kIsNan: return std::isnan(x) ? T{1} : T{0};
    case UnaryFunction::kIsInf: return is_inf(x, a, b);
    case UnaryFunction::kIdentity:
    case UnaryFunction::kNot:
    case UnaryFunction::kBitNot:
    case UnaryFunction::kCount: break;
  }
  return x;
}

}  // namespace

bool is_fusible(UnaryFunction function) noexcept {
  switch (function) {
    case UnaryFunction::kRelu:
    case UnaryFunction::kClip:
    case UnaryFunction::kLeakyRelu:
    case UnaryFunction::kSigmoid:
    case UnaryFunction::kTanh:
    case UnaryFunction::kHardSwish:
    case UnaryFunction::kHardSigmoid:
    case UnaryFunction::kSilu:
    case UnaryFunction::kGelu:
    case UnaryFunction::kElu: return true;
    default: return false;
  }
}

float apply_unary(float x, UnaryFunction function, float a, float b) noexcept {
  return apply<float>(x, function, a, b);
}

double apply_unary(double x, UnaryFunction function, float a, float b) noexcept {
  return apply<double>(x, function, static_cast<double>(a), static_cast<double>(b));
}

Status check_activation(const Activation& activation) noexcept {
  if (activation.function == UnaryFunction::kIdentity || is_fusible(activation.function)) return ok_status();
  return failure(StatusCode::kInvalidModel, "the activation cannot be fused",
                 static_cast<std::int64_t>(activation.function), static_cast<std::int64_t>(UnaryFunction::kRelu));
}

}  // namespace bantam::ops
