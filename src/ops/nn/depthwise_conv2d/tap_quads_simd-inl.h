// Depthwise convolution of bytes by quads of neighbouring taps of a window's row, where the processor multiplies quads
// of them (VNNI): for windows of one row, of which groups of rows would fill a quarter, and for those too large for the
// buffers of flat rows. Exact. For blocks of 64 channels the bytes of four columns are interleaved, from every column
// on that a quad of some window begins at, so that windows which overlap share them. A window's row is cut into passes
// of some quads; between passes the sums of a strip of pixels lie in memory. Columns outside the image stand for zero
// like the zero point. Included by *_simd.cpp files inside Highway's per-target compilation; buffers of 44 KiB lie on
// the stack.
#if defined(BANTAM_OPS_DEPTHWISE_TAP_QUADS_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BANTAM_OPS_DEPTHWISE_TAP_QUADS_SIMD_INL_H_
#undef BANTAM_OPS_DEPTHWISE_TAP_QUADS_SIMD_INL_H_
#else
#define BANTAM_OPS_DEPTHWISE_TAP_QUADS_SIMD_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "hwy/highway.h"
#include "ops/nn/conv2d/geometry.h"
#include "ops/nn/depthwise_conv2d/byte_images.h"
#include "ops/nn/depthwise_conv2d/pixel_run.h"
#include "ops/nn/depthwise_conv2d/quad_blocks_simd-inl.h"
#include "ops/nn/depthwise_conv2d/taps_simd-inl.h"
#include "ops/nn/gemm/unroll-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::depthwise::HWY_NAMESPACE {

#if HWY_TARGET == HWY_AVX3_DL && HWY_ARCH_X86

/// Are there channels enough that a block does not waste its time?
inline bool tap_quads_fit(const ConvGeometry& g) { return is_large_window(g) && g.x.c >= kBlock / 4; }

/// How the rows of windows are cut into passes, and how a strip's columns lie.
struct TapPasses {
  static constexpr std::int64_t kColumns = 96;  ///< that are interleaved at once, 256 bytes each
  static constexpr std::int64_t kMostVectors = 32;
  static constexpr std::int64_t kMostQuads = 16;  ///< of a pass

  std::int64_t quads;        ///< of a window's row
  std::int64_t pass_quads;   ///< of a pass, but for the last
  std::int64_t unit;         ///< image columns between those that are interleaved
  std::int64_t vector_step;  ///< from the columns of a vector of pixels to those of the next, in units
  std::int64_t quad_step;    ///< from a quad to the next, in units
  std::int64_t vectors;      ///< of pixels, a strip

  /// `pixels`: of a vector.
  TapPasses(const WindowAxis& axis, std::int64_t pixels) : quads((axis.kernel + 3) / 4) {
    constexpr std::int64_t kWorthwhile = 16;  // vectors: fewer would share too few columns
    const std::int64_t vector_columns = pixels * axis.stride;
    const std::int64_t quad_columns = 4 * std::int64_t{axis.dilation};
    std::int64_t most = std::min(quads, kMostQuads);
    while (set(vector_columns, quad_columns, most), most > 1 && vectors < kWorthwhile) --most;
    const std::int64_t passes = (quads + most - 1) / most;
    set(vector_columns, quad_columns, (quads + passes - 1) / passes);
  }

  /// Columns that `n` vectors see in a pass.
  std::int64_t columns(std::int64_t n) const { return (n - 1) * vector_step + (pass_quads - 1) * quad_step + 1; }

 private:
  /// A single quad of each window needs no columns but the vectors' own.
  void set(std::int64_t vector_columns, std::int64_t quad_columns, std::int64_t quads_of_pass) {
    pass_quads = quads_of_pass;
    unit = pass_quads == 1 ? vector_columns : std::gcd(vector_columns, quad_columns);
    vector_step = vector_columns / unit;
    quad_step = pass_quads == 1 ? 0 : quad_columns / unit;
    const std::int64_t left = kColumns - 1 - (pass_quads - 1) * quad_step;
    vectors = left < 0 ? 0 : std::min(left / vector_step + 1, kMostVectors);
  }
};

/// What is the same for all pixels of a block of channels. Where a pixel has 16 or 32 channels and windows are a pixel
/// apart, a vector holds those of four or two neighbours.
template <class Finish>
class TapBlock {
 public:
  static constexpr std::int64_t kTaps = 4;
  static constexpr std::int64_t kChannels = kBlock;

