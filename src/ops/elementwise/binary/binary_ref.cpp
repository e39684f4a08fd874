#include <atomic>
#include <cmath>
#include <limits>
#include <type_traits>

#include "ops/common/dispatch.h"
#include "ops/common/elementwise.h"
#include "ops/common/saturate.h"
#include "ops/elementwise/binary/binary.h"
#include "ops/elementwise/binary/kernels.h"

namespace bantam::ops {
namespace {

/// Set by any task that met a division by zero.
using Fault = std::atomic<bool>;

template <typename T>
T float_arithmetic(BinaryFunction function, T a, T b) {
  switch (function) {
    case BinaryFunction::kAdd: return a + b;
    case BinaryFunction::kSub: return a - b;
    case BinaryFunction::kMul: return a * b;
    case BinaryFunction::kDiv: return a / b;
    case BinaryFunction::kPow: return std::pow(a, b);
    case BinaryFunction::kMin: return a < b || std::isnan(a) ? a : b;
    case BinaryFunction::kMax: return a > b || std::isnan(a) ? a : b;
    case BinaryFunction::kMod: {
      const T remainder = std::fmod(a, b);
      return remainder != T{0} && (remainder < T{0}) != (b < T{0}) ? remainder + b : remainder;
    }
    case BinaryFunction::kFmod: return std::fmod(a, b);
    case BinaryFunction::kSquaredDifference: return (a - b) * (a - b);
    case BinaryFunction::kFloorDiv: return std::floor(a / b);
    case BinaryFunction::kPrelu: return a < T{0} ? a * b : a;
    case BinaryFunction::kAtan2: return std::atan2(a, b);
    default: return a;
  }
}

/// a^b modulo 2^64 by squaring, b >= 0.
constexpr std::uint64_t wrapping_power(std::uint64_t a, std::uint64_t b) {
  std::uint64_t result = 1;
  for (; b != 0; b >>= 1) {
    if ((b & 1U) != 0) result *= a;
    a *= a;
  }
  return result;
}

/// 1 / a^|b| truncated toward zero, b < 0.
template <typename T>
T reciprocal_power(T a, std::int64_t b, Fault& fault) {
  if (a == T{0}) fault.store(true, std::memory_order_relaxed);
  if (a == T{1}) return T{1};
  if constexpr (std::is_signed_v<T>) {
    if (a == T{-1}) return (b & 1) != 0 ? T{-1} : T{1};
  }
  return T{0};
}

/// Quotient and remainder truncated toward zero, for any operands; by zero both are 0.
template <typename T>
struct Division {
  T quotient;
  T remainder;

