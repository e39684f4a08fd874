#include "ops/nn/lstm/rnn.h"

#include <cmath>
#include <cstring>

#include "ops/common/params.h"

namespace bantam::ops::rnn {
namespace {

Status check_dims(const TensorDesc& desc, std::span<const std::int64_t> dims, int operand) {
  BANTAM_RETURN_IF_ERROR(check_rank(desc, static_cast<int>(dims.size()), operand));
  for (int i = 0; i < desc.rank; ++i)
    if (desc.dims[i] != dims[static_cast<std::size_t>(i)])
      return failure(StatusCode::kInvalidModel, "operand has the wrong shape", desc.dims[i],
                     dims[static_cast<std::size_t>(i)])
          .at(operand);
  return ok_status();
}

Status check_f32(std::span<const Tensor> inputs, int operand, std::span<const std::int64_t> dims) {
  BANTAM_RETURN_IF_ERROR(check_type(desc_of(inputs, operand), ElementType::kF32, operand));
  return check_dims(desc_of(inputs, operand), dims, operand);
}

}  // namespace

Extents extents_of(const TensorDesc& x, const TensorDesc& r) noexcept {
  return {x.dims[0], x.dims[1], x.dims[2], r.dims[2], r.dims[0]};
}

Status check_optional(std::span<const Tensor> inputs, int operand, std::span<const std::int64_t> dims) {
  return is_given(inputs, operand) ? check_f32(inputs, operand, dims) : ok_status();
}

Status infer(const Rules& rules, std::span<const Tensor> inputs, std::span<TensorDesc> outputs) {
  if (!is_enumerator(rules.direction))
    return failure(StatusCode::kInvalidModel, "unknown direction", static_cast<std::int64_t>(rules.direction), 0);
  if (!(rules.clip >= 0) || !std::isfinite(rules.clip))
    return failure(StatusCode::kInvalidModel, "clip is negative or not a number");
  BANTAM_RETURN_IF_ERROR(check_rank(desc_of(inputs, kX), 3, kX));
  BANTAM_RETURN_IF_ERROR(check_rank(desc_of(inputs, kR), 3, kR));
  Extents e = extents_of(desc_of(inputs, kX), desc_of(inputs, kR));
  e.directions = rules.direction == RnnDirection::kBidirectional ? 2 : 1;
  const std::int64_t gates = rules.gates * e.hidden;
  const std::int64_t x_dims[] = {e.steps, e.batch, e.input};
  const std::int64_t w_dims[] = {e.directions, gates, e.input};
  const std::int64_t r_dims[] = {e.directions, gates, e.hidden};
  const std::int64_t b_dims[] = {e.directions, 2 * gates};
  const std::int64_t h_dims[] = {e.directions, e.batch, e.hidden};
  BANTAM_RETURN_IF_ERROR(check_f32(inputs, kX, x_dims));
  BANTAM_RETURN_IF_ERROR(check_f32(inputs, kW, w_dims));
  BANTAM_RETURN_IF_ERROR(check_f32(inputs, kR, r_dims));
  BANTAM_RETURN_IF_ERROR(check_optional(inputs, kB, b_dims));
  BANTAM_RETURN_IF_ERROR(check_optional(inputs, kInitialH, h_dims));
  if (is_given(inputs, kLengths)) {
    BANTAM_RETURN_IF_ERROR(check_type(desc_of(inputs, kLengths), ElementType::kI32, kLengths));
    BANTAM_RETURN_IF_ERROR(check_dims(desc_of(inputs, kLengths), {&e.batch, 1}, kLengths));
  }
  const std::int64_t y_dims[] = {e.steps, e.directions, e.batch, e.hidden};
  BANTAM_RETURN_IF_ERROR(make_desc(ElementType::kF32, y_dims, 4, &outputs[0]));
  return make_desc(ElementType::kF32, h_dims, 3, &outputs[1]);
}

Status check_lengths(const Invocation& call, const Extents& e) noexcept {
  if (!call.has(kLengths)) return ok_status();
  for (std::int64_t b = 0; b < e.batch; ++b) {
    const std::int32_t length = call.input<std::int32_t>(kLengths)[b];
    if (length < 0 || length > e.steps)
      return failure(StatusCode::kOutOfRange, "sequence length is outside the sequence", length, e.steps);
  }
  return ok_status();
}

}  // namespace bantam::ops::rnn
