// Depthwise convolution of bytes where the processor multiplies quads of them (VNNI), for the integer kernels of
// depthwise_conv2d and conv2d_affine; exact. Of each image column up to four kernel rows are interleaved, so that a
// quad holds one channel of them: neighbouring windows share it. Blocks of 64 channels; the sums of a block come in an
// order that interleaving has made and that packing to bytes unmakes. Columns outside the image stand for zero like the
// zero point. Included by *_simd.cpp files inside Highway's per-target compilation; buffers of 12 KiB lie on the stack.
#if defined(BANTAM_OPS_DEPTHWISE_QUADS_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BANTAM_OPS_DEPTHWISE_QUADS_SIMD_INL_H_
#undef BANTAM_OPS_DEPTHWISE_QUADS_SIMD_INL_H_
#else
#define BANTAM_OPS_DEPTHWISE_QUADS_SIMD_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "hwy/highway.h"
#include "ops/common/affine_simd-inl.h"
#include "ops/common/quad_products_simd-inl.h"
#include "ops/common/requantize_simd-inl.h"
#include "ops/nn/conv2d/geometry.h"
#include "ops/nn/depthwise_conv2d/pixel_run.h"
#include "ops/nn/gemm/gemm_i8.h"
#include "ops/nn/gemm/unroll-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::depthwise::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// One convolution. y is dense in channels and has bytes.
struct QuadProblem {
  const ConvGeometry& g;
  const std::uint8_t* x;
  gemm::ByteForm form;
  const std::int8_t* w;  ///< [KH,KW,C]
  std::uint8_t* y;
  bool overlaps;  ///< y is written over x, kMaxRunPixels at a time
};

#if HWY_TARGET == HWY_AVX3_DL && HWY_ARCH_X86

using D8 = hn::CappedTag<std::uint8_t, 64>;
using D32 = hn::CappedTag<std::int32_t, 16>;
using V8 = hn::Vec<D8>;
using V32 = hn::Vec<D32>;
using ops::HWY_NAMESPACE::add_quad_products;
constexpr std::int64_t kBlock = 64;    ///< channels
constexpr std::int64_t kMaxTaps = 16;  ///< quads of kernel rows times kernel columns
constexpr std::int64_t kMaxColumns = 32;
constexpr std::int32_t kMaxKernelRows = 8;

inline std::int32_t row_quads(const ConvGeometry& g) { return (g.vertical.kernel + 3) / 4; }
inline std::int64_t window_columns(const ConvGeometry& g) {
  return static_cast<std::int64_t>(g.horizontal.kernel - 1) * g.horizontal.dilation + 1;
}

/// Is the window small enough for the buffers, and are there channels enough that a block does not waste its time?
inline bool quads_fit(const ConvGeometry& g) {
  constexpr std::int32_t kLeastChannels = 32;
  return g.x.c >= kLeastChannels && g.vertical.kernel <= kMaxKernelRows &&
         row_quads(g) * static_cast<std::int64_t>(g.horizontal.kernel) <= kMaxTaps &&
         window_columns(g) * row_quads(g) <= kMaxColumns;
}

/// The 64 channels of four rows as quads: quad i of vector j belongs to channel 16 (i / 4) + 4 j + i % 4.
struct Quads {
  V8 v[4];

  HWY_INLINE Quads(V8 a, V8 b, V8 c, V8 d) {
    const hn::Repartition<std::uint16_t, D8> d16;
    const D8 d8;
    const auto low_ab = hn::BitCast(d16, hn::InterleaveLower(d8, a, b));
    const auto low_cd = hn::BitCast(d16, hn::InterleaveLower(d8, c, d));
    const auto high_ab = hn::BitCast(d16, hn::InterleaveUpper(d8, a, b));
    const auto high_cd = hn::BitCast(d16, hn::InterleaveUpper(d8, c, d));
    v[0] = hn::BitCast(d8, hn::InterleaveLower(d16, low_ab, low_cd));
    v[1] = hn::BitCast(d8, hn::InterleaveUpper(d16, low_ab, low_cd));
    v[2] = hn::BitCast(d8, hn::InterleaveLower(d16, high_ab, high_cd));
    v[3] = hn::BitCast(d8, hn::InterleaveUpper(d16, high_ab, high_cd));
  }
  HWY_INLINE void store(std::uint8_t* to) const {
    for (int j = 0; j < 4; ++j) hn::Store(v[j], D8(), to + j * kBlock);
  }
};

