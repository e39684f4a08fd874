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
using ops::HWY_NAMESPACE::unroll;

/// Lanes of one output each; units have the type T.
template <typename T>
using Tag = hn::CappedTag<T, kBlock>;

inline constexpr auto kLanes = static_cast<int>(hn::MaxLanes(Tag<float>()));
inline constexpr int kVectors = static_cast<int>(kBlock) / kLanes;
/// Pixels that share the weights that were loaded.
inline constexpr int kPixels = 8 / kVectors;

/// The first channel of the image of each lane's group.
class LaneChannels {
 public:
  LaneChannels(const Problem& p, std::int64_t block) {
    for (std::int64_t lane = 0; lane < kBlock; ++lane) {
      const std::int64_t output = std::min<std::int64_t>(block * kBlock + lane, p.g.y.c - 1);
      channels_[lane] = static_cast<std::int32_t>(output / p.outputs * p.inputs);
    }
  }

  std::int32_t operator[](std::int64_t lane) const { return channels_[lane]; }
  const std::int32_t* data() const { return channels_; }

 private:
  std::int32_t channels_[kBlock];
};

/// Calls spread(pixels, count, to) for those of columns [first, first + count) of an image row that there are; puts
/// zeros for the others.
template <typename X, typename Unit, typename Spread>
HWY_INLINE void spread_row(const Problem& p, const X* x, std::int64_t first, std::int64_t count, Unit* to,
                           Spread spread) {
  const std::int64_t before = std::clamp<std::int64_t>(-first, 0, count);
  const std::int64_t inside = std::clamp<std::int64_t>(p.g.x.w - first, before, count);
  const std::int64_t units = pixel_units(p);
  std::fill_n(to, before * units, Unit{});
  if (inside > before) spread(x + (first + before) * p.g.x.w_stride, inside - before, to + before * units);
  std::fill_n(to + inside * units, (count - inside) * units, Unit{});
}

/// One block of channels of results along a row. Products: how units are multiplied and summed. Result: begin(v) gives
/// what the sums of vector v of the block begin with, finish(sums, v, offset) stores those of neighbouring pixels.
template <typename Products, typename Result>
class RowConvolver {
 public:
  using Unit = typename Products::Unit;
  using Vector = hn::Vec<Tag<Unit>>;

  RowConvolver(const Problem& p, const Unit* weights, const Unit* ring, std::int64_t row_units, const Result& result)
      : p_(p), weights_(weights), ring_(ring), row_units_(row_units), ring_rows_(ring_rows(p)), result_(result) {}

  /// `count` results of row oy at `offset`, whose windows begin with the first spread column.
  void row(std::int64_t oy, std::int64_t count, std::int64_t offset) const {
    const ConvGeometry& g = p_.g;
    const std::int64_t y0 = window_origin(g.vertical, oy);
    const TapRange taps = taps_inside(g.vertical, y0, 0, g.x.h);
    const std::int64_t first = y0 + static_cast<std::int64_t>(taps.first) * g.vertical.dilation;
    const Rows rows{taps, taps.size() > 0 ? first % ring_rows_ : 0};
    if (shares_inputs(p_)) {
      all_pixels<true>(rows, count, offset);
    } else {
      all_pixels<false>(rows, count, offset);
    }
  }

 private:
  /// The rows of a window inside the image, and where the first of them is in the ring.
  struct Rows {
    TapRange taps;
    std::int64_t slot;
  };

  template <bool kShared>
  HWY_NOINLINE void all_pixels(const Rows& rows, std::int64_t count, std::int64_t offset) const {
    std::int64_t i = 0;
    for (; i + kPixels <= count; i += kPixels) pixels<kPixels, kShared>(rows, i, offset);
    if (i < count && count >= kPixels) {
      pixels<kPixels, kShared>(rows, count - kPixels, offset);  // some once more, with the same result
    } else {
      for (; i < count; ++i) pixels<1, kShared>(rows, i, offset);
    }
  }

