// ONNX quantisation: QuantizeLinear, DequantizeLinear and the integer operators, whose sums are exact (see
// ops/common/affine_form.h for the arithmetic).
#include <fmt/format.h>

#include <algorithm>

#include "import/onnx/convolution.h"
#include "import/onnx/integer_products.h"
#include "import/onnx/lowering.h"
#include "ops/data/gather/gather.h"
#include "ops/elementwise/quantize/quantize.h"

namespace bantam::import::onnx {
namespace {

using ops::BinaryFunction;
using ops::UnaryFunction;

/// Scales of one element come as scalars or vectors; operators want either. `axis` counts only for longer ones.
int quantized_axis(NodeLowering& n, ValueId x, ValueId scale) {
  const std::int64_t axis = n.attr_int("axis", 1);
  if (n.failed() || n.desc(scale).elements() == 1) return 0;
  return n.axis(axis, n.rank(x));
}

/// Numbers that belong to blocks along `axis`, one per element: each repeated `block` times, the last as often as the
/// axis of `like` still needs.
ValueId spread(NodeLowering& n, ValueId blocks, ValueId like, int axis, std::int64_t block) {
  if (n.failed() || blocks == kNone) return kNone;
  const TensorDesc x = n.desc(like);
  const TensorDesc b = n.desc(blocks);
  constexpr std::int64_t kLongest = std::int64_t{1} << 24;
  if (x.rank == 0 || x.dims[axis] > kLongest || block > kLongest) {
    n.fail(fmt::format("blocks of {} along axis {} of {} are not supported", block, axis, format_desc(x)));
    return kNone;
  }
  const std::int64_t size = x.dims[axis];
  bool fits = block > 0 && b.rank == x.rank;
  for (int i = 0; fits && i < x.rank; ++i)
    fits = i == axis ? b.dims[i] == (size + block - 1) / block : b.dims[i] == x.dims[i];
  if (!fits) {
    n.fail(fmt::format("scales and zero points {} do not fit blocks of {} along axis {} of {}", format_desc(b), block,
                       axis, format_desc(x)),
           StatusCode::kInvalidModel);
    return kNone;
  }
  std::vector<std::int64_t> indices(static_cast<std::size_t>(size));
  for (std::int64_t i = 0; i < size; ++i) indices[static_cast<std::size_t>(i)] = i / block;
  return n.emit(ops::kGather, ops::GatherParams{axis, 0}, {blocks, n.integers_constant(indices)});
}

/// The integers that a quantisation gives: an element type, and a range for those of 4 bits.
struct QuantizedType {
  ElementType type = ElementType::kU8;
  bool nibbles = false;
};

QuantizedType quantized_type(NodeLowering& n, ValueId zero_point) {
  const auto code = n.attr_int32("output_dtype", 0);
  if (zero_point != kNone) return {n.type(zero_point), n.is_nibbles(zero_point)};
  if (code == kUint4Code) return {ElementType::kU8, true};
  if (code == kInt4Code) return {ElementType::kI8, true};
  if (code != 0 && element_type(code) == ElementType::kNone)
    n.fail(fmt::format("attribute 'output_dtype' = {} ({}) is not supported", code, data_type_name(code)));
  return {code != 0 ? element_type(code) : ElementType::kU8, false};
}

/// round(x / scale) + zero_point, limited to the numbers of `to`, with a scale and a zero point for every element.
ValueId quantize_elements(NodeLowering& n, ValueId x, ValueId scale, ValueId zero_point, QuantizedType to) {
  const ValueId whole = n.unary(UnaryFunction::kRound, n.binary(BinaryFunction::kDiv, x, scale));
  const ValueId zero = zero_point == kNone ? n.scalar(0.0F) : n.cast(zero_point, ElementType::kF32);
  ValueId sum = n.binary(BinaryFunction::kAdd, whole, zero);
  if (to.nibbles && to.type == ElementType::kU8) sum = n.unary(UnaryFunction::kClip, sum, 0.0F, 15.0F);
  if (to.nibbles && to.type == ElementType::kI8) sum = n.unary(UnaryFunction::kClip, sum, -8.0F, 7.0F);
  return quantize_tensor(n, sum, n.scalar(1.0F), kNone, to.type);
}

/// A list along `axis`, as it broadcasts against x.
ValueId per_element(NodeLowering& n, ValueId list, ValueId x, int axis, std::int64_t block) {
  if (list == kNone || n.failed()) return kNone;
  return block != 0 ? spread(n, list, x, axis, block) : along(n, list, axis, n.rank(x));
}

void lower_quantize_linear(NodeLowering& n) {
  n.ignore({"saturate", "precision"});
  const ValueId x = n.cast(n.input(0), ElementType::kF32);
  const ValueId scale = n.cast(n.input(1), ElementType::kF32);
  const ValueId zero_point = n.optional(2);
  const std::int64_t block = n.attr_int("block_size", 0);
  const QuantizedType to = quantized_type(n, zero_point);
  const int axis = quantized_axis(n, x, scale);
  if (block != 0 || to.nibbles)
    return n.set_output(0, quantize_elements(n, x, per_element(n, scale, x, axis, block),
                                             per_element(n, zero_point, x, axis, block), to));
  ops::QuantizeParams params;
  params.to = to.type;
  params.axis = axis;
  n.set_output(0, n.emit(ops::kQuantize, params, {x, scale, zero_point}));
}

/// Says of folded weights which integers they were, so that products may keep these.
void remember_blocks(NodeLowering& n, ValueId y, ValueId x, ValueId scale, ValueId zero_point, int axis,
                     std::int64_t block) {
  graph::Graph& graph = n.builder().graph();
  if (n.failed() || !n.is_constant(y)) return;
  auto source = std::make_shared<graph::QuantizedSource>();
  source->integers = *graph.value(x).constant;
  source->type = n.type(x);
  source->scales = *graph::constant_floats(graph, scale);
  source->zero_points.assign(source->scales.size(), 0);
  source->axis = axis;
  source->block = block;
  if (zero_point != kNone) {
    const auto zeros = graph::constant_integers(graph, zero_point);
    if (!zeros || zeros->size() != source->scales.size()) return;
    std::transform(zeros->begin(), zeros->end(), source->zero_points.begin(),
                   [](std::int64_t z) { return static_cast<std::int32_t>(z); });
  }
  graph.value(y).quantized_source = std::move(source);
}

/// The result has the type of the scale.
void lower_dequantize_linear(NodeLowering& n) {
  n.ignore({"output_dtype"});
  const ValueId x = n.input(0);
  const ValueId zero_point = n.optional(2);
  const ElementType to = n.type(n.input(1));
  const std::int64_t block = n.attr_int("block_size", 0);
  const ValueId scale = n.cast(n.input(1), ElementType::kF32);
  const int axis = quantized_axis(n, x, scale);
  if (block == 0) return n.set_output(0, n.cast(dequantize_tensor(n, x, scale, zero_point, axis), to));
  const ValueId scales = spread(n, scale, x, axis, block);
  ValueId real = n.cast(x, ElementType::kF32);
  if (zero_point != kNone)
    real = n.binary(BinaryFunction::kSub, real, n.cast(spread(n, zero_point, x, axis, block), ElementType::kF32));
  const ValueId y = n.binary(BinaryFunction::kMul, real, scales);
  remember_blocks(n, y, x, scale, zero_point, axis, block);
  n.set_output(0, n.cast(y, to));
}

void lower_dynamic_quantize_linear(NodeLowering& n) {
  const DynamicallyQuantized x = quantize_dynamically(n, n.input(0));
  n.set_output(0, x.q);
  n.set_output(1, x.scale);
  n.set_output(2, x.zero_point);
}

/// Operands: a, its scale and zero point, b, its scale and zero point, y's scale and zero point.
void lower_qlinear_matmul(NodeLowering& n) {
  const ValueId a = n.input(0);
  const ValueId b = n.input(3);
  AffineProduct product;
  product.x_zero = read_zero_point(n, n.optional(2));
  product.w_zero = read_zero_point(n, n.optional(5));
  const int rank = std::max(n.rank(a), n.rank(b));
  const bool one_a_scale = n.desc(n.input(1)).elements() == 1;
  const ValueId scales = n.binary(BinaryFunction::kMul, along(n, n.input(1), std::max(rank - 2, 0), rank),
                                  along(n, n.input(4), std::max(rank - 1, 0), rank));
  const ValueId factor = n.binary(BinaryFunction::kDiv, scales, along(n, n.input(6), 0, rank));
  n.set_output(0, quantized_product(n, product, factor, one_a_scale, n.input(7),
                                    [&](const AffineProduct& p) { return lower_affine_matmul(n, a, b, false, p); }));
}

/// Sums of products, with the operands' zero points at 2 and 3.
AffineProduct sums_of(NodeLowering& n) {
  AffineProduct product;
  product.form.to = ElementType::kI32;
  product.x_zero = read_zero_point(n, n.optional(2));
  product.w_zero = read_zero_point(n, n.optional(3));
  return product;
}

void lower_conv_integer(NodeLowering& n) {
  const AffineProduct product = sums_of(n);
  n.set_output(0, lower_affine_convolution(n, n.input(0), n.input(1), product));
}

void lower_matmul_integer(NodeLowering& n) {
  const AffineProduct product = sums_of(n);
  n.set_output(0, lower_affine_matmul(n, n.input(0), n.input(1), false, product));
}

constexpr OperatorRow kQuantizedOperators[] = {
    {"", "ConvInteger", 10, kNewest, lower_conv_integer},
    {"", "DequantizeLinear", 10, kNewest, lower_dequantize_linear},
    {"", "DynamicQuantizeLinear", 11, kNewest, lower_dynamic_quantize_linear},
    {"", "MatMulInteger", 10, kNewest, lower_matmul_integer},
    {"", "QLinearConv", 10, kNewest, lower_qlinear_conv},
    {"", "QLinearMatMul", 10, kNewest, lower_qlinear_matmul},
    {"", "QuantizeLinear", 10, kNewest, lower_quantize_linear},
    {"com.microsoft", "DequantizeLinear", 1, kNewest, lower_dequantize_linear},
    {"com.microsoft", "QuantizeLinear", 1, kNewest, lower_quantize_linear},
};

}  // namespace

void lower_qlinear_conv(NodeLowering& n) {
  const ValueId x = n.input(0);
  const int rank = n.rank(x);
  const ValueId weights = n.input(3);
  AffineProduct product;
  product.x_zero = read_zero_point(n, n.optional(2));
  product.w_zero = read_zero_point(n, n.optional(5));
  product.bias = n.optional(8);
  const ValueId scales = n.binary(BinaryFunction::kMul, along(n, n.input(1), 1, rank), along(n, n.input(4), 1, rank));
  const ValueId factor = n.binary(BinaryFunction::kDiv, scales, along(n, n.input(6), 1, rank));
  n.set_output(0, quantized_product(n, product, factor, true, n.input(7), [&](const AffineProduct& p) {
                 return lower_affine_convolution(n, x, weights, p);
               }));
}

std::span<const OperatorRow> quantized_operators() { return kQuantizedOperators; }

}  // namespace bantam::import::onnx
