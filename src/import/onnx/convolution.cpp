// ONNX convolutions: Conv, ConvTranspose, Col2Im and the fused form of com.microsoft.
#include "import/onnx/convolution.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/shape.h"
#include "import/onnx/spatial.h"
#include "ops/nn/col2im/col2im.h"
#include "ops/nn/conv2d/conv2d.h"
#include "ops/nn/conv2d_affine/conv2d_affine.h"
#include "ops/nn/conv_transpose2d/conv_transpose2d.h"
#include "ops/nn/depthwise_conv2d/depthwise_conv2d.h"

namespace bantam::import::onnx {
namespace {

/// More taps are not taken apart one by one.
constexpr std::int32_t kMaxTaps = 1024;

/// Refuses windows whose axes but the last two have too many elements together.
void check_taps(NodeLowering& n, std::span<const std::int32_t> kernel) {
  std::int64_t taps = 1;
  for (std::size_t i = 0; i + 2 < kernel.size() && taps <= kMaxTaps; ++i) taps *= kernel[i];
  if (taps > kMaxTaps)
    n.fail(fmt::format("a window of more than {} elements along its axes but the last two is not supported", kMaxTaps));
}

/// Kernel size per spatial axis from the shape of the weights, checked against kernel_shape.
std::vector<std::int32_t> kernel_size(NodeLowering& n, ValueId weights, int rank) {
  const TensorDesc& w = n.desc(weights);
  std::vector<std::int32_t> size(static_cast<std::size_t>(std::max(rank - 2, 0)), 1);
  if (n.failed()) return size;
  if (w.rank != rank) {
    n.fail(fmt::format("the weights have rank {}, the image has rank {}", w.rank, rank), StatusCode::kInvalidModel);
    return size;
  }
  for (std::size_t i = 0; i < size.size(); ++i) size[i] = w.dims[i + 2];
  check_taps(n, size);
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

/// Tap `k` of the first spatial axis of weights [OC,K,...,C/g] as weights [OC,...,C/g].
ValueId tap_weights(NodeLowering& n, ValueId weights, std::int32_t k) {
  auto dims = n.dims(weights);
  if (n.failed()) return kNone;
  dims.erase(dims.begin() + 1);
  return n.reshape(n.slice(weights, 1, k, 1), dims);
}

/// A convolution of x [N,...,C] with weights [OC,...,C/g].
struct Convolution {
  ValueId weights = kNone;
  ValueId bias = kNone;
  std::int32_t groups = 1;
  bool depthwise = false;
};

ValueId convolve(NodeLowering& n, ValueId x, const Convolution& c, std::span<const WindowAxis> window);

ValueId convolve_planes(NodeLowering& n, ValueId x, const Convolution& c, std::span<const WindowAxis> window) {
  ops::Conv2dParams params;
  set_window(params, window[0], window[1]);
  if (!c.depthwise) {
    params.groups = c.groups;
    return n.emit(ops::kConv2d, params, {x, c.weights, c.bias});
  }
  if (n.failed()) return kNone;
  const TensorDesc w = n.desc(c.weights);
  const ValueId flat = n.reshape(c.weights, {w.dims[0], w.dims[1], w.dims[2]});
  return n.emit(ops::kDepthwiseConv2d, params, {x, n.transpose(flat, {1, 2, 0}), c.bias});
}

bool is_single_tap(const WindowAxis& a) {
  return a.kernel == 1 && a.stride == 1 && a.pad_before == 0 && a.pad_after == 0;
}

/// Windows that see one element along the last two axes, which are one for them.
ValueId convolve_merged_axes(NodeLowering& n, ValueId x, const Convolution& c, std::span<const WindowAxis> window) {
  const auto merged = [&](ValueId value, std::size_t last) {
    auto dims = n.dims(value);
    if (n.failed()) return kNone;
    dims[last - 1] *= dims[last];
    dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(last));
    return n.reshape(value, dims);
  };
  const std::size_t last = window.size();
  Convolution rest = c;
  rest.weights = merged(c.weights, last);
  const ValueId y = convolve(n, merged(x, last), rest, window.first(last - 1));
  const auto image = n.dims(x);
  auto dims = n.dims(y);
  if (n.failed()) return kNone;
  dims[last - 1] = image[last - 1];
  dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(last), image[last]);
  return n.reshape(y, dims);
}

/// More than two axes: the sum over the taps of the first axis of convolutions along the others, in which the positions
/// along the first axis join the batch.
ValueId convolve(NodeLowering& n, ValueId x, const Convolution& c, std::span<const WindowAxis> window) {
  if (n.failed() || window.size() == 2) return n.failed() ? kNone : convolve_planes(n, x, c, window);
  if (is_single_tap(window[window.size() - 2]) && is_single_tap(window.back()))
    return convolve_merged_axes(n, x, c, window);
  const WindowAxis& axis = window.front();
  const std::int64_t batch = n.desc(x).dims[0];
  const std::int64_t count = positions(n, axis, n.desc(x).dims[1], false);
  if (n.failed()) return kNone;
  const ValueId padded = n.pad(x, 1, axis.pad_before, axis.pad_after);
  ValueId sum = kNone;
  for (std::int32_t k = 0; k < axis.kernel && !n.failed(); ++k) {
    const ValueId under_tap = n.slice(padded, 1, std::int64_t{k} * axis.dilation, count, axis.stride);
    const Convolution rest{tap_weights(n, c.weights, k), k == 0 ? c.bias : kNone, c.groups, c.depthwise};
    const ValueId part = convolve(n, merge_first_axes(n, under_tap), rest, window.subspan(1));
    sum = k == 0 ? part : n.binary(ops::BinaryFunction::kAdd, sum, part);
  }
  return split_first_axis(n, sum, batch, count);
}

/// One filter of one channel is a convolution of either kind. The kernel of depthwise ones takes neighbouring windows
/// in whole vectors, as long as these are close to each other and the rows that they see are few and short.
bool slides_in_vectors(std::span<const WindowAxis> window) {
  constexpr std::int32_t kMostRows = 8;
  constexpr std::int64_t kMostColumns = 256;
  constexpr std::int32_t kMostStride = 2;
  if (window.size() != 2) return false;
  const WindowAxis& across = window.back();
  return window.front().kernel <= kMostRows && across.stride <= kMostStride &&
         (across.kernel - std::int64_t{1}) * across.dilation < kMostColumns;
}

/// Moves axis 1 of weights [OC,C/g,...] to the end; one-dimensional weights get a first axis of size 1.
ValueId weights_channels_last(NodeLowering& n, ValueId weights) {
  if (n.failed()) return kNone;
  const TensorDesc w = n.desc(weights);
  if (w.rank == 3) return weights_channels_last(n, n.reshape(weights, {w.dims[0], w.dims[1], 1, w.dims[2]}));
  std::vector<int> perm{0};
  for (int i = 2; i < w.rank; ++i) perm.push_back(i);
  perm.push_back(1);
  return n.transpose(weights, perm);
}

}  // namespace

