// The loops of the kernels of narrow groups (narrow_groups.h), whatever their numbers. Included by *_simd.cpp files
// inside Highway's per-target compilation.
#if defined(BANTAM_OPS_NARROW_GROUPS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BANTAM_OPS_NARROW_GROUPS_INL_H_
#undef BANTAM_OPS_NARROW_GROUPS_INL_H_
#else
#define BANTAM_OPS_NARROW_GROUPS_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "hwy/highway.h"
#include "ops/nn/conv2d/narrow_groups_layout.h"
#include "ops/nn/gemm/unroll-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::narrow_groups::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using ops::HWY_NAMESPACE::cover_exactly;
using ops::HWY_NAMESPACE::in_register;
using ops::HWY_NAMESPACE::unroll;
using ops::HWY_NAMESPACE::windows_of_column;

/// Lanes of one output each; units have the type T.
template <typename T>
using Tag = hn::CappedTag<T, kBlock>;

inline constexpr auto kLanes = static_cast<int>(hn::MaxLanes(Tag<float>()));
/// Of a block.
inline constexpr int kVectors = static_cast<int>(kBlock) / kLanes;

/// Pixels that share the weights that were loaded, of which so many vectors have outputs: as many as there are
/// registers for the sums of, about. Rows of many networks are 7, 14, 28 and 56 pixels wide.
template <int kUsed>
constexpr int tile_pixels() {
  return kLanes == 16 ? 14 : (kLanes == 8 ? 12 : 8) / kUsed;
}

/// Sums of which fewer take no less time, since each waits for the one before.
inline constexpr int kLeastSums = kLanes == 16 ? 4 : 8;

/// Taps whose weights are in registers together: a unit is then loaded once for all neighbouring windows that it is in.
/// Processors with AVX-512 were measured to multiply two vectors in the time of one load.
inline constexpr int kMostTaps = kLanes == 16 ? 3 : 1;

/// What the ring has for a block, and how lanes find their units there.
enum class Spreading {
  kOneGroup,  ///< the units of one group, which all lanes take
  kGroups,    ///< those of several groups, of which each vector takes those of its own
  kPermuted,  ///< those of several groups, which are moved to their lanes in a register
  kPerLane,   ///< each lane's own
};

inline Spreading spreading(const Problem& p) {
  if (block_groups(p) == 1) return Spreading::kOneGroup;
  if (kVectors == 1) return Spreading::kPermuted;
  return p.outputs % kLanes == 0 ? Spreading::kGroups : Spreading::kPerLane;
}

/// Units of a pixel in the ring, at most pixel_units(p).
template <typename Products>
std::int64_t ring_pixel(const Problem& p) {
  return Products::units(p) * (spreading(p) == Spreading::kPerLane ? kBlock : block_groups(p));
}

/// Vectors that have outputs.
inline int used_vectors(const Block& block) { return static_cast<int>((block.count + kLanes - 1) / kLanes); }

/// Asks for memory that is read soon.
inline void fetch(const void* from, std::int64_t bytes) {
  constexpr std::int64_t kLine = 64;
  for (std::int64_t at = 0; at < bytes; at += kLine) __builtin_prefetch(static_cast<const std::byte*>(from) + at);
}

/// Calls spread(pixels, count, to) for those of columns [first, first + count) of an image row that there are; puts
/// `padding` for the others. Pixels of the ring have `units`.
template <typename X, typename Unit, typename Spread>
HWY_INLINE void spread_row(const ImageShape& image, const X* x, std::int64_t first, std::int64_t count,
                           std::int64_t units, Unit padding, Unit* to, Spread spread) {
  const std::int64_t before = std::clamp<std::int64_t>(-first, 0, count);
  const std::int64_t inside = std::clamp<std::int64_t>(image.w - first, before, count);
  std::fill_n(to, before * units, padding);
  if (inside > before) spread(x + (first + before) * image.w_stride, inside - before, to + before * units);
  std::fill_n(to + inside * units, (count - inside) * units, padding);
}

