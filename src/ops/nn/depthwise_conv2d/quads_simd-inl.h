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
#include "ops/nn/conv2d/geometry.h"
#include "ops/nn/depthwise_conv2d/pixel_run.h"
#include "ops/nn/depthwise_conv2d/quad_blocks_simd-inl.h"
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

constexpr std::int64_t kMaxTaps = 40;  ///< quads of kernel rows times kernel columns times rows at once
constexpr std::int64_t kMaxColumns = 32;
static_assert(kMostWindowQuads <= kMaxTaps / 2 && kMostWindowQuads <= kMaxColumns / 2);

inline std::int32_t row_quads(const ConvGeometry& g) { return (g.vertical.kernel + 3) / 4; }
inline std::int64_t window_columns(const ConvGeometry& g) {
  return static_cast<std::int64_t>(g.horizontal.kernel - 1) * g.horizontal.dilation + 1;
}

/// Output rows that together see no more rows of the image than four times row_quads(): they share what is interleaved.
inline std::int64_t quad_rows(const ConvGeometry& g) {
  if (g.vertical.dilation != 1) return 1;
  const std::int64_t taps = row_quads(g) * static_cast<std::int64_t>(g.horizontal.kernel);
  const std::int64_t rows = (4 * row_quads(g) - g.vertical.kernel) / g.vertical.stride + 1;
  return std::min(rows, std::max<std::int64_t>(kMaxTaps / taps, 1));
}

/// Do the pixels of a row follow each other, in x and in y?
inline bool is_dense_row(const ConvGeometry& g) { return g.x.w_stride == g.x.c && g.y.w_stride == g.x.c; }

/// May a vector hold so many neighbouring pixels? Then they are convolved in groups, of which a row has some. With
/// strides, columns of more kernel rows cost more than groups save, unless output rows share them.
inline bool fits_pixels(const ConvGeometry& g, std::int64_t pixels) {
  return (g.horizontal.stride == 1 || row_quads(g) == 1 || quad_rows(g) > 1) && g.y.w >= kMaxRunPixels * pixels;
}

/// Is the window small enough for half the buffers (is_large_window), and are there channels enough that a block does
/// not waste its time?
inline bool quads_fit(const ConvGeometry& g) {
  const std::int32_t least_channels = fits_pixels(g, 2) ? 16 : 32;
  return g.x.c >= least_channels && !is_large_window(g);
}

/// How the bytes of a vector lie in memory: one behind the other, be they of 64 channels or of several pixels; some
/// channels of one pixel; those of two neighbours; or those of two or four pixels whose windows are strides apart.
enum class Lanes { kWhole, kPart, kHalves, kStridedHalves, kStridedQuarters };

/// Does each vector of pixels have interleaved columns of its own?
constexpr bool in_groups(Lanes lanes) { return lanes == Lanes::kStridedHalves || lanes == Lanes::kStridedQuarters; }

/// The image columns that a block of channels sees, as quads. Where channels are few, a vector holds those of
/// neighbouring pixels, and columns are interleaved from each one on; or, with strides, from those on where the windows
/// of a vector's first pixels lie.
class QuadColumns {
 public:
  HWY_INLINE QuadColumns(const QuadProblem& p, std::int64_t first)
      : p_(p),
        channels_(channels_from(p, first)),
        pixels_(channels_.pixels()),
        bits_(0),
        lanes_(lanes_of(p.g, channels_)),
        row_quads_(row_quads(p.g)),
        room_(room_of(p.g, pixels_, in_groups(lanes_))) {
    for (std::int64_t pixel = 0; pixel < pixels_; ++pixel) bits_ |= bits_of(pixel);
  }

 protected:
  /// One bit for each channel of a pixel of a vector.
  std::uint64_t bits_of(std::int64_t pixel) const {
    return ~std::uint64_t{0} >> (kBlock - channels_.count) << (pixel * channels_.width);
  }
  /// Of all pixels of a vector, the first at image column `column`, that lie inside the image.
  std::uint64_t bits_inside(std::int64_t column) const {
    std::uint64_t bits = 0;
    for (std::int64_t pixel = 0; pixel < pixels_; ++pixel, column += p_.g.horizontal.stride)
      if (column >= 0 && column < p_.g.x.w) bits |= bits_of(pixel);
    return bits;
  }
  std::int64_t column_bytes() const { return row_quads_ * 4 * kBlock; }