/// The 32-bit `values` of channels [0, channels) of a block, or one for all, as the sums are ordered.
HWY_INLINE void order_channels(const void* values, bool several, std::int64_t channels, std::int32_t* to) {
  const D32 d;
  // Bits of whatever type: floats too.
  const auto* bits = static_cast<const std::int32_t*>(values);
  std::int32_t first;
  __builtin_memcpy(&first, values, sizeof first);
  V32 in[4];
  for (int i = 0; i < 4; ++i) {
    const std::int64_t left = std::clamp<std::int64_t>(channels - 16 * i, 0, 16);
    in[i] = several ? hn::MaskedLoad(hn::FirstN(d, static_cast<std::size_t>(left)), d, bits + (left > 0 ? 16 * i : 0))
                    : hn::Set(d, first);
  }
  // Lane group l of vector i becomes lane group i of vector l.
  HWY_ALIGN std::int32_t rows[kBlock];
  for (int i = 0; i < 4; ++i) hn::Store(in[i], d, rows + 16 * i);
  const hn::CappedTag<std::int32_t, 4> quarter;
  for (int i = 0; i < 4; ++i)
    for (int l = 0; l < 4; ++l) hn::Store(hn::Load(quarter, rows + 16 * i + 4 * l), quarter, to + 16 * l + 4 * i);
}

/// A block's scalers, made of `count` arrays of one number per channel, put in order.
template <int kCount>
struct OrderedChannels {
  HWY_ALIGN std::int32_t numbers[kCount][kBlock];

  template <typename T>
  const T* as(int i) const {
    return reinterpret_cast<const T*>(numbers[i]);
  }
};

/// The last stage of a block of channels: numbers in the range of int8 in place of the sums of some pixels.
class AffineBlock {
 public:
  HWY_INLINE AffineBlock(const AffineScaler& scaler, std::int64_t first, std::int64_t channels)
      : AffineBlock(scaler, ordered(scaler.from_channel(first), channels)) {}

  template <int kPixels>
  HWY_INLINE void operator()(V32 (&sums)[kPixels][4]) const {
    using ops::HWY_NAMESPACE::unroll;
    if (!scaler_->has_activation()) {
      unroll<kPixels>([&](auto i)
                          HWY_ATTR { unroll<4>([&](auto j) HWY_ATTR { sums[i][j] = scale_[j](sums[i][j]); }); });
      return;
    }
    HWY_ALIGN std::int32_t numbers[kPixels * kBlock];
    unroll<kPixels>([&](auto i) HWY_ATTR {
      unroll<4>([&](auto j) HWY_ATTR {
        hn::Store(hn::BitCast(D32(), scale_[j].real(sums[i][j])), D32(), numbers + i * kBlock + 16 * j);
      });
    });
    quantize_activated(*scaler_, numbers, kPixels * kBlock);
    unroll<kPixels>([&](auto i) HWY_ATTR {
      unroll<4>([&](auto j) HWY_ATTR { sums[i][j] = hn::Load(D32(), numbers + i * kBlock + 16 * j); });
    });
  }
  std::uint8_t flip() const { return scaler_->flip; }

 private:
  using Scale = ops::HWY_NAMESPACE::AffineVector<D32>;
  using Ordered = OrderedChannels<2>;

  static HWY_INLINE Ordered ordered(const AffineScaler& s, std::int64_t channels) {
    Ordered result{};
    if (s.bias != nullptr) order_channels(s.bias, true, channels, result.numbers[0]);
    if (s.real_bias != nullptr) order_channels(s.real_bias, true, channels, result.numbers[0]);
    order_channels(s.scale, s.per_channel, channels, result.numbers[1]);
    return result;
  }
  static HWY_INLINE Scale make(AffineScaler s, const Ordered& o, std::int64_t j) {
    if (s.has_activation()) {
      s.real_bias = o.as<float>(0);
    } else {
      s.bias = o.as<std::int32_t>(0);
    }
    s.scale = o.as<float>(1);
    s.per_channel = true;
    return Scale(D32(), s, 16 * j, 16);
  }
  HWY_INLINE AffineBlock(const AffineScaler& s, const Ordered& o)
      : scale_{make(s, o, 0), make(s, o, 1), make(s, o, 2), make(s, o, 3)}, scaler_(&s) {}

