// Depthwise conv2d_affine with multiplier 1: vectors run over channels, sums are int32. Weights are packed as
// [KH,KW,C]; their zero points b are taken off before they are multiplied, that of x at the end: SUM (x - a)(w - b) =
// SUM x (w - b) - a SUM (w - b). Where there are channels enough, two taps at a time are interleaved and multiplied as
// int16 pairs. Most applications go another way on x86 (depthwise_conv2d/any_bytes_simd-inl.h) and on 64-bit Arm
// (depthwise_conv2d/bytes_neon-inl.h), which know no zero points of weights: channels with such are computed again.
#include <algorithm>

#include "ops/common/dispatch.h"
#include "ops/common/short_copy.h"
#include "ops/nn/conv2d/overlap.h"
#include "ops/nn/conv2d/parallel_rows.h"
#include "ops/nn/conv2d_affine/kernels.h"
#include "ops/nn/depthwise_conv2d/pixel_run.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/nn/conv2d_affine/conv2d_affine_depthwise_simd.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "ops/common/activate_rows.h"
#include "ops/common/activation_steps_simd-inl.h"
#include "ops/common/affine_simd-inl.h"
#include "ops/nn/depthwise_conv2d/any_bytes_simd-inl.h"
#include "ops/nn/depthwise_conv2d/bytes_neon-inl.h"
#include "ops/nn/gemm/unroll-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::conv2d_affine::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using ops::HWY_NAMESPACE::AffineVector;
using ops::HWY_NAMESPACE::unroll;
using ops::HWY_NAMESPACE::with_short_steps;

template <typename X>
using Pixels = depthwise::PixelRun<X, std::int8_t>;

template <typename Y>
struct Output {
  Y* y;  ///< of the first pixel, and channel
  std::int64_t step;
  std::int64_t channel;  ///< the first, of the weights
  std::int32_t x_zero;
  const ZeroPoints& w_zeros;
  const AffineScaler& scaler;
};

/// The zero points of the weights of a run's channels from c on.
template <class D, typename Y>
HWY_INLINE hn::Vec<D> zeros_of(D d, const Output<Y>& out, std::int64_t c) {
  const ZeroPoints& zeros = out.w_zeros;
  if (!zeros.several) return hn::Set(d, static_cast<hn::TFromD<D>>(zeros[0]));
  const hn::Rebind<std::uint8_t, D> bytes;
  const auto values = hn::Xor(hn::LoadU(bytes, zeros.values + out.channel + c), hn::Set(bytes, zeros.flip));
  return hn::PromoteTo(d, hn::BitCast(hn::Rebind<std::int8_t, D>(), values));
}

/// Takes x's zero point off the sums of channels [c, c + lanes) of a run, scales and stores them.
template <int kPixels, class D, typename Y, class V>
HWY_INLINE void finish_pixels(D d, const Output<Y>& out, std::int64_t c, std::int64_t lanes, V (&sums)[kPixels],
                              V weight_sum) {
  const auto offset = hn::Mul(weight_sum, hn::Set(d, out.x_zero));
  const AffineVector<D> scale(d, out.scaler, out.channel + c, lanes);
  unroll<kPixels>([&](auto i) HWY_ATTR { sums[i] = hn::Sub(sums[i], offset); });
  if constexpr (std::is_same_v<Y, std::uint8_t>) scale.to_bytes(out.scaler, sums);
  unroll<kPixels>([&](auto i) HWY_ATTR { scale.store(sums[i], lanes, out.y + i * out.step + c); });
}