/// Asks for `bytes` of each pixel from `x` on, as far as there are columns of the image.
template <typename X>
void fetch_row(const ImageShape& image, const X* x, std::int64_t first, std::int64_t count, std::int64_t bytes) {
  const std::int64_t begin = std::max<std::int64_t>(first, 0);
  const std::int64_t end = std::min<std::int64_t>(first + count, image.w);
  for (std::int64_t column = begin; column < end; ++column) fetch(x + column * image.w_stride, bytes);
}

/// The first input of each lane's group behind the block's first, for lanes beyond the last that of the last.
struct LaneInputs {
  LaneInputs(const Problem& p, const Block& block) {
    for (std::int64_t lane = 0; lane < kBlock; ++lane)
      first[lane] = static_cast<std::int32_t>(std::min(lane, block.count - 1) / p.outputs * p.inputs);
  }

  std::int32_t first[kBlock];
};

/// One block of channels of results along a row. Products: how units are multiplied and summed. Result: begin(v, taps)
/// gives what the sums of vector v of the block over these kernel rows begin with, finish(sums, v, offset) stores those
/// of neighbouring pixels.
template <typename Products, typename Result>
class RowConvolver {
 public:
  using Unit = typename Products::Unit;
  using Vector = hn::Vec<Tag<Unit>>;

  RowConvolver(const Problem& p, const Block& block, const Unit* weights, const Unit* ring, std::int64_t row_units,
               const Result& result)
      : p_(p),
        used_(used_vectors(block)),
        weights_(weights),
        ring_(ring),
        row_units_(row_units),
        ring_rows_(ring_rows(p)),
        units_(Products::units(p)),
        pixel_(ring_pixel<Products>(p)),
        tap_(p.units() * kBlock),
        result_(result) {
    for (std::int64_t lane = 0; lane < kBlock; ++lane)
      groups_[lane] = static_cast<std::int32_t>(lane / p.outputs * units_);
  }

  /// `count` results of row oy at `offset`, whose windows begin with the first spread column.
  void row(std::int64_t oy, std::int64_t count, std::int64_t offset) const {
    const ConvGeometry& g = p_.g;
    const std::int64_t y0 = window_origin(g.vertical, oy);
    const TapRange taps = taps_inside(g.vertical, y0, 0, g.x.h);
    const std::int64_t first = y0 + static_cast<std::int64_t>(taps.first) * g.vertical.dilation;
    const Rows rows{taps, taps.size() > 0 ? first % ring_rows_ : 0};
    switch (spreading(p_)) {
      case Spreading::kOneGroup: return with_taps<Spreading::kOneGroup>(rows, count, offset);
      case Spreading::kPermuted:
        if constexpr (kVectors == 1) return with_taps<Spreading::kPermuted>(rows, count, offset);
        break;
      case Spreading::kGroups:
        if constexpr (kVectors > 1) return with_taps<Spreading::kGroups>(rows, count, offset);
        break;
      case Spreading::kPerLane:
        if constexpr (kVectors > 1) return with_taps<Spreading::kPerLane>(rows, count, offset);
        break;
    }
  }

 private:
  /// The rows of a window inside the image, and where the first of them is in the ring.
  struct Rows {
    TapRange taps;
    std::int64_t slot;
  };

  template <Spreading kSpreading>
  HWY_INLINE void with_taps(const Rows& rows, std::int64_t count, std::int64_t offset) const {
    if constexpr (kMostTaps > 1) {
      const WindowAxis& axis = p_.g.horizontal;
      const bool fits = axis.kernel % kMostTaps == 0 && axis.dilation == 1;
      if (fits && axis.stride == 1) return with_vectors<kSpreading, kMostTaps, 1, kVectors>(rows, count, offset);
      if (fits && axis.stride == 2) return with_vectors<kSpreading, kMostTaps, 2, kVectors>(rows, count, offset);
    }
    with_vectors<kSpreading, 1, 1, kVectors>(rows, count, offset);
  }

  template <Spreading kSpreading, int kTaps, int kStride, int kUsed>
  HWY_INLINE void with_vectors(const Rows& rows, std::int64_t count, std::int64_t offset) const {
    if constexpr (kUsed > 1) {
      if (used_ < kUsed) return with_vectors<kSpreading, kTaps, kStride, kUsed - 1>(rows, count, offset);
    }
    all_pixels<kSpreading, kTaps, kStride, kUsed>(rows, count, offset);
  }

