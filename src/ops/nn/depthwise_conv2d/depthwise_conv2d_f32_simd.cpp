// depthwise_conv2d in f32 with multiplier 1: vectors run over channels, and several neighbouring output pixels share
// the weights, and for common kernels also the pixels, that were loaded. Taps outside the image are skipped.
#include <algorithm>

#include "ops/common/parallel.h"
#include "ops/nn/conv2d/overlap.h"
#include "ops/nn/depthwise_conv2d/kernels.h"
#include "ops/nn/depthwise_conv2d/pixel_run.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/nn/depthwise_conv2d/depthwise_conv2d_f32_simd.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "ops/common/activate_rows_simd-inl.h"
#include "ops/nn/gemm/unroll-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::depthwise::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using ops::HWY_NAMESPACE::activate_rows;
using ops::HWY_NAMESPACE::ClampedStore;
using ops::HWY_NAMESPACE::unroll;

using Pixels = PixelRun<float>;

struct Output {
  float* y;           ///< of the first pixel, channel 0
  std::int64_t step;  ///< from one output pixel to the next
  const float* bias;  ///< may be null
};

/// One vector of channels of kPixels pixels, any kernel.
template <int kPixels, class DF>
HWY_INLINE void accumulate(DF d, const Pixels& p, std::int64_t c, hn::Vec<DF> (&sums)[kPixels]) {
  for (std::int32_t ky = 0; ky < p.rows; ++ky) {
    const float* x = p.x + ky * p.row_step + c;
    const float* w = p.w + ky * p.w_row_step + c;
    for (std::int32_t kx = 0; kx < p.taps; ++kx, x += p.tap_step, w += p.channels) {
      const auto weight = hn::LoadU(d, w);
      unroll<kPixels>([&](auto i) HWY_ATTR { sums[i] = hn::MulAdd(hn::LoadU(d, x + i * p.x_step), weight, sums[i]); });
    }
  }
}

/// The same for kernels of kTaps neighbouring columns and a stride of kStride: every pixel is loaded once per row.
template <int kPixels, int kTaps, int kStride, class DF>
HWY_INLINE void accumulate_sharing(DF d, const Pixels& p, std::int64_t c, hn::Vec<DF> (&sums)[kPixels]) {
  constexpr int kLoads = (kPixels - 1) * kStride + kTaps;
  for (std::int32_t ky = 0; ky < p.rows; ++ky) {
    const float* x = p.x + ky * p.row_step + c;
    const float* w = p.w + ky * p.w_row_step + c;
    hn::Vec<DF> weights[kTaps];
    unroll<kTaps>([&](auto kx) HWY_ATTR { weights[kx] = hn::LoadU(d, w + kx * p.channels); });
    unroll<kLoads>([&](auto l) HWY_ATTR {
      const auto pixel = hn::LoadU(d, x + l * p.tap_step);
      unroll<kTaps>([&](auto kx) HWY_ATTR {
        constexpr int kOffset = l - kx;
        if constexpr (kOffset >= 0 && kOffset % kStride == 0 && kOffset / kStride < kPixels)
          sums[kOffset / kStride] = hn::MulAdd(pixel, weights[kx], sums[kOffset / kStride]);
      });
    });
  }
}

/// kTaps 0: any kernel. Channels in vectors of kLanes <= p.channels; the last vector may overlap the one before, which
/// writes equal values twice.
template <int kPixels, int kTaps, int kStride, int kLanes>
HWY_INLINE void convolve_pixels(const Pixels& p, const Output& out, const ClampedStore& store) {
  const hn::CappedTag<float, kLanes> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t next = 0; next < p.channels; next += lanes) {
    const std::int64_t c = std::min(next, p.channels - lanes);
    hn::Vec<decltype(d)> sums[kPixels];
    const auto start = out.bias != nullptr ? hn::LoadU(d, out.bias + c) : hn::Zero(d);
    unroll<kPixels>([&](auto i) HWY_ATTR { sums[i] = start; });
    if constexpr (kTaps > 0) {
      accumulate_sharing<kPixels, kTaps, kStride>(d, p, c, sums);
    } else {
      accumulate<kPixels>(d, p, c, sums);
    }
    unroll<kPixels>([&](auto i) HWY_ATTR { store(d, sums[i], out.y + i * out.step + c); });
  }
}

