// ONNX quantisation: QuantizeLinear, DequantizeLinear and the integer operators.
//
// The integer products are lowered to float kernels on integer values: operands minus their zero points are whole
// numbers of at most 255, so products and sums are exact while every partial sum stays below 2^24 (always true for up
// to 258 terms of the largest values, in practice for thousands); beyond that a sum may be off by one part in 2^24
// before rescaling. QLinearConv and QLinearMatMul then multiply by scale_x * scale_w / scale_y in float and round half
// to even, as ONNX Runtime does.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

#include "import/onnx/convolution.h"
#include "import/onnx/lowering.h"
#include "import/onnx/matmul.h"
#include "ops/elementwise/dequantize/dequantize.h"
#include "ops/elementwise/quantize/quantize.h"

namespace bantam::import::onnx {
namespace {

using ops::BinaryFunction;
using ops::ReduceFunction;
using ops::UnaryFunction;

/// Scales of one element come as scalars or vectors; operators want either. `axis` counts only for longer ones.
int quantized_axis(NodeLowering& n, ValueId x, ValueId scale) {
  const std::int64_t axis = n.attr_int("axis", 1);
  n.require("block_size", 0);
  if (n.failed() || n.desc(scale).elements() == 1) return 0;
  return n.axis(axis, n.rank(x));
}

ValueId quantize(NodeLowering& n, ValueId x, ValueId scale, ValueId zero_point, ElementType to, int axis) {
  ops::QuantizeParams params;
  params.to = to;
  params.axis = axis;
  return n.emit(ops::kQuantize, params, {x, scale, zero_point});
}

ValueId dequantize(NodeLowering& n, ValueId x, ValueId scale, ValueId zero_point, int axis) {
  return n.emit(ops::kDequantize, ops::DequantizeParams{axis}, {x, scale, zero_point});
}

void lower_quantize_linear(NodeLowering& n) {
  n.ignore({"saturate", "precision"});
  ValueId x = n.input(0);
  const ValueId scale = n.input(1);
  const ValueId zero_point = n.optional(2);
  const auto code = n.attr_int32("output_dtype", 0);
  ElementType to = zero_point != kNone ? n.type(zero_point) : ElementType::kU8;
  if (zero_point == kNone && code != 0) to = element_type(code);
  const int axis = quantized_axis(n, x, scale);
  if (n.type(x) == ElementType::kI32) x = n.cast(x, ElementType::kF32);
  n.set_output(0, quantize(n, x, scale, zero_point, to, axis));
}

void lower_dequantize_linear(NodeLowering& n) {
  n.ignore({"output_dtype"});  // float is the only type of scale that infer accepts
  const ValueId x = n.input(0);
  const ValueId scale = n.input(1);
  const int axis = quantized_axis(n, x, scale);
  n.set_output(0, dequantize(n, x, scale, n.optional(2), axis));
}

/// scale = (max(x, 0) - min(x, 0)) / 255; zero_point = round(-min / scale) within [0, 255]; y = quantised x.
void lower_dynamic_quantize_linear(NodeLowering& n) {
  const ValueId x = n.input(0);
  std::vector<int> axes(static_cast<std::size_t>(n.rank(x)));
  std::iota(axes.begin(), axes.end(), 0);
  const ValueId zero = n.scalar(0.0F);
  const ValueId high = n.binary(BinaryFunction::kMax, n.reduce(ReduceFunction::kMax, x, axes, false), zero);
  const ValueId low = n.binary(BinaryFunction::kMin, n.reduce(ReduceFunction::kMin, x, axes, false), zero);
  const ValueId scale = n.binary(BinaryFunction::kDiv, n.binary(BinaryFunction::kSub, high, low), n.scalar(255.0F));
  const ValueId exact = n.binary(BinaryFunction::kDiv, n.binary(BinaryFunction::kSub, zero, low), scale);
  const ValueId rounded = n.unary(UnaryFunction::kRound, n.unary(UnaryFunction::kClip, exact, 0.0F, 255.0F));
  const ValueId zero_point = n.cast(rounded, ElementType::kU8);
  n.set_output(0, quantize(n, x, scale, zero_point, ElementType::kU8, 0));
  n.set_output(1, scale);
  n.set_output(2, zero_point);
}

/// An 8-bit operand minus its zero point as whole floats. A zero point with several elements belongs to `axis`.
ValueId centred(NodeLowering& n, ValueId x, ValueId zero_point, int axis) {
  const ValueId values = n.cast(x, ElementType::kF32);
  if (zero_point == kNone || n.failed()) return values;
  ValueId zero = n.cast(zero_point, ElementType::kF32);
  const std::int64_t count = n.desc(zero).elements();
  if (count == 1) {
    zero = n.reshape(zero, {});
  } else if (n.rank(zero) == 1) {
    std::vector<std::int64_t> dims(static_cast<std::size_t>(std::max(n.rank(x), 1)), 1);
    dims[static_cast<std::size_t>(axis)] = count;
    zero = n.reshape(zero, dims);
  }
  return n.binary(BinaryFunction::kSub, values, zero);
}

/// A constant zero point of zero is absent.
ValueId zero_point_of(NodeLowering& n, int i) {
  const ValueId id = n.optional(i);
  if (id == kNone) return kNone;
  const auto values = graph::constant_integers(n.builder().graph(), id);
  const bool zero = values && std::all_of(values->begin(), values->end(), [](std::int64_t v) { return v == 0; });
  return zero ? kNone : id;
}

/// Scales with several elements, shaped to broadcast along `axis` of `rank`.
ValueId along(NodeLowering& n, ValueId scale, int axis, int rank) {
  if (n.failed()) return kNone;
  const std::int64_t count = n.desc(scale).elements();
  if (count == 1) return n.reshape(scale, {});
  if (n.rank(scale) != 1) return scale;
  std::vector<std::int64_t> dims(static_cast<std::size_t>(std::max(rank, 1)), 1);
  dims[static_cast<std::size_t>(std::clamp(axis, 0, std::max(rank - 1, 0)))] = count;
  return n.reshape(scale, dims);
}

/// Integer sums in float, rescaled and rounded to the result's type.
ValueId rescale(NodeLowering& n, ValueId sum, ValueId factor, int zero_point_operand) {
  const ValueId zero_point = n.input(zero_point_operand);
  const ValueId scaled = n.binary(BinaryFunction::kMul, sum, factor);
  return quantize(n, scaled, n.scalar(1.0F), zero_point, n.type(zero_point), 0);
}

/// Operands: x, its scale and zero point, w, its scale and zero point, y's scale and zero point, bias.
void lower_qlinear_conv(NodeLowering& n) {
  const ValueId x = n.input(0);
  const int rank = n.rank(x);
  const ValueId image = centred(n, x, zero_point_of(n, 2), 0);
  const ValueId weights = centred(n, n.input(3), zero_point_of(n, 5), 0);
  const ValueId bias = n.has(8) ? n.cast(n.input(8), ElementType::kF32) : kNone;
  const ValueId sum = lower_convolution(n, image, weights, bias, {});
  const ValueId product = n.binary(BinaryFunction::kMul, along(n, n.input(1), 1, rank), along(n, n.input(4), 1, rank));
  const ValueId factor = n.binary(BinaryFunction::kDiv, product, along(n, n.input(6), 1, rank));
  n.set_output(0, rescale(n, sum, factor, 7));
}

/// The axis of rows (1 from the end) or columns (0 from the end) of an operand.
int matrix_axis(const NodeLowering& n, ValueId x, int from_end) { return std::max(n.rank(x) - 1 - from_end, 0); }

/// Operands: a, its scale and zero point, b, its scale and zero point, y's scale and zero point.
void lower_qlinear_matmul(NodeLowering& n) {
  const ValueId a = n.input(0);
  const ValueId b = n.input(3);
  const ValueId rows = centred(n, a, zero_point_of(n, 2), matrix_axis(n, a, 1));
  const ValueId columns = centred(n, b, zero_point_of(n, 5), matrix_axis(n, b, 0));
  const ValueId sum = lower_matrix_product(n, rows, columns, {}, kNone);
  const int rank = n.rank(sum);
  const ValueId product = n.binary(BinaryFunction::kMul, along(n, n.input(1), std::max(rank - 2, 0), rank),
                                   along(n, n.input(4), std::max(rank - 1, 0), rank));
  const ValueId factor = n.binary(BinaryFunction::kDiv, product, along(n, n.input(6), 0, rank));
  n.set_output(0, rescale(n, sum, factor, 7));
}

void lower_conv_integer(NodeLowering& n) {
  const ValueId image = centred(n, n.input(0), zero_point_of(n, 2), 0);
  const ValueId weights = centred(n, n.input(1), zero_point_of(n, 3), 0);
  n.set_output(0, n.cast(lower_convolution(n, image, weights, kNone, {}), ElementType::kI32));
}

void lower_matmul_integer(NodeLowering& n) {
  const ValueId a = n.input(0);
  const ValueId b = n.input(1);
  const ValueId rows = centred(n, a, zero_point_of(n, 2), matrix_axis(n, a, 1));
  const ValueId columns = centred(n, b, zero_point_of(n, 3), matrix_axis(n, b, 0));
  n.set_output(0, n.cast(lower_matrix_product(n, rows, columns, {}, kNone), ElementType::kI32));
}

/// Operand i with scale i + 1 and zero point i + 2, as com.microsoft's operators list them.
ValueId real_operand(NodeLowering& n, int i) { return dequantize(n, n.input(i), n.input(i + 1), n.optional(i + 2), 0); }

/// The result under the scale and zero point that follow as operands i and i + 1.
void quantized_result(NodeLowering& n, ValueId y, int i) {
  const ValueId zero_point = n.optional(i + 1);
  const ElementType to = zero_point != kNone ? n.type(zero_point) : n.type(n.input(0));
  n.set_output(0, quantize(n, y, n.input(i), zero_point, to, 0));
}

template <BinaryFunction function>
void lower_qlinear_binary(NodeLowering& n) {
  quantized_result(n, n.binary(function, real_operand(n, 0), real_operand(n, 3)), 6);
}

void lower_qlinear_sigmoid(NodeLowering& n) {
  quantized_result(n, n.unary(UnaryFunction::kSigmoid, real_operand(n, 0)), 3);
}

void lower_qlinear_leaky_relu(NodeLowering& n) {
  const float alpha = n.attr_float("alpha", 0.01F);
  quantized_result(n, n.unary(UnaryFunction::kLeakyRelu, real_operand(n, 0), alpha), 3);
}

constexpr std::int64_t kNewest = OperatorRow::kNewest;
constexpr OperatorRow kRows[] = {
    {"", "ConvInteger", 10, kNewest, lower_conv_integer},
    {"", "DequantizeLinear", 10, kNewest, lower_dequantize_linear},
    {"", "DynamicQuantizeLinear", 11, kNewest, lower_dynamic_quantize_linear},
    {"", "MatMulInteger", 10, kNewest, lower_matmul_integer},
    {"", "QLinearConv", 10, kNewest, lower_qlinear_conv},
    {"", "QLinearMatMul", 10, kNewest, lower_qlinear_matmul},
    {"", "QuantizeLinear", 10, kNewest, lower_quantize_linear},
    {"com.microsoft", "DequantizeLinear", 1, kNewest, lower_dequantize_linear},
    {"com.microsoft", "QLinearAdd", 1, kNewest, lower_qlinear_binary<BinaryFunction::kAdd>},
    {"com.microsoft", "QLinearLeakyRelu", 1, kNewest, lower_qlinear_leaky_relu},
    {"com.microsoft", "QLinearMul", 1, kNewest, lower_qlinear_binary<BinaryFunction::kMul>},
    {"com.microsoft", "QLinearSigmoid", 1, kNewest, lower_qlinear_sigmoid},
    {"com.microsoft", "QuantizeLinear", 1, kNewest, lower_quantize_linear},
};

}  // namespace

std::span<const OperatorRow> quantized_operators() { return kRows; }

}  // namespace bantam::import::onnx
