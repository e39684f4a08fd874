// Depthwise convolution of bytes on 64-bit Arm, for the integer kernels of depthwise_conv2d and conv2d_affine; exact.
// Products of two taps are added in 16 bits, pairs in 32: no weight may be -128. Blocks of 16 or 8 channels, the last
// of which may overlap the one before. Included by *_simd.cpp files inside Highway's per-target compilation; nothing is
// allocated.
#if defined(BANTAM_OPS_DEPTHWISE_BYTES_NEON_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BANTAM_OPS_DEPTHWISE_BYTES_NEON_INL_H_
#undef BANTAM_OPS_DEPTHWISE_BYTES_NEON_INL_H_
#else
#define BANTAM_OPS_DEPTHWISE_BYTES_NEON_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "hwy/highway.h"
#include "ops/common/fixed_point_neon.h"
#include "ops/nn/conv2d/geometry.h"
#include "ops/nn/depthwise_conv2d/pixel_run.h"
#include "ops/nn/gemm/unroll-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::depthwise::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

#if HWY_ARCH_ARM_A64

inline constexpr std::int64_t kMaxByteTaps = 64;
inline constexpr std::int64_t kLeastByteChannels = 8;

/// Has the convolution few enough taps and channels enough, and weights [KH,KW,C] whose products fit in pairs?
inline bool bytes_fit(const ConvGeometry& g, const std::int8_t* w) {
  const std::int64_t taps = static_cast<std::int64_t>(g.vertical.kernel) * g.horizontal.kernel;
  if (g.x.c < kLeastByteChannels || taps > kMaxByteTaps) return false;
  int8x16_t lowest = vdupq_n_s8(0);
  std::int64_t i = 0;
  for (; i + 16 <= taps * g.x.c; i += 16) lowest = vminq_s8(lowest, vld1q_s8(w + i));
  std::int8_t least = vminvq_s8(lowest);
  for (; i < taps * g.x.c; ++i) least = std::min(least, w[i]);
  return least > INT8_MIN;
}

/// Where results go.
struct ByteResult {
  std::uint8_t* y = nullptr;  ///< of the first pixel, channel 0
  std::int64_t step = 0;      ///< from one pixel to the next
  std::uint8_t flip = 0;      ///< bits of the results that are inverted
  bool overlaps = false;      ///< y is written over x, kMaxRunPixels at a time
};

/// The taps of a run, row after row.
struct ByteTaps {
  struct Tap {
    std::int64_t x, w;  ///< from the window's first byte, and from the first weight
  };

  template <typename X>
  explicit ByteTaps(const PixelRun<X, std::int8_t>& run) {
    for (std::int64_t ky = 0; ky < run.rows; ++ky)
      for (std::int64_t kx = 0; kx < run.taps; ++kx)
        at[count++] = {ky * run.row_step + kx * run.tap_step, ky * run.w_row_step + kx * run.channels};
  }

  int count = 0;
  Tap at[kMaxByteTaps];
};

/// 8 * kHalves channels of a run's pixels. X: signed bytes, or unsigned ones that stand for 128 less. Scale: a vector
/// of four channels of the last stage, made of a Scaler, that gives numbers in the range of int8.
template <int kHalves, class Scale, typename X>
class ByteBlock {
 public:
  static constexpr std::int64_t kChannels = 8 * kHalves;

  template <class Scaler>
  HWY_INLINE ByteBlock(const PixelRun<X, std::int8_t>& run, const ByteTaps& taps, std::int32_t x_zero,
                       const Scaler& scaler, std::int64_t c)
      : ByteBlock(run, taps, x_zero, scaler, c, std::make_integer_sequence<int, kVectors>()) {}

  /// Pixels [first, first + count).
  HWY_INLINE void convolve(const ByteResult& result, std::int64_t first, std::int64_t count) const {
    const X* x = x_ + first * x_step_;
    std::uint8_t* y = result.y + c_ + first * result.step;
    const std::int64_t y_step = result.step;
    const uint8x16_t flip = vdupq_n_u8(result.flip);
    for (; count >= kMaxRunPixels; count -= kMaxRunPixels, x += kMaxRunPixels * x_step_, y += kMaxRunPixels * y_step)
      convolve_pixels<kMaxRunPixels>(x, y, y_step, flip);
    for (; count > 0; --count, x += x_step_, y += y_step) convolve_pixels<1>(x, y, y_step, flip);
  }

 private:
  static constexpr int kVectors = 2 * kHalves;

  template <class Scaler, int... kIndices>
  HWY_INLINE ByteBlock(const PixelRun<X, std::int8_t>& run, const ByteTaps& taps, std::int32_t x_zero,
                       const Scaler& scaler, std::int64_t c, std::integer_sequence<int, kIndices...>)
      : x_(run.x + c),
        w_(run.w + c),
        c_(c),
        x_step_(run.x_step),
        taps_(taps.at),
        count_(taps.count),
        scale_{Scale({}, scaler, c + 4 * kIndices, 4)...} {
    start_at(x_zero);
  }

