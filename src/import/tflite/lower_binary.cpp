// Functions of two or three operands with broadcasting.
#include <fmt/format.h>

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

void lower_quantized_arithmetic(Lowering& op, BinaryQFunction function, schema::Activation activation) {
  if (!op.require_type(0, {kI8, kU8, kI16}) || !op.require_type(1, {op.in_type(0)})) return;
  const Affine a = op.in_affine(0);
  const Affine b = op.in_affine(1);
  const Affine output = op.out_affine();
  const IntegerRange range = op.activation_range(activation);
  if (op.failed()) return;
  ops::BinaryQParams params;
  params.function = function;
  params.a_zero_point = a.zero_point;
  params.b_zero_point = b.zero_point;
  params.output_zero_point = output.zero_point;
  params.minimum = range.minimum;
  params.maximum = range.maximum;
  params.left_shift = op.in_type(0) == kI16 ? 15 : 20;
  FixedMultiplier to_output;
  if (function == BinaryQFunction::kMul) {
    to_output = quantize_multiplier(static_cast<double>(a.scale) * static_cast<double>(b.scale) /
                                    static_cast<double>(output.scale));
  } else {
    const auto scaling = (function == BinaryQFunction::kAdd ? add_scaling : sub_scaling)(a.scale, b.scale, output.scale,
                                                                                         params.left_shift);
    params.a_multiplier = scaling.a.multiplier;
    params.a_shift = scaling.a.shift;
    params.b_multiplier = scaling.b.multiplier;
    params.b_shift = scaling.b.shift;
    to_output = scaling.output;
    if (to_output.shift > 0)
      return op.unsupported(
          fmt::format("result scale {} beside operand scales {} and {}", output.scale, a.scale, b.scale),
          "a result scale not far below the operands'");
  }
  if (!to_output.is_applicable())
    return op.unsupported(fmt::format("result scale {}", output.scale), "a rescaling below 2^30");
  params.output_multiplier = to_output.multiplier;
  params.output_shift = to_output.shift;
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
  if (is_quantized(op)) return op.unsupported("a quantised operand", "f32, i32, i64");
  lower_plain(op, BinaryFunction::kDiv, op.options<schema::DivOptions>().activation());
}

/// Compares stored values, which is right for quantised operands of one scale.
template <BinaryFunction function>
void lower_extremum(Lowering& op) {
  if (!is_quantized(op)) return lower_plain(op, function, schema::Activation::NONE);
  if (!op.require_same_quantization(0) || !op.require_same_quantization(1)) return;
  op.result(0, binary(op, function, op.in(0), op.in(1)));
}

template <BinaryFunction function>
void lower_comparison(Lowering& op) {
  if (is_quantized(op)) return op.unsupported("a quantised operand", "f32, i32, i64, bool");
  if (op.require_type(0, {kF32, kI8, kU8, kI16, kI32, kI64, kBool}))
    op.result(0, binary(op, function, op.in(0), op.in(1)));
}

template <BinaryFunction function>
void lower_logical(Lowering& op) {
  if (op.require_type(0, {kBool}) && op.require_type(1, {kBool}))
    op.result(0, binary(op, function, op.in(0), op.in(1)));
}

void lower_add_n(Lowering& op) {
  if (!op.require_type(0, {kF32, kI32})) return;
  ValueId sum = op.in(0);
  for (int i = 1; i < op.operands(); ++i) sum = binary(op, BinaryFunction::kAdd, sum, op.in(i));
  op.result(0, sum);
}

void lower_prelu(Lowering& op) {
  if (op.require_type(0, {kF32}) && op.require_type(1, {kF32}))
    op.result(0, binary(op, BinaryFunction::kPrelu, op.in(0), op.in(1)));
}

/// The chosen elements keep their stored form, so both branches must be quantised as the result is.
void emit_select(Lowering& op, ValueId condition) {
  if (type_range(op.in_type(1)) && op.is_quantized_in(1)) {
    op.require_same_quantization(1);
    op.require_same_quantization(2);
  }
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

constexpr OperatorRow kRows[] = {
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
    {SQUARED_DIFFERENCE, 2, 2, 1, lower_unquantized<BinaryFunction::kSquaredDifference>},
    {FLOOR_DIV, 2, 2, 1, lower_unquantized<BinaryFunction::kFloorDiv>},
    {FLOOR_MOD, 2, 2, 1, lower_unquantized<BinaryFunction::kMod>},
    {ATAN2, 2, 2, 1, lower_unquantized<BinaryFunction::kAtan2>},
    {PRELU, 2, 2, 1, lower_prelu},
    {EQUAL, 2, 2, 1, lower_comparison<BinaryFunction::kEqual>},
    {NOT_EQUAL, 2, 2, 1, lower_comparison<BinaryFunction::kNotEqual>},
    {LESS, 2, 2, 1, lower_comparison<BinaryFunction::kLess>},
    {LESS_EQUAL, 2, 2, 1, lower_comparison<BinaryFunction::kLessEqual>},
    {GREATER, 2, 2, 1, lower_comparison<BinaryFunction::kGreater>},
    {GREATER_EQUAL, 2, 2, 1, lower_comparison<BinaryFunction::kGreaterEqual>},
    {LOGICAL_AND, 2, 2, 1, lower_logical<BinaryFunction::kAnd>},
    {LOGICAL_OR, 2, 2, 1, lower_logical<BinaryFunction::kOr>},
    {SELECT, 3, 3, 1, lower_select},
    {SELECT_V2, 3, 3, 1, lower_select_v2},
};

}  // namespace

std::span<const OperatorRow> binary_operators() noexcept { return kRows; }

}  // namespace bantam::import::tflite
