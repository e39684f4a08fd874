#include <type_traits>

#include "ops/common/dispatch.h"
#include "ops/common/elementwise.h"
#include "ops/common/saturate.h"
#include "ops/elementwise/unary/kernels.h"
#include "ops/elementwise/unary/unary.h"

namespace bantam::ops {
namespace {

float widen(float x) { return x; }
double widen(double x) { return x; }
float widen(Half x) { return to_f32(x); }
float widen(BFloat16 x) { return to_f32(x); }

template <typename T>
T narrow(std::conditional_t<std::is_same_v<T, double>, double, float> y) {
  if constexpr (std::is_same_v<T, Half>) {
    return to_half(y);
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    return to_bfloat16(y);
  } else {
    return y;
  }
}

template <typename T>
void run_float(const Invocation& invocation, const UnaryParams& p) {
  if (invocation.out().type == ElementType::kBool) {
    map_elements<std::uint8_t, T>(
        invocation, [&p](T x) { return static_cast<std::uint8_t>(apply_unary(widen(x), p.function, p.a, p.b) != 0); });
  } else {
    map_elements<T, T>(invocation, [&p](T x) { return narrow<T>(apply_unary(widen(x), p.function, p.a, p.b)); });
  }
}

template <typename T>
void run_integer(const Invocation& invocation, const UnaryParams& p) {
  // 64-bit unsigned arithmetic wraps for every T.
  const auto wrap = [](auto value) { return static_cast<T>(static_cast<std::uint64_t>(value)); };
  const auto negate = [wrap](T x) { return wrap(std::uint64_t{0} - static_cast<std::uint64_t>(x)); };
  switch (p.function) {
    case UnaryFunction::kAbs: map_elements<T, T>(invocation, [negate](T x) { return x < T{0} ? negate(x) : x; }); break;
    case UnaryFunction::kNeg: map_elements<T, T>(invocation, negate); break;
    case UnaryFunction::kSign:
      map_elements<T, T>(invocation, [](T x) { return static_cast<T>((x > T{0} ? 1 : 0) - (x < T{0} ? 1 : 0)); });
      break;
    case UnaryFunction::kRelu: map_elements<T, T>(invocation, [](T x) { return x < T{0} ? T{0} : x; }); break;
    case UnaryFunction::kClip: {
      const T low = saturate_float<T>(p.a);
      const T high = saturate_float<T>(p.b);
      map_elements<T, T>(invocation, [low, high](T x) {
        const T y = x < low ? low : x;
        return y > high ? high : y;
      });
      break;
    }
    case UnaryFunction::kSquare:
      map_elements<T, T>(invocation,
                         [wrap](T x) { return wrap(static_cast<std::uint64_t>(x) * static_cast<std::uint64_t>(x)); });
      break;
    case UnaryFunction::kBitNot: map_elements<T, T>(invocation, [](T x) { return static_cast<T>(~x); }); break;
    default: map_elements<T, T>(invocation, [](T x) { return x; }); break;
  }
}

}  // namespace

bool supports_unary_f32_portable(const OpCall& call) {
  return call.in(0).type == ElementType::kF32 && call.out().type == ElementType::kF32;
}

Status run_unary_f32_portable(const Invocation& invocation) {
  const auto& p = invocation.as<UnaryParams>();
  map_elements<float, float>(invocation, [&p](float x) { return apply_unary(x, p.function, p.a, p.b); });
  return ok_status();
}

Status run_unary_ref(const Invocation& invocation) {
  const auto& p = invocation.as<UnaryParams>();
  const ElementType type = invocation.in(0).type;
  if (p.function == UnaryFunction::kIdentity) {
    dispatch_size(element_size(type), [&](auto tag) {
      using T = typename decltype(tag)::type;
      map_elements<T, T>(invocation, [](T x) { return x; });
    });
  } else if (type == ElementType::kBool) {
    map_elements<std::uint8_t, std::uint8_t>(invocation,
                                             [](std::uint8_t x) { return static_cast<std::uint8_t>(x == 0); });
  } else if (!dispatch_type<float, Half, BFloat16, double>(
                 type, [&](auto tag) { run_float<typename decltype(tag)::type>(invocation, p); })) {
    dispatch_type<std::int8_t, std::uint8_t, std::int16_t, std::uint16_t, std::int32_t, std::uint32_t, std::int64_t,
                  std::uint64_t>(type, [&](auto tag) { run_integer<typename decltype(tag)::type>(invocation, p); });
  }
  return ok_status();
}

}  // namespace bantam::ops
