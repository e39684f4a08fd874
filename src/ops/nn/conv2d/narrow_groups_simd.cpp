#include <algorithm>

#include "ops/common/linear_form.h"
#include "ops/common/parallel.h"
#include "ops/nn/conv2d/narrow_groups.h"

#ifndef BANTAM_NARROW_GROUPS_PLAN_
#define BANTAM_NARROW_GROUPS_PLAN_
namespace bantam::ops::narrow_groups {
namespace {

/// Image rows from the first to the last tap of a window.
std::int64_t window_span(const WindowAxis& axis) {
  return static_cast<std::int64_t>(axis.kernel - 1) * axis.dilation + 1;
}

/// Rows that are kept spread: those of a window, in a ring.
std::int64_t ring_rows(const Problem& p) {
  return std::max<std::int64_t>(std::min<std::int64_t>(window_span(p.g.vertical), p.g.x.h), 1);
}

std::int64_t spread_columns(const Problem& p, std::int64_t columns) {
  return (columns - 1) * p.g.horizontal.stride + window_span(p.g.horizontal);
}

/// Do all lanes of a block belong to one group? Its inputs are then copied as they are, and broadcast when multiplied.
bool shares_inputs(const Problem& p) { return p.outputs % kBlock == 0; }

/// Of one pixel in the ring.
std::int64_t pixel_floats(const Problem& p) { return shares_inputs(p) ? p.inputs : p.inputs * kBlock; }

/// Scratch of a thread for so many columns of results.
std::int64_t ring_bytes(const Problem& p, std::int64_t columns) {
  const auto floats = static_cast<std::int64_t>(sizeof(float)) * pixel_floats(p);
  return align_up(ring_rows(p) * spread_columns(p, columns) * floats, kAlignment);
}

/// The most columns of results, at least one, for which so many bytes suffice.
std::int64_t columns_within(const Problem& p, std::int64_t bytes) {
  const auto floats = static_cast<std::int64_t>(sizeof(float)) * pixel_floats(p);
  const std::int64_t width = bytes / (ring_rows(p) * floats);
  return std::clamp<std::int64_t>((width - window_span(p.g.horizontal)) / p.g.horizontal.stride + 1, 1, p.g.y.w);
}

std::int64_t block_count(const Problem& p) { return (p.g.y.c + kBlock - 1) / kBlock; }

std::int64_t block_weights(const Problem& p) {
  return static_cast<std::int64_t>(p.g.vertical.kernel) * p.g.horizontal.kernel * p.inputs * kBlock;
}

/// What of a convolution its parts have in common.
struct Operands {
  Problem p;
  const float* x;
  const float* w;
  const float* bias;
  float* y;
  Activation activation;
};

/// Rows [begin, end) of one item and block, in parts of so many columns.
struct Part {
  std::int64_t item;
  std::int64_t block;
  std::int64_t begin;
  std::int64_t end;
  std::int64_t columns;
};

}  // namespace
}  // namespace bantam::ops::narrow_groups
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/nn/conv2d/narrow_groups_simd.cpp"
#include "hwy/foreach_target.h"
// Highway wants the headers below after foreach_target.h.
#include "hwy/highway.h"
#include "ops/common/activate_rows.h"
#include "ops/common/clamped_store_simd-inl.h"
#include "ops/common/rows_simd-inl.h"
#include "ops/nn/gemm/unroll-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::narrow_groups::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using ops::HWY_NAMESPACE::ClampedStore;
using ops::HWY_NAMESPACE::in_register;
using ops::HWY_NAMESPACE::store_partial;
using ops::HWY_NAMESPACE::unroll;

using Tag = hn::CappedTag<float, kBlock>;
using Vector = hn::Vec<Tag>;

constexpr auto kLanes = static_cast<int>(hn::MaxLanes(Tag()));
constexpr int kVectors = static_cast<int>(kBlock) / kLanes;
/// Pixels that share the weights that were loaded.
constexpr int kPixels = 8 / kVectors;

