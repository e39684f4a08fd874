// What the lowerings of operators that multiply by weights share (convolutions, fully connected layers): weights in a
// form that core operators take, and the operands and parameters of the integer forms (ops/common/linear_form.h).
#pragma once

#include "import/tflite/lowering.h"

namespace bantam::import::tflite {

/// Where an operator keeps what it multiplies.
struct WeightedOperands {
  int input = 0;
  int weights = 1;
  int bias = 2;
  int channel_axis = 0;  ///< dimension of the weights that output channels run along
};

/// The weights, 4-bit ones unpacked to i8.
ValueId weights(Lowering& op, int operand);

/// Scales of the weights as an operand of the hybrid form.
ValueId weight_scale_operand(Lowering& op, const WeightedOperands& operands);

struct IntegerForm {
  Affine input;
  Affine output;
  std::int32_t weights_zero_point = 0;
  IntegerRange range;
  ValueId bias = kNoValue;
  ValueId multiplier = kNoValue;
  ValueId shift = kNoValue;
};

/// The scale of one output channel; see convolution_scale and fully_connected_scale.
enum class ScaleRule : std::uint8_t { kConvolution, kFullyConnected };

/// The integer form of an operator whose input is i8 or i16 and whose weights are i8 or i4. `accumulator` is the file's
/// quantized_bias_type, which matters where an int16 operator has no bias. Findings for everything else.
IntegerForm integer_form(Lowering& op, const WeightedOperands& operands, schema::Activation activation,
                         schema::TensorType accumulator, ScaleRule rule);

/// Sets the members that the parameters of all integer forms share.
template <typename Params>
void set_integer_form(Params& params, const IntegerForm& form) {
  params.input_zero_point = form.input.zero_point;
  params.output_zero_point = form.output.zero_point;
  params.minimum = form.range.minimum;
  params.maximum = form.range.maximum;
}

}  // namespace bantam::import::tflite