  /// From the columns of a vector of pixels to those of the next.
  template <Lanes kLanes>
  std::int64_t group_columns() const {
    return in_groups(kLanes) ? window_columns(p_.g) : pixels_ * p_.g.horizontal.stride;
  }

  /// What the windows of `pixels` pixels of `rows` output rows see, the first from row y0 and column x0 on: vectors
  /// that begin at each of their columns, or, of groups, at each column of the window of a group's first pixel.
  template <Lanes kLanes>
  HWY_INLINE void interleave(std::int64_t n, std::int64_t y0, std::int64_t rows, std::int64_t x0, std::int64_t pixels,
                             std::uint8_t* to) const {
    const ImageShape& x = p_.g.x;
    const std::int64_t stride = p_.g.horizontal.stride;
    const std::int64_t seen = p_.g.vertical.kernel + (rows - 1) * p_.g.vertical.stride;
    const std::int64_t runs = in_groups(kLanes) ? (pixels + pixels_ - 1) / pixels_ : 1;
    const std::int64_t columns = window_columns(p_.g) + (in_groups(kLanes) ? 0 : (pixels - pixels_) * stride);
    for (std::int32_t quad = 0; quad < row_quads_; ++quad, to += 4 * kBlock) {
      // Rows that there are: others stand for zero like the zero point. Those without weights are read, too, since four
      // rows are loaded faster; but where y lies over x only by groups, which it helps most.
      bool there[4];
      for (int i = 0; i < 4; ++i) {
        const std::int64_t iy = y0 + (4 * quad + std::int64_t{i}) * p_.g.vertical.dilation;
        there[i] = (in_groups(kLanes) || !p_.overlaps || 4 * quad + i < seen) && iy >= 0 && iy < x.h;
      }
      const std::int64_t iy = y0 + 4 * std::int64_t{quad} * p_.g.vertical.dilation;
      const std::uint8_t* from = p_.x + x.offset(n, iy, 0) + channels_.first;
      for (std::int64_t run = 0, alike; run < runs; run += alike) {
        const std::int64_t first = x0 + std::min(run * pixels_, pixels - pixels_) * stride;
        alike = in_groups(kLanes) ? inner_runs(first, columns, runs - run) : 1;
        interleave_runs<kLanes>(from, there, {first, columns, alike}, to + run * columns * column_bytes());
      }
    }
  }

  const QuadProblem& p_;
  BlockChannels channels_;
  std::int64_t pixels_;  ///< of a vector: 1, 2 or 4
  std::uint64_t bits_;   ///< of all pixels
  Lanes lanes_;
  std::int32_t row_quads_;
  std::int64_t room_;  ///< for the columns of so many pixels

 private:
  static BlockChannels channels_from(const QuadProblem& p, std::int64_t first) {
    const std::int64_t count = std::min(kBlock, p.g.x.c - first);
    // Few pixels at a time are asked for where results are written over what further blocks read.
    const bool few = p.overlaps && p.g.x.c > kBlock;
    // Pixels that lie apart are worth it where their vectors do not begin at every column.
    const bool quarters = p.g.horizontal.stride > 1 || (p.g.x.c == 16 && is_dense_row(p.g) && row_quads(p.g) == 1);
    const bool four = count <= kBlock / 4 && quarters && !few && fits_pixels(p.g, 4);
    const bool two = count <= kBlock / 2 && !few && fits_pixels(p.g, 2);
    return {first, count, four ? kBlock / 4 : two ? kBlock / 2 : kBlock};
  }
  /// More than are computed at once where a vector holds several.
  static std::int64_t room_of(const ConvGeometry& g, std::int64_t pixels, bool is_grouped) {
    const std::int64_t columns = kMaxColumns / row_quads(g);
    const std::int64_t window = window_columns(g);
    return is_grouped ? columns / window * pixels : (columns - window) / g.horizontal.stride + pixels;
  }
  static Lanes lanes_of(const ConvGeometry& g, const BlockChannels& channels) {
    const bool touch = g.horizontal.stride == 1 && g.x.c == channels.width && is_dense_row(g);
    if (channels.count == channels.width && (channels.width == kBlock || touch)) return Lanes::kWhole;
    if (channels.width == kBlock) return Lanes::kPart;
    if (channels.width == kBlock / 4) return Lanes::kStridedQuarters;
    return g.horizontal.stride == 1 ? Lanes::kHalves : Lanes::kStridedHalves;
  }

