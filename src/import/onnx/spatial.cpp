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
void set_same_padding(Window& w, int i, std::int64_t size, bool upper) {
  const auto s = static_cast<std::size_t>(i);
  const std::int64_t stride = std::max(w.stride[s], 1);
  const std::int64_t out = (size + stride - 1) / stride;
  const std::int64_t reach = static_cast<std::int64_t>(w.dilation[s]) * (w.kernel[s] - std::int64_t{1}) + 1;
  // A total beyond int32 needs a kernel beyond every tensor; the operator refuses it with the clamped value as well.
  const std::int64_t total = std::clamp<std::int64_t>((out - 1) * stride + reach - size, 0, 1 << 30);
  const auto small = static_cast<std::int32_t>(total / 2);
  const auto large = static_cast<std::int32_t>(total - total / 2);
  w.pad_begin[s] = upper ? small : large;
  w.pad_end[s] = upper ? large : small;
}

}  // namespace

ValueId to_channels_last(NodeLowering& n, ValueId x) {
  const int rank = n.rank(x);
  if (n.failed()) return kNone;
  if (rank == 4) return n.transpose(x, {0, 2, 3, 1});
  if (rank != 3) {
    n.fail(fmt::format("an operand of rank {} is not supported, only 3 (one spatial axis) and 4 (two)", rank));
    return kNone;
  }
  const TensorDesc d = n.desc(x);
  return n.reshape(n.transpose(x, {0, 2, 1}), {d.dims[0], 1, d.dims[2], d.dims[1]});
}

ValueId from_channels_last(NodeLowering& n, ValueId y, int rank) {
  if (n.failed()) return kNone;
  if (rank == 4) return n.transpose(y, {0, 3, 1, 2});
  const TensorDesc d = n.desc(y);
  return n.transpose(n.reshape(y, {d.dims[0], d.dims[2], d.dims[3]}), {0, 2, 1});
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

std::array<std::int32_t, 2> read_spatial(NodeLowering& n, std::string_view name, int rank, std::int32_t otherwise) {
  std::array<std::int32_t, 2> result{otherwise, otherwise};
  const auto values = n.attr_ints(name);
  if (rank == 3) result[0] = name == "output_padding" ? 0 : 1;
  if (n.failed() || values.empty()) return result;
  const auto spatial = static_cast<std::size_t>(std::max(rank - 2, 0));
  if (values.size() != spatial) {
    n.fail(fmt::format("attribute '{}' has {} entries, expected {}", name, values.size(), spatial),
           StatusCode::kInvalidModel);
    return result;
  }
  for (std::size_t i = 0; i < spatial && i < 2; ++i)
    result[i + 2 - std::min<std::size_t>(spatial, 2)] = checked32(n, name, values[i]);
  return result;
}

Window read_window(NodeLowering& n, ValueId x, std::array<std::int32_t, 2> kernel) {
  Window w;
  const int rank = n.rank(x);
  w.kernel = kernel;
  w.stride = read_spatial(n, "strides", rank, 1);
  w.dilation = read_spatial(n, "dilations", rank, 1);
  const AutoPad auto_pad = read_auto_pad(n);
  const auto pads = n.attr_ints("pads");
  if (n.failed() || rank < 3 || rank > 4) return w;  // the caller reports the rank
  const int spatial = rank - 2;
  for (int i = 0; i < spatial; ++i) {
    const int axis = 2 - spatial + i;  // within {height, width}
    if (auto_pad == AutoPad::kSameUpper || auto_pad == AutoPad::kSameLower) {
      set_same_padding(w, axis, n.desc(x).dims[2 + i], auto_pad == AutoPad::kSameUpper);
    } else if (auto_pad == AutoPad::kNotSet && !pads.empty()) {
      if (pads.size() != 2 * static_cast<std::size_t>(spatial)) {
        n.fail(fmt::format("attribute 'pads' has {} entries, expected {}", pads.size(), 2 * spatial),
               StatusCode::kInvalidModel);
        return w;
      }
      w.pad_begin[static_cast<std::size_t>(axis)] = checked32(n, "pads", pads[static_cast<std::size_t>(i)]);
      w.pad_end[static_cast<std::size_t>(axis)] =
          checked32(n, "pads", pads[static_cast<std::size_t>(i) + static_cast<std::size_t>(spatial)]);
    }
  }
  return w;
}

}  // namespace bantam::import::onnx