/// kPixels pixels; channels in vectors of kLanes <= p.channels. The last vector may overlap the one before.
template <int kPixels, int kLanes, typename X, typename Y>
HWY_INLINE void convolve_pixels(const Pixels<X>& p, const Output<Y>& out) {
  using D = hn::CappedTag<std::int32_t, kLanes>;
  const D d;
  const hn::Rebind<X, D> narrow_x;
  const hn::Rebind<std::int8_t, D> narrow_w;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t next = 0; next < p.channels; next += lanes) {
    const std::int64_t c = std::min(next, p.channels - lanes);
    const auto zeros = zeros_of(d, out, c);
    hn::Vec<D> sums[kPixels];
    unroll<kPixels>([&](auto i) HWY_ATTR { sums[i] = hn::Zero(d); });
    auto weight_sum = hn::Zero(d);
    for (std::int32_t ky = 0; ky < p.rows; ++ky) {
      const X* x = p.x + ky * p.row_step + c;
      const std::int8_t* w = p.w + ky * p.w_row_step + c;
      for (std::int32_t kx = 0; kx < p.taps; ++kx, x += p.tap_step, w += p.w_tap_step) {
        const auto weight = hn::Sub(hn::PromoteTo(d, hn::LoadU(narrow_w, w)), zeros);
        weight_sum = hn::Add(weight_sum, weight);
        unroll<kPixels>([&](auto i) HWY_ATTR {
          const auto pixel = hn::PromoteTo(d, hn::LoadU(narrow_x, x + i * p.x_step));
          sums[i] = hn::Add(sums[i], hn::Mul(pixel, weight));
        });
      }
    }
    finish_pixels<kPixels>(d, out, c, lanes, sums, weight_sum);
  }
}

/// Channels of a vector of pairs.
using D16 = hn::CappedTag<std::int16_t, 16>;
constexpr int kPairChannels = static_cast<int>(hn::MaxLanes(D16()));

/// The taps of a run's windows, in pairs.
struct TapPairs {
  static constexpr std::int64_t kMost = 50;  ///< taps

  std::int64_t count = 0;  ///< taps; of an odd number the last is there twice, its second weight is 0
  std::int64_t x[kMost + 1];
  std::int64_t w[kMost + 1];

  template <typename X>
  explicit TapPairs(const Pixels<X>& p) {
    for (std::int32_t ky = 0; ky < p.rows; ++ky)
      for (std::int32_t kx = 0; kx < p.taps; ++kx, ++count) {
        x[count] = ky * p.row_step + kx * p.tap_step;
        w[count] = ky * p.w_row_step + kx * p.w_tap_step;
      }
    x[count] = count > 0 ? x[count - 1] : 0;
    w[count] = count > 0 ? w[count - 1] : 0;
  }
};

/// Two numbers per channel, as they are multiplied: the lower and the upper channels of each block of 128 bits.
struct Pairs {
  hn::Vec<D16> low;
  hn::Vec<D16> high;

  HWY_INLINE Pairs(hn::Vec<D16> a, hn::Vec<D16> b)
      : low(hn::InterleaveLower(D16(), a, b)), high(hn::InterleaveUpper(D16(), a, b)) {}
};

/// Sums of pairs of products, in that order.
struct PairSums {
  using D32 = hn::RepartitionToWide<D16>;
  using V = hn::Vec<D32>;
  V low;
  V high;
  V low_rest;  ///< see ReorderWidenMulAccumulate
  V high_rest;

  HWY_INLINE PairSums() { low = high = low_rest = high_rest = hn::Zero(D32()); }
  HWY_INLINE void add(const Pairs& a, const Pairs& b) {
    low = hn::ReorderWidenMulAccumulate(D32(), a.low, b.low, low, low_rest);
    high = hn::ReorderWidenMulAccumulate(D32(), a.high, b.high, high, high_rest);
  }
  /// Of channels [0, lanes of V) and those behind them.
  HWY_INLINE void in_order(V& first, V& second) const {
    const V lower = hn::RearrangeToOddPlusEven(low, low_rest);
    const V upper = hn::RearrangeToOddPlusEven(high, high_rest);
    if constexpr (hn::MaxLanes(D32()) <= 4) {
      first = lower;
      second = upper;
    } else {
      first = hn::ConcatLowerLower(D32(), upper, lower);
      second = hn::ConcatUpperUpper(D32(), upper, lower);
    }
  }
};