  Scale scale_[4];
  const AffineScaler* scaler_;  ///< an object elsewhere, so that copies of this one may live in registers
};

/// The same for TensorFlow Lite's arithmetic.
class RequantizeBlock {
 public:
  HWY_INLINE RequantizeBlock(const Requantizer& requantizer, std::int64_t first, std::int64_t channels)
      : RequantizeBlock(requantizer, ordered(requantizer.from_channel(first), channels)) {}

  template <int kPixels>
  HWY_INLINE void operator()(V32 (&sums)[kPixels][4]) const {
    using ops::HWY_NAMESPACE::unroll;
    const auto requantize = [&](auto usual) HWY_ATTR {
      unroll<kPixels>([&](auto i) HWY_ATTR {
        unroll<4>([&](auto j) HWY_ATTR { sums[i][j] = requantize_[j].template result<usual>(sums[i][j]); });
      });
    };
    is_usual_ ? requantize(std::true_type()) : requantize(std::false_type());
  }
  std::uint8_t flip() const { return 0; }

 private:
  using Requantize = ops::HWY_NAMESPACE::RequantizeVector<D32>;
  using Ordered = OrderedChannels<3>;

  static HWY_INLINE Ordered ordered(const Requantizer& r, std::int64_t channels) {
    Ordered result{};
    if (r.bias != nullptr) order_channels(r.bias, true, channels, result.numbers[0]);
    order_channels(r.multiplier, true, channels, result.numbers[1]);
    order_channels(r.shift, true, channels, result.numbers[2]);
    return result;
  }
  static HWY_INLINE Requantize make(Requantizer r, const Ordered& o, std::int64_t j) {
    r.bias = o.as<std::int32_t>(0);
    r.multiplier = o.as<std::int32_t>(1);
    r.shift = o.as<std::int32_t>(2);
    return Requantize(D32(), r, 16 * j, 16);
  }
  HWY_INLINE RequantizeBlock(const Requantizer& r, const Ordered& o)
      : requantize_{make(r, o, 0), make(r, o, 1), make(r, o, 2), make(r, o, 3)},
        is_usual_(requantize_[0].is_usual() && requantize_[1].is_usual() && requantize_[2].is_usual() &&
                  requantize_[3].is_usual()) {}

  Requantize requantize_[4];
  bool is_usual_;
};

/// What is the same for all pixels of a block of channels.
template <class Finish>
class QuadBlock {
 public:
  template <class Scaler>
  HWY_INLINE QuadBlock(const QuadProblem& p, const Scaler& scaler, std::int64_t first)
      : p_(p),
        first_(first),
        row_quads_(row_quads(p.g)),
        mask_(hn::FirstN(D8(), static_cast<std::size_t>(std::min(kBlock, p.g.x.c - first)))),
        finish_(scaler, first, std::min(kBlock, p.g.x.c - first)) {
    load_weights();
  }

  /// `count` output pixels of row oy of item n, from column ox on.
  HWY_INLINE void convolve(std::int64_t n, std::int64_t oy, std::int64_t ox, std::int64_t count) const {
    const std::int64_t stride = p_.g.horizontal.stride;
    const std::int64_t most = (kMaxColumns / row_quads_ - window_columns(p_.g)) / stride + 1;
    HWY_ALIGN std::uint8_t columns[kMaxColumns * 4 * kBlock];
    for (std::int64_t done = 0; done < count;) {
      const std::int64_t pixels = std::min(most, count - done);
      const std::int64_t x0 = window_origin(p_.g.horizontal, ox + done);
      interleave(n, window_origin(p_.g.vertical, oy), x0, (pixels - 1) * stride + window_columns(p_.g), columns);
      std::uint8_t* y = p_.y + p_.g.y.offset(n, oy, ox + done) + first_;
      std::int64_t i = 0;
      const std::int64_t step = stride * column_bytes();
      for (; i + 4 <= pixels; i += 4) convolve_pixels<4>(finish_, columns + i * step, y + i * p_.g.y.w_stride);
      for (; i < pixels; ++i) convolve_pixels<1>(finish_, columns + i * step, y + i * p_.g.y.w_stride);
      done += pixels;
    }
  }

 private:
  std::int64_t column_bytes() const { return row_quads_ * 4 * kBlock; }

