// ONNX convolutions: Conv, ConvTranspose and the fused form of com.microsoft.
#include "import/onnx/convolution.h"

#include <fmt/format.h>

#include <algorithm>

#include "import/onnx/spatial.h"
#include "ops/nn/conv2d/conv2d.h"
#include "ops/nn/conv_transpose2d/conv_transpose2d.h"
#include "ops/nn/depthwise_conv2d/depthwise_conv2d.h"

namespace bantam::import::onnx {
namespace {

/// Kernel size as {height, width} from the shape of the weights, checked against kernel_shape.
std::array<std::int32_t, 2> kernel_size(NodeLowering& n, ValueId weights, int rank) {
  const TensorDesc& w = n.desc(weights);
  if (n.failed()) return {1, 1};
  if (w.rank != rank) {
    n.fail(fmt::format("the weights have rank {}, the image has rank {}", w.rank, rank), StatusCode::kInvalidModel);
    return {1, 1};
  }
  if (rank < 3 || rank > 4) return {1, 1};  // to_channels_last reports it
  const std::array<std::int32_t, 2> size{rank == 4 ? w.dims[2] : 1, w.last(0)};
  if (n.has_attr("kernel_shape") && read_spatial(n, "kernel_shape", rank, 1) != size)
    n.fail(fmt::format("attribute 'kernel_shape' does not agree with the weights, {}", format_desc(w)),
           StatusCode::kInvalidModel);
  return size;
}

std::int32_t group_count(NodeLowering& n, std::int32_t channels) {
  const std::int32_t groups = n.attr_int32("group", 1);
  if (groups > 0 && channels % groups == 0) return groups;
  n.fail(fmt::format("attribute 'group' = {} does not divide {} channels", groups, channels),
         StatusCode::kInvalidModel);
  return 1;
}

}  // namespace

ValueId lower_convolution(NodeLowering& n, ValueId x, ValueId weights, ValueId bias, ops::Activation activation) {
  const TensorDesc image = n.desc(x);
  const TensorDesc w = n.desc(weights);
  const auto kernel = kernel_size(n, weights, image.rank);
  const Window window = read_window(n, x, kernel);
  const ValueId input = to_channels_last(n, x);
  if (n.failed()) return kNone;

  ops::Conv2dParams params;
  set_window(params, window);
  params.activation = activation;
  const std::int32_t channels = image.dims[1];
  params.groups = group_count(n, channels);
  if (n.failed()) return kNone;
  const std::int32_t out = w.dims[0];
  if (params.groups == channels && channels > 1 && w.dims[1] == 1 && out % channels == 0) {
    params.groups = 1;
    const ValueId flat = n.reshape(weights, {out, kernel[0], kernel[1]});
    const ValueId y = n.emit(ops::kDepthwiseConv2d, params, {input, n.transpose(flat, {1, 2, 0}), bias});
    return from_channels_last(n, y, image.rank);
  }
  const ValueId square = n.reshape(weights, {out, w.dims[1], kernel[0], kernel[1]});
  const ValueId y = n.emit(ops::kConv2d, params, {input, n.transpose(square, {0, 2, 3, 1}), bias});
  return from_channels_last(n, y, image.rank);
}

namespace {

void lower_conv(NodeLowering& n) { n.set_output(0, lower_convolution(n, n.input(0), n.input(1), n.optional(2), {})); }

/// Chooses padding so that the result has the size that output_shape or auto_pad asks for.
void set_output_size(ops::ConvTranspose2dParams& params, int axis, std::int64_t full, std::int64_t wanted, bool upper) {
  // Larger than everything the input reaches: the rest is added at the end and holds the bias only.
  const std::int64_t total = std::clamp<std::int64_t>(full - wanted, -(1 << 30), 1 << 30);
  const auto crop = static_cast<std::int32_t>(std::max<std::int64_t>(total, 0));
  const auto extra = static_cast<std::int32_t>(std::max<std::int64_t>(-total, 0));
  const std::int32_t begin = upper ? crop / 2 : crop - crop / 2;
  (axis == 0 ? params.pad_top : params.pad_left) = begin;
  (axis == 0 ? params.pad_bottom : params.pad_right) = crop - begin;
  (axis == 0 ? params.output_pad_h : params.output_pad_w) += extra;
}

/// [C, OC/g, KH, KW] as [OC, KH, KW, C/g].
ValueId transposed_weights(NodeLowering& n, ValueId weights, std::int32_t groups, std::array<std::int32_t, 2> kernel) {
  if (n.failed()) return kNone;
  const TensorDesc w = n.desc(weights);
  const std::int64_t in = w.dims[0] / groups;
  const ValueId grouped = n.reshape(weights, {groups, in, w.dims[1], kernel[0], kernel[1]});
  const ValueId turned = n.transpose(grouped, {0, 2, 3, 4, 1});
  return n.reshape(turned, {std::int64_t{groups} * w.dims[1], kernel[0], kernel[1], in});
}

void lower_conv_transpose(NodeLowering& n) {
  const ValueId x = n.input(0);
  const ValueId weights = n.input(1);
  const TensorDesc image = n.desc(x);
  const auto kernel = kernel_size(n, weights, image.rank);
  const Window window = read_window(n, x, kernel);
  const auto output_padding = read_spatial(n, "output_padding", image.rank, 0);
  const auto output_shape = n.attr_ints("output_shape");
  const AutoPad auto_pad = read_auto_pad(n);
  const ValueId input = to_channels_last(n, x);
  if (n.failed()) return;

  ops::ConvTranspose2dParams params;
  set_window(params, window);
  params.output_pad_h = output_padding[0];
  params.output_pad_w = output_padding[1];
  params.groups = group_count(n, n.desc(weights).dims[0]);
  const int spatial = image.rank - 2;
  const bool same = auto_pad == AutoPad::kSameUpper || auto_pad == AutoPad::kSameLower;
  // output_shape lists the spatial axes; some files list all of them.
  if (!output_shape.empty() && output_shape.size() != static_cast<std::size_t>(spatial) &&
      output_shape.size() != static_cast<std::size_t>(image.rank))
    return n.fail(fmt::format("attribute 'output_shape' has {} entries, expected {}", output_shape.size(), spatial),
                  StatusCode::kInvalidModel);
  for (int i = 0; i < spatial && (same || !output_shape.empty()); ++i) {
    const int axis = 2 - spatial + i;
    const auto a = static_cast<std::size_t>(axis);
    const std::int64_t size = image.dims[2 + i];
    const std::int64_t full = std::int64_t{window.stride[a]} * (size - 1) + output_padding[a] +
                              std::int64_t{window.dilation[a]} * (kernel[a] - 1) + 1;
    const std::int64_t wanted = output_shape.empty()
                                    ? size * window.stride[a]
                                    : output_shape[output_shape.size() - static_cast<std::size_t>(spatial - i)];
    set_output_size(params, axis, full, wanted, auto_pad == AutoPad::kSameUpper);
  }
  const ValueId w = transposed_weights(n, weights, params.groups, kernel);
  const ValueId y = n.emit(ops::kConvTranspose2d, params, {input, w, n.optional(2)});
  n.set_output(0, from_channels_last(n, y, image.rank));
}

/// com.microsoft FusedConv: convolution, then an optional sum, then an activation.
void lower_fused_conv(NodeLowering& n) {
  const ops::Activation activation = read_fused_activation(n);
  const ValueId y = lower_convolution(n, n.input(0), n.input(1), n.optional(2), {});
  const ValueId sum = n.has(3) ? n.binary(ops::BinaryFunction::kAdd, y, n.input(3)) : y;
  n.set_output(0, activation.function == ops::UnaryFunction::kIdentity
                      ? sum
                      : n.unary(activation.function, sum, activation.a, activation.b));
}

constexpr std::int64_t kNewest = OperatorRow::kNewest;
constexpr OperatorRow kRows[] = {
    {"", "Conv", 1, kNewest, lower_conv},
    {"", "ConvTranspose", 1, kNewest, lower_conv_transpose},
    {"com.microsoft", "FusedConv", 1, kNewest, lower_fused_conv},
};

}  // namespace

ops::Activation read_fused_activation(NodeLowering& n) {
  using ops::UnaryFunction;
  const std::string_view name = n.attr_string("activation", "");
  const auto parameters = n.attr_floats("activation_params");
  const auto parameter = [&](std::size_t i, float otherwise) {
    return i < parameters.size() ? parameters[i] : otherwise;
  };
  if (name.empty()) return {};
  if (name == "Relu") return {UnaryFunction::kRelu, 0.0F, 0.0F};
  if (name == "Sigmoid") return {UnaryFunction::kSigmoid, 0.0F, 0.0F};
  if (name == "Tanh") return {UnaryFunction::kTanh, 0.0F, 0.0F};
  if (name == "LeakyRelu") return {UnaryFunction::kLeakyRelu, parameter(0, 0.01F), 0.0F};
  if (name == "Clip") return {UnaryFunction::kClip, parameter(0, 0.0F), parameter(1, 0.0F)};
  if (name == "HardSigmoid") return {UnaryFunction::kHardSigmoid, parameter(0, 0.2F), parameter(1, 0.5F)};
  n.fail(
      fmt::format("attribute 'activation' = '{}' is not supported, only Relu, Sigmoid, Tanh, LeakyRelu, Clip and "
                  "HardSigmoid",
                  printable(name)));
  return {};
}

std::span<const OperatorRow> convolution_operators() { return kRows; }

}  // namespace bantam::import::onnx
