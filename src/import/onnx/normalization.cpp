// ONNX normalisations and soft maxima.
#include "import/onnx/normalization.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "import/onnx/lowering.h"
#include "ops/data/gather/gather.h"
#include "ops/data/one_hot/one_hot.h"
#include "ops/nn/norm/norm.h"
#include "ops/nn/pool2d/pool2d.h"
#include "ops/nn/softmax/softmax.h"
#include "ops/reduce/arg_reduce/arg_reduce.h"

namespace bantam::import::onnx {
namespace {

using ops::BinaryFunction;
using ops::ReduceFunction;
using ops::UnaryFunction;

/// A vector of one number per channel, shaped so that it broadcasts against [N,C,...] of `rank`.
ValueId per_channel(NodeLowering& n, ValueId v, int rank) {
  if (n.failed()) return kNone;
  std::vector<std::int64_t> dims(static_cast<std::size_t>(std::max(rank - 1, 1)), 1);
  dims[0] = n.desc(v).elements();
  return n.reshape(v, dims);
}

/// y = x * m + b with m = scale / sqrt(variance + epsilon), b = bias - mean * m; both fold for constant statistics.
void lower_batch_norm(NodeLowering& n) {
  n.ignore({"momentum", "consumed_inputs"});
  n.require("training_mode", 0);
  n.require("is_test", 1);
  n.require("spatial", 1);
  const ValueId x = n.input(0);
  const ValueId epsilon = n.scalar(n.type(n.input(4)), static_cast<double>(n.attr_float("epsilon", 1e-5F)));
  const ValueId deviation = n.unary(UnaryFunction::kSqrt, n.binary(BinaryFunction::kAdd, n.input(4), epsilon));
  const ValueId factor = n.binary(BinaryFunction::kDiv, n.input(1), deviation);
  const ValueId offset = n.binary(BinaryFunction::kSub, n.input(2), n.binary(BinaryFunction::kMul, n.input(3), factor));
  const int rank = n.rank(x);
  const ValueId scaled = n.binary(BinaryFunction::kMul, x, per_channel(n, factor, rank));
  n.set_output(0, n.binary(BinaryFunction::kAdd, scaled, per_channel(n, offset, rank)));
}

ValueId norm(NodeLowering& n, ValueId x, std::span<const int> axes, float epsilon, ValueId scale, ValueId bias,
             bool rms = false) {
  ops::NormParams params;
  params.axes.size = static_cast<std::int32_t>(axes.size());
  std::copy(axes.begin(), axes.end(), params.axes.v);
  params.epsilon = epsilon;
  params.rms = rms ? 1 : 0;
  return n.emit(ops::kNorm, params, {x, scale, bias});
}

/// Axes first..rank-1.
std::vector<int> axes_from(int first, int rank) {
  std::vector<int> axes(static_cast<std::size_t>(std::max(rank - first, 0)));
  std::iota(axes.begin(), axes.end(), first);
  return axes;
}

void lower_instance_norm(NodeLowering& n) {
  n.ignore({"consumed_inputs"});
  const ValueId x = n.input(0);
  const int rank = n.rank(x);
  n.set_output(0, norm(n, x, axes_from(2, rank), n.attr_float("epsilon", 1e-5F), per_channel(n, n.input(1), rank),
                       per_channel(n, n.input(2), rank)));
}

/// The type that an attribute names for statistics: float unless it says otherwise. The normalisation itself is never
/// less precise than its operand.
ElementType read_stash_type(NodeLowering& n) {
  const auto code = n.attr_int32("stash_type", 1);
  const ElementType type = compute_type(element_type(code));
  if (!is_float(type)) n.fail(fmt::format("attribute 'stash_type' = {} is not a float type", code));
  return type;
}

/// Groups of channels become an axis of their own; before operator set 21 scale and bias are per group.
void lower_group_norm(NodeLowering& n) {
  read_stash_type(n);
  const ValueId x = n.input(0);
  const TensorDesc d = n.desc(x);
  const std::int64_t groups = n.attr_int("num_groups", 0);
  const float epsilon = n.attr_float("epsilon", 1e-5F);
  ValueId scale = n.input(1);
  ValueId bias = n.input(2);
  if (n.failed()) return;
  if (d.rank < 2 || groups <= 0 || d.dims[1] % groups != 0)
    return n.fail(fmt::format("attribute 'num_groups' = {} does not divide the channels of {}", groups, format_desc(d)),
                  StatusCode::kInvalidModel);
  std::int64_t spatial = 1;
  for (int i = 2; i < d.rank; ++i) spatial *= d.dims[i];
  const std::int64_t members = d.dims[1] / groups;
  const ValueId grouped = n.reshape(x, {d.dims[0], groups, members * spatial});
  const int axes[] = {2};
  if (n.desc(scale).elements() == groups && members != 1) {
    const auto spread = [&](ValueId v) {
      const std::int64_t dims[] = {groups, members};
      return n.reshape(n.expand(n.reshape(v, {groups, 1}), dims), {groups * members});
    };
    scale = spread(scale);
    bias = spread(bias);
  }
  const ValueId y = n.reshape(norm(n, grouped, axes, epsilon, kNone, kNone), n.dims(x));
  const ValueId scaled = n.binary(BinaryFunction::kMul, y, per_channel(n, scale, d.rank));
  n.set_output(0, n.binary(BinaryFunction::kAdd, scaled, per_channel(n, bias, d.rank)));
}

/// 1 / sqrt(x + epsilon).
ValueId reciprocal_root(NodeLowering& n, ValueId x, float epsilon) {
  const ValueId sum = n.binary(BinaryFunction::kAdd, x, n.scalar(n.type(x), static_cast<double>(epsilon)));
  return n.unary(UnaryFunction::kRsqrt, sum);
}

/// The statistics that LayerNormalization can hand out, in the type that it computes them in.
void emit_statistics(NodeLowering& n, ValueId x, std::span<const int> axes, float epsilon, ElementType stash) {
  const ValueId mean = n.reduce(ReduceFunction::kMean, x, axes, true);
  const ValueId centred = n.binary(BinaryFunction::kSub, x, mean);
  const ValueId variance = n.reduce(ReduceFunction::kMean, n.unary(UnaryFunction::kSquare, centred), axes, true);
  n.set_output(1, n.cast(mean, stash));
  n.set_output(2, n.cast(reciprocal_root(n, variance, epsilon), stash));
}

void lower_layer_norm(NodeLowering& n) {
  const ElementType stash = read_stash_type(n);
  const ValueId x = n.input(0);
  const int rank = n.rank(x);
  const int axis = n.axis(n.attr_int("axis", -1), rank);
  const float epsilon = n.attr_float("epsilon", 1e-5F);
  const auto axes = axes_from(axis, rank);
  n.set_output(0, norm(n, x, axes, epsilon, n.input(1), n.optional(2)));
  if (n.wants(1) || n.wants(2)) emit_statistics(n, x, axes, epsilon, stash);
}

void lower_rms_norm(NodeLowering& n) {
  read_stash_type(n);
  const ValueId x = n.input(0);
  const int rank = n.rank(x);
  const int axis = n.axis(n.attr_int("axis", -1), rank);
  const float epsilon = n.attr_float("epsilon", 1e-5F);
  const auto axes = axes_from(axis, rank);
  n.set_output(0, norm(n, x, axes, epsilon, n.input(1), kNone, true));
  if (n.wants(1)) {
    const ValueId square = n.reduce(ReduceFunction::kMean, n.unary(UnaryFunction::kSquare, x), axes, true);
    n.set_output(1, reciprocal_root(n, square, epsilon));
  }
}

/// com.microsoft SkipLayerNormalization: the normalised sum of two tensors and an optional bias. The simplified form
/// has no shift.
template <bool rms>
void lower_skip_layer_norm(NodeLowering& n) {
  constexpr int kBias = rms ? 3 : 4;
  ValueId sum = n.binary(BinaryFunction::kAdd, n.input(0), n.input(1));
  if (n.has(kBias)) sum = n.binary(BinaryFunction::kAdd, sum, n.input(kBias));
  const int rank = n.rank(sum);
  n.set_output(0, norm(n, sum, axes_from(rank - 1, rank), n.attr_float("epsilon", 1e-12F), n.input(2),
                       rms ? kNone : n.optional(3), rms));
  n.set_output(3, sum);
}

/// com.microsoft EmbedLayerNormalization: the normalised sum of the embeddings of words, positions and segments.
void lower_embed_layer_norm(NodeLowering& n) {
  n.require("mask_index_type", 0);
  const ValueId words = n.input(0);
  const auto dims = n.dims(words);
  if (!n.failed() && dims.size() != 2) n.fail("words must have rank 2", StatusCode::kInvalidModel);
  if (n.failed()) return;
  const auto rows = [&](ValueId table, ValueId index) {
    return n.emit(ops::kGather, ops::GatherParams{}, {table, index});
  };
  ValueId sum = rows(n.input(2), words);
  if (n.has(8)) {
    sum = n.binary(BinaryFunction::kAdd, sum, rows(n.input(3), n.input(8)));
  } else {
    sum = n.binary(BinaryFunction::kAdd, sum, n.slice(n.input(3), 0, 0, dims[1]));
  }
  if (n.has(1) && n.has(4)) sum = n.binary(BinaryFunction::kAdd, sum, rows(n.input(4), n.input(1)));
  n.set_output(0, norm(n, sum, axes_from(2, 3), n.attr_float("epsilon", 1e-12F), n.input(5), n.input(6)));
  n.set_output(2, sum);
  if (!n.wants(1)) return;
  const int steps[] = {1};
  n.set_output(1, n.has(7) ? n.reduce(ReduceFunction::kSum, n.input(7), steps, false)
                           : n.expand(n.scalar(ElementType::kI32, 0), std::span(dims).first(1)));
}

/// (x - mean) / (deviation + 1e-9): the small number as an epsilon of the variance differs below float's resolution.
void lower_mean_variance_norm(NodeLowering& n) {
  const ValueId x = n.input(0);
  auto values = n.attr_ints("axes");
  if (values.empty()) values = {0, 2, 3};
  constexpr float kEpsilon = 1e-18F;
  n.set_output(0, norm(n, x, n.axes(values, n.rank(x)), kEpsilon, kNone, kNone));
}

void lower_lp_norm(NodeLowering& n) {
  const ValueId x = n.input(0);
  const std::int64_t p = n.attr_int("p", 2);
  const int axis[] = {n.axis(n.attr_int("axis", -1), n.rank(x))};
  if (p != 1 && p != 2) n.fail(fmt::format("attribute 'p' = {} is not supported, only 1 and 2", p));
  const ValueId length = n.reduce(p == 1 ? ReduceFunction::kL1 : ReduceFunction::kL2, x, axis, true);
  n.set_output(0, n.binary(BinaryFunction::kDiv, x, length));
}

/// y = x / (bias + alpha / size * sum of squares of neighbouring channels)^beta, the sum as average pooling in which
/// channels take the place of rows.
void lower_lrn(NodeLowering& n) {
  const ValueId x = n.input(0);
  const std::int32_t size = n.attr_int32("size", 0);
  const float alpha = n.attr_float("alpha", 1e-4F);
  const float beta = n.attr_float("beta", 0.75F);
  const float bias = n.attr_float("bias", 1.0F);
  if (n.failed()) return;
  const TensorDesc d = n.desc(x);
  if (d.rank < 2 || size < 1)
    return n.fail(fmt::format("attribute 'size' = {} for {} is not valid", size, format_desc(d)),
                  StatusCode::kInvalidModel);
  std::int64_t spatial = 1;
  for (int i = 2; i < d.rank; ++i) spatial *= d.dims[i];
  ops::Pool2dParams params;
  params.kind = ops::PoolKind::kAverage;
  params.kernel_h = size;
  params.pad_top = (size - 1) / 2;
  params.pad_bottom = size - 1 - params.pad_top;
  params.count_include_pad = 1;
  const ValueId rows = n.reshape(n.unary(UnaryFunction::kSquare, x), {d.dims[0], d.dims[1], 1, spatial});
  const ValueId mean = n.reshape(n.emit(ops::kPool2d, params, {rows}), n.dims(x));
  const auto number = [&](float value) { return n.scalar(d.type, static_cast<double>(value)); };
  const ValueId base =
      n.binary(BinaryFunction::kAdd, n.binary(BinaryFunction::kMul, mean, number(alpha)), number(bias));
  n.set_output(0, n.binary(BinaryFunction::kDiv, x, n.binary(BinaryFunction::kPow, base, number(beta))));
}

/// From operator set 13 on the axis alone is normalised; before, everything from the axis on as one row.
template <bool log>
void lower_softmax(NodeLowering& n) {
  const ValueId x = n.input(0);
  const bool flat = n.opset() < 13;
  const int axis = n.axis(n.attr_int("axis", flat ? 1 : -1), n.rank(x));
  n.set_output(0, softmax_along(n, x, axis, flat, log));
}

/// One at the first maximum, zero elsewhere; the same old rule for the axis as Softmax.
void lower_hardmax(NodeLowering& n) {
  const ValueId x = n.input(0);
  const bool flat = n.opset() < 13;
  const auto dims = n.dims(x);
  const int rank = n.rank(x);
  int axis = n.axis(n.attr_int("axis", flat ? 1 : -1), rank);
  if (n.failed()) return;
  ValueId rows = x;
  if (flat) {
    std::int64_t count = 1;
    std::int64_t columns = 1;
    for (int i = 0; i < rank; ++i) (i < axis ? count : columns) *= dims[static_cast<std::size_t>(i)];
    rows = n.reshape(x, {count, columns});
    axis = 1;
  }
  ops::ArgReduceParams arg;
  arg.axis = axis;
  arg.keep_dims = 0;
  if (n.failed()) return;
  const ValueId index = n.emit(ops::kArgReduce, arg, {rows});
  const ops::OneHotParams params{axis, n.desc(rows).dims[axis]};
  const ValueId hot = n.emit(ops::kOneHot, params, {index, n.scalar(n.type(x), 0), n.scalar(n.type(x), 1)});
  n.set_output(0, n.reshape(hot, dims));
}

constexpr OperatorRow kNormalizationOperators[] = {
    {"", "BatchNormalization", 6, kNewest, lower_batch_norm},
    {"", "GroupNormalization", 18, kNewest, lower_group_norm},
    {"", "Hardmax", 1, kNewest, lower_hardmax},
    {"", "InstanceNormalization", 1, kNewest, lower_instance_norm},
    {"", "LRN", 1, kNewest, lower_lrn},
    // Since 17; ONNX Runtime writes it into models of older sets.
    {"", "LayerNormalization", 1, kNewest, lower_layer_norm},
    {"", "LogSoftmax", 1, kNewest, lower_softmax<true>},
    {"", "LpNormalization", 1, kNewest, lower_lp_norm},
    {"", "MeanVarianceNormalization", 9, kNewest, lower_mean_variance_norm},
    {"", "RMSNormalization", 23, kNewest, lower_rms_norm},
    // ONNX Runtime writes this one into ONNX's own domain.
    {"", "SimplifiedLayerNormalization", 1, kNewest, lower_rms_norm},
    {"", "Softmax", 1, kNewest, lower_softmax<false>},
    {"com.microsoft", "EmbedLayerNormalization", 1, kNewest, lower_embed_layer_norm},
    {"com.microsoft", "SkipLayerNormalization", 1, kNewest, lower_skip_layer_norm<false>},
    {"com.microsoft", "SkipSimplifiedLayerNormalization", 1, kNewest, lower_skip_layer_norm<true>},
};

}  // namespace

ValueId softmax_along(NodeLowering& n, ValueId x, int axis, bool flat, bool log) {
  const int rank = n.rank(x);
  if (n.failed()) return kNone;
  if (!flat || axis == rank - 1) return n.emit(ops::kSoftmax, ops::SoftmaxParams{axis, log ? 1 : 0}, {x});
  const auto dims = n.dims(x);
  std::int64_t rows = 1;
  std::int64_t columns = 1;
  for (int i = 0; i < rank; ++i) (i < axis ? rows : columns) *= dims[static_cast<std::size_t>(i)];
  const ValueId y = n.emit(ops::kSoftmax, ops::SoftmaxParams{1, log ? 1 : 0}, {n.reshape(x, {rows, columns})});
  return n.reshape(y, dims);
}

std::span<const OperatorRow> normalization_operators() { return kNormalizationOperators; }

}  // namespace bantam::import::onnx
