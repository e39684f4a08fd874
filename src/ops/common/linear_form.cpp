#include "ops/common/linear_form.h"

namespace bantam::ops {
namespace {

bool given(std::span<const Tensor> inputs, std::size_t i) { return i < inputs.size() && inputs[i].desc->present(); }

/// A vector with one element per channel, or, where `one_for_all` permits, a single one.
Status check_channel_vector(std::span<const Tensor> inputs, std::size_t i, ElementType type, std::int32_t channels,
                            bool one_for_all) {
  const TensorDesc& desc = *inputs[i].desc;
  const auto index = static_cast<std::int32_t>(i);
  if (desc.type != type)
    return failure(StatusCode::kInvalidModel, "operand has the wrong element type",
                   static_cast<std::int64_t>(desc.type), static_cast<std::int64_t>(type))
        .at(index);
  if (desc.rank != 1)
    return failure(StatusCode::kInvalidModel, "per-channel operand must be a vector", desc.rank, 1).at(index);
  if (desc.dims[0] != channels && !(one_for_all && desc.dims[0] == 1))
    return failure(StatusCode::kInvalidModel, "per-channel operand has the wrong length", desc.dims[0], channels)
        .at(index);
  return ok_status();
}

Status check_absent(std::span<const Tensor> inputs, std::size_t first) {
  for (std::size_t i = first; i < inputs.size(); ++i)
    if (inputs[i].desc->present())
      return failure(StatusCode::kInvalidModel, "operand is not used by this form").at(static_cast<std::int32_t>(i));
  return ok_status();
}

bool fits_int8(std::int32_t value) { return value >= -128 && value <= 127; }

bool fits_int16(std::int32_t value) { return value >= -32768 && value <= 32767; }

Status check_range16(const Int8Range& range) {
  if (range.input_zero_point != 0 || range.weights_zero_point != 0 || range.output_zero_point != 0)
    return failure(StatusCode::kInvalidModel, "the int16 form has no zero points", range.input_zero_point, 0);
  if (!fits_int16(range.minimum) || !fits_int16(range.maximum) || range.minimum > range.maximum)
    return failure(StatusCode::kInvalidModel, "minimum and maximum are no int16 range", range.minimum, range.maximum);
  return ok_status();
}

/// The element type of the bias. The int16 form has two.
ElementType bias_type(LinearForm form, std::span<const Tensor> inputs) {
  switch (form) {
    case LinearForm::kInt8: return ElementType::kI32;
    case LinearForm::kInt16: return inputs[2].desc->type == ElementType::kI32 ? ElementType::kI32 : ElementType::kI64;
    default: return ElementType::kF32;
  }
}

Status check_range(const Int8Range& range) {
  if (!fits_int8(range.input_zero_point))
    return failure(StatusCode::kInvalidModel, "input zero point is not an int8", range.input_zero_point, 0);
  if (!fits_int8(range.weights_zero_point))
    return failure(StatusCode::kInvalidModel, "weights zero point is not an int8", range.weights_zero_point, 0);
  if (!fits_int8(range.output_zero_point))
    return failure(StatusCode::kInvalidModel, "output zero point is not an int8", range.output_zero_point, 0);
  if (!fits_int8(range.minimum) || !fits_int8(range.maximum) || range.minimum > range.maximum)
    return failure(StatusCode::kInvalidModel, "minimum and maximum are no int8 range", range.minimum, range.maximum);
  return ok_status();
}

}  // namespace

Status infer_linear_form(std::span<const Tensor> inputs, std::int32_t channels, const Activation& activation,
                         const Int8Range& range, LinearForm* form) {
  const ElementType x = inputs[0].desc->type;
  const ElementType weights = inputs[1].desc->type;
  if (x != ElementType::kF32 && x != ElementType::kI8 && x != ElementType::kI16)
    return failure(StatusCode::kUnsupported, "operand must be f32, i8 or i16", static_cast<std::int64_t>(x),
                   static_cast<std::int64_t>(ElementType::kF32))
        .at(0);
  if (weights != ElementType::kI8 && !(weights == ElementType::kF32 && x == ElementType::kF32))
    return failure(StatusCode::kUnsupported, "weights must be i8, or f32 as the operand",
                   static_cast<std::int64_t>(weights), static_cast<std::int64_t>(x))
        .at(1);
  *form = linear_form(*inputs[0].desc, *inputs[1].desc);

  if (given(inputs, 2))
    BANTAM_RETURN_IF_ERROR(check_channel_vector(inputs, 2, bias_type(*form, inputs), channels, false));
  if (*form == LinearForm::kFloat) {
    BANTAM_RETURN_IF_ERROR(check_absent(inputs, 3));
    return check_activation(activation);
  }
  if (!given(inputs, 3)) return failure(StatusCode::kInvalidModel, "quantised form needs a scale operand").at(3);
  if (*form == LinearForm::kHybrid) {
    BANTAM_RETURN_IF_ERROR(check_channel_vector(inputs, 3, ElementType::kF32, channels, true));
    BANTAM_RETURN_IF_ERROR(check_absent(inputs, 4));
    return check_activation(activation);
  }
  if (!given(inputs, 4)) return failure(StatusCode::kInvalidModel, "integer form needs a shift operand").at(4);
  BANTAM_RETURN_IF_ERROR(check_channel_vector(inputs, 3, ElementType::kI32, channels, false));
  BANTAM_RETURN_IF_ERROR(check_channel_vector(inputs, 4, ElementType::kI32, channels, false));
  return *form == LinearForm::kInt16 ? check_range16(range) : check_range(range);
}

}  // namespace bantam::ops