/// Finds the inputs of each lane's group.
class Spreader {
 public:
  Spreader(const Problem& p, std::int64_t block) : p_(p) {
    const std::int64_t first = block * kBlock;
    for (std::int64_t lane = 0; lane < kBlock; ++lane) {
      const std::int64_t output = std::min<std::int64_t>(first + lane, p.g.y.c - 1);
      channels_[lane] = static_cast<std::int32_t>(output / p.outputs * p.inputs);
    }
    // One load finds all channels where they lie together.
    base_ = std::min<std::int64_t>(channels_[0], p.g.x.c - kBlock);
    one_load_ = kVectors == 1 && base_ >= 0 && channels_[kBlock - 1] + p.inputs - base_ <= kBlock;
  }

  /// Spreads, or copies, columns [first, first + count) of the image row at `x`, zeros where it has none.
  void row(const float* x, std::int64_t first, std::int64_t count, float* to) const {
    const std::int64_t before = std::clamp<std::int64_t>(-first, 0, count);
    const std::int64_t inside = std::clamp<std::int64_t>(p_.g.x.w - first, before, count);
    const std::int64_t floats = pixel_floats(p_);
    std::fill_n(to, before * floats, 0.0F);
    if (inside > before) spread(x + (first + before) * p_.g.x.w_stride, inside - before, to + before * floats);
    std::fill_n(to + inside * floats, (count - inside) * floats, 0.0F);
  }

 private:
  HWY_NOINLINE void spread(const float* x, std::int64_t count, float* to) const {
    if (shares_inputs(p_)) {
      for (x += channels_[0]; count > 0; --count, x += p_.g.x.w_stride, to += p_.inputs) std::copy_n(x, p_.inputs, to);
      return;
    }
    const Tag d;
    const hn::RebindToSigned<Tag> di;
    // Values of their own: numbers that are stored could be anything else.
    const std::int64_t step = p_.g.x.w_stride;
    const auto inputs = static_cast<std::int32_t>(p_.inputs);
    if (one_load_) {
      const auto first = hn::Sub(hn::LoadU(di, channels_), hn::Set(di, static_cast<std::int32_t>(base_)));
      for (const float* pixel = x + base_; count > 0; --count, pixel += step) {
        const auto numbers = hn::LoadU(d, pixel);
        for (std::int32_t i = 0; i < inputs; ++i, to += kBlock)
          hn::StoreU(hn::TableLookupLanes(numbers, hn::IndicesFromVec(d, hn::Add(first, hn::Set(di, i)))), d, to);
      }
      return;
    }
    for (; count > 0; --count, x += step)
      for (std::int32_t i = 0; i < inputs; ++i, to += kBlock)
        unroll<kVectors>([&](auto v) HWY_ATTR {
          hn::StoreU(hn::GatherIndex(d, x + i, hn::LoadU(di, channels_ + v * kLanes)), d, to + v * kLanes);
        });
  }

  const Problem& p_;
  std::int32_t channels_[kBlock];  ///< of the image, the first of the lane's group
  std::int64_t base_ = 0;
  bool one_load_ = false;
};

/// One block of channels of results along a row.
class RowConvolver {
 public:
  RowConvolver(const Operands& o, std::int64_t block, const float* ring, std::int64_t row_floats)
      : o_(o),
        ring_(ring),
        row_floats_(row_floats),
        ring_rows_(ring_rows(o.p)),
        weights_(o.w + block * block_weights(o.p)),
        channels_(std::min<std::int64_t>(o.p.g.y.c - block * kBlock, kBlock)),
        store_(o.activation) {
    for (std::int64_t i = 0; i < channels_ && o.bias != nullptr; ++i) bias_[i] = o.bias[block * kBlock + i];
  }

  /// `count` results of row oy from `y` on, whose windows begin with the first spread column.
  void row(std::int64_t oy, std::int64_t count, float* y) const {
    const ConvGeometry& g = o_.p.g;
    const std::int64_t y0 = window_origin(g.vertical, oy);
    const TapRange taps = taps_inside(g.vertical, y0, 0, g.x.h);
    const std::int64_t first = y0 + static_cast<std::int64_t>(taps.first) * g.vertical.dilation;
    const Rows rows{taps, taps.size() > 0 ? first % ring_rows_ : 0};
    if (shares_inputs(o_.p)) {
      all_pixels<true>(rows, count, y);
    } else {
      all_pixels<false>(rows, count, y);
    }
    if (!store_.complete()) activate_rows(o_.activation, y, count, g.y.w_stride, channels_);
  }

