// com.microsoft's quantised operators, as ONNX Runtime's tools write them.
//
// Where an operator is defined as dequantisation, a float operator and quantisation, that is what it is lowered to; the
// pass integer_arithmetic computes it in integers, to the same bits. Products are lowered to integer products at once.
#include <fmt/format.h>

#include <algorithm>

#include "base/shape.h"
#include "import/onnx/convolution.h"
#include "import/onnx/integer_products.h"
#include "import/onnx/lowering.h"
#include "import/onnx/normalization.h"
#include "import/onnx/pooling.h"
#include "ops/elementwise/select/select.h"
#include "ops/nn/matmul_blocks/matmul_blocks.h"

namespace bantam::import::onnx {
namespace {

using ops::BinaryFunction;
using ops::UnaryFunction;

/// Operand i with scale i + 1 and zero point i + 2, as com.microsoft's operators list them.
ValueId real_operand(NodeLowering& n, int i) {
  return dequantize_tensor(n, n.input(i), n.input(i + 1), n.optional(i + 2), 0);
}

/// The result under the scale and zero point that follow as operands i and i + 1; without zero point of type `like`.
ValueId quantized_as(NodeLowering& n, ValueId y, int i, ValueId like) {
  const ValueId zero_point = n.optional(i + 1);
  return quantize_tensor(n, y, n.input(i), zero_point, n.type(zero_point != kNone ? zero_point : like));
}

void set_quantized(NodeLowering& n, ValueId y, int i) { n.set_output(0, quantized_as(n, y, i, n.input(0))); }

template <BinaryFunction function>
void lower_qlinear_binary(NodeLowering& n) {
  set_quantized(n, n.binary(function, real_operand(n, 0), real_operand(n, 3)), 6);
}

void lower_qlinear_sigmoid(NodeLowering& n) {
  set_quantized(n, n.unary(UnaryFunction::kSigmoid, real_operand(n, 0)), 3);
}

void lower_qlinear_leaky_relu(NodeLowering& n) {
  set_quantized(n, n.unary(UnaryFunction::kLeakyRelu, real_operand(n, 0), n.attr_float("alpha", 0.01F)), 3);
}

void lower_qlinear_softmax(NodeLowering& n) {
  const ValueId x = real_operand(n, 0);
  const bool flat = n.attr_int("opset", 13) < 13;
  const int axis = n.axis(n.attr_int("axis", flat ? 1 : -1), n.rank(x));
  set_quantized(n, softmax_along(n, x, axis, flat, false), 3);
}

void lower_qlinear_reduce_mean(NodeLowering& n) {
  const ValueId x = real_operand(n, 0);
  const bool keep_dims = n.attr_int("keepdims", 1) != 0;
  auto axes = n.axes(n.attr_ints("axes"), n.rank(x));
  if (n.failed()) return;
  for (int i = 0; !n.has_attr("axes") && i < n.rank(x); ++i) axes.push_back(i);
  set_quantized(n, n.reduce(ops::ReduceFunction::kMean, x, axes, keep_dims), 3);
}

/// Pooling of x in ONNX's layout, or with the attribute channels_last of one with channels last.
template <typename Pool>
void lower_qlinear_pool(NodeLowering& n, Pool pool) {
  const bool channels_last = n.attr_int("channels_last", 0) != 0;
  ValueId x = real_operand(n, 0);
  const int rank = n.rank(x);
  if (n.failed()) return;
  std::vector<int> to_first{0, rank - 1};
  std::vector<int> to_last{0};
  for (int i = 1; i < rank - 1; ++i) to_first.push_back(i);
  for (int i = 2; i < rank; ++i) to_last.push_back(i);
  to_last.push_back(1);
  if (channels_last && rank > 2) x = n.transpose(x, to_first);
  ValueId y = pool(x);
  if (channels_last && rank > 2) y = n.transpose(y, to_last);
  set_quantized(n, y, 3);
}

void lower_qlinear_average_pool(NodeLowering& n) {
  lower_qlinear_pool(n, [&](ValueId x) { return average_pool(n, x); });
}

void lower_qlinear_global_average_pool(NodeLowering& n) {
  lower_qlinear_pool(n, [&](ValueId x) {
    std::vector<int> axes;
    for (int i = 2; i < n.rank(x); ++i) axes.push_back(i);
    return n.reduce(ops::ReduceFunction::kMean, x, axes, true);
  });
}

/// Operands: scale and zero point of the result, then tensor, scale and zero point of each part.
void lower_qlinear_concat(NodeLowering& n) {
  std::vector<ValueId> parts;
  for (int i = 2; i + 1 < n.inputs(); i += 3) parts.push_back(real_operand(n, i));
  if (parts.empty()) n.fail("there is nothing to join", StatusCode::kInvalidModel);
  if (n.failed()) return;
  const int axis = n.axis(n.attr_int("axis", 0), n.rank(parts.front()));
  n.set_output(0, quantized_as(n, n.concat(parts, axis), 0, n.input(2)));
}

/// Operands: condition, x, its scale and zero point, y likewise, the result's scale and zero point.
void lower_qlinear_where(NodeLowering& n) {
  const ValueId y = n.emit(ops::kSelect, {n.input(0), real_operand(n, 1), real_operand(n, 4)});
  n.set_output(0, quantized_as(n, y, 7, n.input(1)));
}

/// alpha A' B' + C of quantised matrices. Operands: a, scale, zero point, b, scale, zero point, c (i32, on the grid of
/// the sums), the result's scale and zero point, without which it is real.
void lower_qgemm(NodeLowering& n) {
  ValueId a = n.input(0);
  const ValueId b = n.input(3);
  const bool transpose_b = n.attr_int("transB", 0) != 0;
  const float alpha = n.attr_float("alpha", 1.0F);
  if (n.attr_int("transA", 0) != 0 && n.rank(a) == 2) a = n.transpose(a, {1, 0});
  AffineProduct product;
  product.x_zero = read_zero_point(n, n.optional(2));
  product.w_zero = read_zero_point(n, n.optional(5));
  const ValueId scales = n.binary(BinaryFunction::kMul, n.scalar(alpha),
                                  n.binary(BinaryFunction::kMul, n.input(1), along(n, n.input(4), 1, 2)));
  const ValueId c = n.optional(6);
  const auto sums = [&](AffineProduct p) { return lower_affine_matmul(n, a, b, transpose_b, p); };
  if (!n.failed() && (n.rank(a) != 2 || n.rank(b) != 2))
    n.fail(fmt::format("operands {} and {} must be matrices", format_desc(n.desc(a)), format_desc(n.desc(b))),
           StatusCode::kInvalidModel);
  if (n.failed()) return;
  const std::int64_t columns = n.desc(b).dims[transpose_b ? 0 : 1];
  const bool c_is_row = c == kNone || (n.desc(c).elements() == columns && n.rank(c) <= 2);
  if (!c_is_row)
    return n.fail(fmt::format("operand 6 is {}, only one number per column is supported", format_desc(n.desc(c))));
  product.bias = as_list(n, c);
  if (n.has(7)) {
    const ValueId factor = n.binary(BinaryFunction::kDiv, scales, n.input(7));
    const ValueId zero_point = n.has(8) ? n.input(8) : n.scalar(n.type(a), 0);
    return n.set_output(0, quantized_product(n, product, factor, true, zero_point, sums));
  }
  product.form.to = ElementType::kF32;
  product.scale = as_list(n, scales);
  if (c != kNone)
    product.bias = as_list(n, n.binary(BinaryFunction::kMul, n.cast(product.bias, ElementType::kF32), product.scale));
  n.set_output(0, sums(product));
}

/// The real product of integers under the scales' product, plus a bias.
void set_real_product(NodeLowering& n, ValueId a, ValueId b, AffineProduct product, ValueId a_scale, ValueId b_scale,
                      ValueId bias) {
  product.form.to = ElementType::kF32;
  product.scale = as_list(n, n.binary(BinaryFunction::kMul, a_scale, b_scale));
  product.bias = as_list(n, bias);
  n.set_output(0, lower_affine_matmul(n, a, b, false, product));
}

/// Operands: a (real), b, its scale, its zero point, bias.
void lower_dynamic_quantize_matmul(NodeLowering& n) {
  const DynamicallyQuantized a = quantize_dynamically(n, n.input(0));
  AffineProduct product;
  product.x_zero = read_zero_point(n, a.zero_point);
  product.w_zero = read_zero_point(n, n.optional(3));
  set_real_product(n, a.q, n.input(1), product, a.scale, n.input(2), n.optional(4));
}

/// Operands: a, b, their scales, their zero points, bias.
void lower_matmul_integer_to_float(NodeLowering& n) {
  AffineProduct product;
  product.x_zero = read_zero_point(n, n.optional(4));
  product.w_zero = read_zero_point(n, n.optional(5));
  set_real_product(n, n.input(0), n.input(1), product, n.input(2), n.input(3), n.optional(6));
}

/// Zero points of MatMulNBits: real, one per block, or integers packed like the weights, with a gap at the end of each
/// column's; as operand 3 of matmul_blocks.
ValueId block_zero_points(NodeLowering& n, ValueId id, std::int64_t columns, std::int64_t blocks, std::int64_t bits) {
  if (n.failed() || id == kNone) return kNone;
  if (n.type(id) != ElementType::kU8) return n.reshape(n.cast(id, ElementType::kF32), {columns, blocks});
  const std::int64_t stride = (blocks * bits + 7) / 8;
  const auto packed = graph::constant_integers(n.builder().graph(), id);
  if (!packed || static_cast<std::int64_t>(packed->size()) != columns * stride) {
    n.fail(fmt::format("operand 3 (zero points) must be a constant of {} bytes, it is {}", columns * stride,
                       format_desc(n.desc(id))));
    return kNone;
  }
  std::vector<std::uint8_t> numbers;
  for (std::int64_t c = 0; c < columns; ++c)
    for (std::int64_t b = 0; b < blocks; ++b) {
      const std::int64_t byte = (*packed)[static_cast<std::size_t>(c * stride + b * bits / 8)];
      numbers.push_back(static_cast<std::uint8_t>(bits == 8 ? byte : (byte >> (b % 2 * 4)) & 15));
    }
  const std::int64_t dims[] = {columns, blocks};
  return n.builder().constant<std::uint8_t>("", dims, std::span<const std::uint8_t>(numbers));
}

/// Operands: a, packed b, scales, zero points, g_idx, bias.
void lower_matmul_nbits(NodeLowering& n) {
  n.ignore({"accuracy_level"});
  const std::int64_t k = n.attr_int("K", 0);
  const std::int64_t columns = n.attr_int("N", 0);
  ops::MatmulBlocksParams params;
  params.bits = n.attr_int32("bits", 4);
  params.block_size = n.attr_int32("block_size", 32);
  const ValueId a = n.input(0);
  const ElementType type = n.type(a);
  if (n.has(4)) n.fail("operand 4 (g_idx) is not supported; quantise without reordering of the inner dimension");
  if (params.bits != 4 && params.bits != 8)
    n.fail(fmt::format("attribute 'bits' = {} is not supported, only 4 and 8", params.bits));
  if (params.block_size < 2 || k < 1 || columns < 1 || k > kMaxElements || columns > kMaxElements)
    n.fail(fmt::format("attributes 'K' = {}, 'N' = {} and 'block_size' = {} are no sizes of a tensor", k, columns,
                       params.block_size),
           StatusCode::kInvalidModel);
  if (n.failed()) return;
  const std::int64_t blocks = (k + params.block_size - 1) / params.block_size;
  const ValueId weights = n.reshape(n.input(1), {columns, blocks, std::int64_t{params.block_size} * params.bits / 8});
  ValueId scales = n.input(2);
  if (n.type(scales) == ElementType::kBF16) scales = n.cast(scales, ElementType::kF32);
  const ValueId bias = n.has(5) ? n.cast(n.input(5), ElementType::kF32) : kNone;
  const ValueId y = n.emit(ops::kMatmulBlocks, params,
                           {n.cast(a, ElementType::kF32), weights, n.reshape(scales, {columns, blocks}),
                            block_zero_points(n, n.optional(3), columns, blocks, params.bits), bias});
  n.set_output(0, n.cast(y, type));
}

/// QLinearConv, whose operands may have channels last.
void lower_microsoft_qlinear_conv(NodeLowering& n) {
  n.require("channels_last", 0);
  lower_qlinear_conv(n);
}

constexpr OperatorRow kQuantizedMicrosoftOperators[] = {
    {"com.microsoft", "DynamicQuantizeMatMul", 1, kNewest, lower_dynamic_quantize_matmul},
    {"com.microsoft", "MatMulIntegerToFloat", 1, kNewest, lower_matmul_integer_to_float},
    {"com.microsoft", "MatMulNBits", 1, kNewest, lower_matmul_nbits},
    {"com.microsoft", "QGemm", 1, kNewest, lower_qgemm},
    {"com.microsoft", "QLinearAdd", 1, kNewest, lower_qlinear_binary<BinaryFunction::kAdd>},
    {"com.microsoft", "QLinearAveragePool", 1, kNewest, lower_qlinear_average_pool},
    {"com.microsoft", "QLinearConcat", 1, kNewest, lower_qlinear_concat},
    {"com.microsoft", "QLinearConv", 1, kNewest, lower_microsoft_qlinear_conv},
    {"com.microsoft", "QLinearGlobalAveragePool", 1, kNewest, lower_qlinear_global_average_pool},
    {"com.microsoft", "QLinearLeakyRelu", 1, kNewest, lower_qlinear_leaky_relu},
    {"com.microsoft", "QLinearMul", 1, kNewest, lower_qlinear_binary<BinaryFunction::kMul>},
    {"com.microsoft", "QLinearReduceMean", 1, kNewest, lower_qlinear_reduce_mean},
    {"com.microsoft", "QLinearSigmoid", 1, kNewest, lower_qlinear_sigmoid},
    {"com.microsoft", "QLinearSoftmax", 1, kNewest, lower_qlinear_softmax},
    {"com.microsoft", "QLinearWhere", 1, kNewest, lower_qlinear_where},
};

}  // namespace

std::span<const OperatorRow> quantized_microsoft_operators() { return kQuantizedMicrosoftOperators; }

}  // namespace bantam::import::onnx
