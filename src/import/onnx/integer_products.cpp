#include "import/onnx/integer_products.h"

#include <fmt/format.h>

#include <algorithm>

#include "ops/elementwise/dequantize/dequantize.h"
#include "ops/elementwise/quantize/quantize.h"
#include "ops/nn/matmul_affine/matmul_affine.h"
#include "ops/reduce/quantization_range/quantization_range.h"

namespace bantam::import::onnx {

using ops::BinaryFunction;

ValueId as_list(NodeLowering& n, ValueId x) {
  return n.failed() || x == kNone ? kNone : n.reshape(x, {n.desc(x).elements()});
}

ZeroPointOperand read_zero_point(NodeLowering& n, ValueId id) {
  if (n.failed() || id == kNone) return {};
  const auto values = graph::constant_integers(n.builder().graph(), id);
  const auto equals_first = [&](std::int64_t v) { return v == values->front(); };
  if (values && !values->empty() && std::all_of(values->begin(), values->end(), equals_first))
    return {kNone, static_cast<std::int32_t>(values->front())};
  return {as_list(n, id), 0};
}

ValueId along(NodeLowering& n, ValueId scale, int axis, int rank) {
  if (n.failed()) return kNone;
  const std::int64_t count = n.desc(scale).elements();
  if (count == 1) return n.reshape(scale, {});
  if (n.rank(scale) != 1) return scale;
  std::vector<std::int64_t> dims(static_cast<std::size_t>(std::max(rank, 1)), 1);
  dims[static_cast<std::size_t>(std::clamp(axis, 0, std::max(rank - 1, 0)))] = count;
  return n.reshape(scale, dims);
}

ValueId quantize_tensor(NodeLowering& n, ValueId x, ValueId scale, ValueId zero_point, ElementType to) {
  ops::QuantizeParams params;
  params.to = to;
  return n.emit(ops::kQuantize, params, {x, scale, zero_point});
}

ValueId dequantize_tensor(NodeLowering& n, ValueId x, ValueId scale, ValueId zero_point, int axis) {
  return n.emit(ops::kDequantize, ops::DequantizeParams{axis}, {x, scale, zero_point});
}

namespace {

/// The number of elements of the result that share a column's scale is right: a row of columns, or a column of one.
ValueId emit_matmul(NodeLowering& n, ValueId a, ValueId b, bool transpose_b, const AffineProduct& product) {
  const ops::MatmulAffineParams params{transpose_b ? 1 : 0, product.full_form()};
  return n.emit(ops::kMatmulAffine, params, {a, b, product.bias, product.scale, product.x_zero.id, product.w_zero.id});
}

}  // namespace

ValueId lower_affine_matmul(NodeLowering& n, ValueId a, ValueId b, bool transpose_b, const AffineProduct& product) {
  if (n.failed()) return kNone;
  const bool a_is_vector = n.rank(a) == 1;
  const bool b_is_vector = n.rank(b) == 1;
  if (a_is_vector) a = n.reshape(a, {1, n.desc(a).dims[0]});
  if (b_is_vector) b = n.reshape(b, {n.desc(b).dims[0], 1});
  const ValueId y = emit_matmul(n, a, b, transpose_b, product);
  if (n.failed() || (!a_is_vector && !b_is_vector)) return y;
  auto dims = n.dims(y);
  if (b_is_vector) dims.pop_back();
  if (a_is_vector) dims.erase(dims.end() - (b_is_vector ? 1 : 2));
  return n.reshape(y, dims);
}

ValueId quantized_product(NodeLowering& n, AffineProduct product, ValueId factor, bool factor_is_per_column,
                          ValueId zero_point, const std::function<ValueId(const AffineProduct&)>& emit) {
  if (n.failed()) return kNone;
  const ElementType to = n.type(zero_point);
  const auto constant = graph::constant_integers(n.builder().graph(), zero_point);
  const bool is_8_bit = to == ElementType::kI8 || to == ElementType::kU8;
  if (is_8_bit && factor_is_per_column && constant && constant->size() == 1) {
    product.form.to = to;
    product.form.output_zero_point = static_cast<std::int32_t>(constant->front());
    product.form.minimum = to == ElementType::kU8 ? 0 : -128;
    product.form.maximum = product.form.minimum + 255;
    product.scale = as_list(n, factor);
    return emit(product);
  }
  product.form.to = ElementType::kI32;
  const ValueId sums = n.cast(emit(product), ElementType::kF32);
  return quantize_tensor(n, n.binary(BinaryFunction::kMul, sums, factor), n.scalar(1.0F), zero_point, to);
}

DynamicallyQuantized quantize_dynamically(NodeLowering& n, ValueId x) {
  const auto range = n.emit_all(ops::kQuantizationRange, graph::Params{}, {x});
  DynamicallyQuantized result;
  result.scale = range[0];
  result.zero_point = range[1];
  result.q = quantize_tensor(n, x, result.scale, result.zero_point, ElementType::kU8);
  return result;
}

}  // namespace bantam::import::onnx
