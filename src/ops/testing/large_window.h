// Random depthwise windows that are long, or large, for the tests of depthwise_conv2d and conv2d_affine.
#pragma once

#include <algorithm>
#include <cstdint>

#include "ops/testing/harness.h"

namespace bantam::ops::testing {

/// A window and an image that it fits.
struct LargeWindow {
  std::int64_t kernel_h, kernel_w;
  std::int32_t stride_h, stride_w;
  std::int32_t dilation_h, dilation_w;
  std::int32_t pad;  ///< on all sides
  std::int64_t h, w;
  std::int64_t channels;
};

/// Rows or columns of up to 80 taps, or squares of 9 to 13. Some are dilated, and some lie beside the image.
inline LargeWindow random_large_window(Random& random) {
  const auto some = [&](std::int64_t low, std::int64_t high) {
    return static_cast<std::int32_t>(random_int(random, low, high));
  };
  LargeWindow window{};
  const std::int32_t shape = some(0, 3);
  window.kernel_h = shape == 0 ? some(9, 13) : shape == 1 ? some(9, 40) : some(1, 2) == 1 ? 1 : some(1, 4);
  window.kernel_w = shape == 0 ? some(9, 13) : shape == 1 ? some(1, 3) : some(2, 80);
  window.stride_h = some(0, 3) == 0 ? 2 : 1;
  window.stride_w = some(0, 2) == 0 ? some(2, 5) : 1;
  window.dilation_h = some(0, 4) == 0 ? 2 : 1;
  window.dilation_w = some(0, 2) == 0 ? some(2, window.kernel_w > 16 ? 3 : 20) : 1;
  window.pad = some(0, 2) == 0 ? 0 : some(0, 4) == 0 ? 20 : some(0, 7);
  window.h = std::max<std::int64_t>((window.kernel_h - 1) * window.dilation_h + some(1, 2) - 2 * window.pad, 1);
  window.w = std::max<std::int64_t>((window.kernel_w - 1) * window.dilation_w + some(1, 60) - 2 * window.pad, 1);
  window.channels = some(0, 2) == 0 ? some(12, 90) : 16 * some(1, 5);
  return window;
}

}  // namespace bantam::ops::testing
