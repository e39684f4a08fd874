// Between ONNX's channels-first images and the channels-last images of the core operators, and the window attributes
// that convolution and pooling share.
#pragma once

#include <array>

#include "import/onnx/lowering.h"

namespace bantam::import::onnx {

/// [N,C,L] or [N,C,H,W] as [N,H,W,C], with H = 1 for [N,C,L]. Other ranks are a failure.
ValueId to_channels_last(NodeLowering& n, ValueId x);

/// The way back to a tensor of `rank` 3 or 4.
ValueId from_channels_last(NodeLowering& n, ValueId y, int rank);

/// A window sliding over height and width. One-dimensional windows have height 1.
struct Window {
  std::array<std::int32_t, 2> kernel{1, 1};
  std::array<std::int32_t, 2> stride{1, 1};
  std::array<std::int32_t, 2> dilation{1, 1};
  std::array<std::int32_t, 2> pad_begin{};
  std::array<std::int32_t, 2> pad_end{};
};

/// How auto_pad was written.
enum class AutoPad : std::uint8_t { kNotSet, kValid, kSameUpper, kSameLower };
AutoPad read_auto_pad(NodeLowering& n);

/// A list attribute with one entry per spatial axis of a tensor of `rank`, as {height, width}.
std::array<std::int32_t, 2> read_spatial(NodeLowering& n, std::string_view name, int rank, std::int32_t otherwise);

/// Reads strides, dilations and pads of a window of `kernel` that slides over x in ONNX's layout, resolving auto_pad.
Window read_window(NodeLowering& n, ValueId x, std::array<std::int32_t, 2> kernel);

/// Copies a window into the parameters of a convolution or pooling.
template <typename P>
void set_window(P& params, const Window& window) {
  params.stride_h = window.stride[0];
  params.stride_w = window.stride[1];
  params.dilation_h = window.dilation[0];
  params.dilation_w = window.dilation[1];
  params.pad_top = window.pad_begin[0];
  params.pad_left = window.pad_begin[1];
  params.pad_bottom = window.pad_end[0];
  params.pad_right = window.pad_end[1];
}

}  // namespace bantam::import::onnx
