#include "ops/common/operands.h"
#include "ops/nn/conv_transpose2d/geometry.h"
#include "ops/nn/conv_transpose2d/kernels.h"
#include "ops/nn/conv_transpose2d/reference.h"

namespace bantam::ops::conv_transpose2d {
namespace {

/// Computes every output: `finish(sum, channel)` makes an accumulator an output.
template <typename X, typename W, typename Sum, typename Add, typename Finish>
void convolve(const Invocation& call, const Geometry& g, Sum zero, Add add, Finish finish) {
  const X* x = call.input<X>(0);
  const W* w = call.input<W>(1);
  X* y = call.output<X>();
  for_each_output(g, [&](std::int64_t n, std::int64_t oh, std::int64_t ow, std::int64_t oc) {
    Sum sum = zero;
    for_each_product(g, n, oh, ow, oc, [&](std::int64_t xi, std::int64_t wi) { sum = add(sum, x[xi], w[wi]); });
    *y++ = finish(sum, static_cast<std::int32_t>(oc));
  });
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