 private:
  /// The rows of a window inside the image, and where the first of them is in the ring.
  struct Rows {
    TapRange taps;
    std::int64_t slot;
  };

  template <bool kShared>
  HWY_NOINLINE void all_pixels(const Rows& rows, std::int64_t count, float* y) const {
    std::int64_t i = 0;
    for (; i + kPixels <= count; i += kPixels) pixels<kPixels, kShared>(rows, i, y);
    if (i < count && count >= kPixels) {
      pixels<kPixels, kShared>(rows, count - kPixels, y);  // some once more, with the same result
    } else {
      for (; i < count; ++i) pixels<1, kShared>(rows, i, y);
    }
  }

  template <int kCount, bool kShared>
  HWY_INLINE void pixels(const Rows& rows, std::int64_t ox, float* y) const {
    const Tag d;
    const ConvGeometry& g = o_.p.g;
    Vector sums[kCount][kVectors];
    unroll<kVectors>([&](auto v) HWY_ATTR {
      const auto bias = hn::LoadU(d, bias_ + v * kLanes);
      unroll<kCount>([&](auto i) HWY_ATTR { sums[i][v] = bias; });
    });
    const std::int64_t pixel = pixel_floats(o_.p);
    // Taps that touch are one run of numbers, for spread pixels and weights alike.
    const bool touch = g.horizontal.dilation == 1;
    const std::int64_t runs = touch ? 1 : g.horizontal.kernel;
    const std::int64_t length = touch ? g.horizontal.kernel * o_.p.inputs : o_.p.inputs;
    const std::int64_t step = g.horizontal.stride * pixel;
    std::int64_t slot = rows.slot;
    for (std::int64_t ky = rows.taps.first; ky < rows.taps.last; ++ky, slot += g.vertical.dilation) {
      while (slot >= ring_rows_) slot -= ring_rows_;
      const float* x = ring_ + slot * row_floats_ + ox * step;
      const float* w = weights_ + ky * g.horizontal.kernel * o_.p.inputs * kBlock;
      for (std::int64_t r = 0; r < runs; ++r, x += g.horizontal.dilation * pixel, w += length * kBlock)
        accumulate<kCount, kShared>(x, step, w, length, sums);
    }
    unroll<kCount>([&](auto i) HWY_ATTR {
      unroll<kVectors>([&](auto v) HWY_ATTR { put(sums[i][v], y + (ox + i) * g.y.w_stride + v * kLanes, v * kLanes); });
    });
  }

  /// A run of `length` inputs of one or several taps times weights.
  template <int kCount, bool kShared>
  static HWY_INLINE void accumulate(const float* x, std::int64_t step, const float* w, std::int64_t length,
                                    Vector (&sums)[kCount][kVectors]) {
    const Tag d;
    for (std::int64_t j = 0; j < length; ++j)
      unroll<kVectors>([&](auto v) HWY_ATTR {
        const auto weight = in_register(hn::LoadU(d, w + j * kBlock + v * kLanes));
        unroll<kCount>([&](auto i) HWY_ATTR {
          const float* at = x + i * step;
          const auto inputs = kShared ? hn::Set(d, at[j]) : hn::LoadU(d, at + j * kBlock + v * kLanes);
          sums[i][v] = hn::MulAdd(inputs, weight, sums[i][v]);
        });
      });
  }

  HWY_INLINE void put(Vector v, float* to, std::int64_t lane) const {
    const Tag d;
    if (lane + kLanes <= channels_) {
      store_(d, v, to);
    } else if (lane < channels_) {
      store_partial(store_.limited(d, v), d, to, static_cast<std::size_t>(channels_ - lane));
    }
  }

  const Operands& o_;
  const float* ring_;
  std::int64_t row_floats_;
  std::int64_t ring_rows_;
  const float* weights_;
  std::int64_t channels_;
  ClampedStore store_;
  float bias_[kBlock] = {};
};

