// A loop of constant length that is unrolled whatever the compiler's flags, so that arrays indexed by its counter stay
// in registers. For the inner loops of kernels on small cores, which are compiled for size, and of sources that are
// compiled for one instruction set; nn/gemm/unroll-inl.h is the form for Highway's. Freestanding.
#pragma once

#include <type_traits>
#include <utility>

namespace bantam::ops {

template <typename F, int... I>
[[gnu::always_inline]] constexpr void unrolled_indices(F&& f, std::integer_sequence<int, I...>) {
  (f(std::integral_constant<int, I>{}), ...);
}

/// Calls f(i) for i = 0 ... N-1, where i converts to a constant expression.
template <int N, typename F>
[[gnu::always_inline]] constexpr void unrolled(F&& f) {
  unrolled_indices(f, std::make_integer_sequence<int, N>{});
}

}  // namespace bantam::ops
