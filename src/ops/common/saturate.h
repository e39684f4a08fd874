// Conversions to integer types that are defined for every value. Freestanding, pure functions.
#pragma once

#include <cmath>
#include <limits>
#include <type_traits>

namespace bantam::ops {

/// `value` limited to the range of T, truncated toward zero; NaN gives 0. Value is float or double.
template <typename T, typename Value>
T saturate_float(Value value) noexcept {
  static_assert(std::is_integral_v<T> && std::is_floating_point_v<Value>);
  if (std::isnan(value)) return T{0};
  // The lowest value is a power of two or 0, hence exact; the first value beyond the type is 2^digits, exact too.
  if (value <= static_cast<Value>(std::numeric_limits<T>::lowest())) return std::numeric_limits<T>::lowest();
  if (value >= std::ldexp(Value{1}, std::numeric_limits<T>::digits)) return std::numeric_limits<T>::max();
  return static_cast<T>(value);
}

/// `value` limited to the range of T. Value is an integer type that holds every T.
template <typename T, typename Value>
constexpr T saturate_integer(Value value) noexcept {
  if (value < static_cast<Value>(std::numeric_limits<T>::lowest())) return std::numeric_limits<T>::lowest();
  if (value > static_cast<Value>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
  return static_cast<T>(value);
}

}  // namespace bantam::ops