ValueId lower_convolution(NodeLowering& n, ValueId x, ValueId weights, ValueId bias, ops::Activation activation) {
  const TensorDesc image = n.desc(x);
  const TensorDesc w = n.desc(weights);
  const auto kernel = kernel_size(n, weights, image.rank);
  const auto window = read_window(n, x, kernel);
  const ValueId input = to_channels_last(n, x);
  if (n.failed()) return kNone;
  const std::int32_t channels = image.dims[1];
  Convolution convolution;
  convolution.groups = group_count(n, channels);
  if (n.failed()) return kNone;
  convolution.depthwise = convolution.groups == channels && w.dims[1] == 1 && w.dims[0] % channels == 0 &&
                          (channels > 1 || (w.dims[0] == 1 && slides_in_vectors(window)));
  convolution.weights = weights_channels_last(n, weights);
  convolution.bias = bias;
  const ValueId y = from_channels_last(n, convolve(n, input, convolution, window), image.rank);
  return activation.function == ops::UnaryFunction::kIdentity
             ? y
             : n.unary(activation.function, y, activation.a, activation.b);
}

ValueId lower_affine_convolution(NodeLowering& n, ValueId x, ValueId weights, const AffineProduct& product) {
  const TensorDesc image = n.desc(x);
  const auto kernel = kernel_size(n, weights, image.rank);
  const auto window = read_window(n, x, kernel);
  const ValueId input = to_channels_last(n, x);
  if (n.failed()) return kNone;
  if (window.size() > 2) {
    n.fail(fmt::format("a quantised operand of rank {} is not supported, at most 4 (two spatial axes)", image.rank));
    return kNone;
  }
  ops::Conv2dAffineParams params;
  set_window(params, window[0], window[1]);
  params.groups = group_count(n, image.dims[1]);
  params.form = product.full_form();
  const ValueId y = n.emit(
      ops::kConv2dAffine, params,
      {input, weights_channels_last(n, weights), product.bias, product.scale, product.x_zero.id, product.w_zero.id});
  return from_channels_last(n, y, image.rank);
}

