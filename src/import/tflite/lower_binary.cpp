// Functions of two or three operands with broadcasting.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "import/tflite/operators.h"
#include "ops/elementwise/binary/binary.h"
#include "ops/elementwise/binary_q/binary_q.h"
#include "ops/elementwise/select/select.h"

namespace bantam::import::tflite {
namespace {

using enum ElementType;
using ops::BinaryFunction;
using ops::BinaryQFunction;

bool is_quantized(const Lowering& op) { return type_range(op.in_type(0)).has_value() && op.is_quantized_in(0); }

ValueId binary(Lowering& op, BinaryFunction function, ValueId a, ValueId b, ops::Activation activation = {}) {
  return op.emit(ops::kBinary, ops::BinaryParams{function, activation}, {a, b});
}

/// An integer result under relu and its kin: the bounds are integers.
ValueId clamp_integer(Lowering& op, ValueId y, const ops::Activation& activation) {
  if (activation.function == ops::UnaryFunction::kIdentity) return y;
  const bool relu = activation.function == ops::UnaryFunction::kRelu;
  if (!relu && activation.function != ops::UnaryFunction::kClip) {
    op.unsupported("fused_activation_function TANH on integers", "NONE, RELU, RELU6, RELU_N1_TO_1");
    return kNoValue;
  }
  const ElementType type = op.desc(y).type;
  y = binary(op, BinaryFunction::kMax, y, op.scalar(type, static_cast<double>(activation.a)));
  return relu ? y : binary(op, BinaryFunction::kMin, y, op.scalar(type, static_cast<double>(activation.b)));
}

void lower_plain(Lowering& op, BinaryFunction function, schema::Activation activation) {
  if (!op.require_type(0, {kF32, kI16, kI32, kI64})) return;
  const ops::Activation fused = op.float_activation(activation);
  if (op.in_type(0) == kF32) return op.result(0, binary(op, function, op.in(0), op.in(1), fused));
  op.result(0, clamp_integer(op, binary(op, function, op.in(0), op.in(1)), fused));
}

/// What every quantised operator says of its operands and result.
ops::BinaryQParams quantized_params(BinaryQFunction function, Affine a, Affine b, Affine output, IntegerRange range) {
  ops::BinaryQParams params;
  params.function = function;
  params.a_zero_point = a.zero_point;
  params.b_zero_point = b.zero_point;
  params.output_zero_point = output.zero_point;
  params.minimum = range.minimum;
  params.maximum = range.maximum;
  return params;
}

void set_a(ops::BinaryQParams& params, FixedMultiplier m) {
  params.a_multiplier = m.multiplier;
  params.a_shift = m.shift;
}
void set_b(ops::BinaryQParams& params, FixedMultiplier m) {
  params.b_multiplier = m.multiplier;
  params.b_shift = m.shift;
}
void set_output(ops::BinaryQParams& params, FixedMultiplier m) {
  params.output_multiplier = m.multiplier;
  params.output_shift = m.shift;
}

void lower_quantized_arithmetic(Lowering& op, BinaryQFunction function, schema::Activation activation) {
  if (!op.require_type(0, {kI8, kU8, kI16}) || !op.require_type(1, {op.in_type(0)})) return;
  const Affine a = op.in_affine(0);
  const Affine b = op.in_affine(1);
  const Affine output = op.out_affine();
  const IntegerRange range = op.activation_range(activation);
  if (op.failed()) return;
  ops::BinaryQParams params = quantized_params(function, a, b, output, range);
  params.left_shift = op.in_type(0) == kI16 ? 15 : 20;
  FixedMultiplier to_output;
  if (function == BinaryQFunction::kMul) {
    to_output = quantize_multiplier(static_cast<double>(a.scale) * static_cast<double>(b.scale) /
                                    static_cast<double>(output.scale));
  } else {
    const auto scaling = (function == BinaryQFunction::kAdd ? add_scaling : sub_scaling)(a.scale, b.scale, output.scale,
                                                                                         params.left_shift);
    set_a(params, scaling.a);
    set_b(params, scaling.b);
    to_output = scaling.output;
    if (to_output.shift > 0)
      return op.unsupported(
          fmt::format("result scale {} beside operand scales {} and {}", output.scale, a.scale, b.scale),
          "a result scale not far below the operands'");
  }
  if (!to_output.is_applicable())
    return op.unsupported(fmt::format("result scale {}", output.scale), "a rescaling below 2^30");
  set_output(params, to_output);
  op.result(0, op.emit(ops::kBinaryQ, params, {op.in(0), op.in(1)}));
}

template <typename Options>
void lower_arithmetic(Lowering& op, BinaryFunction plain, BinaryQFunction quantized) {
  const auto activation = op.options<Options>().activation();
  if (is_quantized(op)) return lower_quantized_arithmetic(op, quantized, activation);
  lower_plain(op, plain, activation);
}

/// Operators that TFLite defines on plain numbers, and on quantised ones only in forms we do not have.
template <BinaryFunction function>
void lower_unquantized(Lowering& op) {
  if (is_quantized(op)) return op.unsupported("a quantised operand", "f32, i32, i64");
  lower_plain(op, function, schema::Activation::NONE);
}

void lower_div(Lowering& op) {
  const auto activation = op.options<schema::DivOptions>().activation();
  if (!is_quantized(op)) return lower_plain(op, BinaryFunction::kDiv, activation);
  if (!op.require_type(0, {kI8, kU8}) || !op.require_type(1, {op.in_type(0)})) return;
  const Affine a = op.in_affine(0);
  const Affine b = op.in_affine(1);
  const Affine output = op.out_affine();
  auto params = quantized_params(BinaryQFunction::kDiv, a, b, output, op.activation_range(activation));
  set_output(params, op.multiplier(static_cast<double>(a.scale / (b.scale * output.scale))));
  op.result(0, op.emit(ops::kBinaryQ, params, {op.in(0), op.in(1)}));
}

/// Differences of int8 have room for seven more bits before they are squared.
void lower_squared_difference(Lowering& op) {
  if (!is_quantized(op)) return lower_plain(op, BinaryFunction::kSquaredDifference, schema::Activation::NONE);
  if (!op.require_type(0, {kI8, kI16}) || !op.require_type(1, {op.in_type(0)})) return;
  const Affine a = op.in_affine(0);
  const Affine b = op.in_affine(1);
  const Affine output = op.out_affine();
  const IntegerRange range = op.activation_range(schema::Activation::NONE);
  if (op.failed()) return;
  auto params = quantized_params(BinaryQFunction::kSquaredDifference, a, b, output, range);
  params.left_shift = op.in_type(0) == kI8 ? 7 : 0;
  const double twice_larger = 2 * static_cast<double>(std::max(a.scale, b.scale));
  set_a(params, quantize_multiplier(static_cast<double>(a.scale) / twice_larger));
  set_b(params, quantize_multiplier(static_cast<double>(b.scale) / twice_larger));
  const float divisor = static_cast<float>(1 << (2 * params.left_shift)) * output.scale;
  set_output(params, op.multiplier(twice_larger * twice_larger / static_cast<double>(divisor)));
  op.result(0, op.emit(ops::kBinaryQ, params, {op.in(0), op.in(1)}));
}

/// Of the stored values, whatever their scales: the format compares nothing else.
template <BinaryFunction function>
void lower_extremum(Lowering& op) {
  if (!is_quantized(op)) return lower_plain(op, function, schema::Activation::NONE);
  op.result(0, binary(op, function, op.in(0), op.in(1)));
}

/// Operands on scales of their own meet with eight more bits.
void lower_quantized_comparison(Lowering& op, BinaryQFunction function) {
  constexpr int kLeftShift = 8;
  if (!op.require_type(0, {kI8, kU8, kI16}) || !op.require_type(1, {op.in_type(0)})) return;
  const Affine a = op.in_affine(0);
  const Affine b = op.in_affine(1);
  if (op.failed()) return;
  auto params = quantized_params(function, a, b, {}, *type_range(op.in_type(0)));
  params.left_shift = kLeftShift;
  set_a(params, op.multiplier(static_cast<double>(a.scale)));
  set_b(params, op.multiplier(static_cast<double>(b.scale)));
  op.result(0, op.emit(ops::kBinaryQ, params, {op.in(0), op.in(1)}));
}

template <BinaryFunction function, BinaryQFunction quantized>
void lower_comparison(Lowering& op) {
  if (is_quantized(op)) return lower_quantized_comparison(op, quantized);
  if (op.require_type(0, {kF32, kI8, kU8, kI16, kI32, kI64, kBool}))
    op.result(0, binary(op, function, op.in(0), op.in(1)));
}

template <BinaryFunction function>
void lower_logical(Lowering& op) {
  if (op.require_type(0, {kBool}) && op.require_type(1, {kBool}))
    op.result(0, binary(op, function, op.in(0), op.in(1)));
}

/// Operands of one scale: their sum in integers, brought to the result's scale once.
void lower_quantized_add_n(Lowering& op) {
  if (!op.require_type(0, {kI8, kU8})) return;
  const Affine input = op.in_affine(0);
  ValueId sum = op.cast(op.in(0), kI32);
  for (int i = 1; i < op.operands(); ++i) {
    if (op.in_affine(i) != input)
      return op.unsupported(fmt::format("operand {} with a scale of its own", i), "one scale and zero point for all");
    sum = binary(op, BinaryFunction::kAdd, sum, op.cast(op.in(i), kI32));
  }
  // The format's sum begins at stored zero, one zero point below the number zero.
  op.result(0, op.rescale_sum(sum, std::int64_t{input.zero_point} * (op.operands() + 1), input));
}

void lower_add_n(Lowering& op) {
  if (is_quantized(op)) return lower_quantized_add_n(op);
  if (!op.require_type(0, {kF32, kI32})) return;
  ValueId sum = op.in(0);
  for (int i = 1; i < op.operands(); ++i) sum = binary(op, BinaryFunction::kAdd, sum, op.in(i));
  op.result(0, sum);
}

void lower_prelu(Lowering& op) {
  if (!is_quantized(op)) {
    if (op.require_type(0, {kF32}) && op.require_type(1, {kF32}))
      op.result(0, binary(op, BinaryFunction::kPrelu, op.in(0), op.in(1)));
    return;
  }
  if (!op.require_type(0, {kI8, kU8, kI16}) || !op.require_type(1, {op.in_type(0) == kU8 ? kU8 : kI8})) return;
  const Affine input = op.in_affine(0);
  const Affine slope = op.in_affine(1);
  const Affine output = op.out_affine();
  if (op.failed()) return;
  const double to_output = static_cast<double>(input.scale) / static_cast<double>(output.scale);
  auto params = quantized_params(BinaryQFunction::kPrelu, input, slope, output, *type_range(op.in_type(0)));
  set_output(params, op.multiplier(to_output));
  set_a(params, op.multiplier(static_cast<double>(input.scale) * static_cast<double>(slope.scale) /
                              static_cast<double>(output.scale)));
  op.result(0, op.emit(ops::kBinaryQ, params, {op.in(0), op.cast(op.in(1), op.in_type(0))}));
}

/// The chosen elements keep their stored form.
void emit_select(Lowering& op, ValueId condition) {
  op.result(0, op.emit(ops::kSelect, {condition, op.in(1), op.in(2)}));
}

/// The older form picks whole rows when the condition is a vector.
void lower_select(Lowering& op) {
  if (!op.require_type(0, {kBool})) return;
  if (op.rank(0) != 1 || op.rank(1) <= 1) return emit_select(op, op.in(0));
  Dims rows(static_cast<std::size_t>(op.rank(1)), 1);
  rows[0] = op.in_desc(0).dims[0];
  emit_select(op, op.reshape(op.in(0), rows));
}

void lower_select_v2(Lowering& op) {
  if (op.require_type(0, {kBool})) emit_select(op, op.in(0));
}

using enum schema::BuiltinOperator;

constexpr OperatorRow kBinaryOperators[] = {
    {ADD, 2, 2, 1,
     [](Lowering& op) { lower_arithmetic<schema::AddOptions>(op, BinaryFunction::kAdd, BinaryQFunction::kAdd); }},
    {SUB, 2, 2, 1,
     [](Lowering& op) { lower_arithmetic<schema::SubOptions>(op, BinaryFunction::kSub, BinaryQFunction::kSub); }},
    {MUL, 2, 2, 1,
     [](Lowering& op) { lower_arithmetic<schema::MulOptions>(op, BinaryFunction::kMul, BinaryQFunction::kMul); }},
    {DIV, 2, 2, 1, lower_div},
    {ADD_N, 1, ops::kMaxInputs, 1, lower_add_n},
    {MAXIMUM, 2, 2, 1, lower_extremum<BinaryFunction::kMax>},
    {MINIMUM, 2, 2, 1, lower_extremum<BinaryFunction::kMin>},
    {POW, 2, 2, 1, lower_unquantized<BinaryFunction::kPow>},
    {SQUARED_DIFFERENCE, 2, 2, 1, lower_squared_difference},
    {FLOOR_DIV, 2, 2, 1, lower_unquantized<BinaryFunction::kFloorDiv>},
    {FLOOR_MOD, 2, 2, 1, lower_unquantized<BinaryFunction::kMod>},
    {ATAN2, 2, 2, 1, lower_unquantized<BinaryFunction::kAtan2>},
    {PRELU, 2, 2, 1, lower_prelu},
    {EQUAL, 2, 2, 1, lower_comparison<BinaryFunction::kEqual, BinaryQFunction::kEqual>},
    {NOT_EQUAL, 2, 2, 1, lower_comparison<BinaryFunction::kNotEqual, BinaryQFunction::kNotEqual>},
    {LESS, 2, 2, 1, lower_comparison<BinaryFunction::kLess, BinaryQFunction::kLess>},
    {LESS_EQUAL, 2, 2, 1, lower_comparison<BinaryFunction::kLessEqual, BinaryQFunction::kLessEqual>},
    {GREATER, 2, 2, 1, lower_comparison<BinaryFunction::kGreater, BinaryQFunction::kGreater>},
    {GREATER_EQUAL, 2, 2, 1, lower_comparison<BinaryFunction::kGreaterEqual, BinaryQFunction::kGreaterEqual>},
    {LOGICAL_AND, 2, 2, 1, lower_logical<BinaryFunction::kAnd>},
    {LOGICAL_OR, 2, 2, 1, lower_logical<BinaryFunction::kOr>},
    {SELECT, 3, 3, 1, lower_select},
    {SELECT_V2, 3, 3, 1, lower_select_v2},
};

}  // namespace

std::span<const OperatorRow> binary_operators() noexcept { return kBinaryOperators; }

}  // namespace bantam::import::tflite
