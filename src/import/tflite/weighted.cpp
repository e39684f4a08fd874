#include "import/tflite/weighted.h"

#include <fmt/format.h>

namespace bantam::import::tflite {
namespace {

using enum ElementType;

/// The bias as the int16 form takes it. Without one, a zero bias of 32 bits says that sums have 32 bits.
ValueId wide_bias(Lowering& op, int operand, std::int64_t channels, schema::TensorType accumulator) {
  if (!op.has(operand)) {
    if (accumulator != schema::TensorType::INT32) return kNoValue;
    const std::vector<std::int32_t> zeros(static_cast<std::size_t>(channels), 0);
    return op.constant<std::int32_t>({channels}, zeros);
  }
  if (!op.require_type(operand, {kI16, kI32, kI64})) return kNoValue;
  return op.in_type(operand) == kI16 ? op.cast(op.in(operand), kI64) : op.in(operand);
}

void require_symmetric(Lowering& op, const Affine& quantization, std::string_view role) {
  if (quantization.zero_point != 0)
    op.unsupported(fmt::format("an int16 {} with zero point {}", role, quantization.zero_point), "zero point 0");
}

}  // namespace

ValueId weights(Lowering& op, int operand) {
  if (op.failed() || op.in_type(operand) != kI4) return op.in(operand);
  const auto& packed = op.graph().value(op.in(operand)).constant;
  if (!packed) {
    op.unsupported("4-bit weights that are computed at run time", "constant ones");
    return kNoValue;
  }
  std::vector<std::int8_t> elements(static_cast<std::size_t>(op.in_desc(operand).elements()));
  for (std::size_t i = 0; i < elements.size(); ++i) {
    const auto pair = std::to_integer<unsigned>(packed->bytes[i / 2]);
    const unsigned nibble = (i % 2 == 0 ? pair : pair >> 4) & 15U;
    elements[i] = static_cast<std::int8_t>(static_cast<int>(nibble ^ 8U) - 8);
  }
  return op.constant<std::int8_t>(op.dims(op.in(operand)), elements);
}

ValueId weight_scale_operand(Lowering& op, const WeightedOperands& operands) {
  const std::int64_t channels = op.in_desc(operands.weights).dims[operands.channel_axis];
  const auto scales = op.weight_scales(operands.weights, operands.channel_axis, channels);
  return op.constant<float>({static_cast<std::int64_t>(scales.size())}, scales);
}

IntegerForm integer_form(Lowering& op, const WeightedOperands& operands, schema::Activation activation,
                         schema::TensorType accumulator, ScaleRule rule) {
  IntegerForm form;
  if (!op.require_type(operands.input, {kF32, kI8, kI16}) || !op.require_type(operands.weights, {kI8, kI4}))
    return form;
  const bool wide = op.in_type(operands.input) == kI16;
  const std::int64_t channels = op.in_desc(operands.weights).dims[operands.channel_axis];
  form.input = op.in_affine(operands.input);
  form.output = op.out_affine();
  if (wide) {
    require_symmetric(op, form.input, "operand");
    require_symmetric(op, form.output, "result");
    form.bias = wide_bias(op, operands.bias, channels, accumulator);
  } else if (op.has(operands.bias) && op.require_type(operands.bias, {kI32})) {
    form.bias = op.in(operands.bias);
  }
  const bool may_be_asymmetric = rule == ScaleRule::kFullyConnected && !wide;
  const auto scales = op.weight_scales(operands.weights, operands.channel_axis, channels,
                                       may_be_asymmetric ? &form.weights_zero_point : nullptr);
  form.range = op.activation_range(activation);
  std::vector<std::int32_t> multipliers;
  std::vector<std::int32_t> shifts;
  for (std::int64_t c = 0; c < channels && !op.failed(); ++c) {
    const bool one_scale = scales.size() == 1;
    const float scale = scales[one_scale ? 0 : static_cast<std::size_t>(c)];
    const FixedMultiplier m = op.multiplier(rule == ScaleRule::kFullyConnected && one_scale
                                                ? fully_connected_scale(form.input.scale, scale, form.output.scale)
                                                : convolution_scale(form.input.scale, scale, form.output.scale));
    multipliers.push_back(m.multiplier);
    shifts.push_back(m.shift);
  }
  form.multiplier = op.constant<std::int32_t>({channels}, multipliers);
  form.shift = op.constant<std::int32_t>({channels}, shifts);
  return form;
}

}  // namespace bantam::import::tflite