  HWY_INLINE V8 load(const std::uint8_t* from) const { return hn::MaskedLoad(mask_, D8(), from); }

  /// Also what sums start at: the zero point of x taken off.
  HWY_INLINE void load_weights() {
    const std::int64_t taps = p_.g.horizontal.kernel;
    const auto* w = reinterpret_cast<const std::uint8_t*>(p_.w) + first_;
    const auto ones = hn::BitCast(D32(), hn::Set(D8(), std::uint8_t{1}));
    V32 sums[4] = {hn::Zero(D32()), hn::Zero(D32()), hn::Zero(D32()), hn::Zero(D32())};
    std::uint8_t* to = weights_;
    for (std::int64_t kx = 0; kx < taps; ++kx)
      for (std::int32_t quad = 0; quad < row_quads_; ++quad, to += 4 * kBlock) {
        V8 rows[4];
        for (int i = 0; i < 4; ++i) {
          const std::int64_t ky = 4 * quad + i;
          rows[i] = ky < p_.g.vertical.kernel ? load(w + (ky * taps + kx) * p_.g.x.c) : hn::Zero(D8());
        }
        const Quads quads(rows[0], rows[1], rows[2], rows[3]);
        quads.store(to);
        for (int j = 0; j < 4; ++j) sums[j] = add_quad_products(sums[j], ones, hn::BitCast(D32(), quads.v[j]));
      }
    for (int j = 0; j < 4; ++j) start_[j] = hn::Mul(sums[j], hn::Set(D32(), -p_.form.zero));
  }

  /// Image columns [x0, x0 + count) of the rows that the window from y0 on sees.
  HWY_INLINE void interleave(std::int64_t n, std::int64_t y0, std::int64_t x0, std::int64_t count,
                             std::uint8_t* to) const {
    const ImageShape& x = p_.g.x;
    const std::int64_t inside = std::clamp<std::int64_t>(x0, 0, x.w);
    const std::int64_t inside_end = std::clamp<std::int64_t>(x0 + count, 0, x.w);
    for (std::int32_t quad = 0; quad < row_quads_; ++quad, to += 4 * kBlock) {
      // Rows outside the image, and those that no kernel has, are this one again and again.
      HWY_ALIGN std::uint8_t outside[kBlock];
      hn::Store(hn::Set(D8(), static_cast<std::uint8_t>(p_.form.zero ^ p_.form.flip)), D8(), outside);
      const std::uint8_t* rows[4];
      std::int64_t steps[4];
      for (int i = 0; i < 4; ++i) {
        const std::int64_t iy = y0 + (4 * quad + std::int64_t{i}) * p_.g.vertical.dilation;
        const bool is_row = 4 * quad + i < p_.g.vertical.kernel && iy >= 0 && iy < x.h;
        rows[i] = is_row ? p_.x + x.offset(n, iy, inside) + first_ : outside;
        steps[i] = is_row ? x.w_stride : 0;
      }
      interleave_rows(rows, steps, inside_end - inside, to + (inside - x0) * column_bytes());
      const V8 zero = hn::Set(D8(), static_cast<std::uint8_t>(p_.form.zero));
      for (std::int64_t i = 0; i < count; ++i)
        if (x0 + i < inside || x0 + i >= inside_end) Quads(zero, zero, zero, zero).store(to + i * column_bytes());
    }
  }

  HWY_INLINE void interleave_rows(const std::uint8_t* const* rows, const std::int64_t* steps, std::int64_t count,
                                  std::uint8_t* to) const {
    const std::uint8_t *a = rows[0], *b = rows[1], *c = rows[2], *d = rows[3];
    const std::int64_t a_step = steps[0], b_step = steps[1], c_step = steps[2], d_step = steps[3];
    const std::int64_t to_step = column_bytes();
    const auto mask = mask_;
    const V8 flip = hn::Set(D8(), p_.form.flip);
    const auto flipped = [&](const std::uint8_t* from)
                             HWY_ATTR { return hn::Xor(hn::MaskedLoad(mask, D8(), from), flip); };
    for (; count > 0; --count, to += to_step) {
      Quads(flipped(a), flipped(b), flipped(c), flipped(d)).store(to);
      a += a_step;
      b += b_step;
      c += c_step;
      d += d_step;
    }
  }

