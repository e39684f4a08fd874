// Loops that are unrolled by construction, so that arrays of vectors indexed by their counters live in registers. For
// sources that are compiled for one instruction set; unroll-inl.h is the form for Highway's.
#pragma once

#include <utility>

namespace bantam::ops {

template <typename F, int... kIndices>
[[gnu::always_inline]] inline void unroll_indices(F&& f, std::integer_sequence<int, kIndices...>) {
  (f(std::integral_constant<int, kIndices>{}), ...);
}

/// f(0), f(1) ... f(kCount - 1), each with its own constant.
template <int kCount, typename F>
[[gnu::always_inline]] inline void unroll(F&& f) {
  unroll_indices(f, std::make_integer_sequence<int, kCount>());
}

}  // namespace bantam::ops
