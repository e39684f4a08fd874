// Which taps of a transposed convolution reach an output, per axis. Freestanding, values only; shared by the kernels of
// conv_transpose2d and conv_transpose2d_affine.
#pragma once

#include <cstdint>
#include <numeric>

#include "ops/common/linear_form.h"
#include "ops/nn/conv_transpose2d/conv_transpose2d.h"

namespace bantam::ops::conv_transpose2d {

/// Input position i and tap k meet at output stride * i + dilation * k - pad.
struct Axis {
  std::int64_t in = 0;
  std::int64_t out = 0;
  std::int64_t kernel = 1;
  std::int64_t stride = 1;
  std::int64_t dilation = 1;
  std::int64_t pad = 0;
};

/// The outputs o whose o + pad leaves this remainder modulo the stride see the same taps first, first + step, ...
struct Phase {
  std::int64_t first = 0;
  std::int64_t count = 0;
  std::int64_t step = 1;
  std::int64_t back = 0;       ///< output o = stride * q + phase - pad meets tap `first` at input q - back
  std::int64_t back_step = 0;  ///< and each further tap this much before
};

inline Phase phase_of(const Axis& a, std::int64_t phase) noexcept {
  Phase result;
  const std::int64_t common = std::gcd(a.stride, a.dilation);
  result.step = a.stride / common;
  result.back_step = a.dilation / common;
  // The residues of dilation * k repeat after `step` taps.
  for (std::int64_t k = 0; k < result.step && k < a.kernel; ++k) {
    if (k * a.dilation % a.stride != phase) continue;
    result.first = k;
    result.count = (a.kernel - k + result.step - 1) / result.step;
    result.back = (k * a.dilation - phase) / a.stride;
    break;
  }
  return result;
}

/// Input positions before 0 and beyond the end that taps of some output ask for.
struct Border {
  std::int64_t before = 0;
  std::int64_t after = 0;
};

inline Border border_of(const Axis& a) noexcept {
  const std::int64_t lowest = (a.kernel - 1) * a.dilation / a.stride + 1;
  const std::int64_t highest = (a.out - 1 + a.pad) / a.stride;
  return {lowest, highest >= a.in ? highest - a.in + 1 : 0};
}

struct Geometry {
  Axis vertical;
  Axis horizontal;
  std::int64_t batch = 0;
  std::int64_t channels_in = 0;   ///< of all groups
  std::int64_t channels_out = 0;  ///< of all groups
  std::int64_t groups = 1;

  std::int64_t group_in() const noexcept { return channels_in / groups; }
  std::int64_t group_out() const noexcept { return channels_out / groups; }
};

inline Int8Range int8_range(const ConvTranspose2dParams& p) noexcept {
  return {p.input_zero_point, 0, p.output_zero_point, p.minimum, p.maximum};
}

/// Params: of either operator.
template <class Params>
Geometry geometry_of(const Params& p, const TensorDesc& x, const TensorDesc& w, const TensorDesc& y) noexcept {
  return {{x.dims[1], y.dims[1], w.dims[1], p.stride_h, p.dilation_h, p.pad_top},
          {x.dims[2], y.dims[2], w.dims[2], p.stride_w, p.dilation_w, p.pad_left},
          x.dims[0],
          x.dims[3],
          w.dims[0],
          p.groups};
}

/// What the size of a result depends on, per axis, besides the image and the kernel.
struct AxisParams {
  std::int32_t stride, dilation, pad_before, pad_after, output_pad;
};

/// Gives y the shape of the result; x and w have rank 4.
Status infer_image(const AxisParams& vertical, const AxisParams& horizontal, const TensorDesc& x, const TensorDesc& w,
                   ElementType type, TensorDesc* y);

template <class Params>
Status infer_image(const Params& p, const TensorDesc& x, const TensorDesc& w, ElementType type, TensorDesc* y) {
  return infer_image(AxisParams{p.stride_h, p.dilation_h, p.pad_top, p.pad_bottom, p.output_pad_h},
                     AxisParams{p.stride_w, p.dilation_w, p.pad_left, p.pad_right, p.output_pad_w}, x, w, type, y);
}

}  // namespace bantam::ops::conv_transpose2d
