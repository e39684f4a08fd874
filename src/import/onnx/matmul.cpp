// ONNX matrix products: MatMul, Gemm and the fused forms of com.microsoft.
#include "ops/nn/matmul/matmul.h"

#include <fmt/format.h>

#include "import/onnx/convolution.h"
#include "import/onnx/matmul.h"

namespace bantam::import::onnx {

ValueId lower_matrix_product(NodeLowering& n, ValueId a, ValueId b, const ops::MatmulParams& params, ValueId bias) {
  if (n.failed()) return kNone;
  const bool a_is_vector = n.rank(a) == 1;
  const bool b_is_vector = n.rank(b) == 1;
  if (a_is_vector) a = n.reshape(a, {1, n.desc(a).dims[0]});
  if (b_is_vector) b = n.reshape(b, {n.desc(b).dims[0], 1});
  const ValueId y = n.emit(ops::kMatmul, params, {a, b, bias});
  if (n.failed() || (!a_is_vector && !b_is_vector)) return y;
  auto dims = n.dims(y);
  if (b_is_vector) dims.pop_back();
  if (a_is_vector) dims.erase(dims.end() - (b_is_vector ? 1 : 2));
  return n.reshape(y, dims);
}

namespace {

using ops::BinaryFunction;

void lower_matmul(NodeLowering& n) { n.set_output(0, lower_matrix_product(n, n.input(0), n.input(1), {}, kNone)); }

/// com.microsoft FusedMatMul: alpha times the product of matrices that may be transposed.
void lower_fused_matmul(NodeLowering& n) {
  ops::MatmulParams params;
  params.transpose_a = n.attr_int("transA", 0) != 0 ? 1 : 0;
  params.transpose_b = n.attr_int("transB", 0) != 0 ? 1 : 0;
  n.require("transBatchA", 0);
  n.require("transBatchB", 0);
  const float alpha = n.attr_float("alpha", 1.0F);
  const ValueId y = lower_matrix_product(n, n.input(0), n.input(1), params, kNone);
  n.set_output(0, alpha == 1.0F ? y : n.binary(BinaryFunction::kMul, y, n.scalar(alpha)));
}

/// True when C adds one number per column, whatever its rank.
bool is_row(const TensorDesc& c, std::int32_t columns) {
  return (c.rank == 1 && c.dims[0] == columns) || (c.rank == 2 && c.dims[0] == 1 && c.dims[1] == columns);
}

/// alpha A' B' + beta C.
ValueId lower_gemm_value(NodeLowering& n) {
  ops::MatmulParams params;
  params.transpose_a = n.attr_int("transA", 0) != 0 ? 1 : 0;
  params.transpose_b = n.attr_int("transB", 0) != 0 ? 1 : 0;
  const float alpha = n.attr_float("alpha", 1.0F);
  const float beta = n.attr_float("beta", 1.0F);
  if (n.opset() < 7) n.ignore({"broadcast"});  // where it is absent, C has the result's shape
  const ValueId a = n.input(0);
  ValueId b = n.input(1);
  ValueId c = n.optional(2);
  if (n.failed()) return kNone;
  if (n.rank(a) != 2 || n.rank(b) != 2) {
    n.fail(fmt::format("operands {} and {} must be matrices", format_desc(n.desc(a)), format_desc(n.desc(b))),
           StatusCode::kInvalidModel);
    return kNone;
  }
  if (c != kNone && beta != 1.0F) c = n.binary(BinaryFunction::kMul, c, n.scalar(n.type(a), beta));
  const bool scale_weights = alpha != 1.0F && n.is_constant(b);
  if (scale_weights) b = n.binary(BinaryFunction::kMul, b, n.scalar(n.type(a), alpha));
  const std::int32_t columns = n.desc(b).dims[params.transpose_b != 0 ? 0 : 1];
  const bool as_bias = c != kNone && (alpha == 1.0F || scale_weights) && is_row(n.desc(c), columns);
  ValueId y = n.emit(ops::kMatmul, params, {a, b, as_bias ? n.reshape(c, {columns}) : kNone});
  if (alpha != 1.0F && !scale_weights) y = n.binary(BinaryFunction::kMul, y, n.scalar(n.type(a), alpha));
  if (c != kNone && !as_bias) y = n.binary(BinaryFunction::kAdd, y, c);
  return y;
}

void lower_gemm(NodeLowering& n) { n.set_output(0, lower_gemm_value(n)); }

/// com.microsoft FusedGemm: Gemm, then an activation.
void lower_fused_gemm(NodeLowering& n) {
  n.ignore({"activation_alpha", "activation_beta", "activation_gamma"});
  const ops::Activation activation = read_fused_activation(n);
  n.set_output(0, n.unary(activation.function, lower_gemm_value(n), activation.a, activation.b));
}

constexpr OperatorRow kMatmulOperators[] = {
    {"", "Gemm", 6, kNewest, lower_gemm},
    {"", "MatMul", 1, kNewest, lower_matmul},
    {"com.microsoft", "FusedGemm", 1, kNewest, lower_fused_gemm},
    {"com.microsoft", "FusedMatMul", 1, kNewest, lower_fused_matmul},
};

}  // namespace

std::span<const OperatorRow> matmul_operators() { return kMatmulOperators; }

}  // namespace bantam::import::onnx