/// The same as convolve_pixels in vectors of kPairChannels <= p.channels.
template <int kPixels, typename X, typename Y>
HWY_INLINE void convolve_pairs(const Pixels<X>& p, const TapPairs& taps, const Output<Y>& out) {
  using D = PairSums::D32;
  using V = hn::Vec<D>;
  constexpr D d;
  constexpr D16 d16;
  constexpr std::int64_t kLanes = kPairChannels / 2;
  const hn::Rebind<X, D16> narrow_x;
  const hn::Rebind<std::int8_t, D16> narrow_w;
  for (std::int64_t next = 0; next < p.channels; next += kPairChannels) {
    const std::int64_t c = std::min(next, p.channels - kPairChannels);
    const auto zeros = zeros_of(d16, out, c);
    const auto weights_at = [&](std::int64_t tap) HWY_ATTR {
      return hn::Sub(hn::PromoteTo(d16, hn::LoadU(narrow_w, p.w + taps.w[tap] + c)), zeros);
    };
    PairSums sums[kPixels];
    PairSums weight_sums;
    for (std::int64_t tap = 0; tap < taps.count; tap += 2) {
      const bool both = tap + 1 < taps.count;
      const auto one = hn::Set(d16, 1);
      const Pairs ones(one, both ? one : hn::Zero(d16));
      const auto second_weight = weights_at(tap + 1);
      const Pairs weights(weights_at(tap), both ? second_weight : hn::Zero(d16));
      weight_sums.add(weights, ones);
      const X* first = p.x + taps.x[tap] + c;
      const X* second = p.x + taps.x[tap + 1] + c;
      unroll<kPixels>([&](auto i) HWY_ATTR {
        const Pairs x(hn::PromoteTo(d16, hn::LoadU(narrow_x, first + i * p.x_step)),
                      hn::PromoteTo(d16, hn::LoadU(narrow_x, second + i * p.x_step)));
        sums[i].add(x, weights);
      });
    }
    V totals[2][kPixels];
    V weight_totals[2];
    weight_sums.in_order(weight_totals[0], weight_totals[1]);
    unroll<kPixels>([&](auto i) HWY_ATTR { sums[i].in_order(totals[0][i], totals[1][i]); });
    unroll<2>([&](auto half) HWY_ATTR {
      const std::int64_t from = c + half * kLanes;
      finish_pixels<kPixels>(d, out, from, kLanes, totals[half], weight_totals[half]);
    });
  }
}

template <int kLanes, typename X, typename Y>
HWY_NOINLINE void convolve_run(Pixels<X> p, Output<Y> out, std::int64_t count) {
  const TapPairs taps(kLanes == kPairChannels ? p : Pixels<X>{});
  const auto convolve = [&](auto pixels) HWY_ATTR {
    if constexpr (kLanes == kPairChannels) {
      convolve_pairs<pixels>(p, taps, out);
    } else {
      convolve_pixels<pixels, kLanes>(p, out);
    }
  };
  const auto advance = [&](std::int64_t n) HWY_ATTR {
    p.x += n * p.x_step;
    out.y += n * out.step;
  };
  // On Arm pairs take twice as many vectors for sums, which must stay in registers.
  constexpr int kShare = HWY_ARCH_ARM_A64 && kLanes == kPairChannels ? 2 : 1;
  constexpr int kPixels = depthwise::kMaxRunPixels / kShare;
  for (; count >= kPixels; count -= kPixels) {
    convolve(std::integral_constant<int, kPixels>());
    advance(kPixels);
  }
  for (; count > 0; --count) {
    convolve(std::integral_constant<int, 1>());
    advance(1);
  }
}

