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

/// `sum` extended by the products of output channel oc at one output position of batch item n.
template <typename Sum, typename X, typename W, typename Add>
Sum sum_taps(const Invocation& call, const Geometry& g, std::int64_t n, std::int64_t oh, std::int64_t ow,
             std::int64_t oc, Sum sum, Add add) {
  const std::int64_t channels = g.group_in();
  const W* w = call.input<W>(1) + oc * g.vertical.kernel * g.horizontal.kernel * channels;
  const X* x = call.input<X>(0) + n * g.vertical.in * g.horizontal.in * g.channels_in + oc / g.group_out() * channels;
  for_each_tap(g.vertical, oh, [&](std::int64_t kh, std::int64_t ih) {
    for_each_tap(g.horizontal, ow, [&](std::int64_t kw, std::int64_t iw) {
      const X* from = x + (ih * g.horizontal.in + iw) * g.channels_in;
      const W* weights = w + (kh * g.horizontal.kernel + kw) * channels;
      for (std::int64_t c = 0; c < channels; ++c) sum = add(sum, from[c], weights[c]);
    });
  });
  return sum;
}

/// Computes every output: `finish(sum, channel)` makes an accumulator an output.
template <typename X, typename W, typename Sum, typename Add, typename Finish>
void convolve(const Invocation& call, const Geometry& g, Sum zero, Add add, Finish finish) {
  X* y = call.output<X>();
  for (std::int64_t n = 0; n < g.batch; ++n)
    for (std::int64_t oh = 0; oh < g.vertical.out; ++oh)
      for (std::int64_t ow = 0; ow < g.horizontal.out; ++ow)
        for (std::int64_t oc = 0; oc < g.channels_out; ++oc)
          *y++ = finish(sum_taps<Sum, X, W>(call, g, n, oh, ow, oc, zero, add), static_cast<std::int32_t>(oc));
}

}  // namespace

Status run_reference(const Invocation& call) {
  const auto& p = call.as<ConvTranspose2dParams>();
  const Geometry g = geometry_of(p, call.in(0), call.in(1), call.out());
  switch (linear_form(call.in(0), call.in(1))) {
    case LinearForm::kInt8:
      convolve<std::int8_t, std::int8_t>(
          call, g, std::uint32_t{0},
          [zero_point = p.input_zero_point](std::uint32_t sum, std::int8_t x, std::int8_t w) {
            return sum + static_cast<std::uint32_t>((x - zero_point) * w);
          },
          make_requantizer(call, int8_range(p)));
      break;
    case LinearForm::kInt16:
      convolve<std::int16_t, std::int8_t>(
          call, g, std::uint64_t{0},
          [](std::uint64_t sum, std::int16_t x, std::int8_t w) {
            return sum + static_cast<std::uint64_t>(std::int64_t{x * w});
          },
          make_requantizer16(call, int8_range(p)));
      break;
    default: {
      const auto* bias = optional_input<float>(call, 2);
      convolve<float, float>(
          call, g, 0.0F, [](float sum, float x, float w) { return sum + x * w; },
          [&](float sum, std::int32_t oc) {
            return apply_activation(bias != nullptr ? sum + bias[oc] : sum, p.activation);
          });
    }
  }
  return ok_status();
}

}  // namespace bantam::ops::conv_transpose2d
