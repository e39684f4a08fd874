// Depthwise convolution of bytes on 64-bit Arm without dot products, and of windows of one row, of which these would
// fill a quarter; for the integer kernels of depthwise_conv2d and conv2d_affine, exact.
// Products of two taps are added in 16 bits, pairs in 32: no weight may be -128. Blocks of 16 or 8 channels, the last
// of which may overlap the one before. Included by *_simd.cpp files inside Highway's per-target compilation; buffers of
// 24 KiB lie on the stack.
#if defined(BANTAM_OPS_DEPTHWISE_BYTES_NEON_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BANTAM_OPS_DEPTHWISE_BYTES_NEON_INL_H_
#undef BANTAM_OPS_DEPTHWISE_BYTES_NEON_INL_H_
#else
#define BANTAM_OPS_DEPTHWISE_BYTES_NEON_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <type_traits>

#include "hwy/highway.h"
#include "ops/common/activate_rows.h"
#include "ops/common/activation_steps_simd-inl.h"
#include "ops/common/affine_form.h"
#include "ops/common/byte_rows_neon.h"
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

/// One convolution for which bytes_fit. X: signed bytes, or unsigned ones that stand for 128 less.
template <typename X>
struct ByteProblem {
  const ConvGeometry& g;
  const X* x;
  const std::int8_t* w;  ///< [KH,KW,C]
  std::int32_t x_zero;   ///< of the signed bytes
  std::uint8_t* y;
  std::uint8_t flip;  ///< bits of the results that are inverted
  bool overlaps;      ///< y is written over x, kMaxRunPixels at a time

  std::int64_t taps() const { return static_cast<std::int64_t>(g.vertical.kernel) * g.horizontal.kernel; }
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

/// The last stage of all blocks.
struct ByteEnd {
  neon::ByteRows bytes;
  const AffineScaler* activated;  ///< not null: results have an activation

  template <class Scaler>
  ByteEnd(const Scaler& scaler, std::uint8_t flip)
      : bytes(scaler.zero_point, scaler.minimum, scaler.maximum, flip), activated(activated_scaler(scaler)) {}
};

/// What is the same for all windows in 8 * kHalves channels. Scale: a vector of four channels of the last stage, made
/// of a Scaler.
template <int kHalves, class Scale, typename X>
class ByteBlock {
 public:
  static constexpr std::int64_t kChannels = 8 * kHalves;

  template <class Scaler>
  HWY_INLINE ByteBlock(const ByteProblem<X>& p, const Scaler& scaler, std::int64_t c)
      : ByteBlock(p, scaler, c, std::make_integer_sequence<int, kVectors>()) {}

  /// Pixels [first, first + count) of a run. y: of the run's first pixel, channel 0.
  HWY_INLINE void convolve(const PixelRun<X, std::int8_t>& run, const ByteTaps& taps, const ByteEnd& end,
                           std::uint8_t* y, std::int64_t y_step, std::int64_t first, std::int64_t count) const {
    const Window window{taps, run.w + c_, run.x_step, y_step, end};
    int32x4_t start[kVectors];
    std::copy_n(start_, kVectors, start);
    if (taps.count != whole_)
      weigh(
          start, [&](std::int64_t t) { return window.w + taps.at[t].w; }, taps.count);
    const X* x = run.x + c_ + first * run.x_step;
    y += c_ + first * y_step;
    for (; count >= kMaxRunPixels; count -= kMaxRunPixels, x += kMaxRunPixels * run.x_step, y += kMaxRunPixels * y_step)
      convolve_pixels<kMaxRunPixels>(window, start, x, y);
    for (; count > 0; --count, x += run.x_step, y += y_step) convolve_pixels<1>(window, start, x, y);
  }

 private:
  static constexpr int kVectors = 2 * kHalves;
  using D32 = hn::CappedTag<std::int32_t, 4>;
  using V32 = hn::Vec<D32>;

  struct Window {
    const ByteTaps& taps;
    const std::int8_t* w;  ///< of the block
    std::int64_t x_step;
    std::int64_t y_step;
    const ByteEnd& end;
  };

  template <class Scaler, int... kIndices>
  HWY_INLINE ByteBlock(const ByteProblem<X>& p, const Scaler& scaler, std::int64_t c,
                       std::integer_sequence<int, kIndices...>)
      : c_(c), x_zero_(p.x_zero), whole_(p.taps()), scale_{Scale({}, scaler, c + 4 * kIndices, 4)...} {
    weigh(
        start_, [&](std::int64_t t) { return p.w + t * p.g.x.c + c; }, whole_);
  }