  template <int kCount, bool kShared>
  HWY_INLINE void pixels(const Rows& rows, std::int64_t ox, std::int64_t offset) const {
    const ConvGeometry& g = p_.g;
    Vector sums[kVectors][kCount];
    Vector rests[kVectors][kCount];
    unroll<kVectors>([&](auto v) HWY_ATTR {
      const auto begin = result_.begin(v);
      unroll<kCount>([&](auto i) HWY_ATTR {
        sums[v][i] = begin;
        rests[v][i] = hn::Zero(Tag<Unit>());
      });
    });
    const std::int64_t pixel = pixel_units(p_);
    const std::int64_t units = p_.units();
    // Taps that touch are one run of units, for spread pixels and weights alike.
    const bool touch = g.horizontal.dilation == 1;
    const std::int64_t runs = touch ? 1 : g.horizontal.kernel;
    const std::int64_t length = touch ? g.horizontal.kernel * units : units;
    const std::int64_t step = g.horizontal.stride * pixel;
    std::int64_t slot = rows.slot;
    for (std::int64_t ky = rows.taps.first; ky < rows.taps.last; ++ky, slot += g.vertical.dilation) {
      while (slot >= ring_rows_) slot -= ring_rows_;
      const Unit* x = ring_ + slot * row_units_ + ox * step;
      const Unit* w = weights_ + ky * g.horizontal.kernel * units * kBlock;
      for (std::int64_t r = 0; r < runs; ++r, x += g.horizontal.dilation * pixel, w += length * kBlock)
        accumulate<kCount, kShared>(x, step, w, length, sums, rests);
    }
    // A copy: what `finish` takes does not stay in registers.
    Vector totals[kVectors][kCount];
    unroll<kVectors>([&](auto v) HWY_ATTR {
      unroll<kCount>([&](auto i) HWY_ATTR { totals[v][i] = Products::total(sums[v][i], rests[v][i]); });
    });
    for (int v = 0; v < kVectors; ++v) result_.finish(totals[v], v, offset + ox * g.y.w_stride);
  }

  /// A run of `length` units of one or several taps times weights.
  template <int kCount, bool kShared>
  static HWY_INLINE void accumulate(const Unit* x, std::int64_t step, const Unit* w, std::int64_t length,
                                    Vector (&sums)[kVectors][kCount], Vector (&rests)[kVectors][kCount]) {
    const Tag<Unit> d;
    for (std::int64_t j = 0; j < length; ++j)
      unroll<kVectors>([&](auto v) HWY_ATTR {
        const auto weight = Products::weights(hn::LoadU(d, w + j * kBlock + v * kLanes));
        unroll<kCount>([&](auto i) HWY_ATTR {
          const Unit* at = x + i * step;
          const auto inputs = kShared ? hn::Set(d, at[j]) : hn::LoadU(d, at + j * kBlock + v * kLanes);
          sums[v][i] = Products::add(inputs, weight, sums[v][i], rests[v][i]);
        });
      });
  }

  const Problem& p_;
  const Unit* weights_;
  const Unit* ring_;
  std::int64_t row_units_;
  std::int64_t ring_rows_;
  const Result& result_;
};

/// One part. spreader.row(item, row, first column, columns, to) spreads an image row; result.row_done(offset, count)
/// hears of each row of results.
template <typename Products, typename Spreader, typename Result>
void convolve_part(const Problem& p, const typename Products::Unit* weights, const Spreader& spreader,
                   const Result& result, const Part& part, typename Products::Unit* ring) {
  const ConvGeometry& g = p.g;
  for (std::int64_t ox = 0; ox < g.y.w; ox += part.columns) {
    const std::int64_t columns = std::min(part.columns, g.y.w - ox);
    const std::int64_t width = spread_columns(p, columns);
    const std::int64_t row_units = width * pixel_units(p);
    const RowConvolver<Products, Result> convolver(p, weights + part.block * block_units(p), ring, row_units, result);
    std::int64_t spread = 0;  // image rows before this one are in the ring, as far as they are needed
    for (std::int64_t oy = part.begin; oy < part.end; ++oy) {
      const std::int64_t y0 = window_origin(g.vertical, oy);
      const std::int64_t end = std::min<std::int64_t>(y0 + window_span(g.vertical), g.x.h);
      for (std::int64_t iy = std::max({spread, y0, std::int64_t{0}}); iy < end; ++iy)
        spreader.row(part.item, iy, window_origin(g.horizontal, ox), width, ring + iy % ring_rows(p) * row_units);
      spread = std::max(spread, end);
      const std::int64_t offset = g.y.offset(part.item, oy, ox) + part.block * kBlock;
      convolver.row(oy, columns, offset);
      result.row_done(offset, columns);
    }
  }
}

}  // namespace bantam::ops::narrow_groups::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