  template <Spreading kSpreading, int kTaps, int kStride, int kUsed>
  HWY_NOINLINE void all_pixels(const Rows& rows, std::int64_t count, std::int64_t offset) const {
    constexpr int kMost = tile_pixels<kUsed>();
    const auto tile = [&](auto pixels, std::int64_t first)
                          HWY_ATTR { this->pixels<pixels, kSpreading, kTaps, kStride, kUsed>(rows, first, offset); };
    cover_exactly<kMost, (kLeastSums + kUsed - 1) / kUsed>(count, tile);
  }

  template <int kCount, Spreading kSpreading, int kTaps, int kStride, int kUsed>
  HWY_INLINE void pixels(const Rows& rows, std::int64_t ox, std::int64_t offset) const {
    const ConvGeometry& g = p_.g;
    Vector sums[kUsed][kCount];
    Vector rests[kUsed][kCount];
    unroll<kUsed>([&](auto v) HWY_ATTR {
      const auto begin = result_.begin(v, rows.taps);
      unroll<kCount>([&](auto i) HWY_ATTR {
        sums[v][i] = begin;
        rests[v][i] = hn::Zero(Tag<Unit>());
      });
    });
    const std::int64_t step = g.horizontal.stride * pixel_;
    const std::int64_t next = kTaps * g.horizontal.dilation * pixel_;
    std::int64_t slot = rows.slot;
    for (std::int64_t ky = rows.taps.first; ky < rows.taps.last; ++ky, slot += g.vertical.dilation) {
      while (slot >= ring_rows_) slot -= ring_rows_;
      const Unit* x = ring_ + slot * row_units_ + ox * step;
      const Unit* w = weights_ + ky * g.horizontal.kernel * tap_;
      for (std::int64_t kx = 0; kx < g.horizontal.kernel; kx += kTaps, x += next, w += kTaps * tap_)
        accumulate<kSpreading, kTaps, kStride>(x, kTaps > 1 ? pixel_ : step, w, sums, rests);
    }
    // A copy: what `finish` takes does not stay in registers.
    Vector totals[kUsed][kCount];
    unroll<kUsed>([&](auto v) HWY_ATTR {
      unroll<kCount>([&](auto i) HWY_ATTR { totals[v][i] = Products::total(sums[v][i], rests[v][i]); });
    });
    for (int v = 0; v < kUsed; ++v) result_.finish(totals[v], v, offset + ox * g.y.w_stride);
  }

  /// The units of neighbouring columns of the ring, `step` apart, times the weights of taps that lie one column apart,
  /// for windows that lie kStride columns apart.
  template <Spreading kSpreading, int kTaps, int kStride, int kUsed, int kCount>
  HWY_INLINE void accumulate(const Unit* x, std::int64_t step, const Unit* w, Vector (&sums)[kUsed][kCount],
                             Vector (&rests)[kUsed][kCount]) const {
    const Tag<Unit> d;
    const hn::RebindToSigned<Tag<Unit>> di;
    constexpr bool kPerLane = kSpreading == Spreading::kPerLane;
    constexpr std::int64_t kNext = kPerLane ? kBlock : kSpreading == Spreading::kPermuted ? 0 : 1;
    auto places = hn::LoadU(di, groups_);
    for (std::int64_t j = 0; j < units_; ++j, x += kNext) {
      const Unit* packed = w + j / Products::kUnitsOfWeight * kBlock;
      typename Products::Weights weights[kUsed][kTaps];
      unroll<kUsed>([&](auto v) HWY_ATTR {
        unroll<kTaps>([&](auto t) HWY_ATTR {
          weights[v][t] = Products::weights(hn::LoadU(d, packed + t * tap_ + v * kLanes), j);
        });
      });
      const Unit* column = x;
      Vector inputs;
      unroll<(kCount - 1) * kStride + kTaps>([&](auto c) HWY_ATTR {
        unroll<kUsed>([&](auto v) HWY_ATTR {
          if constexpr (kPerLane) {
            inputs = in_register(hn::LoadU(d, column + v * kLanes));
          } else if constexpr (kSpreading == Spreading::kPermuted) {
            inputs = hn::TableLookupLanes(hn::LoadU(d, column), hn::IndicesFromVec(d, places));
          } else if constexpr (v == 0 || kSpreading == Spreading::kGroups) {
            inputs = hn::Set(d, column[kSpreading == Spreading::kGroups ? groups_[v * kLanes] : 0]);
            // With strides, what a single multiply-add uses it reads itself, where it can.
            if constexpr (kStride == 1 || kUsed * windows_of_column<c, kTaps, kStride, kCount>() > 1)
              inputs = in_register(inputs);
          }
          unroll<kTaps>([&](auto t) HWY_ATTR {
            constexpr int kPixel = (c - t) / kStride;
            if constexpr (c >= t && (c - t) % kStride == 0 && kPixel < kCount)
              sums[v][kPixel] = Products::add(inputs, weights[v][t], sums[v][kPixel], rests[v][kPixel]);
          });
        });
        column = next_column(column, step);
      });
      if constexpr (kSpreading == Spreading::kPermuted) places = hn::Add(places, hn::Set(di, 1));
    }
  }

