// Fully connected layers, matrix products and normalisations over the innermost axis.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "import/tflite/operators.h"
#include "import/tflite/weighted.h"
#include "ops/elementwise/binary/binary.h"
#include "ops/nn/batch_matmul_q/batch_matmul_q.h"
#include "ops/nn/l2_normalize_q/l2_normalize_q.h"
#include "ops/nn/log_softmax_q/log_softmax_q.h"
#include "ops/nn/matmul/matmul.h"
#include "ops/nn/softmax/softmax.h"
#include "ops/nn/softmax_q/softmax_q.h"
#include "ops/reduce/reduce/reduce.h"

namespace bantam::import::tflite {
namespace {

using enum ElementType;

/// y = x w^T for x [rows, K] in the form that the operand types ask for.
ValueId fully_connected(Lowering& op, ValueId x, const schema::FullyConnectedOptions& o) {
  ops::MatmulParams params;
  params.transpose_b = 1;
  if (op.in_type(0) == kF32) {
    op.require_type(1, {kF32, kI8});
    params.activation = op.float_activation(o.activation());
    if (op.in_type(1) == kF32) return op.emit(ops::kMatmul, params, {x, op.in(1), op.in(2)});
    params.asymmetric = o.asymmetric_quantize_inputs() ? 1 : 0;
    return op.emit(ops::kMatmul, params, {x, op.in(1), op.in(2), weight_scale_operand(op, {})});
  }
  const IntegerForm form = integer_form(op, {}, o.activation(), o.quantized_bias_type(), ScaleRule::kFullyConnected);
  set_integer_form(params, form);
  params.weights_zero_point = form.weights_zero_point;
  return op.emit(ops::kMatmul, params, {x, weights(op, 1), form.bias, form.multiplier, form.shift});
}

void lower_fully_connected(Lowering& op) {
  if (!op.require_rank(0, 1, kMaxRank) || !op.require_rank(1, 2, 2)) return;
  const auto& o = op.options<schema::FullyConnectedOptions>();
  if (o.weights_format() != 0) return op.unsupported("weights_format SHUFFLED4x16INT8", "DEFAULT");
  const std::int64_t units = op.in_desc(1).dims[0];
  const std::int64_t depth = op.in_desc(1).dims[1];
  const std::int64_t elements = op.in_desc(0).elements();
  if (depth <= 0 || elements % depth != 0 || (o.keep_num_dims() && op.in_desc(0).last(0) != depth))
    return op.invalid(fmt::format("{} input elements with weights of {} columns", elements, depth), "whole rows");
  Dims shape = op.dims(op.in(0));
  shape.back() = units;
  const ValueId y = fully_connected(op, op.reshape(op.in(0), {elements / depth, depth}), o);
  op.result(0, o.keep_num_dims() ? op.reshape(y, shape) : y);
}

void lower_quantized_batch_matmul(Lowering& op, const schema::BatchMatMulOptions& o) {
  if (!op.require_type(1, {op.in_type(0)})) return;
  const Affine a = op.in_affine(0);
  const Affine b = op.in_affine(1);
  const Affine output = op.out_affine();
  const FixedMultiplier m = op.multiplier(fully_connected_scale(a.scale, b.scale, output.scale));
  if (op.failed()) return;
  const ops::BatchMatmulQParams params{o.adj_x() ? 1 : 0, o.adj_y() ? 1 : 0, a.zero_point, b.zero_point,
                                       output.zero_point, m.multiplier,      m.shift};
  op.result(0, op.emit(ops::kBatchMatmulQ, params, {op.in(0), op.in(1)}));
}

void lower_batch_matmul(Lowering& op) {
  if (!op.require_rank(0, 2, kMaxRank) || !op.require_rank(1, 2, kMaxRank) || !op.require_type(0, {kF32, kI8, kI16}))
    return;
  const auto& o = op.options<schema::BatchMatMulOptions>();
  if (op.in_type(0) != kF32) return lower_quantized_batch_matmul(op, o);
  if (!op.require_type(1, {kF32})) return;
  ops::MatmulParams params;
  params.transpose_a = o.adj_x() ? 1 : 0;
  params.transpose_b = o.adj_y() ? 1 : 0;
  op.result(0, op.emit(ops::kMatmul, params, {op.in(0), op.in(1)}));
}

/// The int16 kernel knows results in Q15 only; scales within a thousandth count as that.
void lower_softmax16(Lowering& op, float beta) {
  constexpr float kQ15 = 1.0F / 32768;
  constexpr float kTolerance = 0.001F * kQ15;
  const Affine input = op.in_affine(0);
  const Affine output = op.out_affine();
  if (op.failed()) return;
  if (op.out_type() != kI16 || input.zero_point != 0 || output.zero_point != 0 ||
      std::abs(output.scale - kQ15) > kTolerance)
    return op.unsupported(fmt::format("a result quantised by ({}, {}) of an operand with zero point {}", output.scale,
                                      output.zero_point, input.zero_point),
                          "i16 (1/32768, 0) and zero point 0");
  const auto scaling = softmax_scaling16(beta, input.scale);
  if (!scaling)
    return op.unsupported(fmt::format("beta {} with input scale {}", beta, input.scale), "a positive product");
  constexpr float kRange = 65535;
  const Table16 exponentials =
      float_table16({10.0F / kRange, 32767}, 2.0F / kRange, [](float x) { return std::exp(x); });
  const Table16 reciprocals =
      float_table16({1.0F / kRange, -32768}, 2.0F / kRange, [](float x) { return 1.0F / (1.0F + x); });
  const Dims size{static_cast<std::int64_t>(exponentials.size())};
  const ops::SoftmaxQParams params{kI16, scaling->input.multiplier, scaling->input.shift};
  op.result(0, op.emit(ops::kSoftmaxQ, params,
                       {op.in(0), op.constant<std::int16_t>(size, exponentials),
                        op.constant<std::int16_t>(size, reciprocals)}));
}

void lower_quantized_softmax(Lowering& op, float beta) {
  const Affine input = op.in_affine(0);
  const Affine output = op.out_affine();
  const ElementType to = op.out_type();
  if (op.failed()) return;
  // The one scale and zero point the fixed-point kernel produces for each result type.
  const bool natural =
      (to == kI8 && output == Affine{1.0F / 256, -128}) || (to == kU8 && output == Affine{1.0F / 256, 0}) ||
      (to == kI16 && output.zero_point == -32768 && output.scale > 0.999F / 65536 && output.scale < 1.001F / 65536);
  if (!natural || (to == kU8) != (op.in_type(0) == kU8))
    return op.unsupported(fmt::format("a result of type {} quantised by ({}, {})", element_type_name(to), output.scale,
                                      output.zero_point),
                          "i8 (1/256, -128), u8 (1/256, 0) or, from i8, i16 (1/65536, -32768)");
  const auto scaling = softmax_scaling(beta, input.scale);
  if (!scaling)
    return op.unsupported(fmt::format("beta {} with input scale {}", beta, input.scale), "a product above 2^-26");
  const ops::SoftmaxQParams params{to, scaling->input.multiplier, scaling->input.shift, scaling->diff_min};
  op.result(0, op.emit(ops::kSoftmaxQ, params, {op.in(0)}));
}

void lower_softmax(Lowering& op) {
  const float beta = op.options<schema::SoftmaxOptions>().beta();
  if (!op.require_rank(0, 1, kMaxRank) || !op.require_type(0, {kF32, kI8, kU8, kI16})) return;
  if (op.in_type(0) == kI16) return lower_softmax16(op, beta);
  if (op.in_type(0) != kF32) return lower_quantized_softmax(op, beta);
  ValueId x = op.in(0);
  if (beta != 1.0F) x = op.emit(ops::kBinary, ops::BinaryParams{ops::BinaryFunction::kMul}, {x, op.scalar(kF32, beta)});
  op.result(0, op.emit(ops::kSoftmax, ops::SoftmaxParams{op.rank(0) - 1}, {x}));
}

void lower_quantized_log_softmax(Lowering& op) {
  const Affine input = op.in_affine(0);
  const Affine output = op.out_affine();
  if (op.failed()) return;
  if (output != Affine{1.0F / 16, 127})
    return op.unsupported(fmt::format("a result quantised by ({}, {})", output.scale, output.zero_point),
                          "(1/16, 127)");
  const auto scaling = softmax_scaling(1.0F, input.scale);
  if (!scaling) return op.unsupported(fmt::format("input scale {}", input.scale), "one above 2^-26");
  const FixedMultiplier reverse = log_softmax_reverse(scaling->input);
  const ops::LogSoftmaxQParams params{scaling->input.multiplier, scaling->input.shift, reverse.multiplier,
                                      reverse.shift, scaling->diff_min};
  op.result(0, op.emit(ops::kLogSoftmaxQ, params, {op.in(0)}));
}

void lower_log_softmax(Lowering& op) {
  if (!op.require_rank(0, 1, kMaxRank) || !op.require_type(0, {kF32, kI8})) return;
  if (op.in_type(0) == kI8) return lower_quantized_log_softmax(op);
  op.result(0, op.emit(ops::kSoftmax, ops::SoftmaxParams{op.rank(0) - 1, 1}, {op.in(0)}));
}

void lower_quantized_l2_normalization(Lowering& op) {
  const Affine input = op.in_affine(0);
  const Affine output = op.out_affine();
  if (op.failed()) return;
  if (output != Affine{1.0F / 128, 0})
    return op.unsupported(fmt::format("a result quantised by ({}, {})", output.scale, output.zero_point), "(1/128, 0)");
  if (op.options<schema::L2NormOptions>().activation() != schema::Activation::NONE)
    return op.unsupported("a fused activation on integers", "NONE");
  op.result(0, op.emit(ops::kL2NormalizeQ, ops::L2NormalizeQParams{input.zero_point}, {op.in(0)}));
}

void lower_l2_normalization(Lowering& op) {
  constexpr float kSmallestNorm = 1e-6F;
  if (!op.require_rank(0, 1, kMaxRank) || !op.require_type(0, {kF32, kI8})) return;
  if (op.in_type(0) == kI8) return lower_quantized_l2_normalization(op);
  ops::ReduceParams reduce{ops::ReduceFunction::kL2};
  reduce.axes = int_list(Dims{op.rank(0) - 1});
  const ValueId norm = op.emit(ops::kReduce, reduce, {op.in(0)});
  const ValueId floor =
      op.emit(ops::kBinary, ops::BinaryParams{ops::BinaryFunction::kMax}, {norm, op.scalar(kF32, kSmallestNorm)});
  const auto activation = op.float_activation(op.options<schema::L2NormOptions>().activation());
  op.result(0, op.emit(ops::kBinary, ops::BinaryParams{ops::BinaryFunction::kDiv, activation}, {op.in(0), floor}));
}

constexpr OperatorRow kMatrixOperators[] = {
    {schema::BuiltinOperator::FULLY_CONNECTED, 2, 3, 1, lower_fully_connected},
    {schema::BuiltinOperator::BATCH_MATMUL, 2, 2, 1, lower_batch_matmul},
    {schema::BuiltinOperator::SOFTMAX, 1, 1, 1, lower_softmax},
    {schema::BuiltinOperator::LOG_SOFTMAX, 1, 1, 1, lower_log_softmax},
    {schema::BuiltinOperator::L2_NORMALIZATION, 1, 1, 1, lower_l2_normalization},
};

}  // namespace

std::span<const OperatorRow> matrix_operators() noexcept { return kMatrixOperators; }

}  // namespace bantam::import::tflite