  template <class Scaler>
  HWY_INLINE TapBlock(const TapProblem& problem, const Scaler& scaler, std::int64_t first)
      : p_(problem.images),
        w_row_step_(problem.w_row_step),
        w_tap_step_(problem.w_tap_step),
        channels_(channels_from(p_.g, first)),
        pixels_(channels_.pixels()),
        passes_(p_.g.horizontal, pixels_),
        finish_(scaler, channels_) {
    start();
  }

  /// `count` output pixels of row oy of item n from column ox on.
  HWY_INLINE void convolve(std::int64_t n, std::int64_t oy, std::int64_t ox, std::int64_t count) const {
    const std::int64_t strip = passes_.vectors * pixels_;
    for (std::int64_t done = 0; done < count; done += strip)
      convolve_strip(n, oy, ox + done, std::min(strip, count - done));
  }

 private:
  static constexpr std::int64_t kQuadBytes = 4 * kBlock;  ///< of a block's channels
  static constexpr std::int64_t kResident = 32;           ///< quads of weights that are kept
  static constexpr int kVectors = 4;                      ///< that are computed at once

  /// A pass over a row of the windows.
  struct Pass {
    std::int64_t row;
    std::int64_t first;  ///< quads [first, last) of that row
    std::int64_t last;
    bool is_first;
    bool is_last;
  };

  static BlockChannels channels_from(const ConvGeometry& g, std::int64_t first) {
    const bool touch = (g.x.c == kBlock / 4 || g.x.c == kBlock / 2) && g.horizontal.stride == 1 && is_dense_row(g);
    return {first, std::min(kBlock, g.x.c - first), touch ? g.x.c : kBlock};
  }

  /// One bit for each channel of the pixels [begin, end) of a vector.
  std::uint64_t bits_of(std::int64_t begin, std::int64_t end) const {
    if (begin >= end) return 0;
    const std::int64_t bits = (end - begin - 1) * channels_.width + channels_.count;
    return ~std::uint64_t{0} >> (kBlock - bits) << (begin * channels_.width);
  }
  /// Of a vector whose first pixel is image column `column`.
  std::uint64_t bits_inside(std::int64_t column) const {
    return bits_of(std::clamp<std::int64_t>(-column, 0, pixels_),
                   std::clamp<std::int64_t>(p_.g.x.w - column, 0, pixels_));
  }

  template <class F>
  HWY_INLINE void for_each_pass(F f) const {
    const std::int64_t rows = p_.g.vertical.kernel;
    for (std::int64_t row = 0; row < rows; ++row)
      for (std::int64_t first = 0, last; first < passes_.quads; first = last) {
        last = std::min(first + passes_.pass_quads, passes_.quads);
        f(Pass{row, first, last, row == 0 && first == 0, row + 1 == rows && last == passes_.quads});
      }
  }

  HWY_NOINLINE void convolve_strip(std::int64_t n, std::int64_t oy, std::int64_t ox, std::int64_t pixels) const {
    HWY_ALIGN std::uint8_t columns[TapPasses::kColumns * kQuadBytes];
    HWY_ALIGN std::int32_t sums[TapPasses::kMostVectors * kBlock];
    HWY_ALIGN std::uint8_t weights[TapPasses::kMostQuads * kQuadBytes];
    const std::int64_t vectors = (pixels + pixels_ - 1) / pixels_;
    const std::int64_t iy = window_origin(p_.g.vertical, oy);
    const std::int64_t ix = window_origin(p_.g.horizontal, ox);
    for_each_pass([&](const Pass& pass) HWY_ATTR {
      const std::int64_t dilation = p_.g.horizontal.dilation;
      interleave(n, iy + pass.row * p_.g.vertical.dilation, ix + 4 * dilation * pass.first, passes_.columns(vectors),
                 columns);
      const std::uint8_t* w = resident_ + (pass.row * passes_.quads + pass.first) * kQuadBytes;
      if (!is_resident()) {
        load_weights(pass, weights);
        w = weights;
      }
      const Strip strip{columns, w, sums, p_.y + p_.g.y.offset(n, oy, ox) + channels_.first, pixels};
      std::int64_t v = 0;
      for (; v + kVectors <= vectors; v += kVectors) convolve_vectors<kVectors>(pass, strip, v);
      for (; v < vectors; ++v) convolve_vectors<1>(pass, strip, v);
    });
  }