  Division(T a, T b, Fault& fault) : quotient(0), remainder(0) {
    if (b == T{0}) {
      fault.store(true, std::memory_order_relaxed);
    } else if (std::is_signed_v<T> && b == static_cast<T>(-1)) {
      // The one quotient that overflows wraps.
      quotient = static_cast<T>(std::uint64_t{0} - static_cast<std::uint64_t>(a));
    } else {
      quotient = static_cast<T>(a / b);
      remainder = static_cast<T>(a % b);
    }
  }
};

template <typename T>
T integer_arithmetic(BinaryFunction function, T a, T b, Fault& fault) {
  // 64-bit unsigned arithmetic wraps for every T.
  const auto ua = static_cast<std::uint64_t>(a);
  const auto ub = static_cast<std::uint64_t>(b);
  switch (function) {
    case BinaryFunction::kAdd: return static_cast<T>(ua + ub);
    case BinaryFunction::kSub: return static_cast<T>(ua - ub);
    case BinaryFunction::kMul: return static_cast<T>(ua * ub);
    case BinaryFunction::kDiv: return Division<T>(a, b, fault).quotient;
    case BinaryFunction::kMin: return a < b ? a : b;
    case BinaryFunction::kMax: return a > b ? a : b;
    case BinaryFunction::kFmod: return Division<T>(a, b, fault).remainder;
    case BinaryFunction::kMod: {
      const T remainder = Division<T>(a, b, fault).remainder;
      const bool differs = remainder != T{0} && (remainder < T{0}) != (b < T{0});
      return differs ? static_cast<T>(remainder + b) : remainder;
    }
    case BinaryFunction::kFloorDiv: {
      const Division<T> division(a, b, fault);
      const bool differs = division.remainder != T{0} && (division.remainder < T{0}) != (b < T{0});
      return differs ? static_cast<T>(division.quotient - T{1}) : division.quotient;
    }
    case BinaryFunction::kSquaredDifference: return static_cast<T>((ua - ub) * (ua - ub));
    case BinaryFunction::kPrelu: return a < T{0} ? static_cast<T>(ua * ub) : a;
    case BinaryFunction::kBitAnd: return static_cast<T>(ua & ub);
    case BinaryFunction::kBitOr: return static_cast<T>(ua | ub);
    case BinaryFunction::kBitXor: return static_cast<T>(ua ^ ub);
    default: return a;
  }
}

template <typename T, typename U>
T integer_shift(BinaryFunction function, T a, U amount) {
  constexpr int kWidth = std::numeric_limits<std::make_unsigned_t<T>>::digits;
  const bool left = function == BinaryFunction::kShiftLeft;
  const auto bits = static_cast<std::uint64_t>(amount);  // a negative amount becomes a large one
  if (bits >= static_cast<std::uint64_t>(kWidth)) return !left && a < T{0} ? static_cast<T>(-1) : T{0};
  return left ? static_cast<T>(static_cast<std::uint64_t>(a) << bits) : static_cast<T>(a >> bits);
}

template <typename T>
bool comparison(BinaryFunction function, T a, T b) {
  switch (function) {
    case BinaryFunction::kEqual: return a == b;
    case BinaryFunction::kNotEqual: return a != b;
    case BinaryFunction::kLess: return a < b;
    case BinaryFunction::kLessEqual: return a <= b;
    case BinaryFunction::kGreater: return a > b;
    default: return a >= b;
  }
}

template <typename T>
auto widen(T x) {
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
    return to_f32(x);
  } else {
    return x;
  }
}

/// The computed y as it is stored; only f32 results have an activation.
template <typename T, typename V>
T finish_float(V y, const Activation& activation) {
  if constexpr (std::is_same_v<T, Half>) {
    return to_half(y);
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    return to_bfloat16(y);
  } else if constexpr (std::is_same_v<T, float>) {
    return apply_activation(y, activation);
  } else {
    return y;
  }
}

template <typename T>
inline constexpr bool kIsFloat = std::is_floating_point_v<T> || std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;

void run_logic(const Invocation& invocation, BinaryFunction function) {
  map_elements2<std::uint8_t, std::uint8_t, std::uint8_t>(invocation, [function](std::uint8_t a, std::uint8_t b) {
    const bool x = a != 0;
    const bool y = b != 0;
    switch (function) {
      case BinaryFunction::kAnd: return static_cast<std::uint8_t>(x && y);
      case BinaryFunction::kOr: return static_cast<std::uint8_t>(x || y);
      case BinaryFunction::kNotEqual:
      case BinaryFunction::kXor: return static_cast<std::uint8_t>(x != y);
      default: return static_cast<std::uint8_t>(x == y);
    }
  });
}

template <typename T>
void run_power(const Invocation& invocation, const BinaryParams& p, Fault& fault) {
  dispatch_any_type(invocation.in(1).type, [&](auto tag) {
    using U = typename decltype(tag)::type;
    if constexpr (std::is_same_v<U, Bool8>) {
      return;  // infer refuses it
    } else if constexpr (kIsFloat<T>) {
      using V = decltype(widen(T{}));
      map_elements2<T, T, U>(invocation, [&p](T a, U b) {
        return finish_float<T>(std::pow(widen(a), static_cast<V>(widen(b))), p.activation);
      });
    } else if constexpr (kIsFloat<U>) {
      map_elements2<T, T, U>(invocation, [](T a, U b) {
        return saturate_float<T>(std::pow(static_cast<double>(a), static_cast<double>(widen(b))));
      });
    } else {
      map_elements2<T, T, U>(invocation, [&fault](T a, U b) {
        if (b < U{0}) return reciprocal_power(a, static_cast<std::int64_t>(b), fault);
        return static_cast<T>(wrapping_power(static_cast<std::uint64_t>(a), static_cast<std::uint64_t>(b)));
      });
    }
  });
}

template <typename T>
void run_shift(const Invocation& invocation, BinaryFunction function) {
  dispatch_type<std::int8_t, std::uint8_t, std::int16_t, std::uint16_t, std::int32_t, std::uint32_t, std::int64_t,
                std::uint64_t>(invocation.in(1).type, [&](auto tag) {
    using U = typename decltype(tag)::type;
    map_elements2<T, T, U>(invocation, [function](T a, U b) { return integer_shift(function, a, b); });
  });
}

template <typename T>
void run_numbers(const Invocation& invocation, const BinaryParams& p, Fault& fault) {
  const BinaryFunction function = p.function;
  if (gives_bool(function)) {
    map_elements2<std::uint8_t, T, T>(invocation, [function](T a, T b) {
      return static_cast<std::uint8_t>(comparison(function, widen(a), widen(b)));
    });
  } else if (function == BinaryFunction::kPow) {
    run_power<T>(invocation, p, fault);
  } else if constexpr (kIsFloat<T>) {
    map_elements2<T, T, T>(invocation, [&p](T a, T b) {
      return finish_float<T>(float_arithmetic(p.function, widen(a), widen(b)), p.activation);
    });
  } else if (function == BinaryFunction::kShiftLeft || function == BinaryFunction::kShiftRight) {
    run_shift<T>(invocation, function);
  } else {
    map_elements2<T, T, T>(invocation,
                           [function, &fault](T a, T b) { return integer_arithmetic(function, a, b, fault); });
  }
}

}  // namespace

bool supports_binary_f32_portable(const OpCall& call) {
  return call.in(0).type == ElementType::kF32 && call.in(1).type == ElementType::kF32 &&
         call.out().type == ElementType::kF32;
}

Status run_binary_f32_portable(const Invocation& invocation) {
  const auto& p = invocation.as<BinaryParams>();
  map_elements2<float, float, float>(invocation, [&p](float a, float b) {
    return apply_activation(float_arithmetic(p.function, a, b), p.activation);
  });
  return ok_status();
}

Status run_binary_ref(const Invocation& invocation) {
  const auto& p = invocation.as<BinaryParams>();
  Fault fault{false};
  dispatch_any_type(invocation.in(0).type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_same_v<T, Bool8>) {
      run_logic(invocation, p.function);
    } else {
      run_numbers<T>(invocation, p, fault);
    }
  });
  if (fault.load(std::memory_order_relaxed))
    return failure(StatusCode::kOutOfRange, "binary: integer division by zero").at(1);
  return ok_status();
}

}  // namespace bantam::ops
