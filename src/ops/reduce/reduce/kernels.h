// The kernels of `reduce` and the loop nests they share. Contracts: reduce.h and ops/op.h.
#pragma once

#include "ops/common/strides.h"
#include "ops/op.h"
#include "ops/reduce/reduce/reduce.h"

namespace bantam::ops {

/// A reduction as two nests: the kept elements (operand 0 is the result, operand 1 is x) and, at each of them, the
/// reduced elements of x.
struct ReduceLoops {
  StridedRows<2> kept;
  StridedRows<1> reduced;
};

ReduceLoops make_reduce_loops(const ReduceParams& params, const TensorDesc& x, const TensorDesc& y) noexcept;

/// Kept elements per task of a parallel reduction: some microseconds of work.
std::int64_t reduce_grain(const ReduceLoops& loops) noexcept;

Status run_reduce_ref(const Invocation& invocation);

/// f32 sum, mean, max and min, where the innermost reduced or kept elements are contiguous.
bool supports_reduce_f32_simd(const OpCall& call);
Status run_reduce_f32_simd(const Invocation& invocation);

}  // namespace bantam::ops