  /// Neighbouring runs of vectors, each of which begins at `columns` columns; the first at column `first`.
  struct ColumnRuns {
    std::int64_t first;
    std::int64_t columns;
    std::int64_t count;
  };

  /// How many of the runs that are left, the next from column `first` on, lie inside the image and are as far apart as
  /// others; the last need not be. At least one, whatever it is.
  std::int64_t inner_runs(std::int64_t first, std::int64_t columns, std::int64_t left) const {
    const std::int64_t stride = p_.g.horizontal.stride;
    const std::int64_t room = p_.g.x.w - (pixels_ - 1) * stride - columns - first;
    if (left <= 2 || first < 0 || room < 0) return 1;
    return std::min(left - 1, room / (pixels_ * stride) + 1);
  }

  /// `from`: column 0 of the first of four rows. Several runs lie inside the image.
  template <Lanes kLanes>
  HWY_INLINE void interleave_runs(const std::uint8_t* from, const bool (&there)[4], const ColumnRuns& runs,
                                  std::uint8_t* to) const {
    const ImageShape& x = p_.g.x;
    const std::int64_t stride = p_.g.horizontal.stride;
    const bool all = there[0] && there[1] && there[2] && there[3];
    const V8 zero = hn::Set(D8(), static_cast<std::uint8_t>(p_.form.zero));
    const Quads outside(zero, zero, zero, zero);
    // Vectors of which all pixels lie inside the image.
    const std::int64_t inside = std::clamp<std::int64_t>(-runs.first, 0, runs.columns);
    const std::int64_t inside_end =
        std::clamp<std::int64_t>(x.w - (pixels_ - 1) * stride - runs.first, inside, runs.columns);
    from += runs.first * x.w_stride;
    const auto at_border = [&](std::int64_t begin, std::int64_t end) HWY_ATTR {
      for (std::int64_t i = begin; i < end; ++i) {
        const std::uint64_t bits = bits_inside(runs.first + i);
        if (bits == 0) {
          outside.store(to + i * column_bytes());
          continue;
        }
        interleave_rows<kLanes, false>(from + i * x.w_stride, there, bits, 1, 1, to + i * column_bytes());
      }
    };
    if (!there[0] && !there[1] && !there[2] && !there[3]) {
      fill_runs<kLanes>(outside, runs, to);
      return;
    }
    at_border(0, inside);
    const bool plain = all && channels_.count == channels_.width;
    const auto interleave_inside =
        plain ? &QuadColumns::interleave_rows<kLanes, true> : &QuadColumns::interleave_rows<kLanes, false>;
    (this->*interleave_inside)(from + inside * x.w_stride, there, bits_, inside_end - inside, runs.count,
                               to + inside * column_bytes());
    at_border(inside_end, runs.columns);
  }

  /// The same of rows that are not there.
  template <Lanes kLanes>
  HWY_INLINE void fill_runs(const Quads& outside, const ColumnRuns& runs, std::uint8_t* to) const {
    const std::int64_t columns = runs.columns * (in_groups(kLanes) ? runs.count : 1);
    for (std::int64_t i = 0; i < columns; ++i) outside.store(to + i * column_bytes());
  }

