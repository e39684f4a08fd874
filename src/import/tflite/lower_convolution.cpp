// Convolutions and pooling.
#include <fmt/format.h>

#include <algorithm>

#include "import/tflite/operators.h"
#include "import/tflite/weighted.h"
#include "ops/nn/conv2d/conv2d.h"
#include "ops/nn/conv_transpose2d/conv_transpose2d.h"
#include "ops/nn/depthwise_conv2d/depthwise_conv2d.h"
#include "ops/nn/pool2d/pool2d.h"

namespace bantam::import::tflite {
namespace {

using enum ElementType;

/// Strides, dilation and padding of an image operator; the names differ among the options tables.
struct Window {
  schema::Padding padding = schema::Padding::SAME;
  std::int32_t height = 1;
  std::int32_t width = 1;
  std::int32_t stride_h = 1;
  std::int32_t stride_w = 1;
  std::int32_t dilation_h = 1;
  std::int32_t dilation_w = 1;
};

struct ImagePadding {
  AxisPadding h;
  AxisPadding w;
};

ImagePadding image_padding(Lowering& op, const Window& window, std::int32_t height, std::int32_t width) {
  const bool same = window.padding == schema::Padding::SAME;
  const auto h = axis_padding(same, height, window.height, window.stride_h, window.dilation_h);
  const auto w = axis_padding(same, width, window.width, window.stride_w, window.dilation_w);
  if (!same && window.padding != schema::Padding::VALID)
    op.unsupported(fmt::format("padding {}", static_cast<int>(window.padding)), "SAME, VALID");
  if (h && w) return {*h, *w};
  op.invalid(
      fmt::format("filter {}x{}, stride {}x{}, dilation {}x{} over an image of {}x{}", window.height, window.width,
                  window.stride_h, window.stride_w, window.dilation_h, window.dilation_w, height, width),
      "positive values and a filter that fits");
  return {};
}

/// Sets the members that convolution and pooling parameters share.
template <typename Params>
void set_window(Params& params, const Window& window, const ImagePadding& padding) {
  params.stride_h = window.stride_h;
  params.stride_w = window.stride_w;
  params.pad_top = padding.h.before;
  params.pad_bottom = padding.h.after;
  params.pad_left = padding.w.before;
  params.pad_right = padding.w.after;
}

/// Emits conv2d, depthwise_conv2d or conv_transpose2d in the form that the operand types ask for. `filters` are the
/// weights in the core operator's shape.
template <typename Params>
void emit_convolution(Lowering& op, const ops::OpDef& def, Params params, ValueId filters,
                      const WeightedOperands& operands, schema::Activation activation, schema::TensorType accumulator) {
  const ValueId x = op.in(operands.input);
  const ValueId bias = op.in(operands.bias);
  if (op.in_type(operands.input) == kF32) {
    op.require_type(operands.weights, {kF32, kI8});
    params.activation = op.float_activation(activation);
    if (op.in_type(operands.weights) == kF32) return op.result(0, op.emit(def, params, {x, filters, bias}));
    return op.result(0, op.emit(def, params, {x, filters, bias, weight_scale_operand(op, operands)}));
  }
  const IntegerForm form = integer_form(op, operands, activation, accumulator, ScaleRule::kConvolution);
  set_integer_form(params, form);
  op.result(0, op.emit(def, params, {x, filters, form.bias, form.multiplier, form.shift}));
}

template <typename Options>
Window convolution_window(const Options& o, std::int32_t height, std::int32_t width) {
  return {o.padding(), height, width, o.stride_h(), o.stride_w(), o.dilation_h(), o.dilation_w()};
}

ops::Conv2dParams convolution_params(Lowering& op, const Window& window) {
  ops::Conv2dParams params;
  set_window(params, window, image_padding(op, window, op.in_desc(0).dims[1], op.in_desc(0).dims[2]));
  params.dilation_h = window.dilation_h;
  params.dilation_w = window.dilation_w;
  return params;
}

void lower_conv_2d(Lowering& op) {
  if (!op.require_rank(0, 4, 4) || !op.require_rank(1, 4, 4)) return;
  const auto& o = op.options<schema::Conv2DOptions>();
  const TensorDesc filters = op.in_desc(1);
  auto params = convolution_params(op, convolution_window(o, filters.dims[1], filters.dims[2]));
  const std::int32_t channels = op.in_desc(0).last(0);
  if (filters.last(0) <= 0 || channels % filters.last(0) != 0)
    return op.invalid(fmt::format("{} input channels with filters of {}", channels, filters.last(0)), "a multiple");
  params.groups = channels / filters.last(0);
  emit_convolution(op, ops::kConv2d, params, weights(op, 1), WeightedOperands{}, o.activation(),
                   o.quantized_bias_type());
}

void lower_depthwise_conv_2d(Lowering& op) {
  if (!op.require_rank(0, 4, 4) || !op.require_rank(1, 4, 4)) return;
  const auto& o = op.options<schema::DepthwiseConv2DOptions>();
  const TensorDesc filters = op.in_desc(1);
  const auto params = convolution_params(op, convolution_window(o, filters.dims[1], filters.dims[2]));
  // Unlike other kernels of int16, this one has no 32-bit sums.
  if (op.in_type(0) == kI16 && op.has(2) && !op.require_type(2, {kI64})) return;
  constexpr WeightedOperands kOperands{.channel_axis = 3};
  // Of one channel it is any other convolution, as which it is a matrix product.
  if (op.in_desc(0).last(0) == 1 && filters.dims[0] == 1 && filters.last(0) > 1)
    return emit_convolution(op, ops::kConv2d, params, op.transpose(weights(op, 1), {3, 1, 2, 0}), kOperands,
                            o.activation(), schema::TensorType::INT64);
  const ValueId shaped = op.reshape(weights(op, 1), {filters.dims[1], filters.dims[2], filters.dims[3]});
  emit_convolution(op, ops::kDepthwiseConv2d, params, shaped, kOperands, o.activation(), schema::TensorType::INT64);
}

/// The crop or extension that makes an axis of stride * (in - 1) + filter elements `out` long.
void set_transposed_axis(Lowering& op, bool same, std::int32_t in, std::int32_t filter, std::int32_t stride,
                         std::int64_t out, std::int32_t* before, std::int32_t* after, std::int32_t* extra) {
  const auto forward = axis_padding(same, static_cast<std::int32_t>(out), filter, stride, 1);
  if (!forward || forward->out != in)
    return op.invalid(fmt::format("output size {} for input size {}, filter {}, stride {}", out, in, filter, stride),
                      "a size that the forward convolution maps to the input");
  const std::int64_t full = static_cast<std::int64_t>(stride) * (in - 1) + filter;
  const std::int64_t crop = std::max<std::int64_t>(full - out, 0);
  *before = static_cast<std::int32_t>(crop / 2);
  *after = static_cast<std::int32_t>(crop - crop / 2);
  *extra = static_cast<std::int32_t>(std::max<std::int64_t>(out - full, 0));
}

/// The size of a transposed convolution's result: operand 0, or where that is no constant the size that the file gives
/// the result, to which TensorFlow Lite Micro keeps.
Dims output_shape(Lowering& op) {
  if (op.graph().is_constant(op.in(0))) return op.constant_operand(0, "output_shape", 4);
  Dims shape = integers(op.out_tensor().shape());
  if (shape.size() != 4 || std::any_of(shape.begin(), shape.end(), [](std::int64_t d) { return d < 0; }))
    op.unsupported("an output_shape (operand 0) that is computed at run time, for a result of open size",
                   "constant integers");
  shape.resize(4);
  return shape;
}

void lower_transpose_conv(Lowering& op) {
  if (!op.require_rank(1, 4, 4) || !op.require_rank(2, 4, 4)) return;
  if (op.in_type(2) == kF32 && !op.require_type(1, {kF32})) return;
  const auto& o = op.options<schema::TransposeConvOptions>();
  const Dims shape = output_shape(op);
  if (op.failed()) return;
  const TensorDesc filters = op.in_desc(1);
  const TensorDesc x = op.in_desc(2);
  if (shape[0] != x.dims[0] || shape[3] != filters.dims[0] || shape[1] != static_cast<std::int32_t>(shape[1]) ||
      shape[2] != static_cast<std::int32_t>(shape[2]))
    return op.invalid(fmt::format("output_shape [{},{},{},{}]", shape[0], shape[1], shape[2], shape[3]),
                      "the batch of the input and the channels of the filters");
  ops::ConvTranspose2dParams params;
  params.stride_h = o.stride_h();
  params.stride_w = o.stride_w();
  const bool same = o.padding() == schema::Padding::SAME;
  set_transposed_axis(op, same, x.dims[1], filters.dims[1], o.stride_h(), shape[1], &params.pad_top, &params.pad_bottom,
                      &params.output_pad_h);
  set_transposed_axis(op, same, x.dims[2], filters.dims[2], o.stride_w(), shape[2], &params.pad_left, &params.pad_right,
                      &params.output_pad_w);
  // Sums have 64 bits whatever a 16x8 operator without bias says.
  emit_convolution(op, ops::kConvTranspose2d, params, weights(op, 1), {.input = 2, .weights = 1, .bias = 3},
                   o.activation(), schema::TensorType::INT64);
}

/// The root of the mean square of each window.
void lower_l2_pool(Lowering& op) {
  if (!op.require_rank(0, 4, 4) || !op.require_type(0, {kF32})) return;
  const auto& o = op.options<schema::Pool2DOptions>();
  const Window window{o.padding(), o.filter_height(), o.filter_width(), o.stride_h(), o.stride_w()};
  ops::Pool2dParams params;
  params.kind = ops::PoolKind::kAverage;
  params.kernel_h = window.height;
  params.kernel_w = window.width;
  set_window(params, window, image_padding(op, window, op.in_desc(0).dims[1], op.in_desc(0).dims[2]));
  const ValueId squares = op.unary(ops::UnaryFunction::kSquare, op.in(0));
  const ValueId roots = op.unary(ops::UnaryFunction::kSqrt, op.emit(ops::kPool2d, params, {squares}));
  op.result(0, op.apply(roots, op.float_activation(o.activation())));
}

void lower_pool(Lowering& op, ops::PoolKind kind) {
  if (!op.require_rank(0, 4, 4) || !op.require_type(0, {kF32, kI8, kU8, kI16})) return;
  const auto& o = op.options<schema::Pool2DOptions>();
  const Window window{o.padding(), o.filter_height(), o.filter_width(), o.stride_h(), o.stride_w()};
  ops::Pool2dParams params;
  params.kind = kind;
  params.kernel_h = window.height;
  params.kernel_w = window.width;
  set_window(params, window, image_padding(op, window, op.in_desc(0).dims[1], op.in_desc(0).dims[2]));
  if (op.in_type(0) == kF32) {
    params.activation = op.float_activation(o.activation());
  } else if (op.require_same_quantization(0)) {
    const IntegerRange range = op.activation_range(o.activation());
    params.minimum = range.minimum;
    params.maximum = range.maximum;
  }
  op.result(0, op.emit(ops::kPool2d, params, {op.in(0)}));
}

constexpr OperatorRow kConvolutionOperators[] = {
    {schema::BuiltinOperator::CONV_2D, 2, 3, 1, lower_conv_2d},
    {schema::BuiltinOperator::DEPTHWISE_CONV_2D, 2, 3, 1, lower_depthwise_conv_2d},
    {schema::BuiltinOperator::TRANSPOSE_CONV, 3, 4, 1, lower_transpose_conv},
    {schema::BuiltinOperator::AVERAGE_POOL_2D, 1, 1, 1, [](Lowering& op) { lower_pool(op, ops::PoolKind::kAverage); }},
    {schema::BuiltinOperator::L2_POOL_2D, 1, 1, 1, lower_l2_pool},
    {schema::BuiltinOperator::MAX_POOL_2D, 1, 1, 1, [](Lowering& op) { lower_pool(op, ops::PoolKind::kMax); }},
};

}  // namespace

std::span<const OperatorRow> convolution_operators() noexcept { return kConvolutionOperators; }

}  // namespace bantam::import::tflite