  /// A value of its own: gcc would keep the distances of all columns, for which there are not enough registers.
  static HWY_INLINE const Unit* next_column(const Unit* column, std::int64_t step) {
    column += step;
#if HWY_COMPILER_GCC
    asm("" : "+r"(column));
#endif
    return column;
  }

  const Problem& p_;
  int used_;
  const Unit* weights_;
  const Unit* ring_;
  std::int64_t row_units_;
  std::int64_t ring_rows_;
  std::int64_t units_;  ///< of a group in the ring
  std::int64_t pixel_;
  std::int64_t tap_;
  std::int32_t groups_[kBlock];  ///< where the units of each lane's group begin in a pixel
  const Result& result_;
};

/// One part. spreader.row(item, row, first column, columns, to) spreads an image row, spreader.fetch(item, row, first
/// column, columns) asks for one; result.row_done(offset, count) hears of each row of results.
template <typename Products, typename Spreader, typename Result>
void convolve_part(const Problem& p, const typename Products::Unit* weights, const Spreader& spreader,
                   const Result& result, const Part& part, typename Products::Unit* ring) {
  const ConvGeometry& g = p.g;
  const Block block = block_at(p, part.block);
  const auto* block_weights = weights + part.block * block_units(p);
  // The next block's weights come a share with each row.
  const std::int64_t share = part.block + 1 < block_count(p) ? block_units(p) / (part.end - part.begin) : 0;
  for (std::int64_t ox = 0; ox < g.y.w; ox += part.columns) {
    const std::int64_t columns = std::min(part.columns, g.y.w - ox);
    const std::int64_t width = spread_columns(p, columns);
    const std::int64_t row_units = width * ring_pixel<Products>(p);
    const std::int64_t left = window_origin(g.horizontal, ox);
    const RowConvolver<Products, Result> convolver(p, block, block_weights, ring, row_units, result);
    std::int64_t spread = 0;  // image rows before this one are in the ring, as far as they are needed
    for (std::int64_t oy = part.begin; oy < part.end; ++oy) {
      const std::int64_t y0 = window_origin(g.vertical, oy);
      const std::int64_t end = std::min<std::int64_t>(y0 + window_span(g.vertical), g.x.h);
      for (std::int64_t iy = std::max({spread, y0, std::int64_t{0}}); iy < end; ++iy)
        spreader.row(part.item, iy, left, width, ring + iy % ring_rows(p) * row_units);
      spread = std::max(spread, end);
      if (oy + 1 < part.end) {
        const std::int64_t next = std::min<std::int64_t>(spread + g.vertical.stride, g.x.h);
        for (std::int64_t iy = spread; iy < next; ++iy) spreader.fetch(part.item, iy, left, width);
      }
      if (ox == 0) fetch(block_weights + block_units(p) + (oy - part.begin) * share, share * kUnitBytes);
      const std::int64_t offset = g.y.offset(part.item, oy, ox) + block.first;
      convolver.row(oy, columns, offset);
      result.row_done(offset, columns);
    }
  }
}

}  // namespace bantam::ops::narrow_groups::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
