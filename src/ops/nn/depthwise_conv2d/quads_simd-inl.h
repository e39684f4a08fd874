// Depthwise convolution of bytes where the processor multiplies quads of them (VNNI), for the integer kernels of
// depthwise_conv2d and conv2d_affine; exact. Of each image column up to four kernel rows are interleaved, so that a
// quad holds one channel of them: neighbouring windows share it. Blocks of 64 channels; the sums of a block come in an
// order that interleaving has made and that packing to bytes unmakes. Columns outside the image stand for zero like the
// zero point. Included by *_simd.cpp files inside Highway's per-target compilation; buffers of 16 KiB lie on the stack.
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
#include "ops/common/byte_rows_avx512-inl.h"
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
constexpr std::int64_t kMaxTaps = 32;  ///< quads of kernel rows times kernel columns times rows at once
constexpr std::int64_t kMaxColumns = 32;
constexpr std::int32_t kMaxKernelRows = 8;

inline std::int32_t row_quads(const ConvGeometry& g) { return (g.vertical.kernel + 3) / 4; }
inline std::int64_t window_columns(const ConvGeometry& g) {
  return static_cast<std::int64_t>(g.horizontal.kernel - 1) * g.horizontal.dilation + 1;
}

/// Output rows that see no more rows of the image than four times row_quads(): they share what is interleaved.
inline std::int64_t quad_rows(const ConvGeometry& g) {
  if (g.vertical.stride != 1 || g.vertical.dilation != 1) return 1;
  const std::int64_t taps = row_quads(g) * static_cast<std::int64_t>(g.horizontal.kernel);
  return std::min<std::int64_t>(4 * row_quads(g) - g.vertical.kernel + 1, std::max<std::int64_t>(kMaxTaps / taps, 1));
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

/// The bytes of some pixels, in the order of channels: number(i, j) is what `pack` takes instead of sums j of pixel i.
template <int kPixels, class F>
HWY_INLINE void pack_pixels(const ops::HWY_NAMESPACE::BytePacker& pack, V8 (&bytes)[kPixels], F number) {
  ops::HWY_NAMESPACE::unroll<kPixels>([&](auto i) HWY_ATTR {
    V32 numbers[4];
    ops::HWY_NAMESPACE::unroll<4>([&](auto j) HWY_ATTR { numbers[j] = number(i, j); });
    bytes[i] = V8{pack(numbers[0].raw, numbers[1].raw, numbers[2].raw, numbers[3].raw)};
  });
}

/// The last stage of a block of channels: bytes of the sums of some pixels, which begin with the bias if that is an
/// integer.
class AffineBlock {
 public:
  HWY_INLINE AffineBlock(const AffineScaler& scaler, std::int64_t first, std::int64_t channels)
      : AffineBlock(scaler, ordered(scaler.from_channel(first), channels)) {}

  /// Of sums j.
  HWY_INLINE V32 bias(int j) const { return bias_[j]; }

  template <int kPixels>
  HWY_INLINE void operator()(V32 (&sums)[kPixels][4], V8 (&bytes)[kPixels]) const {
    if (scaler_->has_activation()) return activate(sums, bytes);
    is_usual_ ? pack_as<true>(sums, bytes) : pack_unusual(sums, bytes);
  }

 private:
  using Scale = ops::HWY_NAMESPACE::AffineVector<D32>;
  using Ordered = OrderedChannels<2>;

  template <bool kUsual, int kPixels>
  HWY_INLINE void pack_as(V32 (&sums)[kPixels][4], V8 (&bytes)[kPixels]) const {
    pack_pixels(pack_, bytes,
                [&](auto i, auto j) HWY_ATTR { return scale_[j].template rounded_total<kUsual>(sums[i][j]); });
  }
  /// Apart, so that the registers are the usual way's.
  template <int kPixels>
  HWY_NOINLINE void pack_unusual(V32 (&sums)[kPixels][4], V8 (&bytes)[kPixels]) const {
    pack_as<false>(sums, bytes);
  }
  template <int kPixels>
  HWY_NOINLINE void activate(V32 (&sums)[kPixels][4], V8 (&bytes)[kPixels]) const {
    using ops::HWY_NAMESPACE::unroll;
    HWY_ALIGN std::int32_t numbers[kPixels * kBlock];
    unroll<kPixels>([&](auto i) HWY_ATTR {
      unroll<4>([&](auto j) HWY_ATTR {
        hn::Store(hn::BitCast(D32(), scale_[j].real(sums[i][j])), D32(), numbers + i * kBlock + 16 * j);
      });
    });
    round_activated(*scaler_, numbers, kPixels * kBlock);
    pack_pixels(pack_, bytes, [&](auto i, auto j) HWY_ATTR { return hn::Load(D32(), numbers + i * kBlock + 16 * j); });
  }

  static HWY_INLINE Ordered ordered(const AffineScaler& s, std::int64_t channels) {
    Ordered result{};
    if (s.bias != nullptr) order_channels(s.bias, true, channels, result.numbers[0]);
    if (s.real_bias != nullptr) order_channels(s.real_bias, true, channels, result.numbers[0]);
    order_channels(s.scale, s.per_channel, channels, result.numbers[1]);
    return result;
  }
  static HWY_INLINE Scale make(AffineScaler s, const Ordered& o, std::int64_t j) {
    s.bias = nullptr;
    if (s.has_activation()) s.real_bias = o.as<float>(0);
    s.scale = o.as<float>(1);
    s.per_channel = true;
    return Scale(D32(), s, 16 * j, 16);
  }
  HWY_INLINE AffineBlock(const AffineScaler& s, const Ordered& o)
      : scale_{make(s, o, 0), make(s, o, 1), make(s, o, 2), make(s, o, 3)},
        pack_(s.zero_point, s.minimum, s.maximum, s.flip),
        is_usual_(scale_[0].is_usual() && scale_[1].is_usual() && scale_[2].is_usual() && scale_[3].is_usual()),
        scaler_(&s) {
    for (int j = 0; j < 4; ++j)
      bias_[j] = s.has_activation() ? hn::Zero(D32()) : hn::Load(D32(), o.as<std::int32_t>(0) + 16 * j);
  }

  V32 bias_[4];
  Scale scale_[4];
  ops::HWY_NAMESPACE::BytePacker pack_;
  bool is_usual_;
  const AffineScaler* scaler_;
};

/// The same for TensorFlow Lite's arithmetic.
class RequantizeBlock {
 public:
  HWY_INLINE RequantizeBlock(const Requantizer& requantizer, std::int64_t first, std::int64_t channels)
      : RequantizeBlock(requantizer, ordered(requantizer.from_channel(first), channels)) {}

  HWY_INLINE V32 bias(int j) const { return bias_[j]; }

  template <int kPixels>
  HWY_INLINE void operator()(V32 (&sums)[kPixels][4], V8 (&bytes)[kPixels]) const {
    is_usual_ ? pack_as<true>(sums, bytes) : pack_unusual(sums, bytes);
  }

 private:
  using Requantize = ops::HWY_NAMESPACE::RequantizeVector<D32>;
  using Ordered = OrderedChannels<3>;

  template <bool kUsual, int kPixels>
  HWY_INLINE void pack_as(V32 (&sums)[kPixels][4], V8 (&bytes)[kPixels]) const {
    pack_pixels(pack_, bytes,
                [&](auto i, auto j) HWY_ATTR { return requantize_[j].template rounded_total<kUsual>(sums[i][j]); });
  }
  template <int kPixels>
  HWY_NOINLINE void pack_unusual(V32 (&sums)[kPixels][4], V8 (&bytes)[kPixels]) const {
    pack_as<false>(sums, bytes);
  }

  static HWY_INLINE Ordered ordered(const Requantizer& r, std::int64_t channels) {
    Ordered result{};
    if (r.bias != nullptr) order_channels(r.bias, true, channels, result.numbers[0]);
    order_channels(r.multiplier, true, channels, result.numbers[1]);
    order_channels(r.shift, true, channels, result.numbers[2]);
    return result;
  }
  static HWY_INLINE Requantize make(Requantizer r, const Ordered& o, std::int64_t j) {
    r.bias = nullptr;
    r.multiplier = o.as<std::int32_t>(1);
    r.shift = o.as<std::int32_t>(2);
    return Requantize(D32(), r, 16 * j, 16);
  }
  HWY_INLINE RequantizeBlock(const Requantizer& r, const Ordered& o)
      : requantize_{make(r, o, 0), make(r, o, 1), make(r, o, 2), make(r, o, 3)},
        pack_(r.zero_point, r.minimum, r.maximum, 0),
        is_usual_(requantize_[0].is_usual() && requantize_[1].is_usual() && requantize_[2].is_usual() &&
                  requantize_[3].is_usual()) {
    for (int j = 0; j < 4; ++j) bias_[j] = hn::Load(D32(), o.as<std::int32_t>(0) + 16 * j);
  }

  V32 bias_[4];
  Requantize requantize_[4];
  ops::HWY_NAMESPACE::BytePacker pack_;
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
        rows_at_once_(quad_rows(p.g)),
        channels_(std::min(kBlock, p.g.x.c - first)),
        mask_(hn::FirstN(D8(), static_cast<std::size_t>(channels_))),
        finish_(scaler, first, channels_) {
    for (std::int64_t row = 0; row < rows_at_once_; ++row) load_weights(row);
    start();
  }

  /// `count` output pixels of each of `rows` <= quad_rows() rows from row oy of item n on, from column ox on.
  HWY_INLINE void convolve(std::int64_t n, std::int64_t oy, std::int64_t rows, std::int64_t ox,
                           std::int64_t count) const {
    channels_ == kBlock ? convolve_as<true>(n, oy, rows, ox, count) : convolve_as<false>(n, oy, rows, ox, count);
  }

 private:
  static constexpr int kPixels = kMaxRunPixels;

  std::int64_t column_bytes() const { return row_quads_ * 4 * kBlock; }
  std::int64_t row_weights() const { return p_.g.horizontal.kernel * column_bytes(); }

  /// kWhole, here and below: has the block all its channels?
  template <bool kWhole>
  HWY_INLINE void convolve_as(std::int64_t n, std::int64_t oy, std::int64_t rows, std::int64_t ox,
                              std::int64_t count) const {
    const std::int64_t stride = p_.g.horizontal.stride;
    const std::int64_t fit = (kMaxColumns / row_quads_ - window_columns(p_.g)) / stride + 1;
    const std::int64_t most = fit >= kPixels ? fit / kPixels * kPixels : fit;
    HWY_ALIGN std::uint8_t columns[kMaxColumns * 4 * kBlock];
    for (std::int64_t done = 0; done < count; done += most) {
      const std::int64_t pixels = std::min(most, count - done);
      interleave<kWhole>(n, window_origin(p_.g.vertical, oy), rows, window_origin(p_.g.horizontal, ox + done),
                         (pixels - 1) * stride + window_columns(p_.g), columns);
      for (std::int64_t row = 0; row < rows; ++row)
        convolve_row<kWhole>(columns, weights_ + row * row_weights(), pixels,
                             p_.y + p_.g.y.offset(n, oy + row, ox + done) + first_);
    }
  }

  /// The last pixels are computed together with some before them, which then come twice.
  template <bool kWhole>
  HWY_INLINE void convolve_row(const std::uint8_t* columns, const std::uint8_t* w, std::int64_t pixels,
                               std::uint8_t* y) const {
    const std::int64_t step = p_.g.horizontal.stride * column_bytes();
    const std::int64_t y_step = p_.g.y.w_stride;
    if (pixels < kPixels) {
      for (std::int64_t i = 0; i < pixels; ++i) convolve_pixels<1, kWhole>(columns + i * step, w, y + i * y_step);
      return;
    }
    for (std::int64_t i = 0; i < pixels; i += kPixels) {
      const std::int64_t at = std::min(i, pixels - kPixels);
      convolve_pixels<kPixels, kWhole>(columns + at * step, w, y + at * y_step);
    }
  }

  HWY_INLINE V8 load_weight(std::int64_t ky, std::int64_t kx) const {
    const WindowAxis& rows = p_.g.vertical;
    if (ky < 0 || ky >= rows.kernel) return hn::Zero(D8());
    const auto* w = reinterpret_cast<const std::uint8_t*>(p_.w) + first_;
    return hn::MaskedLoad(mask_, D8(), w + (ky * p_.g.horizontal.kernel + kx) * p_.g.x.c);
  }

  /// Those of output row `row` of those at once, which sees the interleaved rows from the row-th on.
  HWY_INLINE void load_weights(std::int64_t row) {
    std::uint8_t* to = weights_ + row * row_weights();
    for (std::int64_t kx = 0; kx < p_.g.horizontal.kernel; ++kx)
      for (std::int64_t ky = -row; ky < 4 * row_quads_ - row; ky += 4, to += 4 * kBlock)
        Quads(load_weight(ky, kx), load_weight(ky + 1, kx), load_weight(ky + 2, kx), load_weight(ky + 3, kx)).store(to);
  }

  /// What sums start at: the bias, the zero point of x taken off.
  HWY_INLINE void start() {
    const auto ones = hn::BitCast(D32(), hn::Set(D8(), std::uint8_t{1}));
    V32 sums[4] = {hn::Zero(D32()), hn::Zero(D32()), hn::Zero(D32()), hn::Zero(D32())};
    for (const std::uint8_t* w = weights_; w != weights_ + row_weights(); w += 4 * kBlock)
      for (int j = 0; j < 4; ++j)
        sums[j] = add_quad_products(sums[j], ones, hn::BitCast(D32(), hn::Load(D8(), w + j * kBlock)));
    const auto zero = hn::Set(D32(), p_.form.zero);
    for (int j = 0; j < 4; ++j) start_[j] = hn::Sub(finish_.bias(j), hn::Mul(sums[j], zero));
  }

  /// Image columns [x0, x0 + count) of the rows that the windows of `rows` output rows see, the first from y0 on.
  template <bool kWhole>
  HWY_INLINE void interleave(std::int64_t n, std::int64_t y0, std::int64_t rows, std::int64_t x0, std::int64_t count,
                             std::uint8_t* to) const {
    const ImageShape& x = p_.g.x;
    const std::int64_t inside = std::clamp<std::int64_t>(x0, 0, x.w);
    const std::int64_t inside_end = std::clamp<std::int64_t>(x0 + count, 0, x.w);
    const std::int64_t seen = p_.g.vertical.kernel + rows - 1;
    const V8 zero = hn::Set(D8(), static_cast<std::uint8_t>(p_.form.zero));
    const Quads outside(zero, zero, zero, zero);
    for (std::int32_t quad = 0; quad < row_quads_; ++quad, to += 4 * kBlock) {
      // Rows that there are: others stand for zero like the zero point, or have no weights.
      bool there[4];
      for (int i = 0; i < 4; ++i) {
        const std::int64_t iy = y0 + (4 * quad + std::int64_t{i}) * p_.g.vertical.dilation;
        there[i] = 4 * quad + i < seen && iy >= 0 && iy < x.h;
      }
      const std::uint8_t* from =
          p_.x + x.offset(n, y0 + 4 * std::int64_t{quad} * p_.g.vertical.dilation, inside) + first_;
      for (std::int64_t i = 0; i < inside - x0; ++i) outside.store(to + i * column_bytes());
      const bool all = there[0] && there[1] && there[2] && there[3];
      const auto interleave_inside =
          all && kWhole ? &QuadBlock::interleave_rows<true> : &QuadBlock::interleave_rows<false>;
      (this->*interleave_inside)(from, there, inside_end - inside, to + (inside - x0) * column_bytes());
      for (std::int64_t i = std::max(inside_end, x0) - x0; i < count; ++i) outside.store(to + i * column_bytes());
    }
  }

  /// kPlain: all four rows are there, and have all channels.
  template <bool kPlain>
  HWY_NOINLINE void interleave_rows(const std::uint8_t* from, const bool (&there)[4], std::int64_t count,
                                    std::uint8_t* to) const {
    const std::int64_t row = p_.g.vertical.dilation * p_.g.x.h_stride;
    const std::int64_t column = p_.g.x.w_stride;
    const std::int64_t to_step = column_bytes();
    const V8 flip = hn::Set(D8(), p_.form.flip);
    const V8 outside = hn::Set(D8(), static_cast<std::uint8_t>(p_.form.zero ^ p_.form.flip));
    const auto none = hn::FirstN(D8(), 0);
    const decltype(mask_) masks[4] = {there[0] ? mask_ : none, there[1] ? mask_ : none, there[2] ? mask_ : none,
                                      there[3] ? mask_ : none};
    const auto interleave_as = [&](auto flips) HWY_ATTR {
      const auto load = [&](auto i) HWY_ATTR {
        V8 bytes;
        if constexpr (kPlain) {
          bytes = hn::LoadU(D8(), from + i * row);
        } else {
          bytes = V8{_mm512_mask_loadu_epi8(outside.raw, masks[i].raw, from + i * row)};
        }
        return flips ? hn::Xor(bytes, flip) : bytes;
      };
      using std::integral_constant;
      for (; count > 0; --count, to += to_step, from += column)
        Quads(load(integral_constant<int, 0>()), load(integral_constant<int, 1>()), load(integral_constant<int, 2>()),
              load(integral_constant<int, 3>()))
            .store(to);
    };
    p_.form.flip != 0 ? interleave_as(std::true_type()) : interleave_as(std::false_type());
  }

  template <int kCount, bool kWhole>
  HWY_INLINE void convolve_pixels(const std::uint8_t* columns, const std::uint8_t* w, std::uint8_t* y) const {
    using ops::HWY_NAMESPACE::unroll;
    const std::int64_t y_step = p_.g.y.w_stride;
    const auto mask = mask_;
    V32 sums[kCount][4];
    unroll<kCount>([&](auto i) HWY_ATTR { unroll<4>([&](auto j) HWY_ATTR { sums[i][j] = start_[j]; }); });
    const std::int64_t pixel_step = p_.g.horizontal.stride * column_bytes();
    for (std::int32_t kx = 0; kx < p_.g.horizontal.kernel; ++kx) {
      const std::uint8_t* x = columns + static_cast<std::int64_t>(kx) * p_.g.horizontal.dilation * column_bytes();
      for (std::int32_t quad = 0; quad < row_quads_; ++quad, x += 4 * kBlock, w += 4 * kBlock) {
        V32 weights[4];
        unroll<4>([&](auto j) HWY_ATTR { weights[j] = hn::BitCast(D32(), hn::Load(D8(), w + j * kBlock)); });
        unroll<kCount>([&](auto i) HWY_ATTR {
          unroll<4>([&](auto j) HWY_ATTR {
            const auto bytes = hn::BitCast(D32(), hn::Load(D8(), x + i * pixel_step + j * kBlock));
            sums[i][j] = add_quad_products(sums[i][j], bytes, weights[j]);
          });
        });
      }
    }
    V8 bytes[kCount];
    finish_(sums, bytes);
    unroll<kCount>([&](auto i) HWY_ATTR {
      if constexpr (kWhole) {
        hn::StoreU(bytes[i], D8(), y + i * y_step);
      } else {
        hn::BlendedStore(bytes[i], mask, D8(), y + i * y_step);
      }
    });
  }

  const QuadProblem& p_;
  std::int64_t first_;
  std::int32_t row_quads_;
  std::int64_t rows_at_once_;
  std::int64_t channels_;
  hn::Mask<D8> mask_;
  Finish finish_;
  V32 start_[4];
  HWY_ALIGN std::uint8_t weights_[kMaxTaps * 4 * kBlock];  ///< of the rows at once, one after the other
};

/// Output rows [begin, end), counted through all items. One block follows the other over a band of rows that stay in a
/// cache; but where results are written over what further blocks read, over few pixels.
template <class Finish, class Scaler>
HWY_NOINLINE void convolve_quads(const QuadProblem& p, const Scaler& scaler, std::int64_t begin, std::int64_t end) {
  using Block = QuadBlock<Finish>;
  constexpr std::int64_t kBandBytes = 131072;  // a part of the second cache; the first keeps a block's channels
  const ConvGeometry& g = p.g;
  if (p.overlaps && g.x.c > kBlock) {
    for (std::int64_t row = begin; row < end; ++row)
      for (std::int64_t ox = 0; ox < g.y.w; ox += kMaxRunPixels)
        for (std::int64_t c = 0; c < g.x.c; c += kBlock)
          Block(p, scaler, c)
              .convolve(row / g.y.h, row % g.y.h, 1, ox, std::min<std::int64_t>(kMaxRunPixels, g.y.w - ox));
    return;
  }
  // Rows that are computed together are written before the last of their pixels are read.
  const std::int64_t at_once = p.overlaps ? 1 : quad_rows(g);
  const std::int64_t row_bytes = std::max<std::int64_t>(static_cast<std::int64_t>(g.x.w) * g.x.c, 1);
  const std::int64_t band = align_up(std::max<std::int64_t>(kBandBytes / row_bytes, 1), at_once);
  for (std::int64_t first = begin; first < end; first += band)
    for (std::int64_t c = 0; c < g.x.c; c += kBlock) {
      const Block block(p, scaler, c);
      const std::int64_t last = std::min(first + band, end);
      for (std::int64_t row = first, rows; row < last; row += rows) {
        rows = std::min({at_once, last - row, g.y.h - row % g.y.h});
        block.convolve(row / g.y.h, row % g.y.h, rows, 0, g.y.w);
      }
    }
}
#endif

}  // namespace bantam::ops::depthwise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
