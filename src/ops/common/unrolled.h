// A loop of constant length that is unrolled whatever the compiler's flags, so that arrays indexed by its counter stay
// in registers. For the inner loops of kernels on small cores, which are compiled for size. Freestanding.
#pragma once

#include <type_traits>
#include <utility>

namespace bantam::ops {

/// Calls f(i) for i = 0 ... N-1, where i converts to a constant expression.
template <int N, typename F>
constexpr void unrolled(F&& f) {
  [&]<int... I>(std::integer_sequence<int, I...>) { (f(std::integral_constant<int, I>{}), ...); }
  (std::make_integer_sequence<int, N>{});
}

}  // namespace bantam::ops
