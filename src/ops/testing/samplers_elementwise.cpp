// How element-wise operators are drawn.
#include "ops/elementwise/binary/binary.h"
#include "ops/elementwise/binary_q/binary_q.h"
#include "ops/elementwise/cast/cast.h"
#include "ops/elementwise/dequantize/dequantize.h"
#include "ops/elementwise/lookup8/lookup8.h"
#include "ops/elementwise/multiply_add/multiply_add.h"
#include "ops/elementwise/quantize/quantize.h"
#include "ops/elementwise/requantize/requantize.h"
#include "ops/elementwise/select/select.h"
#include "ops/elementwise/unary/unary.h"
#include "ops/testing/samplers.h"

namespace bantam::ops::testing {
namespace {

constexpr double kQ31 = 1U << 31;

ElementType quantized_type(Sampling& s) {
  return s.type({ElementType::kI8, ElementType::kU8, ElementType::kI16, ElementType::kI32});
}

ElementType integer8(Sampling& s) { return s.type({ElementType::kI8, ElementType::kU8}); }

std::int32_t multiplier(Sampling& s) { return s.pick(static_cast<std::int64_t>(kQ31 / 2), 0x7fffffff); }

std::int32_t zero_point(ElementType type, Sampling& s) {
  if (type == ElementType::kI16 || type == ElementType::kI32) return 0;
  return type == ElementType::kU8 ? s.pick(0, 255) : s.pick(-128, 127);
}

void binary(Sampling& s) {
  BinaryParams p{.function = s.one_in(2) ? s.one_of({BinaryFunction::kAdd, BinaryFunction::kMul, BinaryFunction::kSub})
                                         : s.enumerator<BinaryFunction>()};
  const TensorDesc x = s.any(0, 5);
  const bool divides = p.function == BinaryFunction::kDiv || p.function == BinaryFunction::kMod ||
                       p.function == BinaryFunction::kFmod || p.function == BinaryFunction::kFloorDiv ||
                       p.function == BinaryFunction::kPow;
  const TensorDesc b = broadcastable(x, s);
  if (divides) {
    s.constant(b, {1.0, 3.0});  // integers have no quotient by zero
  } else {
    s.like(b);
  }
  if (s.one_in(4)) p.activation = s.activation();
  s.set_params(p);
}

void binary_q(Sampling& s) {
  const ElementType type = s.type({ElementType::kI8, ElementType::kU8, ElementType::kI16});
  const TensorDesc x = s.any(type, 0, 4);
  s.like(broadcastable(x, s));
  BinaryQParams p{.function = s.enumerator<BinaryQFunction>()};
  p.a_zero_point = zero_point(type, s);
  p.b_zero_point = zero_point(type, s);
  p.output_zero_point = zero_point(type, s);
  p.left_shift = type == ElementType::kI16 ? 15 : 20;
  p.a_multiplier = multiplier(s);
  p.b_multiplier = multiplier(s);
  p.output_multiplier = multiplier(s);
  p.a_shift = s.pick(-3, 0);
  p.b_shift = s.pick(-3, 0);
  p.output_shift = s.pick(-20, -4);
  p.minimum = type == ElementType::kU8 ? 0 : (type == ElementType::kI8 ? -128 : -32768);
  p.maximum = type == ElementType::kU8 ? 255 : (type == ElementType::kI8 ? 127 : 32767);
  s.set_params(p);
}

void cast(Sampling& s) {
  s.any(0, 5);
  const auto last = static_cast<std::int64_t>(ElementType::kBool);
  s.set_params(CastParams{static_cast<ElementType>(s.pick(1, last))});
}

/// Scale and zero point: one, or one per slice along the axis.
std::int32_t quantization_operands(Sampling& s, const TensorDesc& x, ElementType zero_point_type) {
  const bool per_axis = x.rank > 0 && s.one_in(3);
  const std::int32_t axis = per_axis ? s.axis(x) : 0;
  const std::vector<std::int64_t> dims =
      per_axis ? std::vector<std::int64_t>{x.dims[axis]} : std::vector<std::int64_t>{};
  s.constant(dense_desc(ElementType::kF32, dims), {0.01, 0.1});
  if (s.one_in(2)) s.constant(dense_desc(zero_point_type, dims), {0.0, 100.0});
  return axis;
}

void dequantize(Sampling& s) {
  const TensorDesc x = s.any(0, 4);
  s.set_params(DequantizeParams{quantization_operands(s, x, x.type)});
}

void multiply_add(Sampling& s) {
  const TensorDesc x = s.any(s.type({ElementType::kF32}), 0, 4);
  s.like(broadcastable(x, s));
  s.like(broadcastable(x, s));
  s.set_params(MultiplyAddParams{s.one_in(2) ? s.activation() : Activation{}});
}

void quantize(Sampling& s) {
  const TensorDesc x = s.any(0, 4);
  const ElementType to = s.one_of({ElementType::kI8, ElementType::kI8, ElementType::kU8, ElementType::kI16});
  s.set_params(QuantizeParams{to, quantization_operands(s, x, to), s.pick(0, 1)});
}

void lookup8(Sampling& s) {
  s.any(integer8(s), 0, 4);
  const ElementType to = s.one_of({ElementType::kI8, ElementType::kU8});
  s.constant(dense_desc(to, {256}), usual_range(to));
}

void requantize(Sampling& s) {
  const TensorDesc x = s.any(quantized_type(s), 0, 4);
  const ElementType to = s.one_of({ElementType::kI8, ElementType::kU8, ElementType::kI16, ElementType::kI32});
  s.set_params(RequantizeParams{to, zero_point(x.type, s), zero_point(to, s), multiplier(s),
                                s.pick(-8, x.type == to ? 1 : 0), s.one_in(4) ? 1 : 0,
                                s.one_in(4) ? -multiplier(s) : multiplier(s), s.pick(-8, 0)});
}

void select(Sampling& s) {
  s.any(s.type({ElementType::kBool}), 0, 4);
  const TensorDesc x = with_type(s.operands[0].desc, s.type());
  s.like(broadcastable(x, s));
  s.like(x);
}

void unary(Sampling& s) {
  s.any(0, 5);
  s.set_params(UnaryParams{s.enumerator<UnaryFunction>(), s.real(0.1, 1.0), s.real(0.5, 1.5)});
}

constexpr SamplerRow kRows[] = {{&kBinary, binary},     {&kBinaryQ, binary_q},
                                {&kCast, cast},         {&kDequantize, dequantize},
                                {&kLookup8, lookup8},   {&kMultiplyAdd, multiply_add},
                                {&kQuantize, quantize}, {&kRequantize, requantize},
                                {&kSelect, select},     {&kUnary, unary}};

}  // namespace

std::span<const SamplerRow> elementwise_samplers() { return kRows; }

}  // namespace bantam::ops::testing