namespace {

void lower_conv(NodeLowering& n) { n.set_output(0, lower_convolution(n, n.input(0), n.input(1), n.optional(2), {})); }

/// One axis of a transposed convolution. Padding crops the result; `extra` is added at its end.
struct TransposedAxis {
  WindowAxis window;
  std::int32_t extra = 0;

  /// The size of the result for an operand of `in` elements, before padding crops it.
  std::int64_t full(std::int64_t in) const {
    return std::int64_t{window.stride} * (in - 1) + std::int64_t{window.dilation} * (window.kernel - 1) + 1 + extra;
  }
};

/// Chooses padding so that the result has the size that output_shape or auto_pad asks for.
void set_output_size(TransposedAxis& axis, std::int64_t full, std::int64_t wanted, bool upper) {
  // Larger than everything the input reaches: the rest is added at the end and holds the bias only.
  const std::int64_t total = std::clamp<std::int64_t>(full - wanted, -(1 << 30), 1 << 30);
  const auto crop = static_cast<std::int32_t>(std::max<std::int64_t>(total, 0));
  const auto extra = static_cast<std::int32_t>(std::max<std::int64_t>(-total, 0));
  axis.window.pad_before = upper ? crop / 2 : crop - crop / 2;
  axis.window.pad_after = crop - axis.window.pad_before;
  axis.extra += extra;
}

/// [C, OC/g, ...] as [OC, ..., C/g].
ValueId transposed_weights(NodeLowering& n, ValueId weights, std::int32_t groups) {
  auto dims = n.dims(weights);
  if (n.failed()) return kNone;
  if (dims.size() == 3) dims.insert(dims.begin() + 2, 1);
  const std::int64_t in = dims[0] / groups;
  std::int64_t taps = 1;
  for (std::size_t i = 2; i < dims.size(); ++i) taps *= dims[i];
  const ValueId turned = n.transpose(n.reshape(weights, {groups, in, dims[1], taps}), {0, 2, 3, 1});
  dims[0] = groups * dims[1];
  dims.erase(dims.begin() + 1);
  dims.push_back(in);
  return n.reshape(turned, dims);
}

ValueId transpose_planes(NodeLowering& n, ValueId x, ValueId weights, ValueId bias, std::int32_t groups,
                         std::span<const TransposedAxis> axes) {
  ops::ConvTranspose2dParams params;
  set_window(params, axes[0].window, axes[1].window);
  params.output_pad_h = axes[0].extra;
  params.output_pad_w = axes[1].extra;
  params.groups = groups;
  return n.emit(ops::kConvTranspose2d, params, {x, weights, bias});
}

/// More than two axes: the sum over the taps of the first axis of transposed convolutions along the others, each spread
/// along the first axis by the stride and moved by its tap.
ValueId convolve_transposed(NodeLowering& n, ValueId x, ValueId weights, ValueId bias, std::int32_t groups,
                            std::span<const TransposedAxis> axes) {
  if (n.failed() || axes.size() == 2) return n.failed() ? kNone : transpose_planes(n, x, weights, bias, groups, axes);
  const auto& [axis, extra] = axes.front();
  const std::int64_t batch = n.desc(x).dims[0];
  const std::int64_t in = n.desc(x).dims[1];
  const std::int64_t out = axes.front().full(in) - axis.pad_before - axis.pad_after;
  if (axis.stride < 1 || axis.dilation < 1 || out < 0 || in == 0)
    n.fail(fmt::format("stride {}, dilation {} and padding of {} and {} leave nothing of {} elements", axis.stride,
                       axis.dilation, axis.pad_before, axis.pad_after, in),
           StatusCode::kInvalidModel);
  if (n.failed()) return kNone;
  const ValueId merged = merge_first_axes(n, x);
  ValueId sum = kNone;
  for (std::int32_t k = 0; k < axis.kernel && !n.failed(); ++k) {
    const ValueId part = convolve_transposed(n, merged, tap_weights(n, weights, k), kNone, groups, axes.subspan(1));
    auto dims = n.dims(part);
    if (n.failed()) return kNone;
    // [N*D, ...] as [N, D, 1, ...], zeros behind every element, then [N, D*stride, ...] moved to its place.
    dims[0] = in;
    dims.insert(dims.begin(), batch);
    auto spread = dims;
    spread.insert(spread.begin() + 2, 1);
    dims[1] *= axis.stride;
    const ValueId stretched = n.reshape(n.pad(n.reshape(part, spread), 2, 0, axis.stride - 1), dims);
    const std::int64_t before = std::int64_t{k} * axis.dilation - axis.pad_before;
    const ValueId placed = n.pad(stretched, 1, before, out - before - dims[1]);
    sum = k == 0 ? placed : n.binary(ops::BinaryFunction::kAdd, sum, placed);
  }
  return bias == kNone ? sum : n.binary(ops::BinaryFunction::kAdd, sum, bias);
}

void lower_conv_transpose(NodeLowering& n) {
  const ValueId x = n.input(0);
  const ValueId weights = n.input(1);
  const TensorDesc image = n.desc(x);
  const auto kernel = kernel_size(n, weights, image.rank);
  const auto window = read_window(n, x, kernel);
  const auto output_padding = read_spatial(n, "output_padding", image.rank, 0);
  const auto output_shape = n.attr_ints("output_shape");
  const AutoPad auto_pad = read_auto_pad(n);
  const ValueId input = to_channels_last(n, x);
  if (n.failed()) return;

  const std::int32_t groups = group_count(n, n.desc(weights).dims[0]);
  const std::size_t spatial = kernel.size();
  const bool same = auto_pad == AutoPad::kSameUpper || auto_pad == AutoPad::kSameLower;
  // output_shape lists the spatial axes; some files list all of them.
  if (!output_shape.empty() && output_shape.size() != spatial && output_shape.size() != spatial + 2)
    return n.fail(fmt::format("attribute 'output_shape' has {} entries, expected {}", output_shape.size(), spatial),
                  StatusCode::kInvalidModel);
  std::vector<TransposedAxis> axes;
  for (const WindowAxis& axis : window) axes.push_back({axis, 0});
  for (std::size_t i = 0; i < spatial; ++i) {
    TransposedAxis& axis = axes[axes.size() - spatial + i];
    axis.extra = output_padding[i];
    if (!same && output_shape.empty()) continue;
    const std::int64_t size = image.dims[2 + i];
    const std::int64_t wanted =
        output_shape.empty() ? size * axis.window.stride : output_shape[output_shape.size() - spatial + i];
    set_output_size(axis, axis.full(size), wanted, auto_pad == AutoPad::kSameUpper);
  }
  const ValueId w = transposed_weights(n, weights, groups);
  const ValueId y = convolve_transposed(n, input, w, n.optional(2), groups, axes);
  n.set_output(0, from_channels_last(n, y, image.rank));
}

/// Lists of one entry per image axis, `otherwise` when absent.
void read_list(NodeLowering& n, std::string_view name, std::size_t axes, std::int64_t otherwise,
               std::span<const std::int64_t> given, ops::IntList& list) {
  if (n.failed()) return;
  if (!given.empty() && given.size() != axes)
    return n.fail(fmt::format("'{}' has {} entries, expected {}", name, given.size(), axes), StatusCode::kInvalidModel);
  for (std::size_t i = 0; i < axes; ++i) {
    const std::int64_t value = given.empty() ? otherwise : given[i];
    if (value < 0 || value > kMaxElements)
      return n.fail(fmt::format("'{}' is out of range: {}", name, value), StatusCode::kInvalidModel);
    list.v[list.size++] = static_cast<std::int32_t>(value);
  }
}

void lower_col2im(NodeLowering& n) {
  const auto image = n.integers(1, "image_shape");
  const auto block = n.integers(2, "block_shape");
  const auto pads = n.attr_ints("pads");
  const std::size_t axes = image.size();
  if (!n.failed() && (axes < 1 || axes > kMaxRank - 2 || (!pads.empty() && pads.size() != 2 * axes)))
    n.fail(fmt::format("an image of {} axes with {} pads is not valid", axes, pads.size()), StatusCode::kInvalidModel);
  if (n.failed()) return;
  ops::Col2ImParams params;
  read_list(n, "image_shape", axes, 0, image, params.image);
  read_list(n, "block_shape", axes, 0, block, params.block);
  read_list(n, "strides", axes, 1, n.attr_ints("strides"), params.strides);
  read_list(n, "dilations", axes, 1, n.attr_ints("dilations"), params.dilations);
  read_list(n, "pads", axes, 0, std::span(pads).first(pads.size() / 2), params.before);
  read_list(n, "pads", axes, 0, std::span(pads).last(pads.size() / 2), params.after);
  n.set_output(0, n.emit(ops::kCol2im, params, {n.input(0)}));
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

constexpr OperatorRow kConvolutionOperators[] = {
    {"", "Col2Im", 18, kNewest, lower_col2im},
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

std::span<const OperatorRow> convolution_operators() { return kConvolutionOperators; }

}  // namespace bantam::import::onnx
