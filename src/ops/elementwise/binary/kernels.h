// The kernels of `binary`, for its table of variants. Contracts: binary.h and ops/op.h.
#pragma once

#include "ops/op.h"

namespace bantam::ops {

Status run_binary_ref(const Invocation& invocation);

/// The part of the reference that is f32 throughout: a small core need not carry the other types.
bool supports_binary_f32_portable(const OpCall& call);
Status run_binary_f32_portable(const Invocation& invocation);

/// f32 arithmetic with any activation; rows of the result contiguous, of the operands contiguous or broadcast.
bool supports_binary_f32_simd(const OpCall& call);
Status run_binary_f32_simd(const Invocation& invocation);

/// Sums, differences, products, extremes and bits of i32 and i64; rows as above. Results wrap.
bool supports_binary_integer_simd(const OpCall& call);
Status run_binary_integer_simd(const Invocation& invocation);

/// Comparisons of f32, i8, u8, i32 and i64, and logic; rows as above.
bool supports_compare_simd(const OpCall& call);
Status run_compare_simd(const Invocation& invocation);

}  // namespace bantam::ops
