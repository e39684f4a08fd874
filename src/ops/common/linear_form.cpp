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
  if (x != ElementType::kF32 && x != ElementType::kI8)
    return failure(StatusCode::kUnsupported, "operand must be f32 or i8", static_cast<std::int64_t>(x),
                   static_cast<std::int64_t>(ElementType::kF32))
        .at(0);
  if (weights != ElementType::kI8 && weights != x)
    return failure(StatusCode::kUnsupported, "weights must be i8 or of the operand's type",
                   static_cast<std::int64_t>(weights), static_cast<std::int64_t>(x))
        .at(1);
  *form = linear_form(*inputs[0].desc, *inputs[1].desc);

  const ElementType bias = *form == LinearForm::kInt8 ? ElementType::kI32 : ElementType::kF32;
  if (given(inputs, 2)) BANTAM_RETURN_IF_ERROR(check_channel_vector(inputs, 2, bias, channels, false));
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
  if (!given(inputs, 4)) return failure(StatusCode::kInvalidModel, "int8 form needs a shift operand").at(4);
  BANTAM_RETURN_IF_ERROR(check_channel_vector(inputs, 3, ElementType::kI32, channels, false));
  BANTAM_RETURN_IF_ERROR(check_channel_vector(inputs, 4, ElementType::kI32, channels, false));
  return check_range(range);
}

}  // namespace bantam::ops
