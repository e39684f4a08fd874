// Functions of one element: activations, mathematics, changes of representation.
#include <fmt/format.h>

#include <cmath>

#include "import/tflite/operators.h"
#include "ops/elementwise/activation_i16/activation_i16.h"
#include "ops/elementwise/binary/binary.h"
#include "ops/elementwise/dequantize/dequantize.h"
#include "ops/elementwise/quantize/quantize.h"
#include "ops/elementwise/requantize/requantize.h"
#include "ops/elementwise/rsqrt_q/rsqrt_q.h"
#include "ops/elementwise/unary/unary.h"

namespace bantam::import::tflite {
namespace {

using enum ElementType;
using ops::UnaryFunction;

ops::RequantizeParams requantize_params(ElementType to, Affine input, Affine output, FixedMultiplier m) {
  ops::RequantizeParams params{to};
  params.input_zero_point = input.zero_point;
  params.output_zero_point = output.zero_point;
  params.multiplier = m.multiplier;
  params.shift = m.shift;
  return params;
}

/// The function in single precision, for 8-bit tables.
float evaluate(UnaryFunction function, float x) {
  switch (function) {
    case UnaryFunction::kExp: return std::exp(x);
    case UnaryFunction::kLog: return std::log(x);
    case UnaryFunction::kSqrt: return std::sqrt(x);
    case UnaryFunction::kSin: return std::sin(x);
    case UnaryFunction::kCos: return std::cos(x);
    case UnaryFunction::kElu: return x < 0.0F ? std::exp(x) - 1.0F : x;
    case UnaryFunction::kGelu: return 0.5F * x * (1.0F + std::erf(x * 0.70710678118654752440F));
    case UnaryFunction::kGeluTanh:
      return 0.5F * x * (1.0F + std::tanh(0.79788456080286535588F * (x + 0.044715F * x * x * x)));
    default: return x;
  }
}

void lower_by_float_table(Lowering& op, UnaryFunction function) {
  const Affine input = op.in_affine(0);
  const Affine output = op.out_affine();
  if (op.failed()) return;
  const Table8 table = float_table(op.in_type(0), input, output, [&](float x) { return evaluate(function, x); });
  op.result(0, op.lookup(op.in(0), op.in_type(0), table));
}

void lower_by_table(Lowering& op, const std::optional<Table8>& table) {
  if (op.failed()) return;
  if (!table) return op.unsupported("this ratio of input and output scale", "ratios of a fixed-point multiplier");
  op.result(0, op.lookup(op.in(0), op.in_type(0), *table));
}

/// A function that TFLite computes in float, or for 8-bit types through a table computed in float.
template <UnaryFunction function>
void lower_float_or_table(Lowering& op) {
  if (!op.require_type(0, {kF32, kI8})) return;
  if (op.in_type(0) == kI8) return lower_by_float_table(op, function);
  op.result(0, op.unary(function, op.in(0), function == UnaryFunction::kElu ? 1.0F : 0.0F));
}

template <UnaryFunction function>
void lower_float(Lowering& op) {
  if (op.require_type(0, {kF32})) op.result(0, op.unary(function, op.in(0)));
}

/// Also defined on plain integers.
template <UnaryFunction function>
void lower_arithmetic(Lowering& op) {
  if (op.require_type(0, {kF32, kI16, kI32, kI64})) op.result(0, op.unary(function, op.in(0)));
}

void lower_rsqrt(Lowering& op) {
  constexpr int kLowestShift = -11;  // what ops::RsqrtQParams allows
  if (!op.require_type(0, {kF32, kI8, kI16})) return;
  if (op.in_type(0) == kF32) return op.result(0, op.unary(UnaryFunction::kRsqrt, op.in(0)));
  const Affine input = op.in_affine(0);
  const Affine output = op.out_affine();
  const FixedMultiplier m = op.multiplier(1.0 / static_cast<double>(std::sqrt(input.scale) * output.scale));
  if (op.failed()) return;
  if (m.shift < kLowestShift)
    return op.unsupported(fmt::format("result scale {} with operand scale {}", output.scale, input.scale),
                          "a rescaling of at least 2^-12");
  const ops::RsqrtQParams params{input.zero_point, output.zero_point, m.multiplier, m.shift};
  op.result(0, op.emit(ops::kRsqrtQ, params, {op.in(0)}));
}

/// 16-bit magnitudes need one bit more than their type before they are rescaled.
void lower_quantized_abs_i16(Lowering& op) {
  const Affine input = op.in_affine(0);
  const Affine output = op.out_affine();
  const FixedMultiplier m =
      op.multiplier(input.scale == output.scale ? 1.0 : static_cast<double>(input.scale / output.scale));
  if (op.failed()) return;
  const ValueId magnitude = op.unary(UnaryFunction::kAbs, op.cast(op.in(0), kI32));
  op.result(0, op.emit(ops::kRequantize, ops::RequantizeParams{kI16, 0, output.zero_point, m.multiplier, m.shift},
                       {magnitude}));
}

void lower_abs(Lowering& op) {
  if (!op.require_type(0, {kF32, kI8, kI16, kI32, kI64})) return;
  if (!op.is_quantized_in(0) || op.in_type(0) == kF32) return op.result(0, op.unary(UnaryFunction::kAbs, op.in(0)));
  if (op.in_type(0) == kI16) return lower_quantized_abs_i16(op);
  if (!op.require_type(0, {kI8})) return;
  const Affine input = op.in_affine(0);
  const Affine output = op.out_affine();
  lower_by_table(op, abs_table(input, output));
}

/// clamp(requantised x, low, high) of int16: bounds beyond the type are the type's.
void lower_clamp16(Lowering& op, float low, std::optional<float> high) {
  const Affine input = op.in_affine(0);
  const Affine output = op.out_affine();
  const FixedMultiplier m = op.multiplier(static_cast<double>(input.scale / output.scale));
  if (op.failed()) return;
  const IntegerRange range = clamp_range(*type_range(kI16), output, low, high);
  const ValueId y = op.emit(ops::kRequantize, requantize_params(kI16, input, output, m), {op.in(0)});
  const auto bounded = [&](ops::BinaryFunction function, ValueId x, std::int32_t bound) {
    return op.emit(ops::kBinary, ops::BinaryParams{function}, {x, op.scalar(kI16, bound)});
  };
  const ValueId above = bounded(ops::BinaryFunction::kMax, y, range.minimum);
  op.result(0, high ? bounded(ops::BinaryFunction::kMin, above, range.maximum) : above);
}

/// clamp(x, low, high); without `high`, relu.
void lower_clamp(Lowering& op, float low, std::optional<float> high) {
  if (!op.require_type(0, {kF32, kI8, kU8, kI16})) return;
  if (op.in_type(0) == kI16) return lower_clamp16(op, low, high);
  if (op.in_type(0) == kF32)
    return op.result(
        0, high ? op.unary(UnaryFunction::kClip, op.in(0), low, *high) : op.unary(UnaryFunction::kRelu, op.in(0)));
  const Affine input = op.in_affine(0);
  const Affine output = op.out_affine();
  lower_by_table(op, relu_table(op.in_type(0), input, output, low, high));
}

void lower_leaky_relu16(Lowering& op, Affine input, Affine output, float alpha) {
  const FixedMultiplier identity = op.multiplier(static_cast<double>(input.scale / output.scale));
  const FixedMultiplier slope = op.multiplier(static_cast<double>(input.scale * alpha / output.scale));
  ops::RequantizeParams params = requantize_params(kI16, input, output, identity);
  params.leaky = 1;
  params.negative_multiplier = slope.multiplier;
  params.negative_shift = slope.shift;
  op.result(0, op.emit(ops::kRequantize, params, {op.in(0)}));
}

void lower_leaky_relu(Lowering& op) {
  const float alpha = op.options<schema::LeakyReluOptions>().alpha();
  if (!op.require_type(0, {kF32, kI8, kU8, kI16})) return;
  if (op.in_type(0) == kF32) return op.result(0, op.unary(UnaryFunction::kLeakyRelu, op.in(0), alpha));
  const Affine input = op.in_affine(0);
  const Affine output = op.out_affine();
  if (op.in_type(0) == kI16) return lower_leaky_relu16(op, input, output, alpha);
  lower_by_table(op, leaky_relu_table(op.in_type(0), input, output, alpha));
}

void lower_gelu(Lowering& op) {
  if (op.options<schema::GeluOptions>().approximate()) return lower_float_or_table<UnaryFunction::kGeluTanh>(op);
  lower_float_or_table<UnaryFunction::kGelu>(op);
}

void lower_hard_swish(Lowering& op) {
  if (!op.require_type(0, {kF32, kI8})) return;
  if (op.in_type(0) == kF32) return op.result(0, op.unary(UnaryFunction::kHardSwish, op.in(0)));
  const Affine input = op.in_affine(0);
  const Affine output = op.out_affine();
  lower_by_table(op, hard_swish_table(input, output));
}

/// The int16 kernels of logistic and tanh produce Q15 only. They differ in the scales that they take as powers of two.
void lower_activation16(Lowering& op, UnaryFunction function) {
  const bool is_tanh = function == UnaryFunction::kTanh;
  const Affine input = op.in_affine(0);
  const Affine output = op.out_affine();
  if (op.failed()) return;
  if (input.zero_point != 0 || output.zero_point != 0 || binary_logarithm(output.scale).rounded != -15)
    return op.unsupported(fmt::format("a result quantised by ({}, {}) of an operand with zero point {}", output.scale,
                                      output.zero_point, input.zero_point),
                          "(1/32768, 0) and zero point 0");
  const auto scaling = activation_scaling(input.scale, is_tanh ? 1 : 0);
  if (!scaling) return op.unsupported(fmt::format("an operand of scale {}", input.scale), "scales below 2^17");
  const auto kind = is_tanh ? ops::ActivationI16Function::kTanh : ops::ActivationI16Function::kLogistic;
  op.result(0, op.emit(ops::kActivationI16, ops::ActivationI16Params{kind, scaling->multiplier, scaling->right_shift},
                       {op.in(0)}));
}

/// The fixed-point kernels of logistic and tanh produce one scale and zero point only.
void lower_fixed_point(Lowering& op, UnaryFunction function, Affine natural, Table8 (*table)(Affine)) {
  if (!op.require_type(0, {kF32, kI8, kI16})) return;
  if (op.in_type(0) == kF32) return op.result(0, op.unary(function, op.in(0)));
  if (op.in_type(0) == kI16) return lower_activation16(op, function);
  const Affine input = op.in_affine(0);
  const Affine output = op.out_affine();
  if (op.failed()) return;
  if (output != natural)
    return op.unsupported(fmt::format("a result quantised by ({}, {})", output.scale, output.zero_point),
                          fmt::format("({}, {})", natural.scale, natural.zero_point));
  lower_by_table(op, table(input));
}

void lower_logistic(Lowering& op) {
  lower_fixed_point(op, UnaryFunction::kSigmoid, {1.0F / 256, -128}, logistic_table);
}

void lower_tanh(Lowering& op) { lower_fixed_point(op, UnaryFunction::kTanh, {1.0F / 128, 0}, tanh_table); }

void lower_logical_not(Lowering& op) {
  if (op.require_type(0, {kBool})) op.result(0, op.unary(UnaryFunction::kNot, op.in(0)));
}

/// A scalar zero point of type `type`.
ValueId zero_point(Lowering& op, ElementType type, std::int32_t value) { return op.integers({value}, type); }

void lower_quantize(Lowering& op) {
  const ElementType to = op.out_type();
  if (to != kI8 && to != kU8 && to != kI16 && to != kI32)
    return op.unsupported(fmt::format("a result of type {}", type_name(op.out_tensor().type())), "i8, u8, i16, i32");
  const Affine output = op.out_affine();
  if (op.in_type(0) == kF32) {
    ops::QuantizeParams params{to};
    params.round_half_away = 1;
    const ValueId scale = op.constant<float>({}, std::span<const float>(&output.scale, 1));
    const ValueId offset = op.reshape(zero_point(op, to, output.zero_point), {});
    return op.result(0, op.emit(ops::kQuantize, params, {op.in(0), scale, offset}));
  }
  if (!op.require_type(0, {kF32, kI8, kU8, kI16, kI32})) return;
  const Affine input = op.in_affine(0);
  const FixedMultiplier m = op.multiplier(static_cast<double>(input.scale) / static_cast<double>(output.scale));
  op.result(0, op.emit(ops::kRequantize, requantize_params(to, input, output, m), {op.in(0)}));
}

/// Constant weights may be quantised along a dimension.
void lower_dequantize_per_channel(Lowering& op) {
  const auto& q = *op.in_tensor(0).quantization();
  const int axis = op.axis(q.quantized_dimension(), op.rank(0));
  if (op.failed()) return;
  const auto scales = op.weight_scales(0, axis, op.in_desc(0).dims[axis]);
  const ValueId scale = op.constant<float>({static_cast<std::int64_t>(scales.size())}, scales);
  op.result(0, op.emit(ops::kDequantize, ops::DequantizeParams{axis}, {op.in(0), scale}));
}

void lower_dequantize(Lowering& op) {
  if (!op.require_type(0, {kF16, kI8, kU8, kI16, kI32})) return;
  if (op.in_type(0) == kF16) return op.result(0, op.cast(op.in(0), kF32));
  if (op.is_quantized_in(0) && count(op.in_tensor(0).quantization()->scale()) > 1)
    return lower_dequantize_per_channel(op);
  const Affine input = op.in_affine(0);
  const ValueId scale = op.constant<float>({}, std::span<const float>(&input.scale, 1));
  const ValueId offset = op.reshape(zero_point(op, op.in_type(0), input.zero_point), {});
  op.result(0, op.emit(ops::kDequantize, ops::DequantizeParams{}, {op.in(0), scale, offset}));
}

void lower_cast(Lowering& op) {
  if (op.out_type() == kNone || op.out_type() == kI4)
    return op.unsupported(fmt::format("a result of type {}", type_name(op.out_tensor().type())), "numbers and BOOL");
  op.result(0, op.cast(op.in(0), op.out_type()));
}

using enum schema::BuiltinOperator;

constexpr OperatorRow kUnaryOperators[] = {
    {RELU, 1, 1, 1, [](Lowering& op) { lower_clamp(op, 0.0F, std::nullopt); }},
    {RELU6, 1, 1, 1, [](Lowering& op) { lower_clamp(op, 0.0F, 6.0F); }},
    {RELU_N1_TO_1, 1, 1, 1, [](Lowering& op) { lower_clamp(op, -1.0F, 1.0F); }},
    {RELU_0_TO_1, 1, 1, 1, [](Lowering& op) { lower_clamp(op, 0.0F, 1.0F); }},
    {LEAKY_RELU, 1, 1, 1, lower_leaky_relu},
    {ELU, 1, 1, 1, lower_float_or_table<UnaryFunction::kElu>},
    {GELU, 1, 1, 1, lower_gelu},
    {HARD_SWISH, 1, 1, 1, lower_hard_swish},
    {LOGISTIC, 1, 1, 1, lower_logistic},
    {TANH, 1, 1, 1, lower_tanh},
    {ABS, 1, 1, 1, lower_abs},
    {NEG, 1, 1, 1, lower_arithmetic<UnaryFunction::kNeg>},
    {SIGN, 1, 1, 1, lower_arithmetic<UnaryFunction::kSign>},
    {SQUARE, 1, 1, 1, lower_arithmetic<UnaryFunction::kSquare>},
    {EXP, 1, 1, 1, lower_float_or_table<UnaryFunction::kExp>},
    {LOG, 1, 1, 1, lower_float_or_table<UnaryFunction::kLog>},
    {SQRT, 1, 1, 1, lower_float_or_table<UnaryFunction::kSqrt>},
    {SIN, 1, 1, 1, lower_float_or_table<UnaryFunction::kSin>},
    {COS, 1, 1, 1, lower_float_or_table<UnaryFunction::kCos>},
    {RSQRT, 1, 1, 1, lower_rsqrt},
    {FLOOR, 1, 1, 1, lower_float<UnaryFunction::kFloor>},
    {CEIL, 1, 1, 1, lower_float<UnaryFunction::kCeil>},
    {ROUND, 1, 1, 1, lower_float<UnaryFunction::kRound>},
    {LOGICAL_NOT, 1, 1, 1, lower_logical_not},
    {QUANTIZE, 1, 1, 1, lower_quantize},
    {DEQUANTIZE, 1, 1, 1, lower_dequantize},
    {CAST, 1, 1, 1, lower_cast},
};

}  // namespace

std::span<const OperatorRow> unary_operators() noexcept { return kUnaryOperators; }

}  // namespace bantam::import::tflite
