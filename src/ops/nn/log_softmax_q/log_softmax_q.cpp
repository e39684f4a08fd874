#include "ops/nn/log_softmax_q/log_softmax_q.h"

#include <algorithm>
#include <limits>

#include "ops/common/operands.h"
#include "ops/common/params.h"
#include "ops/fixed_point_series.h"

namespace bantam::ops {
namespace {

using P = LogSoftmaxQParams;

constexpr ParamField kFields[] = {
    i32_field("input_multiplier", offsetof(P, input_multiplier)),
    i32_field("input_left_shift", offsetof(P, input_left_shift)),
    i32_field("reverse_multiplier", offsetof(P, reverse_multiplier)),
    i32_field("reverse_shift", offsetof(P, reverse_shift)),
    i32_field("diff_min", offsetof(P, diff_min)),
};

constexpr P kDefaults{};

Status infer_log_softmax(const void* params, std::span<const Tensor> inputs, std::span<TensorDesc> outputs) {
  const auto& p = *static_cast<const P*>(params);
  const TensorDesc& x = desc_of(inputs, 0);
  BANTAM_RETURN_IF_ERROR(check_type(x, ElementType::kI8, 0));
  if (x.rank < 1) return failure(StatusCode::kInvalidModel, "log_softmax_q: no dimension", x.rank, 1).at(0);
  for (const std::int32_t multiplier : {p.input_multiplier, p.reverse_multiplier})
    if (multiplier < 0)
      return failure(StatusCode::kInvalidModel, "log_softmax_q: a multiplier is negative", multiplier, 0);
  if (p.input_left_shift < 0 || p.input_left_shift > 30)
    return failure(StatusCode::kInvalidModel, "log_softmax_q: the input shift is out of range", p.input_left_shift, 30);
  if (p.reverse_shift < -31 || p.reverse_shift > 30)
    return failure(StatusCode::kInvalidModel, "log_softmax_q: the reverse shift is out of range", p.reverse_shift, 30);
  if (p.diff_min > 0)
    return failure(StatusCode::kInvalidModel, "log_softmax_q: the smallest difference is positive", p.diff_min, 0);
  outputs[0] = x;
  outputs[0].set_dense_strides();
  return ok_status();
}

Footprint log_softmax_footprint(const OpCall&, int /*threads*/) {
  Footprint footprint;
  footprint.overwrites[0] = 1;
  return footprint;
}

std::int32_t to_q5(const P& p, std::int32_t difference) {
  return multiply_by_quantized_multiplier(difference, p.input_multiplier, p.input_left_shift);
}

void log_softmax_row(const P& p, const std::int8_t* x, std::int8_t* y, std::int64_t size) {
  constexpr int kSumBits = 12;
  constexpr int kQ5ToOutput = 31 - 5 - 4;
  const std::int32_t maximum = *std::max_element(x, x + size);
  std::int64_t sum = 0;  // Q12; a row whose sum leaves it is outside the definition and saturates
  for (std::int64_t i = 0; i < size; ++i)
    if (x[i] - maximum >= p.diff_min)
      sum += rounding_divide_by_pot(exp_of_negative<5>(std::min<std::int32_t>(to_q5(p, x[i] - maximum), 0)), kSumBits);
  const std::int32_t log_sum =
      log_q12_to_q5(static_cast<std::int32_t>(std::min<std::int64_t>(sum, std::numeric_limits<std::int32_t>::max())));
  // The smallest number of Q5 plus what will be subtracted below.
  const std::int32_t smallest = fixed_point_detail::wrap_add(log_sum, std::numeric_limits<std::int32_t>::min());
  const std::int64_t lowest = std::max<std::int64_t>(
      std::int64_t{p.diff_min} - 1, multiply_by_quantized_multiplier(smallest, p.reverse_multiplier, p.reverse_shift));
  for (std::int64_t i = 0; i < size; ++i) {
    const std::int32_t difference = x[i] - maximum;
    if (difference <= lowest) {
      y[i] = -128;
      continue;
    }
    const std::int64_t output = std::int64_t{rounding_divide_by_pot(
                                    fixed_point_detail::wrap_subtract(to_q5(p, difference), log_sum), kQ5ToOutput)} +
                                127;
    y[i] = static_cast<std::int8_t>(std::clamp<std::int64_t>(output, -128, 127));
  }
}

Status run_log_softmax(const Invocation& call) {
  const std::int64_t size = call.in(0).last(0);
  if (size == 0) return ok_status();
  for (std::int64_t row = 0; row < call.in(0).elements(); row += size)
    log_softmax_row(call.as<P>(), call.input<std::int8_t>(0) + row, call.output<std::int8_t>() + row, size);
  return ok_status();
}

constexpr KernelVariant kVariants[] = {
    {.name = "i8__ref", .supports = all_dense, .footprint = log_softmax_footprint, .run = run_log_softmax},
};

}  // namespace

constexpr OpDef kLogSoftmaxQ{
    .name = "log_softmax_q",
    .params_bytes = sizeof(P),
    .default_params = &kDefaults,
    .fields = kFields,
    .infer = infer_log_softmax,
    .variants = kVariants,
};

}  // namespace bantam::ops
