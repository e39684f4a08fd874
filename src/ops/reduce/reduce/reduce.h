// Reduction over a set of axes. Operand 0: f32, f64, an integer of 8 to 64 bits (bool for any/all); result: the same
// type, reduced axes removed or kept as 1. An empty reduction gives the identity (sum 0, prod 1, max -inf or the lowest
// integer, min the opposite, mean NaN). Empty `axes` reduces nothing (importers expand "all axes"). f32 sums are
// accumulated in f32 with pairwise or blocked order, the same for every variant's thread count; `sequential` sums and
// means add element after element, as TensorFlow Lite defines: less precise, but models that normalise by a tiny
// variance amplify the difference, and agree with their source only if the order is its own. `wide` sums of i8, u8 and
// i16 are i32 and wrap.
#pragma once

#include <iterator>

#include "ops/op.h"

namespace bantam::ops {

enum class ReduceFunction : std::int32_t {
  kSum = 0,
  kMean,
  kMax,
  kMin,
  kProd,
  kL1,
  kL2,
  kLogSum,
  kLogSumExp,
  kSumSquare,
  kAny,
  kAll,
  kCount
};

inline constexpr std::string_view kReduceFunctionNames[] = {
    "sum", "mean", "max", "min", "prod", "l1", "l2", "log_sum", "log_sum_exp", "sum_square", "any", "all"};
static_assert(std::size(kReduceFunctionNames) == static_cast<std::size_t>(ReduceFunction::kCount));

struct ReduceParams {
  ReduceFunction function = ReduceFunction::kSum;
  IntList axes{};  ///< normalised, ascending
  std::int32_t keep_dims = 1;
  std::int32_t sequential = 0;
  std::int32_t wide = 0;
};

extern const OpDef kReduce;  // "reduce". Accuracy: bound 1e-05

}  // namespace bantam::ops