  template <int kPixels>
  HWY_INLINE void convolve_pixels(const Finish finish, const std::uint8_t* columns, std::uint8_t* y) const {
    using ops::HWY_NAMESPACE::unroll;
    const std::int64_t y_step = p_.g.y.w_stride;
    const auto mask = mask_;
    const auto flip = hn::Set(D8(), finish.flip());
    V32 sums[kPixels][4];
    unroll<kPixels>([&](auto i) HWY_ATTR { unroll<4>([&](auto j) HWY_ATTR { sums[i][j] = start_[j]; }); });
    const std::int64_t pixel_step = p_.g.horizontal.stride * column_bytes();
    const std::uint8_t* w = weights_;
    for (std::int32_t kx = 0; kx < p_.g.horizontal.kernel; ++kx) {
      const std::uint8_t* x = columns + static_cast<std::int64_t>(kx) * p_.g.horizontal.dilation * column_bytes();
      for (std::int32_t quad = 0; quad < row_quads_; ++quad, x += 4 * kBlock, w += 4 * kBlock) {
        V32 weights[4];
        unroll<4>([&](auto j) HWY_ATTR { weights[j] = hn::BitCast(D32(), hn::Load(D8(), w + j * kBlock)); });
        unroll<kPixels>([&](auto i) HWY_ATTR {
          unroll<4>([&](auto j) HWY_ATTR {
            const auto bytes = hn::BitCast(D32(), hn::Load(D8(), x + i * pixel_step + j * kBlock));
            sums[i][j] = add_quad_products(sums[i][j], bytes, weights[j]);
          });
        });
      }
    }
    finish(sums);
    unroll<kPixels>([&](auto i) HWY_ATTR {
      const auto low = _mm512_packs_epi32(sums[i][0].raw, sums[i][1].raw);
      const auto high = _mm512_packs_epi32(sums[i][2].raw, sums[i][3].raw);
      hn::BlendedStore(hn::Xor(V8{_mm512_packs_epi16(low, high)}, flip), mask, D8(), y + i * y_step);
    });
  }

  const QuadProblem& p_;
  std::int64_t first_;
  std::int32_t row_quads_;
  hn::Mask<D8> mask_;
  Finish finish_;
  V32 start_[4];
  HWY_ALIGN std::uint8_t weights_[kMaxTaps * 4 * kBlock];
};

/// Output rows [begin, end), counted through all items: make_block(c) makes what convolves kChannels channels from the
/// c-th on. One block follows the other over a band of rows, of which kBandBytes are read, so that these stay in a
/// cache; but where results are written over what further blocks read, over few pixels.
template <std::int64_t kChannels, std::int64_t kBandBytes, class MakeBlock>
HWY_INLINE void convolve_blocks(const QuadProblem& p, std::int64_t begin, std::int64_t end,
                                const MakeBlock& make_block) {
  const ConvGeometry& g = p.g;
  if (p.overlaps && g.x.c > kChannels) {
    for (std::int64_t row = begin; row < end; ++row)
      for (std::int64_t ox = 0; ox < g.y.w; ox += kMaxRunPixels)
        for (std::int64_t c = 0; c < g.x.c; c += kChannels)
          make_block(c).convolve(row / g.y.h, row % g.y.h, ox, std::min<std::int64_t>(kMaxRunPixels, g.y.w - ox));
    return;
  }
  const std::int64_t row_bytes = std::max<std::int64_t>(static_cast<std::int64_t>(g.x.w) * g.x.c, 1);
  const std::int64_t band = std::max<std::int64_t>(kBandBytes / row_bytes, 1);
  for (std::int64_t first = begin; first < end; first += band)
    for (std::int64_t c = 0; c < g.x.c; c += kChannels) {
      const auto block = make_block(c);
      for (std::int64_t row = first; row < std::min(first + band, end); ++row)
        block.convolve(row / g.y.h, row % g.y.h, 0, g.y.w);
    }
}

/// Output rows [begin, end), counted through all items.
template <class Finish, class Scaler>
HWY_NOINLINE void convolve_quads(const QuadProblem& p, const Scaler& scaler, std::int64_t begin, std::int64_t end) {
  constexpr std::int64_t kBandBytes = 24576;  // what the first cache keeps
  convolve_blocks<kBlock, kBandBytes>(p, begin, end,
                                      [&](std::int64_t c) HWY_ATTR { return QuadBlock<Finish>(p, scaler, c); });
}
#endif

}  // namespace bantam::ops::depthwise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