/// Output row oy of item n. g: of the channels from `channel` on, or some of them.
template <typename X, typename Y>
void convolve_row(const Invocation& call, const ConvGeometry& g, std::int64_t channel, const AffineScaler& scaler,
                  const ZeroPoints& w_zeros, std::int32_t x_zero, Y* y, std::int64_t n, std::int64_t oy) {
  constexpr int kWide = static_cast<int>(hn::MaxLanes(hn::CappedTag<std::int32_t, 8>()));
  const auto visit = [&](const Pixels<X>& pixels, std::int64_t ox, std::int64_t count) HWY_ATTR {
    const Output<Y> out{y + g.y.offset(n, oy, ox), g.y.w_stride, channel, x_zero, w_zeros, scaler};
    if (pixels.channels >= kPairChannels && pixels.rows * pixels.taps <= TapPairs::kMost) {
      convolve_run<kPairChannels>(pixels, out, count);
    } else if (pixels.channels >= 8) {
      convolve_run<kWide>(pixels, out, count);
    } else {
      convolve_run<std::min(kWide, 4)>(pixels, out, count);
    }
  };
  depthwise::for_each_run(g, call.input<X>(0), call.input<std::int8_t>(1) + channel, call.in(1).dims[0], n, oy, visit);
  if constexpr (std::is_same_v<Y, float>)
    activate_rows(scaler.activation, y + g.y.offset(n, oy, 0), g.y.w, g.y.w_stride, g.y.c);
}

#if HWY_ARCH_ARM_A64 || (HWY_ARCH_X86 && (HWY_TARGET == HWY_AVX3_DL || HWY_TARGET == HWY_AVX2))
/// Output rows [begin, end) of all items by what finishes them fastest; false if their windows do not fit.
bool convolve_images(const depthwise::ByteImages& images, const AffineScaler& scaler, std::int64_t begin,
                     std::int64_t end) {
  namespace bytes = depthwise::HWY_NAMESPACE;
  if (!scaler.has_activation()) return bytes::convolve_any_bytes<bytes::PlainStages>(images, scaler, begin, end);
  bool fits = false;
  const bool is_short = with_short_steps(scaler, [&](const auto& steps) HWY_ATTR {
    using Steps = std::remove_cvref_t<decltype(steps)>;
    fits = bytes::convolve_any_bytes<bytes::ShortStepsStages<Steps>>(images, scaler, begin, end);
  });
  return is_short ? fits : bytes::convolve_any_bytes<bytes::ActivatedStages>(images, scaler, begin, end);
}
#endif

/// Output rows [begin, end) of all items by x86's or Arm's own way, if that is possible, as if weights had no zero
/// points. `overlaps`: see for_each_range.
bool convolve_bytes(const Invocation& call, const ConvGeometry& g, const AffineScaler& scaler, std::int32_t x_zero,
                    std::int64_t begin, std::int64_t end, bool overlaps) {
#if HWY_ARCH_ARM_A64 || (HWY_ARCH_X86 && (HWY_TARGET == HWY_AVX3_DL || HWY_TARGET == HWY_AVX2))
  if (element_size(call.out().type) != 1) return false;
  namespace bytes = depthwise::HWY_NAMESPACE;
  const auto* w = call.input<std::int8_t>(1);
  const depthwise::ByteImages images{
      g, call.input<std::uint8_t>(0), bytes::group_form(sign_flip(call.in(0).type), x_zero),
      w, call.output<std::uint8_t>(), overlaps};
  if (convolve_images(images, scaler, begin, end)) return true;
#if HWY_ARCH_ARM_A64
  if (!bytes::bytes_fit(g, w)) return false;
  dispatch_type<std::int8_t, std::uint8_t>(call.in(0).type, [&](auto tag) {
    using X = typename decltype(tag)::type;
    const bytes::ByteProblem<X> problem{g,           call.input<X>(0), w, x_zero, call.output<std::uint8_t>(),
                                        scaler.flip, overlaps};
    bytes::convolve_bytes<AffineVector<hn::CappedTag<std::int32_t, 4>>>(problem, scaler, begin, end);
  });
  return true;
#else
  return false;
#endif
#else
  static_cast<void>(call), static_cast<void>(g), static_cast<void>(scaler), static_cast<void>(x_zero);
  static_cast<void>(begin), static_cast<void>(end), static_cast<void>(overlaps);
  return false;
#endif
}