  /// `runs` of vectors at `count` columns each, or one, but for groups. At least one of the four rows is there, and
  /// `bits` of a vector, at least those of a pixel. kPlain: all rows, and all bits.
  template <Lanes kLanes, bool kPlain>
  HWY_NOINLINE void interleave_rows(const std::uint8_t* from, const bool (&there)[4], std::uint64_t bits,
                                    std::int64_t count, std::int64_t runs, std::uint8_t* to) const {
    const std::int64_t row = p_.g.vertical.dilation * p_.g.x.h_stride;
    const std::int64_t column = p_.g.x.w_stride;
    const std::int64_t pixel = p_.g.horizontal.stride * column;
    const std::int64_t run_step = pixels_ * pixel;
    const std::int64_t to_step = column_bytes();
    const V8 flip = hn::Set(D8(), p_.form.flip);
    const V8 outside = hn::Set(D8(), static_cast<std::uint8_t>(p_.form.zero ^ p_.form.flip));
    // Rows and pixels that are not there are read where others are: even with an empty mask, to load what may be no
    // memory takes as long as hundreds of loads.
    const auto offset_of = [](const bool(&is_there)[4], int i, std::int64_t step) {
      const int some = is_there[0] ? 0 : is_there[1] ? 1 : is_there[2] ? 2 : 3;
      return (is_there[i] ? i : some) * step;
    };
    const bool pixels_there[4] = {(bits & bits_of(0)) != 0, pixels_ > 1 && (bits & bits_of(1)) != 0,
                                  pixels_ > 2 && (bits & bits_of(2)) != 0, pixels_ > 2 && (bits & bits_of(3)) != 0};
    std::int64_t row_offsets[4];
    std::int64_t pixel_offsets[4];
    __mmask64 masks[4];
    for (int i = 0; i < 4; ++i) {
      row_offsets[i] = offset_of(there, i, row);
      pixel_offsets[i] = offset_of(pixels_there, i, pixel);
      masks[i] = there[i] ? bits : 0;
    }
    const auto interleave_as = [&](auto flips, auto every_other) HWY_ATTR {
      const auto load = [&](const std::uint8_t* top, auto i) HWY_ATTR {
        const std::uint8_t* at = top + row_offsets[i];
        V8 bytes;
        if constexpr (kLanes == Lanes::kHalves || kLanes == Lanes::kStridedHalves) {
          bytes = load_halves<kPlain>(at, pixel_offsets, bits);
        } else if constexpr (every_other) {
          bytes = load_every_other_quarter(at);
        } else if constexpr (kLanes == Lanes::kStridedQuarters) {
          bytes = load_quarters<kPlain>(at, pixel_offsets, bits);
        } else if constexpr (kPlain) {
          bytes = hn::LoadU(D8(), at);
        } else {
          bytes = V8{_mm512_maskz_loadu_epi8(bits, at)};
        }
        if constexpr (!kPlain) bytes = V8{_mm512_mask_blend_epi8(masks[i], outside.raw, bytes.raw)};
        return flips ? hn::Xor(bytes, flip) : bytes;
      };
      using std::integral_constant;
      for (std::int64_t run = in_groups(kLanes) ? runs : 1; run > 0; --run, from += run_step) {
        const std::uint8_t* top = from;
        for (std::int64_t left = count; left > 0; --left, to += to_step, top += column)
          Quads(load(top, integral_constant<int, 0>()), load(top, integral_constant<int, 1>()),
                load(top, integral_constant<int, 2>()), load(top, integral_constant<int, 3>()))
              .store(to);
      }
    };
    const auto interleave_from = [&](auto every_other) HWY_ATTR {
      p_.form.flip != 0 ? interleave_as(std::true_type(), every_other) : interleave_as(std::false_type(), every_other);
    };
    if constexpr (kPlain && kLanes == Lanes::kStridedQuarters)
      if (pixel == kBlock / 2) return interleave_from(std::true_type());
    interleave_from(std::false_type());
  }

  /// 32 bytes of each of two pixels, which begin so many bytes behind `at`. kPlain: all; else those of which the mask
  /// has bits, 0 for others.
  template <bool kPlain>
  static HWY_INLINE V8 load_halves(const std::uint8_t* at, const std::int64_t (&pixels)[4], __mmask64 mask) {
    const auto half = [&](auto i) HWY_ATTR {
      const std::uint8_t* from = at + pixels[i];
      if constexpr (kPlain) return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
      return _mm256_maskz_loadu_epi8(static_cast<__mmask32>(mask >> (32 * i)), from);
    };
    using std::integral_constant;
    const __m256i first = half(integral_constant<int, 0>());
    return V8{_mm512_inserti64x4(_mm512_castsi256_si512(first), half(integral_constant<int, 1>()), 1)};
  }