/// `count` pixels, four at a time.
template <int kTaps, int kStride, int kLanes>
HWY_NOINLINE void convolve_run(Pixels p, Output out, std::int64_t count, const ClampedStore& store) {
  const auto advance = [&](std::int64_t n) HWY_ATTR {
    p.x += n * p.x_step;
    out.y += n * out.step;
  };
  for (; count >= kMaxRunPixels; count -= kMaxRunPixels) {
    convolve_pixels<kMaxRunPixels, kTaps, kStride, kLanes>(p, out, store);
    advance(kMaxRunPixels);
  }
  for (; count > 0; --count) {
    convolve_pixels<1, 0, 1, kLanes>(p, out, store);
    advance(1);
  }
}

template <int kLanes>
void convolve_run_of_kernel(const Pixels& p, const Output& out, std::int64_t count, const ClampedStore& store) {
  const auto is = [&](std::int32_t taps, std::int64_t stride) {
    return p.taps == taps && p.x_step == stride * p.tap_step;
  };
  if (is(3, 1)) return convolve_run<3, 1, kLanes>(p, out, count, store);
  if (is(3, 2)) return convolve_run<3, 2, kLanes>(p, out, count, store);
  if (is(5, 1)) return convolve_run<5, 1, kLanes>(p, out, count, store);
  return convolve_run<0, 1, kLanes>(p, out, count, store);
}

/// Vectors of the machine's width, narrower ones for few channels.
void convolve_run_of_width(const Pixels& p, const Output& out, std::int64_t count, const ClampedStore& store) {
  constexpr int kFull = static_cast<int>(hn::MaxLanes(hn::CappedTag<float, 16>()));
  if (p.channels >= kFull) return convolve_run_of_kernel<kFull>(p, out, count, store);
  if (p.channels >= 8) return convolve_run_of_kernel<std::min(kFull, 8)>(p, out, count, store);
  if (p.channels >= 4) return convolve_run_of_kernel<std::min(kFull, 4)>(p, out, count, store);
  return convolve_run_of_kernel<1>(p, out, count, store);
}

/// Output row oy of item n.
void convolve_row(const ConvGeometry& g, const float* x, const float* w, const float* bias,
                  const Activation& activation, float* y, std::int64_t n, std::int64_t oy) {
  const ClampedStore store(activation);
  for_each_run(g, x, w, n, oy, [&](const Pixels& pixels, std::int64_t ox, std::int64_t count) HWY_ATTR {
    convolve_run_of_width(pixels, {y + g.y.offset(n, oy, ox), g.y.w_stride, bias}, count, store);
  });
  if (!store.complete()) activate_rows(activation, y + g.y.offset(n, oy, 0), g.y.w, g.y.w_stride, g.y.c);
}

}  // namespace
}  // namespace bantam::ops::depthwise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bantam::ops::depthwise {

HWY_EXPORT(convolve_row);

bool float_supports(const OpCall& call) {
  return linear_form(call.in(0), call.in(1)) == LinearForm::kFloat && call.in(0).dims[3] == call.out().dims[3] &&
         call.in(1).is_dense() && call.out().elements() > 0;
}

Footprint channels_footprint(const OpCall& call, int threads) {
  const ConvGeometry g =
      conv_geometry(call.as<Conv2dParams>(), call.in(0), call.out(), call.in(1).dims[0], call.in(1).dims[1]);
  return {.lead_bytes = lead_bytes(call, g, kMaxRunPixels, threads)};
}

Status run_float(const Invocation& call) {
  const auto& params = call.as<Conv2dParams>();
  const ConvGeometry g = conv_geometry(params, call.in(0), call.out(), call.in(1).dims[0], call.in(1).dims[1]);
  const auto convolve = HWY_DYNAMIC_DISPATCH(convolve_row);
  const std::int64_t row_work = static_cast<std::int64_t>(g.y.w) * g.y.c * call.in(1).dims[0] * call.in(1).dims[1];
  // Tasks of at least some ten thousand multiply-adds.
  const std::int64_t grain = std::max<std::int64_t>(50'000 / row_work, 1);
  parallel_ranges(*call.threads, static_cast<std::int64_t>(g.y.n) * g.y.h, grain,
                  [&](std::int64_t begin, std::int64_t end) {
                    for (std::int64_t row = begin; row < end; ++row)
                      convolve(g, call.input<float>(0), call.input<float>(1), optional_input<float>(call, 2),
                               params.activation, call.output<float>(), row / g.y.h, row % g.y.h);
                  });
  return ok_status();
}

}  // namespace bantam::ops::depthwise
#endif
