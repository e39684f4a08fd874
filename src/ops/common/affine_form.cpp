#include "ops/common/affine_form.h"

#include <cmath>

#include "ops/common/dispatch.h"
#include "ops/common/hard_swish_steps.h"
#include "ops/common/operands.h"

namespace bantam::ops {
namespace {

constexpr bool is_8_bit(ElementType type) { return is_one_of<std::int8_t, std::uint8_t>(type); }

/// A list of one element or of `count`, or a scalar.
Status check_list_operand(std::span<const Tensor> inputs, int i, ElementType type, std::int32_t count, bool one) {
  const TensorDesc& desc = desc_of(inputs, i);
  BANTAM_RETURN_IF_ERROR(check_type(desc, type, i));
  if (desc.rank > 1) return failure(StatusCode::kInvalidModel, "operand must be a list", desc.rank, 1).at(i);
  if (desc.elements() != count && !(one && desc.elements() == 1))
    return failure(StatusCode::kInvalidModel, "operand has the wrong length", desc.elements(), count).at(i);
  return ok_status();
}

Status check_parameters(std::span<const Tensor> inputs, const AffineForm& form) {
  const ElementType to = form.to;
  if (!fits_byte(form.input_zero_point, desc_of(inputs, 0).type))
    return failure(StatusCode::kInvalidModel, "input zero point is outside its type", form.input_zero_point, 0);
  if (!fits_byte(form.weights_zero_point, desc_of(inputs, 1).type))
    return failure(StatusCode::kInvalidModel, "weights zero point is outside its type", form.weights_zero_point, 0);
  BANTAM_RETURN_IF_ERROR(check_activation(form.activation));
  if (!is_8_bit(to)) return ok_status();
  BANTAM_RETURN_IF_ERROR(check_byte_results(to, form.output_zero_point, form.minimum, form.maximum));
  if (form.quantizes_activation() && !(std::isfinite(form.output_scale) && form.output_scale > 0.0F))
    return failure(StatusCode::kInvalidModel, "output scale must be a positive number");
  return ok_status();
}

}  // namespace

Status check_byte_results(ElementType to, std::int32_t zero_point, std::int32_t minimum, std::int32_t maximum) {
  if (!fits_byte(zero_point, to))
    return failure(StatusCode::kInvalidModel, "output zero point is outside its type", zero_point, 0);
  if (!fits_byte(minimum, to) || !fits_byte(maximum, to) || minimum > maximum)
    return failure(StatusCode::kInvalidModel, "minimum and maximum are no range of the type", minimum, maximum);
  return ok_status();
}

Status infer_affine_form(std::span<const Tensor> inputs, const AffineForm& form, std::int32_t channels,
                         std::int32_t x_zero_points) {
  const ElementType to = form.to;
  for (const int i : {0, 1})
    if (!is_8_bit(desc_of(inputs, i).type))
      return failure(StatusCode::kUnsupported, "operand must be i8 or u8",
                     static_cast<std::int64_t>(desc_of(inputs, i).type), static_cast<std::int64_t>(ElementType::kI8))
          .at(i);
  if (!is_8_bit(to) && to != ElementType::kI32 && to != ElementType::kF32)
    return failure(StatusCode::kUnsupported, "the result must be i8, u8, i32 or f32", static_cast<std::int64_t>(to),
                   static_cast<std::int64_t>(ElementType::kI8));
  BANTAM_RETURN_IF_ERROR(check_parameters(inputs, form));
  const ElementType bias = form.has_real_bias() ? ElementType::kF32 : ElementType::kI32;
  if (is_given(inputs, 2)) BANTAM_RETURN_IF_ERROR(check_list_operand(inputs, 2, bias, channels, false));
  if (is_given(inputs, 3) != (to != ElementType::kI32))
    return failure(StatusCode::kInvalidModel, "a scale is needed except for i32 results").at(3);
  if (is_given(inputs, 3)) BANTAM_RETURN_IF_ERROR(check_list_operand(inputs, 3, ElementType::kF32, channels, true));
  if (is_given(inputs, 4))
    BANTAM_RETURN_IF_ERROR(check_list_operand(inputs, 4, desc_of(inputs, 0).type, x_zero_points, true));
  if (is_given(inputs, 5))
    BANTAM_RETURN_IF_ERROR(check_list_operand(inputs, 5, desc_of(inputs, 1).type, channels, true));
  return ok_status();
}

float AffineScaler::activated_steps(float x) const noexcept {
  if (activation.function == UnaryFunction::kHardSwish && HardSwishSteps::serves(output_scale))
    return HardSwishSteps(output_scale)(x);
  return apply_activation(x, activation) / output_scale;
}

AffineScaler make_byte_scaler(ElementType to, std::int32_t zero_point, std::int32_t minimum,
                              std::int32_t maximum) noexcept {
  AffineScaler scaler;
  scaler.flip = sign_flip(to);
  const std::int32_t offset = scaler.flip != 0 ? 128 : 0;
  scaler.zero_point = zero_point - offset;
  scaler.minimum = minimum - offset;
  scaler.maximum = maximum - offset;
  return scaler;
}

AffineScaler make_affine_scaler(const Invocation& call, const AffineForm& form) noexcept {
  AffineScaler scaler = make_byte_scaler(form.to, form.output_zero_point, form.minimum, form.maximum);
  if (call.has(2) && form.has_real_bias()) scaler.real_bias = call.input<float>(2);
  if (call.has(2) && !form.has_real_bias()) scaler.bias = call.input<std::int32_t>(2);
  if (call.has(3)) {
    scaler.scale = call.input<float>(3);
    scaler.per_channel = call.in(3).elements() != 1;
  }
  scaler.activation = form.activation;
  scaler.output_scale = form.output_scale;
  return scaler;
}

}  // namespace bantam::ops
