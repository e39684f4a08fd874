// Between ONNX's channels-first images and the channels-last images of the core operators, and the window attributes
// that convolution and pooling share.
//
// The core operators slide windows over two axes. A single spatial axis gets a first one of size 1 here, and operators
// with three or more axes are taken apart along the first of them, which needs the helpers at the end.
#pragma once

#include <vector>

#include "import/onnx/lowering.h"
#include "ops/common/window.h"

namespace bantam::import::onnx {

using ops::WindowAxis;

/// [N,C,...] as [N,...,C], with H = 1 for [N,C,L]. Without spatial axes: a failure.
ValueId to_channels_last(NodeLowering& n, ValueId x);

/// The way back to a tensor of `rank`, 3 or more.
ValueId from_channels_last(NodeLowering& n, ValueId y, int rank);

/// How auto_pad was written.
enum class AutoPad : std::uint8_t { kNotSet, kValid, kSameUpper, kSameLower };
AutoPad read_auto_pad(NodeLowering& n);

/// A list attribute with one entry per spatial axis of a tensor of `rank`; `otherwise` in all of them when absent.
std::vector<std::int32_t> read_spatial(NodeLowering& n, std::string_view name, int rank, std::int32_t otherwise);

/// Reads strides, dilations and pads of a window of `kernel` that slides over x in ONNX's layout, resolving auto_pad.
/// One entry per spatial axis of x in channels-last form: at least two unless the node has failed.
std::vector<WindowAxis> read_window(NodeLowering& n, ValueId x, std::span<const std::int32_t> kernel);

/// Copies two axes of a window into the parameters of a convolution or pooling.
template <typename P>
void set_window(P& params, const WindowAxis& vertical, const WindowAxis& horizontal) {
  params.stride_h = vertical.stride;
  params.stride_w = horizontal.stride;
  params.dilation_h = vertical.dilation;
  params.dilation_w = horizontal.dilation;
  params.pad_top = vertical.pad_before;
  params.pad_left = horizontal.pad_before;
  params.pad_bottom = vertical.pad_after;
  params.pad_right = horizontal.pad_after;
}

/// The number of windows along an axis of `extent` elements; a failure of the node when there is no valid one.
std::int64_t positions(NodeLowering& n, const WindowAxis& axis, std::int64_t extent, bool ceil_mode);

/// [N,D,...] as [N*D,...].
ValueId merge_first_axes(NodeLowering& n, ValueId x);

/// [N*D,...] as [N,D,...].
ValueId split_first_axis(NodeLowering& n, ValueId x, std::int64_t first, std::int64_t second);

}  // namespace bantam::import::onnx
