#include <type_traits>

#include "ops/common/dispatch.h"
#include "ops/common/elementwise.h"
#include "ops/common/saturate.h"
#include "ops/elementwise/cast/cast.h"
#include "ops/elementwise/cast/kernels.h"

namespace bantam::ops {
namespace {

/// The value of a stored element in a type that C++ computes with.
template <typename T>
auto widen(T x) {
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
    return to_f32(x);
  } else if constexpr (std::is_same_v<T, Bool8>) {
    return static_cast<std::uint8_t>(x.value != 0);
  } else {
    return x;
  }
}

template <typename T, typename V>
T convert(V x) {
  if constexpr (std::is_same_v<T, Bool8>) {
    return Bool8{static_cast<std::uint8_t>(x != V{0})};
  } else if constexpr (std::is_same_v<T, Half>) {
    return to_half(static_cast<float>(x));
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    return to_bfloat16(static_cast<float>(x));
  } else if constexpr (std::is_integral_v<T> && std::is_floating_point_v<V>) {
    return saturate_float<T>(x);
  } else {
    return static_cast<T>(x);
  }
}

}  // namespace

Status run_cast_ref(const Invocation& invocation) {
  dispatch_any_type(invocation.in(0).type, [&](auto from) {
    dispatch_any_type(invocation.out().type, [&](auto to) {
      using From = typename decltype(from)::type;
      using To = typename decltype(to)::type;
      map_elements<To, From>(invocation, [](From x) { return convert<To>(widen(x)); });
    });
  });
  return ok_status();
}

}  // namespace bantam::ops