  /// The same of 16 bytes of each of four.
  template <bool kPlain>
  static HWY_INLINE V8 load_quarters(const std::uint8_t* at, const std::int64_t (&pixels)[4], __mmask64 mask) {
    const auto quarter = [&](auto i) HWY_ATTR {
      const std::uint8_t* from = at + pixels[i];
      if constexpr (kPlain) return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
      return _mm_maskz_loadu_epi8(static_cast<__mmask16>(mask >> (16 * i)), from);
    };
    using std::integral_constant;
    const __m512i first = _mm512_castsi128_si512(quarter(integral_constant<int, 0>()));
    const __m512i two = _mm512_inserti32x4(first, quarter(integral_constant<int, 1>()), 1);
    const __m512i three = _mm512_inserti32x4(two, quarter(integral_constant<int, 2>()), 2);
    return V8{_mm512_inserti32x4(three, quarter(integral_constant<int, 3>()), 3)};
  }

  /// The same of pixels two apart that lie one behind the other: the first and third of four, and of the four from the
  /// fourth on the second and last, so that nothing behind them is read.
  static HWY_INLINE V8 load_every_other_quarter(const std::uint8_t* at) {
    const __m512i first = _mm512_loadu_si512(at);
    const __m512i last = _mm512_loadu_si512(at + 3 * (kBlock / 4));
    return V8{_mm512_shuffle_i32x4(first, last, _MM_SHUFFLE(3, 1, 2, 0))};
  }
};

/// What is the same for all pixels of a block of channels.
template <class Finish>
class QuadBlock : private QuadColumns {
 public:
  template <class Scaler>
  HWY_INLINE QuadBlock(const QuadProblem& p, const Scaler& scaler, std::int64_t first)
      : QuadColumns(p, first), rows_at_once_(quad_rows(p.g)), finish_(scaler, channels_) {
    for (std::int64_t row = 0; row < rows_at_once_; ++row) load_weights(row);
    start();
  }

  /// Output rows that are computed together. Where y lies over x their results are written before the last of their
  /// pixels are read, unless all columns have been interleaved by then and no other block reads them.
  std::int64_t rows_at_once() const {
    const bool all_read = p_.g.x.c <= kBlock && p_.g.y.w <= room_;
    return p_.overlaps && !all_read ? 1 : rows_at_once_;
  }

  /// `count` output pixels of each of `rows` <= rows_at_once() rows from row oy of item n on, from column ox on.
  HWY_INLINE void convolve(std::int64_t n, std::int64_t oy, std::int64_t rows, std::int64_t ox,
                           std::int64_t count) const {
    switch (lanes_) {
      case Lanes::kWhole: return convolve_pixels<Lanes::kWhole>(n, oy, rows, ox, count);
      case Lanes::kPart: return convolve_pixels<Lanes::kPart>(n, oy, rows, ox, count);
      case Lanes::kHalves: return convolve_as<Lanes::kHalves>(n, oy, rows, ox, count);
      case Lanes::kStridedHalves: return convolve_as<Lanes::kStridedHalves>(n, oy, rows, ox, count);
      case Lanes::kStridedQuarters: return convolve_as<Lanes::kStridedQuarters>(n, oy, rows, ox, count);
    }
  }

 private:
  static constexpr int kVectors = kMaxRunPixels;  ///< that are computed at once

  std::int64_t row_weights() const { return p_.g.horizontal.kernel * column_bytes(); }

  /// Of vectors that begin one or two columns apart the usual windows share columns.
  template <Lanes kLanes>
  HWY_INLINE void convolve_pixels(std::int64_t n, std::int64_t oy, std::int64_t rows, std::int64_t ox,
                                  std::int64_t count) const {
    const WindowAxis& axis = p_.g.horizontal;
    const std::int64_t apart = group_columns<kLanes>();
    if (axis.dilation == 1 && apart <= 2) {
      const bool every = apart == 1;
      if (axis.kernel == 3)
        return every ? convolve_as<kLanes, 3, 1>(n, oy, rows, ox, count)
                     : convolve_as<kLanes, 3, 2>(n, oy, rows, ox, count);
      if (axis.kernel == 5)
        return every ? convolve_as<kLanes, 5, 1>(n, oy, rows, ox, count)
                     : convolve_as<kLanes, 5, 2>(n, oy, rows, ox, count);
    }
    convolve_as<kLanes>(n, oy, rows, ox, count);
  }

