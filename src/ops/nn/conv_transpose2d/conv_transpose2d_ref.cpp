#include "ops/common/operands.h"
#include "ops/nn/conv_transpose2d/geometry.h"
#include "ops/nn/conv_transpose2d/kernels.h"

namespace bantam::ops::conv_transpose2d {
namespace {

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

/// The sum of output channel oc at one output position of batch item n.
float sum_taps(const Invocation& call, const Geometry& g, std::int64_t n, std::int64_t oh, std::int64_t ow,
               std::int64_t oc) {
  const std::int64_t channels = g.group_in();
  const float* w = call.input<float>(1) + oc * g.vertical.kernel * g.horizontal.kernel * channels;
  const float* x =
      call.input<float>(0) + n * g.vertical.in * g.horizontal.in * g.channels_in + oc / g.group_out() * channels;
  float sum = 0;
  for_each_tap(g.vertical, oh, [&](std::int64_t kh, std::int64_t ih) {
    for_each_tap(g.horizontal, ow, [&](std::int64_t kw, std::int64_t iw) {
      const float* from = x + (ih * g.horizontal.in + iw) * g.channels_in;
      const float* weights = w + (kh * g.horizontal.kernel + kw) * channels;
      for (std::int64_t c = 0; c < channels; ++c) sum += from[c] * weights[c];
    });
  });
  return sum;
}

}  // namespace

Status run_reference(const Invocation& call) {
  const auto& p = call.as<ConvTranspose2dParams>();
  const Geometry g = geometry_of(p, call.in(0), call.in(1), call.out());
  const float* bias = call.has(2) ? call.input<float>(2) : nullptr;
  float* y = call.output<float>();
  for (std::int64_t n = 0; n < g.batch; ++n)
    for (std::int64_t oh = 0; oh < g.vertical.out; ++oh)
      for (std::int64_t ow = 0; ow < g.horizontal.out; ++ow)
        for (std::int64_t oc = 0; oc < g.channels_out; ++oc)
          *y++ = apply_activation(sum_taps(call, g, n, oh, ow, oc) + (bias != nullptr ? bias[oc] : 0.0F), p.activation);
  return ok_status();
}

}  // namespace bantam::ops::conv_transpose2d