/// Rows [begin, end) of all items, of the channels from `channel` on that g has. y: where g.y begins.
template <typename Y>
void convolve_channels(const Invocation& call, const ConvGeometry& g, std::int64_t channel, const AffineScaler& scaler,
                       const ZeroPoints& w_zeros, std::int32_t x_zero, Y* y, std::int64_t begin, std::int64_t end) {
  for (std::int64_t row = begin; row < end; ++row) {
    if (call.in(0).type == ElementType::kU8) {
      convolve_row<std::uint8_t>(call, g, channel, scaler, w_zeros, x_zero + 128, y, row / g.y.h, row % g.y.h);
    } else {
      convolve_row<std::int8_t>(call, g, channel, scaler, w_zeros, x_zero, y, row / g.y.h, row % g.y.h);
    }
  }
}

/// The same of all channels.
void convolve_plainly(const Invocation& call, const ConvGeometry& g, const AffineScaler& scaler,
                      const ZeroPoints& w_zeros, std::int32_t x_zero, std::int64_t begin, std::int64_t end) {
  with_affine_result(call, [&](auto* y) { convolve_channels(call, g, 0, scaler, w_zeros, x_zero, y, begin, end); });
}

/// Channels whose weights have zero points, in blocks that are computed again after convolve_bytes. Their weights
/// differ from zero points by more than a byte, see passes/centre_weights.cpp.
class ChannelsWithZeros {
 public:
  ChannelsWithZeros(const Invocation& call, const ConvGeometry& g, const AffineScaler& scaler,
                    const ZeroPoints& w_zeros, std::int32_t x_zero)
      : call_(call), g_(g), scaler_(scaler), w_zeros_(w_zeros), x_zero_(x_zero) {
    if (!w_zeros.are_zero()) for_each_block([&](std::int64_t, std::int64_t channels) { count_ += channels; });
  }

  bool none() const { return count_ == 0; }
  /// Few enough that it is worth it.
  bool are_few() const { return none() || (w_zeros_.several && 2 * count_ <= g_.x.c); }
  /// Has the memory of `keep` room for a row of results, which are bytes?
  bool fit() const { return element_size(call_.out().type) == 1 && count_ * g_.y.w <= kKept; }

  /// Computes bytes of rows [begin, end) again.
  void convolve(std::int64_t begin, std::int64_t end) const {
    for_each_block([&](std::int64_t channel, std::int64_t channels) {
      ConvGeometry block = block_at(channel, channels);
      block.y.first += channel;
      convolve_channels(call_, block, channel, scaler_, w_zeros_, x_zero_, call_.output<std::uint8_t>(), begin, end);
    });
  }

  /// Computes a row's bytes before others are written over what they are computed from.
  void keep(std::int64_t row) {
    std::uint8_t* to = kept_;
    for_each_block([&](std::int64_t channel, std::int64_t channels) {
      ConvGeometry block = block_at(channel, channels);
      block.y.first = block.y.n_stride = block.y.h_stride = 0;
      block.y.w_stride = channels;
      convolve_channels(call_, block, channel, scaler_, w_zeros_, x_zero_, to, row, row + 1);
      to += g_.y.w * channels;
    });
  }
  /// Puts them where they belong.
  void put(std::int64_t row) const {
    const std::uint8_t* from = kept_;
    for_each_block([&](std::int64_t channel, std::int64_t channels) {
      for (std::int64_t x = 0; x < g_.y.w; ++x, from += channels)
        copy_short(from, channels, call_.output<std::uint8_t>() + g_.y.offset(row / g_.y.h, row % g_.y.h, x) + channel);
    });
  }

 private:
  static constexpr std::int64_t kKept = 4096;

  /// Calls f(first channel, channels).
  template <typename F>
  void for_each_block(F f) const {
    const std::int64_t block = std::min<std::int64_t>(g_.x.c, kPairChannels);
    for (std::int64_t next = 0; next < g_.x.c; next += block) {
      const std::int64_t first = std::min(next, g_.x.c - block);
      if (!w_zeros_.are_zero(first, block)) f(first, block);
    }
  }

