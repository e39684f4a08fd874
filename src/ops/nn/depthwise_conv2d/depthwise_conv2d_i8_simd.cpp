// depthwise_conv2d in int8 with multiplier 1, exact: vectors run over channels, products and sums are int32, and the
// zero point is taken off at the end: sum((x - z) w) = sum(x w) - z sum(w). Most applications go another way on
// x86 (any_bytes_simd-inl.h) and on 64-bit Arm (bytes_neon-inl.h).
#include <algorithm>

#include "ops/nn/conv2d/overlap.h"
#include "ops/nn/conv2d/parallel_rows.h"
#include "ops/nn/depthwise_conv2d/kernels.h"
#include "ops/nn/depthwise_conv2d/pixel_run.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/nn/depthwise_conv2d/depthwise_conv2d_i8_simd.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "ops/common/requantize_simd-inl.h"
#include "ops/nn/depthwise_conv2d/any_bytes_simd-inl.h"
#include "ops/nn/depthwise_conv2d/bytes_neon-inl.h"
#include "ops/nn/gemm/unroll-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::depthwise::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using ops::HWY_NAMESPACE::RequantizeVector;
using ops::HWY_NAMESPACE::unroll;

using Pixels = PixelRun<std::int8_t>;

struct Output {
  std::int8_t* y;  ///< of the first pixel, channel 0
  std::int64_t step;
  std::int32_t input_zero_point;
  const Requantizer& requantize;
};

/// kPixels pixels; channels in vectors of kLanes <= p.channels. The last vector may overlap the one before.
template <int kPixels, int kLanes>
HWY_INLINE void convolve_pixels(const Pixels& p, const Output& out) {
  using D = hn::CappedTag<std::int32_t, kLanes>;
  const D d;
  const hn::Rebind<std::int8_t, D> narrow;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t next = 0; next < p.channels; next += lanes) {
    const std::int64_t c = std::min(next, p.channels - lanes);
    hn::Vec<D> sums[kPixels];
    unroll<kPixels>([&](auto i) HWY_ATTR { sums[i] = hn::Zero(d); });
    auto weight_sum = hn::Zero(d);
    for (std::int32_t ky = 0; ky < p.rows; ++ky) {
      const std::int8_t* x = p.x + ky * p.row_step + c;
      const std::int8_t* w = p.w + ky * p.w_row_step + c;
      for (std::int32_t kx = 0; kx < p.taps; ++kx, x += p.tap_step, w += p.channels) {
        const auto weight = hn::PromoteTo(d, hn::LoadU(narrow, w));
        weight_sum = hn::Add(weight_sum, weight);
        unroll<kPixels>([&](auto i) HWY_ATTR {
          const auto pixel = hn::PromoteTo(d, hn::LoadU(narrow, x + i * p.x_step));
          sums[i] = hn::Add(sums[i], hn::Mul(pixel, weight));
        });
      }
    }
    const auto offset = hn::Mul(weight_sum, hn::Set(d, out.input_zero_point));
    const RequantizeVector<D> requantize(d, out.requantize, c, lanes);
    unroll<kPixels>([&](auto i) HWY_ATTR {
      const auto value = requantize(hn::Sub(sums[i], offset));
      hn::StoreU(hn::DemoteTo(narrow, value), narrow, out.y + i * out.step + c);
    });
  }
}

template <int kLanes>
HWY_NOINLINE void convolve_run(Pixels p, Output out, std::int64_t count) {
  const auto advance = [&](std::int64_t n) HWY_ATTR {
    p.x += n * p.x_step;
    out.y += n * out.step;
  };
  for (; count >= kMaxRunPixels; count -= kMaxRunPixels) {
    convolve_pixels<kMaxRunPixels, kLanes>(p, out);
    advance(kMaxRunPixels);
  }
  for (; count > 0; --count) {
    convolve_pixels<1, kLanes>(p, out);
    advance(1);
  }
}

