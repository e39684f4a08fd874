// Reductions, running sums and searches along axes.
#include <fmt/format.h>

#include <limits>

#include "base/shape.h"
#include "import/tflite/operators.h"
#include "ops/elementwise/binary/binary.h"
#include "ops/elementwise/requantize/requantize.h"
#include "ops/reduce/arg_reduce/arg_reduce.h"
#include "ops/reduce/cumsum/cumsum.h"
#include "ops/reduce/reduce/reduce.h"
#include "ops/reduce/topk/topk.h"

namespace bantam::import::tflite {
namespace {

using enum ElementType;
using ops::ReduceFunction;

ops::ReduceParams reduce_params(Lowering& op, ReduceFunction function) {
  ops::ReduceParams params{function};
  params.axes = int_list(std::span<const int>(op.axes(op.constant_operand(1, "axes"), op.rank(0))));
  params.keep_dims = op.options<schema::ReducerOptions>().keep_dims() ? 1 : 0;
  return params;
}

bool reduces_quantized(const Lowering& op) { return type_range(op.in_type(0)).has_value() && op.is_quantized_in(0); }

/// TFLite's integer mean and sum: the int32 sum less count zero points, rescaled once. A mean carries 1/count in the
/// multiplier.
void lower_quantized_sum(Lowering& op, ReduceFunction function) {
  if (!op.require_type(0, {kI8, kU8, kI16})) return;
  const Affine input = op.in_affine(0);
  const Affine output = op.out_affine();
  ops::ReduceParams params = reduce_params(op, ReduceFunction::kSum);
  FixedMultiplier m = op.multiplier(static_cast<double>(input.scale) / static_cast<double>(output.scale));
  if (op.failed()) return;
  std::int64_t n = 1;
  for (int i = 0; i < params.axes.size; ++i) n *= op.in_desc(0).dims[params.axes.v[i]];
  // 2^8 n, or 2^16 n, bounds the sum of stored values and the zero points together.
  const std::int64_t most = std::numeric_limits<std::int32_t>::max() / (op.in_type(0) == kI16 ? 65536 : 256);
  if (n <= 0 || n > most)
    return op.unsupported(fmt::format("a sum of {} quantised elements", n), fmt::format("1 to {} elements", most));
  if (function == ReduceFunction::kMean) m = divide_multiplier(m, n);
  params.wide = 1;
  const ValueId sum = op.emit(ops::kReduce, params, {op.in(0)});
  const ops::RequantizeParams rescale{op.out_type(), static_cast<std::int32_t>(input.zero_point * n), output.zero_point,
                                      m.multiplier, m.shift};
  op.result(0, op.emit(ops::kRequantize, rescale, {sum}));
}

template <ReduceFunction function>
void lower_sum(Lowering& op) {
  if (reduces_quantized(op)) return lower_quantized_sum(op, function);
  if (!op.require_type(0, {kF32, kI32, kI64})) return;
  ops::ReduceParams params = reduce_params(op, function);
  params.sequential = 1;
  op.result(0, op.emit(ops::kReduce, params, {op.in(0)}));
}

/// The largest stored value is the largest real one.
template <ReduceFunction function>
void lower_extremum(Lowering& op) {
  if (reduces_quantized(op)) op.require_same_quantization(0);
  if (op.require_type(0, {kF32, kI8, kU8, kI32, kI64}))
    op.result(0, op.emit(ops::kReduce, reduce_params(op, function), {op.in(0)}));
}

void lower_prod(Lowering& op) {
  if (op.require_type(0, {kF32, kI32, kI64}))
    op.result(0, op.emit(ops::kReduce, reduce_params(op, ReduceFunction::kProd), {op.in(0)}));
}

template <ReduceFunction function>
void lower_logical(Lowering& op) {
  if (op.require_type(0, {kBool})) op.result(0, op.emit(ops::kReduce, reduce_params(op, function), {op.in(0)}));
}

void lower_arg(Lowering& op, bool minimum) {
  const Dims axis = op.constant_operand(1, "axis", 1);
  ops::ArgReduceParams params;
  params.minimum = minimum ? 1 : 0;
  params.axis = op.axis(axis[0], op.rank(0));
  params.keep_dims = 0;
  params.to = op.out_type();
  if (op.require_type(0, {kF32, kI8, kU8, kI32, kI64})) op.result(0, op.emit(ops::kArgReduce, params, {op.in(0)}));
}

/// Numbers less their zero point add up; the format's sums begin at stored zero, one zero point below the number zero.
void lower_quantized_cumsum(Lowering& op, const ops::CumsumParams& params) {
  if (!op.require_type(0, {kI8, kU8})) return;
  const Affine input = op.in_affine(0);
  const std::int32_t zero_point = input.zero_point;
  const ValueId numbers = op.emit(ops::kBinary, ops::BinaryParams{ops::BinaryFunction::kSub},
                                  {op.cast(op.in(0), kI32), op.constant<std::int32_t>({}, std::span(&zero_point, 1))});
  op.result(0, op.rescale_sum(op.emit(ops::kCumsum, params, {numbers}), zero_point, input));
}

void lower_cumsum(Lowering& op) {
  const auto& o = op.options<schema::CumsumOptions>();
  const Dims axis = op.constant_operand(1, "axis", 1);
  const ops::CumsumParams params{op.axis(axis[0], op.rank(0)), o.exclusive() ? 1 : 0, o.reverse() ? 1 : 0};
  if (reduces_quantized(op)) return lower_quantized_cumsum(op, params);
  if (!op.require_type(0, {kF32, kI32, kI64})) return;
  op.result(0, op.emit(ops::kCumsum, params, {op.in(0)}));
}

void lower_topk_v2(Lowering& op) {
  const Dims k = op.constant_operand(1, "k", 1);
  if (!op.require_rank(0, 1, kMaxRank) || !op.require_type(0, {kF32, kI8, kU8, kI32, kI64})) return;
  if (k[0] < 0 || k[0] > kMaxElements) return op.invalid(fmt::format("k {}", k[0]), "a count");
  ops::TopkParams params;
  params.axis = op.rank(0) - 1;
  params.k = static_cast<std::int32_t>(k[0]);
  params.to = kI32;
  const auto found = op.emit_all(ops::kTopk, params, {op.in(0)});
  for (int i = 0; i < 2; ++i) op.result(i, found[static_cast<std::size_t>(i)]);
}

using enum schema::BuiltinOperator;

constexpr OperatorRow kReduceOperators[] = {
    {MEAN, 2, 2, 1, lower_sum<ReduceFunction::kMean>},
    {SUM, 2, 2, 1, lower_sum<ReduceFunction::kSum>},
    {REDUCE_MAX, 2, 2, 1, lower_extremum<ReduceFunction::kMax>},
    {REDUCE_MIN, 2, 2, 1, lower_extremum<ReduceFunction::kMin>},
    {REDUCE_PROD, 2, 2, 1, lower_prod},
    {REDUCE_ANY, 2, 2, 1, lower_logical<ReduceFunction::kAny>},
    {REDUCE_ALL, 2, 2, 1, lower_logical<ReduceFunction::kAll>},
    {ARG_MAX, 2, 2, 1, [](Lowering& op) { lower_arg(op, false); }},
    {ARG_MIN, 2, 2, 1, [](Lowering& op) { lower_arg(op, true); }},
    {CUMSUM, 2, 2, 1, lower_cumsum},
    {TOPK_V2, 2, 2, 2, lower_topk_v2},
};

}  // namespace

std::span<const OperatorRow> reduce_operators() noexcept { return kReduceOperators; }

}  // namespace bantam::import::tflite
