// ONNX operators that work element by element.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "import/onnx/lowering.h"
#include "ops/elementwise/select/select.h"

namespace bantam::import::onnx {
namespace {

using ops::BinaryFunction;
using ops::UnaryFunction;

template <UnaryFunction function>
void lower_unary(NodeLowering& n) {
  n.ignore({"consumed_inputs"});
  n.set_output(0, n.unary(function, n.input(0)));
}

void lower_leaky_relu(NodeLowering& n) {
  n.set_output(0, n.unary(UnaryFunction::kLeakyRelu, n.input(0), n.attr_float("alpha", 0.01F)));
}
void lower_elu(NodeLowering& n) {
  n.set_output(0, n.unary(UnaryFunction::kElu, n.input(0), n.attr_float("alpha", 1.0F)));
}
void lower_celu(NodeLowering& n) {
  n.set_output(0, n.unary(UnaryFunction::kCelu, n.input(0), n.attr_float("alpha", 1.0F)));
}
void lower_selu(NodeLowering& n) {
  n.set_output(0, n.unary(UnaryFunction::kSelu, n.input(0), n.attr_float("alpha", 1.67326319217681884765625F),
                          n.attr_float("gamma", 1.05070102214813232421875F)));
}
void lower_hard_sigmoid(NodeLowering& n) {
  n.set_output(
      0, n.unary(UnaryFunction::kHardSigmoid, n.input(0), n.attr_float("alpha", 0.2F), n.attr_float("beta", 0.5F)));
}
void lower_thresholded_relu(NodeLowering& n) {
  n.set_output(0, n.unary(UnaryFunction::kThresholdedRelu, n.input(0), n.attr_float("alpha", 1.0F)));
}

void lower_is_inf(NodeLowering& n) {
  const float negative = n.attr_int("detect_negative", 1) != 0 ? 1.0F : 0.0F;
  const float positive = n.attr_int("detect_positive", 1) != 0 ? 1.0F : 0.0F;
  n.set_output(0, n.unary(UnaryFunction::kIsInf, n.input(0), negative, positive));
}

void lower_gelu(NodeLowering& n) {
  const std::string_view approximate = n.attr_string("approximate", "none");
  if (approximate != "none" && approximate != "tanh")
    n.fail(
        fmt::format("attribute 'approximate' = '{}' is not supported, only 'none' and 'tanh'", printable(approximate)));
  n.set_output(0, n.unary(approximate == "tanh" ? UnaryFunction::kGeluTanh : UnaryFunction::kGelu, n.input(0)));
}

void lower_bias_gelu(NodeLowering& n) {
  n.set_output(0, n.unary(UnaryFunction::kGelu, n.binary(BinaryFunction::kAdd, n.input(0), n.input(1))));
}

void lower_fast_gelu(NodeLowering& n) {
  const ValueId x = n.has(1) ? n.binary(BinaryFunction::kAdd, n.input(0), n.input(1)) : n.input(0);
  n.set_output(0, n.unary(UnaryFunction::kGeluTanh, x));
}

/// x sigmoid(alpha x): Swish, and with another default the QuickGelu of com.microsoft.
template <bool gelu>
void lower_swish(NodeLowering& n) {
  const ValueId x = n.input(0);
  const float alpha = n.attr_float("alpha", gelu ? 1.702F : 1.0F);
  if (alpha == 1.0F) return n.set_output(0, n.unary(UnaryFunction::kSilu, x));
  const ValueId scaled = n.binary(BinaryFunction::kMul, x, n.scalar(n.type(x), static_cast<double>(alpha)));
  n.set_output(0, n.binary(BinaryFunction::kMul, x, n.unary(UnaryFunction::kSigmoid, scaled)));
}

/// y = x + bias below -lambd, x - bias above lambd, 0 between.
void lower_shrink(NodeLowering& n) {
  const ValueId x = n.input(0);
  const ElementType type = n.type(x);
  const float bias = n.attr_float("bias", 0.0F);
  const float lambd = n.attr_float("lambd", 0.5F);
  const ValueId low = n.binary(BinaryFunction::kLess, x, n.scalar(type, -lambd));
  const ValueId high = n.binary(BinaryFunction::kGreater, x, n.scalar(type, lambd));
  const ValueId raised = n.binary(BinaryFunction::kAdd, x, n.scalar(type, bias));
  const ValueId lowered = n.binary(BinaryFunction::kSub, x, n.scalar(type, bias));
  const ValueId above = n.emit(ops::kSelect, {high, lowered, n.scalar(type, 0.0)});
  n.set_output(0, n.emit(ops::kSelect, {low, raised, above}));
}

/// Clamps integers and run-time bounds with min and max; float bounds known now become one function.
ValueId clamp(NodeLowering& n, ValueId x, ValueId low, ValueId high) {
  const auto bound = [&](ValueId id, float otherwise) -> std::optional<float> {
    if (id == kNone) return otherwise;
    const auto values = graph::constant_floats(n.builder().graph(), id);
    return values && values->size() == 1 ? std::optional(values->front()) : std::nullopt;
  };
  if (n.failed()) return kNone;
  if (n.type(x) == ElementType::kF32) {
    const auto a = bound(low, std::numeric_limits<float>::lowest());
    const auto b = bound(high, std::numeric_limits<float>::max());
    if (a && b) return n.unary(UnaryFunction::kClip, x, *a, *b);
  }
  if (low != kNone) x = n.binary(BinaryFunction::kMax, x, low);
  if (high != kNone) x = n.binary(BinaryFunction::kMin, x, high);
  return x;
}

void lower_clip_attributes(NodeLowering& n) {
  const ValueId x = n.input(0);
  const float low = n.attr_float("min", std::numeric_limits<float>::lowest());
  const float high = n.attr_float("max", std::numeric_limits<float>::max());
  n.ignore({"consumed_inputs"});
  n.set_output(0, n.unary(UnaryFunction::kClip, x, low, high));
}

void lower_clip(NodeLowering& n) { n.set_output(0, clamp(n, n.input(0), n.optional(1), n.optional(2))); }

/// The second operand of a binary operator. Up to operator set 6 it was broadcast only where `broadcast` asked for it,
/// with its first dimension at `axis` of the first operand; without `axis` its last dimension meets the last.
ValueId second_operand(NodeLowering& n) {
  const ValueId x = n.input(0);
  const ValueId y = n.input(1);
  if (n.opset() >= 7 || n.failed()) return y;
  constexpr std::int64_t kAbsent = std::numeric_limits<std::int64_t>::min();
  const bool broadcast = n.attr_int("broadcast", 0) != 0;
  const std::int64_t axis = n.attr_int("axis", kAbsent);
  if (!broadcast || axis == kAbsent) return y;
  const std::int64_t behind = n.rank(x) - axis - n.rank(y);
  if (axis < 0 || behind < 0) {
    n.fail(fmt::format("attribute 'axis' = {} does not place {} within {}", axis, format_desc(n.desc(y)),
                       format_desc(n.desc(x))),
           StatusCode::kInvalidModel);
    return y;
  }
  auto dims = n.dims(y);
  dims.insert(dims.end(), static_cast<std::size_t>(behind), 1);
  return n.reshape(y, dims);
}

template <BinaryFunction function>
void lower_binary(NodeLowering& n) {
  n.set_output(0, n.binary(function, n.input(0), second_operand(n)));
}

/// x^2 is by far the most frequent power, and exact as a product.
void lower_pow(NodeLowering& n) {
  const ValueId x = n.input(0);
  const ValueId exponent = second_operand(n);
  if (n.failed()) return;
  const auto values = graph::constant_floats(n.builder().graph(), exponent);
  if (values && values->size() == 1 && values->front() == 2.0F && n.rank(exponent) <= n.rank(x)) {
    n.set_output(0, n.unary(UnaryFunction::kSquare, x));
    return;
  }
  n.set_output(0, n.binary(BinaryFunction::kPow, x, exponent));
}

void lower_mod(NodeLowering& n) {
  const bool c_rules = n.attr_int("fmod", 0) != 0;
  n.set_output(0, n.binary(c_rules ? BinaryFunction::kFmod : BinaryFunction::kMod, n.input(0), n.input(1)));
}

void lower_bit_shift(NodeLowering& n) {
  const std::string_view direction = n.attr_string("direction", "");
  if (direction != "LEFT" && direction != "RIGHT")
    n.fail(fmt::format("attribute 'direction' = '{}' must be LEFT or RIGHT", printable(direction)),
           StatusCode::kInvalidModel);
  n.set_output(0, n.binary(direction == "LEFT" ? BinaryFunction::kShiftLeft : BinaryFunction::kShiftRight, n.input(0),
                           n.input(1)));
}

/// The sum (or minimum, maximum) of any number of operands, from left to right.
template <BinaryFunction function>
ValueId accumulate(NodeLowering& n) {
  ValueId result = n.input(0);
  for (int i = 1; i < n.inputs(); ++i) result = n.binary(function, result, n.input(i));
  return result;
}

template <BinaryFunction function>
void lower_variadic(NodeLowering& n) {
  n.set_output(0, accumulate<function>(n));
}

void lower_mean(NodeLowering& n) {
  const ValueId sum = accumulate<BinaryFunction::kAdd>(n);
  n.set_output(0, n.inputs() == 1 ? sum : n.binary(BinaryFunction::kDiv, sum, n.scalar(n.type(sum), n.inputs())));
}

/// The slope is broadcast to x only, so that its missing leading dimensions are ones; NumPy rules do the same. Up to
/// operator set 6 it has one number per channel, the second axis, or one in all.
void lower_prelu(NodeLowering& n) {
  const ValueId x = n.input(0);
  ValueId slope = n.input(1);
  if (n.failed()) return;
  if (n.opset() < 7 && n.rank(slope) == 1 && n.rank(x) > 2) {
    std::vector<std::int64_t> dims(static_cast<std::size_t>(n.rank(x) - 1), 1);
    dims[0] = n.desc(slope).dims[0];
    slope = n.reshape(slope, dims);
  }
  n.set_output(0, n.binary(BinaryFunction::kPrelu, x, slope));
}

void lower_where(NodeLowering& n) { n.set_output(0, n.emit(ops::kSelect, {n.input(0), n.input(1), n.input(2)})); }

void lower_cast(NodeLowering& n) {
  const ValueId x = n.input(0);
  const auto code = n.attr_int32("to", 0);
  n.ignore({"saturate"});  // matters to 8-bit floats only
  const ElementType to = compute_type(element_type(code));
  if (to == ElementType::kNone || to == ElementType::kI4)
    n.fail(fmt::format("conversion to {} is not supported", data_type_name(code)));
  n.set_output(0, n.cast(x, to));
}

void lower_cast_like(NodeLowering& n) {
  n.ignore({"saturate"});
  n.set_output(0, n.cast(n.input(0), n.type(n.input(1))));
}

constexpr OperatorRow kElementwiseOperators[] = {
    {"", "Abs", 6, kNewest, lower_unary<UnaryFunction::kAbs>},
    {"", "Acos", 7, kNewest, lower_unary<UnaryFunction::kAcos>},
    {"", "Acosh", 9, kNewest, lower_unary<UnaryFunction::kAcosh>},
    {"", "Add", 6, kNewest, lower_binary<BinaryFunction::kAdd>},
    {"", "And", 6, kNewest, lower_binary<BinaryFunction::kAnd>},
    {"", "Asin", 7, kNewest, lower_unary<UnaryFunction::kAsin>},
    {"", "Asinh", 9, kNewest, lower_unary<UnaryFunction::kAsinh>},
    {"", "Atan", 7, kNewest, lower_unary<UnaryFunction::kAtan>},
    {"", "Atanh", 9, kNewest, lower_unary<UnaryFunction::kAtanh>},
    {"", "BitShift", 11, kNewest, lower_bit_shift},
    {"", "BitwiseAnd", 18, kNewest, lower_binary<BinaryFunction::kBitAnd>},
    {"", "BitwiseNot", 18, kNewest, lower_unary<UnaryFunction::kBitNot>},
    {"", "BitwiseOr", 18, kNewest, lower_binary<BinaryFunction::kBitOr>},
    {"", "BitwiseXor", 18, kNewest, lower_binary<BinaryFunction::kBitXor>},
    {"", "Cast", 6, kNewest, lower_cast},
    {"", "CastLike", 15, kNewest, lower_cast_like},
    {"", "Ceil", 6, kNewest, lower_unary<UnaryFunction::kCeil>},
    {"", "Celu", 12, kNewest, lower_celu},
    {"", "Clip", 6, 10, lower_clip_attributes},
    {"", "Clip", 11, kNewest, lower_clip},
    {"", "Cos", 7, kNewest, lower_unary<UnaryFunction::kCos>},
    {"", "Cosh", 9, kNewest, lower_unary<UnaryFunction::kCosh>},
    {"", "Div", 6, kNewest, lower_binary<BinaryFunction::kDiv>},
    {"", "Elu", 6, kNewest, lower_elu},
    {"", "Equal", 6, kNewest, lower_binary<BinaryFunction::kEqual>},
    {"", "Erf", 9, kNewest, lower_unary<UnaryFunction::kErf>},
    {"", "Exp", 6, kNewest, lower_unary<UnaryFunction::kExp>},
    {"", "Floor", 6, kNewest, lower_unary<UnaryFunction::kFloor>},
    {"", "Gelu", 20, kNewest, lower_gelu},
    {"", "Greater", 6, kNewest, lower_binary<BinaryFunction::kGreater>},
    {"", "GreaterOrEqual", 12, kNewest, lower_binary<BinaryFunction::kGreaterEqual>},
    {"", "HardSigmoid", 6, kNewest, lower_hard_sigmoid},
    {"", "HardSwish", 14, kNewest, lower_unary<UnaryFunction::kHardSwish>},
    {"", "IsInf", 10, kNewest, lower_is_inf},
    {"", "IsNaN", 9, kNewest, lower_unary<UnaryFunction::kIsNan>},
    {"", "LeakyRelu", 6, kNewest, lower_leaky_relu},
    {"", "Less", 6, kNewest, lower_binary<BinaryFunction::kLess>},
    {"", "LessOrEqual", 12, kNewest, lower_binary<BinaryFunction::kLessEqual>},
    {"", "Log", 6, kNewest, lower_unary<UnaryFunction::kLog>},
    {"", "Max", 6, kNewest, lower_variadic<BinaryFunction::kMax>},
    {"", "Mean", 6, kNewest, lower_mean},
    {"", "Min", 6, kNewest, lower_variadic<BinaryFunction::kMin>},
    {"", "Mish", 18, kNewest, lower_unary<UnaryFunction::kMish>},
    {"", "Mod", 10, kNewest, lower_mod},
    {"", "Mul", 6, kNewest, lower_binary<BinaryFunction::kMul>},
    {"", "Neg", 6, kNewest, lower_unary<UnaryFunction::kNeg>},
    {"", "Not", 1, kNewest, lower_unary<UnaryFunction::kNot>},
    {"", "Or", 6, kNewest, lower_binary<BinaryFunction::kOr>},
    {"", "PRelu", 6, kNewest, lower_prelu},
    {"", "Pow", 6, kNewest, lower_pow},
    {"", "Reciprocal", 6, kNewest, lower_unary<UnaryFunction::kReciprocal>},
    {"", "Relu", 6, kNewest, lower_unary<UnaryFunction::kRelu>},
    {"", "Round", 11, kNewest, lower_unary<UnaryFunction::kRound>},
    {"", "Selu", 6, kNewest, lower_selu},
    {"", "Shrink", 9, kNewest, lower_shrink},
    {"", "Sigmoid", 6, kNewest, lower_unary<UnaryFunction::kSigmoid>},
    {"", "Sign", 9, kNewest, lower_unary<UnaryFunction::kSign>},
    {"", "Sin", 7, kNewest, lower_unary<UnaryFunction::kSin>},
    {"", "Sinh", 9, kNewest, lower_unary<UnaryFunction::kSinh>},
    {"", "Softplus", 1, kNewest, lower_unary<UnaryFunction::kSoftplus>},
    {"", "Softsign", 1, kNewest, lower_unary<UnaryFunction::kSoftsign>},
    {"", "Sqrt", 6, kNewest, lower_unary<UnaryFunction::kSqrt>},
    {"", "Sub", 6, kNewest, lower_binary<BinaryFunction::kSub>},
    {"", "Sum", 6, kNewest, lower_variadic<BinaryFunction::kAdd>},
    {"", "Swish", 24, kNewest, lower_swish<false>},
    {"", "Tan", 7, kNewest, lower_unary<UnaryFunction::kTan>},
    {"", "Tanh", 6, kNewest, lower_unary<UnaryFunction::kTanh>},
    {"", "ThresholdedRelu", 10, kNewest, lower_thresholded_relu},
    {"", "Where", 9, kNewest, lower_where},
    {"", "Xor", 6, kNewest, lower_binary<BinaryFunction::kXor>},
    {"com.microsoft", "BiasGelu", 1, kNewest, lower_bias_gelu},
    {"com.microsoft", "FastGelu", 1, kNewest, lower_fast_gelu},
    {"com.microsoft", "Gelu", 1, kNewest, lower_unary<UnaryFunction::kGelu>},
    {"com.microsoft", "QuickGelu", 1, kNewest, lower_swish<true>},
};

}  // namespace

std::span<const OperatorRow> elementwise_operators() { return kElementwiseOperators; }

}  // namespace bantam::import::onnx