  /// What sums of so many taps start at: the zero point of x taken off. weights(t): of tap t.
  template <class F>
  HWY_INLINE void weigh(int32x4_t (&start)[kVectors], F weights, std::int64_t taps) const {
    int16x8_t low = vdupq_n_s16(0);
    int16x8_t high = low;
    for (std::int64_t t = 0; t < taps; ++t) {
      const int8x16_t w = load(weights(t));
      low = vaddw_s8(low, vget_low_s8(w));
      high = vaddw_high_s8(high, w);
    }
    const int16x8_t sums[] = {low, high};
    ops::HWY_NAMESPACE::unroll<kHalves>([&](auto h) HWY_ATTR {
      start[2 * h] = vmulq_n_s32(vmovl_s16(vget_low_s16(sums[h])), -x_zero_);
      start[2 * h + 1] = vmulq_n_s32(vmovl_high_s16(sums[h]), -x_zero_);
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
  HWY_INLINE void convolve_pixels(const Window& window, const int32x4_t (&start)[kVectors], const X* x,
                                  std::uint8_t* y) const {
    using ops::HWY_NAMESPACE::unroll;
    const ByteTaps::Tap* taps = window.taps.at;
    const int count = window.taps.count;
    const std::int8_t* w = window.w;
    const std::int64_t x_step = window.x_step;
    int32x4_t sums[kPixels][kVectors];
    unroll<kPixels>([&](auto i) HWY_ATTR { unroll<kVectors>([&](auto v) HWY_ATTR { sums[i][v] = start[v]; }); });
    int t = 0;
    for (; t + 2 <= count; t += 2) {
      const int8x16_t w0 = load(w + taps[t].w);
      const int8x16_t w1 = load(w + taps[t + 1].w);
      unroll<kPixels>([&](auto i) HWY_ATTR {
        const int8x16_t x0 = load(x + i * x_step + taps[t].x);
        const int8x16_t x1 = load(x + i * x_step + taps[t + 1].x);
        add(vmlal_s8(vmull_s8(vget_low_s8(x0), vget_low_s8(w0)), vget_low_s8(x1), vget_low_s8(w1)), sums[i]);
        if constexpr (kHalves == 2) add(vmlal_high_s8(vmull_high_s8(x0, w0), x1, w1), sums[i] + 2);
      });
    }
    if (t < count) {
      const int8x16_t w0 = load(w + taps[t].w);
      unroll<kPixels>([&](auto i) HWY_ATTR {
        const int8x16_t x0 = load(x + i * x_step + taps[t].x);
        add(vmull_s8(vget_low_s8(x0), vget_low_s8(w0)), sums[i]);
        if constexpr (kHalves == 2) add(vmull_high_s8(x0, w0), sums[i] + 2);
      });
    }
    if constexpr (requires(V32 v) { scale_[0].argument(v); }) {
      if (window.end.activated != nullptr) return store_activated(window.end, sums, y, window.y_step);
    }
    // One vector of channels after the other: what scales them is loaded once for all pixels.
    unroll<kVectors>([&](auto v) HWY_ATTR {
      const Scale scale = scale_[v];
      unroll<kPixels>([&](auto i) HWY_ATTR { sums[i][v] = scale.template rounded<false>(V32(sums[i][v])).raw; });
    });
    unroll<kPixels>([&](auto i) HWY_ATTR { window.end.bytes.store(sums[i], y + i * window.y_step); });
  }

  template <int kPixels>
  HWY_NOINLINE void store_activated(const ByteEnd& end, const int32x4_t (&sums)[kPixels][kVectors], std::uint8_t* y,
                                    std::int64_t y_step) const {
    using ops::HWY_NAMESPACE::unroll;
    const bool is_short = ops::HWY_NAMESPACE::with_short_steps(*end.activated, [&](const auto& steps) HWY_ATTR {
      int32x4_t results[kPixels][kVectors];
      unroll<kVectors>([&](auto v) HWY_ATTR {
        const Scale scale = scale_[v];
        unroll<kPixels>([&](auto i) HWY_ATTR { results[i][v] = scale.activated(steps, V32(sums[i][v])).raw; });
      });
      unroll<kPixels>([&](auto i) HWY_ATTR { end.bytes.store(results[i], y + i * y_step); });
    });
    if (is_short) return;
    std::int32_t numbers[kPixels][4 * kVectors];
    unroll<kVectors>([&](auto v) HWY_ATTR {
      const Scale scale = scale_[v];
      unroll<kPixels>([&](auto i) HWY_ATTR {
        vst1q_s32(numbers[i] + 4 * v, hn::BitCast(D32(), scale.argument(V32(sums[i][v]))).raw);
      });
    });
    round_activated(*end.activated, numbers[0], kPixels * 4 * kVectors);
    unroll<kPixels>([&](auto i) HWY_ATTR {
      int32x4_t results[kVectors];
      unroll<kVectors>([&](auto v) HWY_ATTR { results[v] = vld1q_s32(numbers[i] + 4 * v); });
      end.bytes.store(results, y + i * y_step);
    });
  }

  std::int64_t c_;
  std::int32_t x_zero_;
  std::int64_t whole_;  ///< taps of windows within the image
  Scale scale_[kVectors];
  int32x4_t start_[kVectors];
};

/// Neighbouring blocks, as many as there is room for.
template <class Block>
class ByteBlocks {
 public:
  static constexpr std::int64_t kMost = 32;

  /// Those of channels from `first` on.
  template <class Problem, class Scaler>
  HWY_NOINLINE void make(const Problem& p, const Scaler& scaler, std::int64_t first) {
    const std::int64_t channels = p.g.x.c;
    count_ = 0;
    for (std::int64_t c = first; c < channels && count_ < kMost; c += Block::kChannels)
      new (at(count_++)) Block(p, scaler, std::min(c, channels - Block::kChannels));
  }

  const Block* begin() const { return std::launder(reinterpret_cast<const Block*>(room_)); }
  const Block* end() const { return begin() + count_; }

 private:
  static_assert(std::is_trivially_destructible_v<Block> && sizeof(Block) <= 768);

  void* at(std::int64_t i) { return room_ + i * static_cast<std::int64_t>(sizeof(Block)); }

  alignas(Block) std::byte room_[kMost * sizeof(Block)];
  std::int64_t count_ = 0;
};

template <int kHalves, class Scale, class Scaler, typename X>
HWY_NOINLINE void convolve_byte_blocks(const ByteProblem<X>& p, const Scaler& scaler, std::int64_t begin,
                                       std::int64_t end) {
  using Block = ByteBlock<kHalves, Scale, X>;
  constexpr std::int64_t kRoom = ByteBlocks<Block>::kMost * Block::kChannels;
  const ConvGeometry& g = p.g;
  // Blocks are made once; but where results are written over the operand, all channels of some pixels belong together.
  const bool apart = p.overlaps && g.x.c > kRoom;
  const ByteEnd last(scaler, p.flip);
  ByteBlocks<Block> blocks;
  const auto convolve_pixels = [&](const PixelRun<X, std::int8_t>& run, const ByteTaps& taps, std::uint8_t* y,
                                   std::int64_t first, std::int64_t count) HWY_ATTR {
    for (std::int64_t c = 0; c < (apart ? g.x.c : 1); c += kRoom) {
      if (apart) blocks.make(p, scaler, c);
      for (const Block& block : blocks) block.convolve(run, taps, last, y, g.y.w_stride, first, count);
    }
  };
  for (std::int64_t c = 0; c < (apart ? 1 : g.x.c); c += kRoom) {
    if (!apart) blocks.make(p, scaler, c);
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int64_t n = row / g.y.h;
      const std::int64_t oy = row % g.y.h;
      for_each_run(g, p.x, p.w, n, oy, [&](const PixelRun<X, std::int8_t>& run, std::int64_t ox, std::int64_t count) {
        const ByteTaps taps(run);
        const std::int64_t at_once = p.overlaps ? kMaxRunPixels : count;
        for (std::int64_t first = 0; first < count; first += at_once)
          convolve_pixels(run, taps, p.y + g.y.offset(n, oy, ox), first, std::min(at_once, count - first));
      });
    }
  }
}

/// Output rows [begin, end) of all items.
template <class Scale, class Scaler, typename X>
void convolve_bytes(const ByteProblem<X>& p, const Scaler& scaler, std::int64_t begin, std::int64_t end) {
  if (p.g.x.c >= 2 * kLeastByteChannels) {
    convolve_byte_blocks<2, Scale>(p, scaler, begin, end);
  } else {
    convolve_byte_blocks<1, Scale>(p, scaler, begin, end);
  }
}

#endif

}  // namespace bantam::ops::depthwise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