  /// With the zero point of x taken off.
  HWY_INLINE void start_at(std::int32_t x_zero) {
    int16x8_t low = vdupq_n_s16(0);
    int16x8_t high = low;
    for (int t = 0; t < count_; ++t) {
      const int8x16_t w = load(w_ + taps_[t].w);
      low = vaddw_s8(low, vget_low_s8(w));
      high = vaddw_high_s8(high, w);
    }
    const int16x8_t sums[] = {low, high};
    ops::HWY_NAMESPACE::unroll<kHalves>([&](auto h) HWY_ATTR {
      start_[2 * h] = vmulq_n_s32(vmovl_s16(vget_low_s16(sums[h])), -x_zero);
      start_[2 * h + 1] = vmulq_n_s32(vmovl_high_s16(sums[h]), -x_zero);
    });
  }

  template <typename T>
  static HWY_INLINE int8x16_t load(const T* from) {
    const auto* bytes = reinterpret_cast<const std::int8_t*>(from);
    const int8x16_t v = kHalves == 2 ? vld1q_s8(bytes) : vcombine_s8(vld1_s8(bytes), vdup_n_s8(0));
    if constexpr (std::is_same_v<T, std::uint8_t>) return veorq_s8(v, vdupq_n_s8(INT8_MIN));
    return v;
  }

  static HWY_INLINE void add(int16x8_t products, int32x4_t* sums) {
    sums[0] = vaddw_s16(sums[0], vget_low_s16(products));
    sums[1] = vaddw_high_s16(sums[1], products);
  }

  template <int kPixels>
  HWY_INLINE void convolve_pixels(const X* x, std::uint8_t* y, std::int64_t y_step, uint8x16_t flip) const {
    using ops::HWY_NAMESPACE::unroll;
    int32x4_t sums[kPixels][kVectors];
    unroll<kPixels>([&](auto i) HWY_ATTR { unroll<kVectors>([&](auto v) HWY_ATTR { sums[i][v] = start_[v]; }); });
    int t = 0;
    for (; t + 2 <= count_; t += 2) {
      const int8x16_t w0 = load(w_ + taps_[t].w);
      const int8x16_t w1 = load(w_ + taps_[t + 1].w);
      unroll<kPixels>([&](auto i) HWY_ATTR {
        const int8x16_t x0 = load(x + i * x_step_ + taps_[t].x);
        const int8x16_t x1 = load(x + i * x_step_ + taps_[t + 1].x);
        add(vmlal_s8(vmull_s8(vget_low_s8(x0), vget_low_s8(w0)), vget_low_s8(x1), vget_low_s8(w1)), sums[i]);
        if constexpr (kHalves == 2) add(vmlal_high_s8(vmull_high_s8(x0, w0), x1, w1), sums[i] + 2);
      });
    }
    if (t < count_) {
      const int8x16_t w0 = load(w_ + taps_[t].w);
      unroll<kPixels>([&](auto i) HWY_ATTR {
        const int8x16_t x0 = load(x + i * x_step_ + taps_[t].x);
        add(vmull_s8(vget_low_s8(x0), vget_low_s8(w0)), sums[i]);
        if constexpr (kHalves == 2) add(vmull_high_s8(x0, w0), sums[i] + 2);
      });
    }
    // One vector of channels after the other: what scales them is loaded once for all pixels.
    unroll<kVectors>([&](auto v) HWY_ATTR {
      const Scale scale = scale_[v];
      unroll<kPixels>([&](auto i) HWY_ATTR { sums[i][v] = scale(hn::Vec<D32>(sums[i][v])).raw; });
    });
    unroll<kPixels>([&](auto i) HWY_ATTR { store(sums[i], y + i * y_step, flip); });
  }

  static HWY_INLINE void store(const int32x4_t (&results)[kVectors], std::uint8_t* y, uint8x16_t flip) {
    if constexpr (kHalves == 2) {
      vst1q_u8(y, veorq_u8(neon::low_bytes(results), flip));
    } else {
      vst1_u8(y, veor_u8(neon::low_bytes(results), vget_low_u8(flip)));
    }
  }

  using D32 = hn::CappedTag<std::int32_t, 4>;

  const X* x_;
  const std::int8_t* w_;
  std::int64_t c_;
  std::int64_t x_step_;
  const ByteTaps::Tap* taps_;
  int count_;
  Scale scale_[kVectors];
  int32x4_t start_[kVectors];
};

template <int kHalves, class Scale, class Scaler, typename X>
HWY_NOINLINE void convolve_byte_blocks(const PixelRun<X, std::int8_t>& run, std::int32_t x_zero, const Scaler& scaler,
                                       const ByteResult& result, std::int64_t count) {
  using Block = ByteBlock<kHalves, Scale, X>;
  const ByteTaps taps(run);
  const std::int64_t at_once = result.overlaps ? kMaxRunPixels : count;
  for (std::int64_t first = 0; first < count; first += at_once)
    for (std::int64_t c = 0; c < run.channels; c += Block::kChannels)
      Block(run, taps, x_zero, scaler, std::min(c, run.channels - Block::kChannels))
          .convolve(result, first, std::min(at_once, count - first));
}

/// `count` pixels of a convolution for which bytes_fit. x_zero is that of the signed bytes.
template <class Scale, class Scaler, typename X>
void convolve_bytes(const PixelRun<X, std::int8_t>& run, std::int32_t x_zero, const Scaler& scaler,
                    const ByteResult& result, std::int64_t count) {
  if (run.channels >= 2 * kLeastByteChannels) {
    convolve_byte_blocks<2, Scale>(run, x_zero, scaler, result, count);
  } else {
    convolve_byte_blocks<1, Scale>(run, x_zero, scaler, result, count);
  }
}

#endif

}  // namespace bantam::ops::depthwise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