  ConvGeometry block_at(std::int64_t channel, std::int64_t channels) const {
    ConvGeometry block = g_;
    block.x.first += channel;
    block.x.c = block.y.c = static_cast<std::int32_t>(channels);
    return block;
  }

  const Invocation& call_;
  const ConvGeometry& g_;
  const AffineScaler& scaler_;
  const ZeroPoints& w_zeros_;
  std::int32_t x_zero_;
  std::int64_t count_ = 0;
  std::uint8_t kept_[kKept];
};

/// Output rows [begin, end) of all items.
void convolve_rows(const Invocation& call, const ConvGeometry& g, std::int64_t begin, std::int64_t end) {
  const auto& form = call.as<Conv2dAffineParams>().form;
  const AffineScaler scaler = make_affine_scaler(call, form);
  const ZeroPoints w_zeros = zero_points(call, 1, 5, form.weights_zero_point);
  const std::int32_t zero = zero_points(call, 0, 4, form.input_zero_point)[0];
  ChannelsWithZeros again(call, g, scaler, w_zeros, zero);
  for_each_range(call, g, begin, end, [&](std::int64_t first, std::int64_t last, bool overlaps) {
    if (again.none() || (again.are_few() && !overlaps)) {
      if (!convolve_bytes(call, g, scaler, zero, first, last, overlaps))
        return convolve_plainly(call, g, scaler, w_zeros, zero, first, last);
      return again.convolve(first, last);
    }
    bool fits = again.are_few() && again.fit();
    while (fits && first < last) {
      again.keep(first);
      fits = convolve_bytes(call, g, scaler, zero, first, first + 1, overlaps);
      if (fits) again.put(first++);
    }
    convolve_plainly(call, g, scaler, w_zeros, zero, first, last);
  });
}

}  // namespace
}  // namespace bantam::ops::conv2d_affine::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bantam::ops::conv2d_affine {

HWY_EXPORT(convolve_rows);

bool depthwise_supports(const OpCall& call) {
  const auto& p = call.as<Conv2dAffineParams>();
  const TensorDesc& w = call.in(1);
  // Narrower vectors than four channels do not pay. The taps' number times a zero point must not overflow.
  return call.inputs[1].data != nullptr && w.is_dense() && w.dims[3] == 1 && w.dims[0] == p.groups && w.dims[0] >= 4 &&
         static_cast<std::int64_t>(w.dims[1]) * w.dims[2] < (1 << 20) && call.out().elements() > 0;
}

std::int64_t depthwise_packed_bytes(const OpCall& call, int input) { return input == 1 ? call.in(1).elements() : 0; }

void depthwise_pack(const OpCall& call, int /*input*/, std::byte* destination) {
  const TensorDesc& w = call.in(1);
  const auto* data = static_cast<const std::byte*>(call.inputs[1].data);
  const std::int64_t taps = static_cast<std::int64_t>(w.dims[1]) * w.dims[2];
  for (std::int64_t tap = 0; tap < taps; ++tap)
    for (std::int64_t c = 0; c < w.dims[0]; ++c) *destination++ = data[c * taps + tap] ^ std::byte{sign_flip(w.type)};
}

Footprint depthwise_footprint(const OpCall& call, int threads) {
  const ConvGeometry g = geometry_of(call.as<Conv2dAffineParams>(), call.in(0), call.in(1), call.out());
  return {.lead_bytes = lead_bytes(call, g, depthwise::byte_run_pixels(g), threads)};
}

Status run_depthwise(const Invocation& call) {
  const ConvGeometry g = geometry_of(call.as<Conv2dAffineParams>(), call.in(0), call.in(1), call.out());
  const auto convolve = HWY_DYNAMIC_DISPATCH(convolve_rows);
  parallel_rows(
      *call.threads, g, depthwise::depthwise_grain(g),
      [&](const ConvGeometry& part, std::int64_t begin, std::int64_t end) { convolve(call, part, begin, end); });
  return ok_status();
}

}  // namespace bantam::ops::conv2d_affine
#endif
