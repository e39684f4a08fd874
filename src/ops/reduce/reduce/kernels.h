// The kernels of `reduce`, for its table of variants. Contracts: reduce.h and ops/op.h.
#pragma once

#include "ops/common/strides.h"
#include "ops/op.h"

namespace bantam::ops {

Status run_reduce_ref(const Invocation& invocation);

/// All functions of f32 but prod and log_sum_exp, where the innermost reduced or kept elements are contiguous.
bool supports_reduce_f32_simd(const OpCall& call);
Footprint reduce_footprint(const OpCall& call, int threads);
Status run_reduce_f32_simd(const Invocation& invocation);

/// log_sum_exp of f32, not sequential, where the innermost reduced or kept elements are contiguous.
bool supports_log_sum_exp(const OpCall& call);
Status run_log_sum_exp(const Invocation& call);

/// One wide sum, of the elements that `reduced` places behind x.
template <typename T>
std::int32_t wide_sum(const StridedRows<1>& reduced, const T* x) {
  std::uint32_t total = 0;
  for_each_element(reduced,
                   [&](const auto& offsets) { total += static_cast<std::uint32_t>(std::int32_t{x[offsets[0]]}); });
  return static_cast<std::int32_t>(total);
}

/// Wide sums, where the innermost reduced or kept elements are contiguous.
bool supports_wide_sums(const OpCall& call);
Status run_wide_sums(const Invocation& invocation);

/// Maxima and minima of i8 and u8, where the innermost reduced or kept elements are contiguous.
bool supports_extremes_of_bytes(const OpCall& call);
Status run_extremes_of_bytes(const Invocation& call);

}  // namespace bantam::ops