  /// kTaps, kApart: of windows whose columns are shared, and from a vector's first column to the next's; 0 for others.
  template <Lanes kLanes, int kTaps = 0, int kApart = 0>
  HWY_NOINLINE void convolve_as(std::int64_t n, std::int64_t oy, std::int64_t rows, std::int64_t ox,
                                std::int64_t count) const {
    HWY_ALIGN std::uint8_t columns[kMaxColumns * 4 * kBlock];
    for (std::int64_t done = 0, pixels; done < count; done += pixels) {
      pixels = part_of(count - done, kVectors * pixels_);
      interleave<kLanes>(n, window_origin(p_.g.vertical, oy), rows, window_origin(p_.g.horizontal, ox + done), pixels,
                         columns);
      for (std::int64_t row = 0; row < rows; ++row)
        convolve_row<kLanes, kTaps, kApart>(columns, weights_ + row * row_weights(), pixels,
                                            p_.y + p_.g.y.offset(n, oy + row, ox + done) + channels_.first);
    }
  }

  /// How many of `left` pixels to take: all that there is room for, but as many as are computed at once, or a multiple,
  /// or fewer where there is no room for those, such that a vector's are left. There is room for two (quads_fit).
  std::int64_t part_of(std::int64_t left, std::int64_t at_once) const {
    if (left <= room_) return left;
    const std::int64_t step = room_ < at_once ? pixels_ : at_once;
    const std::int64_t whole = room_ / step * step;
    if (left - whole < step && whole > step) return whole - step;
    return left - whole < pixels_ ? whole - pixels_ : whole;
  }

  /// The last pixels may be computed together with some before them, which then come twice.
  template <Lanes kLanes, int kTaps, int kApart>
  HWY_INLINE void convolve_row(const std::uint8_t* columns, const std::uint8_t* w, std::int64_t pixels,
                               std::uint8_t* y) const {
    const std::int64_t at_once = kVectors * pixels_;
    const std::int64_t y_step = p_.g.y.w_stride;
    const std::int64_t step = p_.g.horizontal.stride * column_bytes();
    const std::int64_t group_step = group_columns<kLanes>() * column_bytes();
    // Pixels that are computed several vectors at once: without groups these may begin anywhere, but one or two of them
    // take less time alone than with others that come twice.
    const std::int64_t rest = pixels & (at_once - 1);
    const bool twice = !in_groups(kLanes) && rest > 2 * pixels_;
    const std::int64_t several = pixels < at_once ? 0 : twice ? pixels : pixels - rest;
    std::int64_t i = 0;
    for (; i < several; i += at_once, columns += kVectors * group_step) {
      const std::int64_t back = std::max<std::int64_t>(i + at_once - pixels, 0);
      convolve_vectors<kVectors, kLanes, kTaps, kApart>(columns - back * step, group_step, w, y + (i - back) * y_step);
    }
    for (; i < pixels; i += pixels_, columns += group_step) {
      const std::int64_t back = std::max<std::int64_t>(i + pixels_ - pixels, 0);
      convolve_vectors<1, kLanes>(columns - (in_groups(kLanes) ? 0 : back * step), group_step, w,
                                  y + (i - back) * y_step);
    }
  }

  /// Of each pixel of a vector.
  HWY_INLINE V8 load_weight(std::int64_t ky, std::int64_t kx) const {
    const WindowAxis& rows = p_.g.vertical;
    if (ky < 0 || ky >= rows.kernel) return hn::Zero(D8());
    const auto* w = reinterpret_cast<const std::uint8_t*>(p_.w) + channels_.first;
    const auto* from = w + (ky * p_.g.horizontal.kernel + kx) * p_.g.x.c;
    const V8 one = V8{_mm512_maskz_loadu_epi8(bits_of(0), from)};
    if (pixels_ == 4) return V8{_mm512_broadcast_i32x4(_mm512_castsi512_si128(one.raw))};
    return pixels_ == 2 ? V8{_mm512_broadcast_i64x4(_mm512_castsi512_si256(one.raw))} : one;
  }

