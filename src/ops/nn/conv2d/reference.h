// The plain definition that conv2d and depthwise_conv2d share: one output at a time, over the taps inside the image.
//
// `Taps` is what distinguishes the two: where a tap's weights lie and which input channels an output channel reads.
//   static constexpr int kHeightDim: dimension of the weights that is the kernel's height; its width follows
//   Taps(const ConvGeometry&, const TensorDesc& weights)
//   add_tap(sum, pixel, weights, ky, kx, channel, add): `sum` extended by one tap of one output channel, where `pixel`
//   points at channel 0 of the input pixel under the tap and add(sum, x, w) extends an accumulator by one product
// Freestanding; used by the two reference kernels only.
#pragma once

#include "ops/nn/conv2d/geometry.h"
#include "ops/nn/conv2d/overlap.h"

namespace bantam::ops::conv2d {

/// Convolves batch item `item`. `finish(sum, channel)` makes an accumulator an output.
template <typename Taps, typename X, typename W, typename Y, typename Accumulator, typename Add, typename Finish>
void convolve(const ConvGeometry& g, const TensorDesc& w_desc, std::int32_t item, const X* x, const W* w, Y* y,
              Accumulator zero, Add add, Finish finish) {
  const Taps taps(g, w_desc);
  for (std::int32_t oy = 0; oy < g.y.h; ++oy) {
    const std::int64_t y0 = window_origin(g.vertical, oy);
    const TapRange rows = taps_inside(g.vertical, y0, 0, g.x.h);
    for (std::int32_t ox = 0; ox < g.y.w; ++ox) {
      const std::int64_t x0 = window_origin(g.horizontal, ox);
      const TapRange columns = taps_inside(g.horizontal, x0, 0, g.x.w);
      Y* out = y + g.y.offset(item, oy, ox);
      for (std::int32_t oc = 0; oc < g.y.c; ++oc) {
        Accumulator sum = zero;
        for (std::int32_t ky = rows.first; ky < rows.last; ++ky)
          for (std::int32_t kx = columns.first; kx < columns.last; ++kx) {
            const X* pixel = x + g.x.offset(item, y0 + static_cast<std::int64_t>(ky) * g.vertical.dilation,
                                            x0 + static_cast<std::int64_t>(kx) * g.horizontal.dilation);
            sum = taps.add_tap(sum, pixel, w, ky, kx, oc, add);
          }
        out[oc] = finish(sum, oc);
      }
    }
  }
}

template <typename Taps>
void run_float_reference(const Invocation& call, const ConvGeometry& g) {
  const auto* bias = optional_input<float>(call, 2);
  const Activation& activation = call.as<Conv2dParams>().activation;
  for (std::int32_t item = 0; item < g.y.n; ++item)
    convolve<Taps>(
        g, call.in(1), item, call.input<float>(0), call.input<float>(1), call.output<float>(), 0.0F,
        [](float sum, float x, float w) { return sum + x * w; },
        [&](float sum, std::int32_t oc) {
          return apply_activation(bias != nullptr ? sum + bias[oc] : sum, activation);
        });
}

template <typename Taps>
void run_int8_reference(const Invocation& call, const ConvGeometry& g) {
  const Requantizer requantize = make_requantizer(call, int8_range(call.as<Conv2dParams>()));
  const std::int32_t zero_point = call.as<Conv2dParams>().input_zero_point;
  for (std::int32_t item = 0; item < g.y.n; ++item)
    convolve<Taps>(
        g, call.in(1), item, call.input<std::int8_t>(0), call.input<std::int8_t>(1), call.output<std::int8_t>(),
        std::uint32_t{0},
        [zero_point](std::uint32_t sum, std::int8_t x, std::int8_t w) {
          return sum + static_cast<std::uint32_t>((x - zero_point) * w);
        },
        requantize);
}

template <typename Taps>
void run_int16_reference(const Invocation& call, const ConvGeometry& g) {
  const Requantizer16 requantize = make_requantizer16(call, int8_range(call.as<Conv2dParams>()));
  for (std::int32_t item = 0; item < g.y.n; ++item)
    convolve<Taps>(
        g, call.in(1), item, call.input<std::int16_t>(0), call.input<std::int8_t>(1), call.output<std::int16_t>(),
        std::uint64_t{0},
        [](std::uint64_t sum, std::int16_t x, std::int8_t w) {
          return sum + static_cast<std::uint64_t>(std::int64_t{x * w});
        },
        requantize);
}

template <typename Taps>
void run_hybrid_reference(const Invocation& call, const ConvGeometry& g) {
  const HybridScaler scaler = make_hybrid_scaler(call);
  const Activation& activation = call.as<Conv2dParams>().activation;
  auto* q = reinterpret_cast<std::int8_t*>(call.scratch);
  const ConvGeometry dense = with_dense_item(g);
  for (std::int32_t item = 0; item < g.y.n; ++item) {
    const float scale = quantize_image(g.x, call.input<float>(0), item, q);
    convolve<Taps>(
        dense, call.in(1), item, q, call.input<std::int8_t>(1), call.output<float>(), std::uint32_t{0},
        [](std::uint32_t sum, std::int8_t x, std::int8_t w) { return sum + static_cast<std::uint32_t>(x * w); },
        [&](std::uint32_t sum, std::int32_t oc) { return apply_activation(scaler(sum, scale, oc), activation); });
  }
}

template <typename Taps>
ConvGeometry reference_geometry(const OpCall& call) {
  return conv_geometry(call.as<Conv2dParams>(), call.in(0), call.out(), call.in(1).dims[Taps::kHeightDim],
                       call.in(1).dims[Taps::kHeightDim + 1]);
}

template <typename Taps>
Footprint convolution_reference_footprint(const OpCall& call, int threads) {
  Footprint result;
  if (linear_form(call.in(0), call.in(1)) == LinearForm::kHybrid) {
    result.scratch_bytes = quantized_image_bytes(ImageShape(call.in(0)));
  } else {
    result.lead_bytes = lead_bytes(call, reference_geometry<Taps>(call), 1, threads);
  }
  return result;
}

template <typename Taps>
Status run_convolution_reference(const Invocation& call) {
  const ConvGeometry g = conv_geometry(call.as<Conv2dParams>(), call.in(0), call.out(),
                                       call.in(1).dims[Taps::kHeightDim], call.in(1).dims[Taps::kHeightDim + 1]);
  switch (linear_form(call.in(0), call.in(1))) {
    case LinearForm::kFloat: run_float_reference<Taps>(call, g); break;
    case LinearForm::kInt8: run_int8_reference<Taps>(call, g); break;
    case LinearForm::kInt16: run_int16_reference<Taps>(call, g); break;
    case LinearForm::kHybrid: run_hybrid_reference<Taps>(call, g); break;
  }
  return ok_status();
}

}  // namespace bantam::ops::conv2d
