#include "import/onnx/spatial.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace bantam::import::onnx {
namespace {

std::int32_t checked32(NodeLowering& n, std::string_view name, std::int64_t value) {
  if (value < std::numeric_limits<std::int32_t>::min() || value > std::numeric_limits<std::int32_t>::max()) {
    n.fail(fmt::format("attribute '{}' is out of range: {}", name, value), StatusCode::kInvalidModel);
    return 1;
  }
  return static_cast<std::int32_t>(value);
}

/// The padding that makes the output as large as the input divided by the stride, rounded up.
void set_same_padding(WindowAxis& axis, std::int64_t size, bool upper) {
  const std::int64_t stride = std::max(axis.stride, 1);
  const std::int64_t out = (size + stride - 1) / stride;
  const std::int64_t reach = static_cast<std::int64_t>(axis.dilation) * (axis.kernel - std::int64_t{1}) + 1;
  // A total beyond int32 needs a kernel beyond every tensor; the operator refuses it with the clamped value as well.
  const std::int64_t total = std::clamp<std::int64_t>((out - 1) * stride + reach - size, 0, 1 << 30);
  const auto small = static_cast<std::int32_t>(total / 2);
  const auto large = static_cast<std::int32_t>(total - total / 2);
  axis.pad_before = upper ? small : large;
  axis.pad_after = upper ? large : small;
}

}  // namespace

ValueId to_channels_last(NodeLowering& n, ValueId x) {
  const int rank = n.rank(x);
  if (n.failed()) return kNone;
  if (rank < 3) {
    n.fail(fmt::format("an operand of rank {} has no spatial axes, expected [N, C, ...]", rank),
           StatusCode::kInvalidModel);
    return kNone;
  }
  std::vector<int> perm{0};
  for (int i = 2; i < rank; ++i) perm.push_back(i);
  perm.push_back(1);
  const ValueId y = n.transpose(x, perm);
  const TensorDesc d = n.desc(x);
  return rank == 3 ? n.reshape(y, {d.dims[0], 1, d.dims[2], d.dims[1]}) : y;
}

ValueId from_channels_last(NodeLowering& n, ValueId y, int rank) {
  if (n.failed()) return kNone;
  if (rank == 3) {
    const TensorDesc d = n.desc(y);
    y = n.reshape(y, {d.dims[0], d.dims[2], d.dims[3]});
  }
  std::vector<int> perm{0, rank - 1};
  for (int i = 1; i < rank - 1; ++i) perm.push_back(i);
  return n.transpose(y, perm);
}

AutoPad read_auto_pad(NodeLowering& n) {
  const std::string_view text = n.attr_string("auto_pad", "NOTSET");
  if (text == "NOTSET" || text.empty()) return AutoPad::kNotSet;
  if (text == "VALID") return AutoPad::kValid;
  if (text == "SAME_UPPER") return AutoPad::kSameUpper;
  if (text == "SAME_LOWER") return AutoPad::kSameLower;
  n.fail(fmt::format("attribute 'auto_pad' = '{}' is not supported, only NOTSET, VALID, SAME_UPPER and SAME_LOWER",
                     printable(text)));
  return AutoPad::kNotSet;
}

std::vector<std::int32_t> read_spatial(NodeLowering& n, std::string_view name, int rank, std::int32_t otherwise) {
  const auto spatial = static_cast<std::size_t>(std::max(rank - 2, 0));
  std::vector<std::int32_t> result(spatial, otherwise);
  const auto values = n.attr_ints(name);
  if (n.failed() || values.empty()) return result;
  if (values.size() != spatial) {
    n.fail(fmt::format("attribute '{}' has {} entries, expected {}", name, values.size(), spatial),
           StatusCode::kInvalidModel);
    return result;
  }
  for (std::size_t i = 0; i < spatial; ++i) result[i] = checked32(n, name, values[i]);
  return result;
}

std::vector<WindowAxis> read_window(NodeLowering& n, ValueId x, std::span<const std::int32_t> kernel) {
  const int rank = n.rank(x);
  const auto strides = read_spatial(n, "strides", rank, 1);
  const auto dilations = read_spatial(n, "dilations", rank, 1);
  const AutoPad auto_pad = read_auto_pad(n);
  const auto pads = n.attr_ints("pads");
  const std::size_t spatial = strides.size();
  const bool explicit_pads = auto_pad == AutoPad::kNotSet && !pads.empty();
  if (explicit_pads && pads.size() != 2 * spatial)
    n.fail(fmt::format("attribute 'pads' has {} entries, expected {}", pads.size(), 2 * spatial),
           StatusCode::kInvalidModel);
  std::vector<WindowAxis> window;
  if (n.failed()) return window;
  if (spatial == 1) window.emplace_back();
  for (std::size_t i = 0; i < spatial; ++i) {
    WindowAxis axis{kernel[i], strides[i], dilations[i], 0, 0};
    if (auto_pad == AutoPad::kSameUpper || auto_pad == AutoPad::kSameLower)
      set_same_padding(axis, n.desc(x).dims[2 + i], auto_pad == AutoPad::kSameUpper);
    if (explicit_pads) {
      axis.pad_before = checked32(n, "pads", pads[i]);
      axis.pad_after = checked32(n, "pads", pads[i + spatial]);
    }
    window.push_back(axis);
  }
  return window;
}

std::int64_t positions(NodeLowering& n, const WindowAxis& axis, std::int64_t extent, bool ceil_mode) {
  std::int64_t count = 0;
  if (n.failed()) return count;
  if (const Status status = ops::window_positions(axis, extent, ceil_mode, &count); !status.ok())
    n.fail(error_from(status).message, status.code);
  return count;
}

ValueId merge_first_axes(NodeLowering& n, ValueId x) {
  auto dims = n.dims(x);
  if (n.failed()) return kNone;
  dims[1] *= dims[0];
  dims.erase(dims.begin());
  return n.reshape(x, dims);
}

ValueId split_first_axis(NodeLowering& n, ValueId x, std::int64_t first, std::int64_t second) {
  auto dims = n.dims(x);
  if (n.failed()) return kNone;
  dims[0] = second;
  dims.insert(dims.begin(), first);
  return n.reshape(x, dims);
}

}  // namespace bantam::import::onnx
