// What the reference kernels of conv_transpose2d and conv_transpose2d_affine share. Freestanding.
#pragma once

#include <cstdint>

#include "ops/nn/conv_transpose2d/geometry.h"

namespace bantam::ops::conv_transpose2d {

/// Calls f(tap, input position) for the taps that meet output `o` inside the operand.
template <typename F>
void for_each_tap(const Axis& a, std::int64_t o, F&& f) {
  const std::int64_t at = o + a.pad;
  const Phase phase = phase_of(a, at % a.stride);
  for (std::int64_t j = 0; j < phase.count; ++j) {
    const std::int64_t i = at / a.stride - phase.back - j * phase.back_step;
    if (i < 0) return;
    if (i < a.in) f(phase.first + j * phase.step, i);
  }
}

/// Calls f(element of x, element of w) for the products that output channel oc at one output position of batch item n
/// sums up. Dense operands.
template <typename F>
void for_each_product(const Geometry& g, std::int64_t n, std::int64_t oh, std::int64_t ow, std::int64_t oc, F&& f) {
  const std::int64_t channels = g.group_in();
  const std::int64_t x = n * g.vertical.in * g.horizontal.in * g.channels_in + oc / g.group_out() * channels;
  const std::int64_t w = oc * g.vertical.kernel * g.horizontal.kernel * channels;
  for_each_tap(g.vertical, oh, [&](std::int64_t kh, std::int64_t ih) {
    for_each_tap(g.horizontal, ow, [&](std::int64_t kw, std::int64_t iw) {
      const std::int64_t from = x + (ih * g.horizontal.in + iw) * g.channels_in;
      const std::int64_t weights = w + (kh * g.horizontal.kernel + kw) * channels;
      for (std::int64_t c = 0; c < channels; ++c) f(from + c, weights + c);
    });
  });
}

/// Calls f(n, oh, ow, oc) for every output, in the order of a dense result.
template <typename F>
void for_each_output(const Geometry& g, F&& f) {
  for (std::int64_t n = 0; n < g.batch; ++n)
    for (std::int64_t oh = 0; oh < g.vertical.out; ++oh)
      for (std::int64_t ow = 0; ow < g.horizontal.out; ++ow)
        for (std::int64_t oc = 0; oc < g.channels_out; ++oc) f(n, oh, ow, oc);
}

}  // namespace bantam::ops::conv_transpose2d