  /// Those of output row `row` of those at once, which sees the interleaved rows from the row-th on.
  HWY_INLINE void load_weights(std::int64_t row) {
    std::uint8_t* to = weights_ + row * row_weights();
    const std::int64_t first = -row * p_.g.vertical.stride;
    for (std::int64_t kx = 0; kx < p_.g.horizontal.kernel; ++kx)
      for (std::int64_t ky = first; ky < first + 4 * row_quads_; ky += 4, to += 4 * kBlock)
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

  /// Adds the products of each vector's columns, which are `step` bytes behind those of the vector before.
  template <int kCount>
  HWY_INLINE void add_columns(const std::uint8_t* columns, std::int64_t step, const std::uint8_t* w,
                              V32 (&sums)[kCount][4]) const {
    using ops::HWY_NAMESPACE::unroll;
    for (std::int32_t kx = 0; kx < p_.g.horizontal.kernel; ++kx) {
      const std::uint8_t* x = columns + static_cast<std::int64_t>(kx) * p_.g.horizontal.dilation * column_bytes();
      for (std::int32_t quad = 0; quad < row_quads_; ++quad, x += 4 * kBlock, w += 4 * kBlock) {
        V32 weights[4];
        unroll<4>([&](auto j) HWY_ATTR { weights[j] = hn::BitCast(D32(), hn::Load(D8(), w + j * kBlock)); });
        unroll<kCount>([&](auto i) HWY_ATTR {
          unroll<4>([&](auto j) HWY_ATTR {
            const auto bytes = hn::BitCast(D32(), hn::Load(D8(), x + i * step + j * kBlock));
            sums[i][j] = add_quad_products(sums[i][j], bytes, weights[j]);
          });
        });
      }
    }
  }

  /// The same of vectors that begin kApart columns apart: what lies in a column is loaded once for all of them, a
  /// part of its channels after the other.
  template <int kTaps, int kApart, int kCount>
  HWY_INLINE void add_shared(const std::uint8_t* columns, const std::uint8_t* w, V32 (&sums)[kCount][4]) const {
    using ops::HWY_NAMESPACE::unroll;
    const std::int64_t column = column_bytes();
    for (std::int32_t quad = 0; quad < row_quads_; ++quad, columns += 4 * kBlock, w += 4 * kBlock) {
      unroll<4>([&](auto j) HWY_ATTR {
        V32 weights[kTaps];
        unroll<kTaps>([&](auto kx)
                          HWY_ATTR { weights[kx] = hn::BitCast(D32(), hn::Load(D8(), w + kx * column + j * kBlock)); });
        unroll<(kCount - 1) * kApart + kTaps>([&](auto c) HWY_ATTR {
          const V32 bytes =
              ops::HWY_NAMESPACE::in_register(hn::BitCast(D32(), hn::Load(D8(), columns + c * column + j * kBlock)));
          unroll<kCount>([&](auto i) HWY_ATTR {
            constexpr int kTap = c - i * kApart;
            if constexpr (kTap >= 0 && kTap < kTaps) sums[i][j] = add_quad_products(sums[i][j], bytes, weights[kTap]);
          });
        });
      });
    }
  }

  /// `step`: bytes from the columns of a vector to those of the next.
  template <int kCount, Lanes kLanes, int kTaps = 0, int kApart = 0>
  HWY_INLINE void convolve_vectors(const std::uint8_t* columns, std::int64_t step, const std::uint8_t* w,
                                   std::uint8_t* y) const {
    using ops::HWY_NAMESPACE::unroll;
    const std::int64_t y_step = pixels_ * p_.g.y.w_stride;
    const __mmask64 bits = bits_;
    V32 sums[kCount][4];
    unroll<kCount>([&](auto i) HWY_ATTR { unroll<4>([&](auto j) HWY_ATTR { sums[i][j] = start_[j]; }); });
    if constexpr (kTaps > 0) {
      add_shared<kTaps, kApart>(columns, w, sums);
    } else {
      add_columns(columns, step, w, sums);
    }
    V8 bytes[kCount];
    finish_(sums, bytes);
    unroll<kCount>([&](auto i) HWY_ATTR {
      std::uint8_t* to = y + i * y_step;
      if constexpr (kLanes == Lanes::kWhole) {
        hn::StoreU(bytes[i], D8(), to);
      } else if constexpr (kLanes == Lanes::kPart) {
        _mm512_mask_storeu_epi8(to, bits, bytes[i].raw);
      } else if constexpr (kLanes == Lanes::kStridedQuarters) {
        unroll<4>([&](auto pixel) HWY_ATTR {
          _mm_mask_storeu_epi8(to + pixel * p_.g.y.w_stride, static_cast<__mmask16>(bits >> (16 * pixel)),
                               _mm512_extracti32x4_epi32(bytes[i].raw, pixel));
        });
      } else {
        _mm256_mask_storeu_epi8(to, static_cast<__mmask32>(bits), _mm512_castsi512_si256(bytes[i].raw));
        _mm256_mask_storeu_epi8(to + p_.g.y.w_stride, static_cast<__mmask32>(bits >> 32),
                                _mm512_extracti64x4_epi64(bytes[i].raw, 1));
      }
    });
  }

  std::int64_t rows_at_once_;
  Finish finish_;
  V32 start_[4];
  HWY_ALIGN std::uint8_t weights_[kMaxTaps * 4 * kBlock];  ///< of the rows at once, one after the other
};

/// Where y lies over x: the row behind those, from `row` on, whose results lie before all that they and later rows
/// read.
inline std::int64_t end_of_rows_apart(const QuadProblem& p, std::int64_t row) {
  const ConvGeometry& g = p.g;
  const std::int64_t iy = std::clamp<std::int64_t>(window_origin(g.vertical, row % g.y.h), 0, g.x.h);
  const auto read = reinterpret_cast<std::uintptr_t>(p.x + g.x.offset(row / g.y.h, iy, 0));
  const auto written = reinterpret_cast<std::uintptr_t>(p.y);
  const std::uintptr_t row_bytes = static_cast<std::uintptr_t>(g.y.w) * g.y.c;
  return read > written ? static_cast<std::int64_t>((read - written) / row_bytes) : 0;
}

/// Output row `row`, all blocks of a few pixels and then those of the next ones.
template <class Finish, class Scaler>
void convolve_few_pixels(const QuadProblem& p, const Scaler& scaler, std::int64_t row) {
  const ConvGeometry& g = p.g;
  for (std::int64_t ox = 0; ox < g.y.w; ox += kMaxRunPixels)
    for (std::int64_t c = 0; c < g.x.c; c += kBlock)
      QuadBlock<Finish>(p, scaler, c)
          .convolve(row / g.y.h, row % g.y.h, 1, ox, std::min<std::int64_t>(kMaxRunPixels, g.y.w - ox));
}

/// Output rows [begin, end), counted through all items. One block follows the other over a band of rows that stay in a
/// cache; but where results are written over what further blocks read, over few pixels.
template <class Finish, class Scaler>
HWY_NOINLINE void convolve_quads(const QuadProblem& p, const Scaler& scaler, std::int64_t begin, std::int64_t end) {
  constexpr std::int64_t kBandBytes = 131072;  // a part of the second cache; the first keeps a block's channels
  const ConvGeometry& g = p.g;
  const std::int64_t row_bytes = std::max<std::int64_t>(static_cast<std::int64_t>(g.x.w) * g.x.c, 1);
  const std::int64_t band = align_up(std::max<std::int64_t>(kBandBytes / row_bytes, 1), quad_rows(g));
  const bool collides = p.overlaps && g.x.c > kBlock;
  for (std::int64_t first = begin, last; first < end; first = last) {
    last = std::min(first + band, end);
    if (collides) last = std::min(last, end_of_rows_apart(p, first));
    if (last <= first) {
      convolve_few_pixels<Finish>(p, scaler, first);
      last = first + 1;
      continue;
    }
    for (std::int64_t c = 0; c < g.x.c; c += kBlock) {
      const QuadBlock<Finish> block(p, scaler, c);
      for (std::int64_t row = first, rows; row < last; row += rows) {
        rows = std::min({block.rows_at_once(), last - row, g.y.h - row % g.y.h});
        block.convolve(row / g.y.h, row % g.y.h, rows, 0, g.y.w);
      }
    }
  }
}
#endif

}  // namespace bantam::ops::depthwise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