void convolve(const Operands& o, const Part& part, float* ring) {
  const Problem& p = o.p;
  const ConvGeometry& g = p.g;
  const Spreader spreader(p, part.block);
  for (std::int64_t ox = 0; ox < g.y.w; ox += part.columns) {
    const std::int64_t columns = std::min(part.columns, g.y.w - ox);
    const std::int64_t width = spread_columns(p, columns);
    const std::int64_t row_floats = width * pixel_floats(p);
    const RowConvolver convolver(o, part.block, ring, row_floats);
    std::int64_t spread = 0;  // image rows before this one are in the ring, as far as they are needed
    for (std::int64_t oy = part.begin; oy < part.end; ++oy) {
      const std::int64_t y0 = window_origin(g.vertical, oy);
      const std::int64_t end = std::min<std::int64_t>(y0 + window_span(g.vertical), g.x.h);
      for (std::int64_t iy = std::max({spread, y0, std::int64_t{0}}); iy < end; ++iy)
        spreader.row(o.x + g.x.offset(part.item, iy, 0), window_origin(g.horizontal, ox), width,
                     ring + iy % ring_rows(p) * row_floats);
      spread = std::max(spread, end);
      convolver.row(oy, columns, o.y + g.y.offset(part.item, oy, ox) + part.block * kBlock);
    }
  }
}

}  // namespace
}  // namespace bantam::ops::narrow_groups::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bantam::ops::narrow_groups {

HWY_EXPORT(convolve);

Footprint footprint(const OpCall& call, const Problem& p, int threads) {
  constexpr std::int64_t kLeastColumns = 8;
  constexpr std::int64_t kUsefulBytes = 24 * 1024;  // in the first-level cache, beside weights and results
  constexpr std::int64_t kSmallShare = 64;          // of the result: a plan hardly grows by it
  const std::int64_t floor = ring_bytes(p, std::min<std::int64_t>(kLeastColumns, p.g.y.w));
  const std::int64_t useful = std::max(floor, ring_bytes(p, columns_within(p, kUsefulBytes)));
  const std::int64_t result = call.out().bytes();
  // Blocks of channels read what others would have overwritten.
  return {.scratch_bytes = std::clamp(ring_bytes(p, columns_within(p, result / kSmallShare)), floor, useful) * threads,
          .useful_scratch_bytes = useful * threads,
          .lead_bytes = Footprint::kNoOverlap};
}

std::int64_t packed_bytes(const Problem& p) {
  return block_count(p) * block_weights(p) * static_cast<std::int64_t>(sizeof(float));
}

void pack(const Problem& p, const WeightStrides& strides, const float* weights, float* packed) {
  const std::int64_t taps = static_cast<std::int64_t>(p.g.vertical.kernel) * p.g.horizontal.kernel;
  for (std::int64_t first = 0; first < p.g.y.c; first += kBlock)
    for (std::int64_t tap = 0; tap < taps; ++tap)
      for (std::int64_t input = 0; input < p.inputs; ++input)
        for (std::int64_t output = first; output < first + kBlock; ++output)
          *packed++ =
              output < p.g.y.c ? weights[output * strides.output + tap * strides.tap + input * strides.input] : 0.0F;
}

void run(const Invocation& call, const Problem& p, const Activation& activation) {
  const Operands operands{
      p, call.input<float>(0), call.input<float>(1), optional_input<float>(call, 2), call.output<float>(), activation};
  const std::int64_t slot_bytes = slot_scratch_bytes(call);
  const std::int64_t columns = columns_within(p, slot_bytes);
  const std::int64_t rows = p.g.y.h;
  const std::int64_t blocks = block_count(p);
  // Tasks of at least some ten thousand multiply-adds, and of a few rows, whose first windows are spread for each.
  const std::int64_t row_work = p.g.y.w * block_weights(p);
  const std::int64_t grain = std::max<std::int64_t>(50'000 / row_work, 2 * ring_rows(p));
  parallel_slots(*call.threads, p.g.y.n * blocks * rows, grain,
                 [&](std::int64_t slot, std::int64_t begin, std::int64_t end) {
                   auto* ring = reinterpret_cast<float*>(call.scratch + slot * slot_bytes);
                   for (std::int64_t at = begin; at < end;) {
                     const std::int64_t band = at / rows;
                     const std::int64_t next = std::min(end, (band + 1) * rows);
                     HWY_DYNAMIC_DISPATCH(convolve)
                     (operands,
                      {.item = band / blocks,
                       .block = band % blocks,
                       .begin = at - band * rows,
                       .end = next - band * rows,
                       .columns = columns},
                      ring);
                     at = next;
                   }
                 });
}

}  // namespace bantam::ops::narrow_groups
#endif