/// Output row oy of item n.
void convolve_row_i8(const ConvGeometry& g, const std::int8_t* x, const std::int8_t* w, std::int32_t input_zero_point,
                     const Requantizer& requantize, std::int8_t* y, std::int64_t n, std::int64_t oy) {
  constexpr int kFull = static_cast<int>(hn::MaxLanes(hn::CappedTag<std::int32_t, 16>()));
  for_each_run(g, x, w, n, oy, [&](const Pixels& pixels, std::int64_t ox, std::int64_t count) HWY_ATTR {
    const Output out{y + g.y.offset(n, oy, ox), g.y.w_stride, input_zero_point, requantize};
    if (pixels.channels >= kFull) {
      convolve_run<kFull>(pixels, out, count);
    } else if (pixels.channels >= 8) {
      convolve_run<std::min(kFull, 8)>(pixels, out, count);
    } else {
      convolve_run<std::min(kFull, 4)>(pixels, out, count);
    }
  });
}

/// Output rows [begin, end) of all items; `overlaps`: see for_each_range.
void convolve_range_i8(const Invocation& call, const ConvGeometry& g, const Requantizer& requantize, std::int64_t begin,
                       std::int64_t end, bool overlaps) {
  const std::int32_t zero = call.as<Conv2dParams>().input_zero_point;
#if HWY_ARCH_ARM_A64 || (HWY_ARCH_X86 && (HWY_TARGET == HWY_AVX3_DL || HWY_TARGET == HWY_AVX2))
  const auto* w = call.input<std::int8_t>(1);
  const ByteImages images{g, call.input<std::uint8_t>(0), group_form(0, zero),
                          w, call.output<std::uint8_t>(), overlaps};
  if (convolve_any_bytes<RequantizeStages>(images, requantize, begin, end)) return;
#if HWY_ARCH_ARM_A64
  if (bytes_fit(g, w)) {
    const ByteProblem<std::int8_t> problem{g,       call.input<std::int8_t>(0), w, zero, call.output<std::uint8_t>(), 0,
                                           overlaps};
    return convolve_bytes<RequantizeVector<hn::CappedTag<std::int32_t, 4>>>(problem, requantize, begin, end);
  }
#endif
#else
  static_cast<void>(overlaps);
#endif
  for (std::int64_t row = begin; row < end; ++row)
    convolve_row_i8(g, call.input<std::int8_t>(0), call.input<std::int8_t>(1), zero, requantize,
                    call.output<std::int8_t>(), row / g.y.h, row % g.y.h);
}

/// Output rows [begin, end) of all items.
void convolve_rows_i8(const Invocation& call, const ConvGeometry& g, std::int64_t begin, std::int64_t end) {
  const Requantizer requantize = make_requantizer(call, int8_range(call.as<Conv2dParams>()));
  for_each_range(call, g, begin, end, [&](std::int64_t first, std::int64_t last, bool overlaps) {
    convolve_range_i8(call, g, requantize, first, last, overlaps);
  });
}

}  // namespace
}  // namespace bantam::ops::depthwise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bantam::ops::depthwise {

HWY_EXPORT(convolve_rows_i8);

bool int8_supports(const OpCall& call) {
  // Narrower vectors than four channels do not pay.
  return linear_form(call.in(0), call.in(1)) == LinearForm::kInt8 && call.in(0).dims[3] == call.out().dims[3] &&
         call.out().dims[3] >= 4 && call.in(1).is_dense() && call.out().elements() > 0;
}

Footprint int8_footprint(const OpCall& call, int threads) {
  const ConvGeometry g =
      conv_geometry(call.as<Conv2dParams>(), call.in(0), call.out(), call.in(1).dims[0], call.in(1).dims[1]);
  return {.lead_bytes = lead_bytes(call, g, byte_run_pixels(g), threads)};
}

Status run_int8(const Invocation& call) {
  const auto& params = call.as<Conv2dParams>();
  const ConvGeometry g = conv_geometry(params, call.in(0), call.out(), call.in(1).dims[0], call.in(1).dims[1]);
  const auto convolve = HWY_DYNAMIC_DISPATCH(convolve_rows_i8);
  parallel_rows(
      *call.threads, g, depthwise_grain(g),
      [&](const ConvGeometry& part, std::int64_t begin, std::int64_t end) { convolve(call, part, begin, end); });
  return ok_status();
}

}  // namespace bantam::ops::depthwise
#endif