  /// Where a strip's pixels come from and go to.
  struct Strip {
    const std::uint8_t* columns;
    const std::uint8_t* weights;  ///< of the pass
    std::int32_t* sums;           ///< between passes
    std::uint8_t* y;              ///< of the first pixel
    std::int64_t pixels;
  };

  /// Vectors [v, v + kCount) of a strip.
  template <int kCount>
  HWY_INLINE void convolve_vectors(const Pass& pass, const Strip& strip, std::int64_t v) const {
    using ops::HWY_NAMESPACE::unroll;
    V32 sums[kCount][4];
    std::int32_t* const kept = strip.sums + v * kBlock;
    if (pass.is_first) {
      unroll<kCount>([&](auto i) HWY_ATTR { unroll<4>([&](auto j) HWY_ATTR { sums[i][j] = start_[j]; }); });
    } else {
      unroll<kCount>([&](auto i) HWY_ATTR {
        unroll<4>([&](auto j) HWY_ATTR { sums[i][j] = hn::Load(D32(), kept + i * kBlock + j * 16); });
      });
    }
    const std::int64_t step = passes_.vector_step * kQuadBytes;
    const std::uint8_t* x = strip.columns + v * step;
    const std::uint8_t* w = strip.weights;
    for (std::int64_t quad = pass.first; quad < pass.last; ++quad) {
      V32 weights[4];
      unroll<4>([&](auto j) HWY_ATTR { weights[j] = hn::BitCast(D32(), hn::Load(D8(), w + j * kBlock)); });
      unroll<kCount>([&](auto i) HWY_ATTR {
        unroll<4>([&](auto j) HWY_ATTR {
          const auto bytes = hn::BitCast(D32(), hn::Load(D8(), x + i * step + j * kBlock));
          sums[i][j] = add_quad_products(sums[i][j], bytes, weights[j]);
        });
      });
      x += passes_.quad_step * kQuadBytes;
      w += kQuadBytes;
    }
    if (pass.is_last) return finish(sums, strip, v);
    unroll<kCount>([&](auto i) HWY_ATTR {
      unroll<4>([&](auto j) HWY_ATTR { hn::Store(sums[i][j], D32(), kept + i * kBlock + j * 16); });
    });
  }

  template <int kCount>
  HWY_INLINE void finish(const V32 (&sums)[kCount][4], const Strip& strip, std::int64_t v) const {
    V8 bytes[kCount];
    finish_(sums, bytes);
    ops::HWY_NAMESPACE::unroll<kCount>([&](auto i) HWY_ATTR {
      const std::int64_t pixel = (v + i) * pixels_;
      const std::uint64_t bits = bits_of(0, std::min(pixels_, strip.pixels - pixel));
      _mm512_mask_storeu_epi8(strip.y + pixel * p_.g.y.w_stride, bits, bytes[i].raw);
    });
  }

  /// `count` columns of image row iy as quads, a unit apart, the first from image column ix on.
  HWY_INLINE void interleave(std::int64_t n, std::int64_t iy, std::int64_t ix, std::int64_t count,
                             std::uint8_t* to) const {
    const ImageShape& x = p_.g.x;
    const std::int64_t dilation = p_.g.horizontal.dilation;
    const bool there = iy >= 0 && iy < x.h;
    const std::uint8_t* row = p_.x + x.offset(n, there ? iy : 0, 0) + channels_.first;
    const V8 flip = hn::Set(D8(), p_.form.flip);
    const V8 outside = hn::Set(D8(), static_cast<std::uint8_t>(p_.form.zero ^ p_.form.flip));
    const std::uint64_t all = bits_of(0, pixels_);
    const auto load = [&](std::int64_t column) HWY_ATTR {
      const std::uint64_t bits = there ? bits_inside(column) : 0;
      if (bits == 0) return hn::Xor(outside, flip);  // what is no memory takes long, even to read nothing of it
      return hn::Xor(V8{_mm512_mask_loadu_epi8(outside.raw, bits, row + column * x.w_stride)}, flip);
    };
    const auto load_inside = [&](std::int64_t column) HWY_ATTR {
      return hn::Xor(V8{_mm512_maskz_loadu_epi8(all, row + column * x.w_stride)}, flip);
    };
    const std::int64_t reach = 3 * dilation + pixels_;  // columns that a quad's vector reads
    for (std::int64_t i = 0; i < count;) {
      const std::int64_t column = ix + i * passes_.unit;
      if (there && column >= 0 && column + reach <= x.w) {
        const std::int64_t inside = std::min((x.w - reach - column) / passes_.unit + 1, count - i);
        interleave_inside(load_inside, column, inside, to + i * kQuadBytes);
        i += inside;
      } else {
        Quads(load(column), load(column + dilation), load(column + 2 * dilation), load(column + 3 * dilation))
            .store(to + i++ * kQuadBytes);
      }
    }
  }

