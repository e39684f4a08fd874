#include <cmath>
#include <limits>
#include <type_traits>

#include "ops/common/dispatch.h"
#include "ops/common/parallel.h"
#include "ops/common/strides.h"
#include "ops/elementwise/unary/kernels.h"
#include "ops/elementwise/unary/unary.h"

namespace bantam::ops {
namespace {

/// y[i] = f(x[i]) over all elements; f takes a TX and gives a TY.
template <typename TX, typename TY, typename F>
void map(const Invocation& invocation, F f) {
  const auto rows = make_rows<2>(invocation.out(), {&invocation.out(), &invocation.in(0)});
  auto* y = invocation.output<TY>();
  const auto* x = invocation.input<TX>(0);
  parallel_ranges(*invocation.threads, rows.elements, kElementwiseGrain, [&](std::int64_t begin, std::int64_t end) {
    for_each_segment(rows, begin, end, [&](const auto& offsets, std::int64_t n) {
      for (std::int64_t i = 0; i < n; ++i)
        y[offsets[0] + i * rows.row_strides[0]] = f(x[offsets[1] + i * rows.row_strides[1]]);
    });
  });
}

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
    map<T, std::uint8_t>(
        invocation, [&p](T x) { return static_cast<std::uint8_t>(apply_unary(widen(x), p.function, p.a, p.b) != 0); });
  } else {
    map<T, T>(invocation, [&p](T x) { return narrow<T>(apply_unary(widen(x), p.function, p.a, p.b)); });
  }
}

/// `bound` limited to T; NaN counts as 0.
template <typename T>
T saturate(float bound) {
  const auto wide = static_cast<double>(bound);
  if (std::isnan(wide)) return T{0};
  if (wide <= static_cast<double>(std::numeric_limits<T>::lowest())) return std::numeric_limits<T>::lowest();
  // 2^digits is exact; the largest T may not be.
  if (wide >= std::ldexp(1.0, std::numeric_limits<T>::digits)) return std::numeric_limits<T>::max();
  return static_cast<T>(wide);
}

template <typename T>
void run_integer(const Invocation& invocation, const UnaryParams& p) {
  // 64-bit unsigned arithmetic wraps for every T.
  const auto wrap = [](auto value) { return static_cast<T>(static_cast<std::uint64_t>(value)); };
  const auto negate = [wrap](T x) { return wrap(std::uint64_t{0} - static_cast<std::uint64_t>(x)); };
  switch (p.function) {
    case UnaryFunction::kAbs: map<T, T>(invocation, [negate](T x) { return x < T{0} ? negate(x) : x; }); break;
    case UnaryFunction::kNeg: map<T, T>(invocation, negate); break;
    case UnaryFunction::kSign:
      map<T, T>(invocation, [](T x) { return static_cast<T>((x > T{0} ? 1 : 0) - (x < T{0} ? 1 : 0)); });
      break;
    case UnaryFunction::kRelu: map<T, T>(invocation, [](T x) { return x < T{0} ? T{0} : x; }); break;
    case UnaryFunction::kClip: {
      const T low = saturate<T>(p.a);
      const T high = saturate<T>(p.b);
      map<T, T>(invocation, [low, high](T x) {
        const T y = x < low ? low : x;
        return y > high ? high : y;
      });
      break;
    }
    case UnaryFunction::kSquare:
      map<T, T>(invocation,
                [wrap](T x) { return wrap(static_cast<std::uint64_t>(x) * static_cast<std::uint64_t>(x)); });
      break;
    case UnaryFunction::kBitNot: map<T, T>(invocation, [](T x) { return static_cast<T>(~x); }); break;
    default: map<T, T>(invocation, [](T x) { return x; }); break;
  }
}

}  // namespace

Status run_unary_ref(const Invocation& invocation) {
  const auto& p = invocation.as<UnaryParams>();
  const ElementType type = invocation.in(0).type;
  if (p.function == UnaryFunction::kIdentity) {
    dispatch_size(element_size(type), [&](auto tag) {
      using T = typename decltype(tag)::type;
      map<T, T>(invocation, [](T x) { return x; });
    });
  } else if (type == ElementType::kBool) {
    map<std::uint8_t, std::uint8_t>(invocation, [](std::uint8_t x) { return static_cast<std::uint8_t>(x == 0); });
  } else if (!dispatch_type<float, Half, BFloat16, double>(
                 type, [&](auto tag) { run_float<typename decltype(tag)::type>(invocation, p); })) {
    dispatch_type<std::int8_t, std::uint8_t, std::int16_t, std::uint16_t, std::int32_t, std::uint32_t, std::int64_t,
                  std::uint64_t>(type, [&](auto tag) { run_integer<typename decltype(tag)::type>(invocation, p); });
  }
  return ok_status();
}

}  // namespace bantam::ops