  /// The same inside the image, from `column` on; load(column) gives its bytes.
  template <class Load>
  HWY_INLINE void interleave_inside(Load load, std::int64_t column, std::int64_t count, std::uint8_t* to) const {
    const std::int64_t dilation = p_.g.horizontal.dilation;
    std::uint8_t* const end = to + count * kQuadBytes;
    if (passes_.unit != dilation) {
      for (; to != end; to += kQuadBytes, column += passes_.unit)
        Quads(load(column), load(column + dilation), load(column + 2 * dilation), load(column + 3 * dilation))
            .store(to);
      return;
    }
    // Each quad begins at the second column of the one before: a column is loaded once, and paired once.
    const V8 second = load(column + dilation);
    V8 third = load(column + 2 * dilation);
    BytePairs pairs(load(column), second);
    BytePairs next_pairs(second, third);
    for (; to != end; to += kQuadBytes, column += dilation) {
      const V8 fourth = load(column + 3 * dilation);
      const BytePairs last_pairs(third, fourth);
      Quads(pairs, last_pairs).store(to);
      pairs = next_pairs;
      next_pairs = last_pairs;
      third = fourth;
    }
  }

  bool is_resident() const { return p_.g.vertical.kernel * passes_.quads <= kResident; }

  /// Of each pixel of a vector; 0 beyond the window's row.
  HWY_INLINE V8 load_weight(std::int64_t row, std::int64_t tap) const {
    if (tap >= p_.g.horizontal.kernel) return hn::Zero(D8());
    const std::int8_t* from = p_.w + row * w_row_step_ + tap * w_tap_step_ + channels_.first;
    const V8 one = V8{_mm512_maskz_loadu_epi8(bits_of(0, 1), from)};
    if (pixels_ == 4) return V8{_mm512_broadcast_i32x4(_mm512_castsi512_si128(one.raw))};
    return pixels_ == 2 ? V8{_mm512_broadcast_i64x4(_mm512_castsi512_si256(one.raw))} : one;
  }

  HWY_INLINE void load_weights(const Pass& pass, std::uint8_t* to) const {
    for (std::int64_t tap = 4 * pass.first; tap < 4 * pass.last; tap += 4, to += kQuadBytes)
      Quads(load_weight(pass.row, tap), load_weight(pass.row, tap + 1), load_weight(pass.row, tap + 2),
            load_weight(pass.row, tap + 3))
          .store(to);
  }

  /// What sums start at: the bias, the zero point of x taken off. Keeps the weights that there is room for.
  HWY_INLINE void start() {
    const auto ones = hn::BitCast(D32(), hn::Set(D8(), std::uint8_t{1}));
    V32 sums[4] = {hn::Zero(D32()), hn::Zero(D32()), hn::Zero(D32()), hn::Zero(D32())};
    std::uint8_t* to = resident_;
    for_each_pass([&](const Pass& pass) HWY_ATTR {
      load_weights(pass, to);
      const std::uint8_t* const end = to + (pass.last - pass.first) * kQuadBytes;
      for (const std::uint8_t* w = to; w != end; w += kQuadBytes)
        for (int j = 0; j < 4; ++j)
          sums[j] = add_quad_products(sums[j], ones, hn::BitCast(D32(), hn::Load(D8(), w + j * kBlock)));
      if (is_resident()) to += (pass.last - pass.first) * kQuadBytes;
    });
    const auto zero = hn::Set(D32(), p_.form.zero);
    for (int j = 0; j < 4; ++j) start_[j] = hn::Sub(finish_.bias(j), hn::Mul(sums[j], zero));
  }

  const ByteImages& p_;
  std::int64_t w_row_step_;
  std::int64_t w_tap_step_;
  BlockChannels channels_;
  std::int64_t pixels_;  ///< of a vector: 1, 2 or 4
  TapPasses passes_;
  Finish finish_;
  V32 start_[4];
  static_assert(kResident >= TapPasses::kMostQuads);
  HWY_ALIGN std::uint8_t resident_[kResident * kQuadBytes];
};

#endif

}  // namespace bantam::ops::depthwise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
