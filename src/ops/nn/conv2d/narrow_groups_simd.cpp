// Narrow groups in f32.
#include <algorithm>

#include "ops/common/linear_form.h"
#include "ops/common/short_copy.h"
#include "ops/nn/conv2d/narrow_groups_layout.h"
#include "ops/nn/gemm/gemm_f32.h"

#ifndef BANTAM_NARROW_GROUPS_OPERANDS_
#define BANTAM_NARROW_GROUPS_OPERANDS_
namespace bantam::ops::narrow_groups {
namespace {

/// What of a convolution its parts have in common.
struct Operands {
  Problem p;
  const float* x;
  const float* w;
  const float* bias;
  float* y;
  Activation activation;
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
#include "ops/nn/conv2d/narrow_groups-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::narrow_groups::HWY_NAMESPACE {
namespace {

using ops::HWY_NAMESPACE::ClampedStore;
using ops::HWY_NAMESPACE::store_partial;

using TagF = Tag<float>;
using Vector = hn::Vec<TagF>;

struct FloatProducts {
  using Unit = float;
  using Weights = Vector;
  static constexpr std::int64_t kUnitsOfWeight = 1;

  static std::int64_t units(const Problem& p) { return p.inputs; }
  static HWY_INLINE Vector weights(Vector w, std::int64_t /*unit*/) { return in_register(w); }
  static HWY_INLINE Vector add(Vector x, Vector w, Vector sum, Vector& /*rest*/) { return hn::MulAdd(x, w, sum); }
  static HWY_INLINE Vector total(Vector sum, Vector /*rest*/) { return sum; }
};

/// Finds the inputs of each lane's group.
class FloatSpreader {
 public:
  FloatSpreader(const Problem& p, const float* x, const Block& block)
      : p_(p), x_(x), spreading_(spreading(p)), block_(block), inputs_(p, block) {}

  /// Spreads, or copies, columns [first, first + count) of an image row, zeros where it has none.
  void row(std::int64_t item, std::int64_t iy, std::int64_t first, std::int64_t count, float* to) const {
    const float* row = x_ + p_.g.x.offset(item, iy, 0) + block_.input;
    spread_row(p_.g.x, row, first, count, ring_pixel<FloatProducts>(p_), 0.0F, to,
               [&](const float* x, std::int64_t n, float* at) {
                 if (spreading_ == Spreading::kPerLane) {
                   for (int v = 0; v < used_vectors(block_); ++v) spread(x, n, v, at + v * kLanes);
                 } else {
                   copy(x, n, at);
                 }
               });
  }

  void fetch(std::int64_t item, std::int64_t iy, std::int64_t first, std::int64_t count) const {
    const std::int64_t bytes = block_inputs(p_, block_) * static_cast<std::int64_t>(sizeof(float));
    fetch_row(p_.g.x, x_ + p_.g.x.offset(item, iy, 0) + block_.input, first, count, bytes);
  }

 private:
  using DI = hn::RebindToSigned<TagF>;

  /// The inputs of all groups as they are.
  void copy(const float* x, std::int64_t count, float* to) const {
    const std::int64_t inputs = block_inputs(p_, block_);
    if (inputs < kLanes || inputs > 4 * kLanes) return copy_any(x, count, to);
    switch ((inputs - 1) / kLanes) {
      case 0: return copy_vectors<1>(x, count, to);
      case 1: return copy_vectors<2>(x, count, to);
      case 2: return copy_vectors<3>(x, count, to);
      default: return copy_vectors<4>(x, count, to);
    }
  }

  /// The same of so many vectors for each pixel, of which the last one may lie over the one before.
  template <int kCount>
  HWY_NOINLINE void copy_vectors(const float* x, std::int64_t count, float* to) const {
    const TagF d;
    const std::int64_t last = block_inputs(p_, block_) - kLanes;
    const std::int64_t step = p_.g.x.w_stride;
    for (const std::int64_t pixel = ring_pixel<FloatProducts>(p_); count > 0; --count, x += step, to += pixel)
      unroll<kCount>([&](auto i) HWY_ATTR {
        const std::int64_t at = i + 1 < kCount ? i * kLanes : last;
        hn::StoreU(hn::LoadU(d, x + at), d, to + at);
      });
  }

  HWY_NOINLINE void copy_any(const float* x, std::int64_t count, float* to) const {
    const std::int64_t bytes = block_inputs(p_, block_) * static_cast<std::int64_t>(sizeof(float));
    for (const std::int64_t pixel = ring_pixel<FloatProducts>(p_); count > 0;
         --count, x += p_.g.x.w_stride, to += pixel)
      copy_short(reinterpret_cast<const std::uint8_t*>(x), bytes, reinterpret_cast<std::uint8_t*>(to));
  }

  /// For the lanes of vector v of the block.
  HWY_NOINLINE void spread(const float* x, std::int64_t count, int v, float* to) const {
    const TagF d;
    const DI di;
    const std::int32_t* inputs = inputs_.first + v * kLanes;
    const auto places = hn::LoadU(di, inputs);
    // One load finds all channels where they lie together.
    const std::int64_t base = std::min<std::int64_t>(inputs[0], p_.g.x.c - block_.input - kLanes);
    if (block_.input + base >= 0 && inputs[kLanes - 1] + p_.inputs - base <= kLanes) {
      look_up(x + base, count, hn::Sub(places, hn::Set(di, static_cast<std::int32_t>(base))), to);
      return;
    }
    for (; count > 0; --count, x += p_.g.x.w_stride, to += p_.inputs * kBlock)
      for (std::int64_t i = 0; i < p_.inputs; ++i) hn::StoreU(hn::GatherIndex(d, x + i, places), d, to + i * kBlock);
  }

  HWY_INLINE void look_up(const float* x, std::int64_t count, hn::Vec<DI> places, float* to) const {
    const TagF d;
    const DI di;
    // Values of their own: numbers that are stored could be anything else.
    const std::int64_t step = p_.g.x.w_stride;
    const std::int64_t inputs = p_.inputs;
    for (std::int64_t i = 0; i < inputs; ++i, to += kBlock, places = hn::Add(places, hn::Set(di, 1)))
      for (std::int64_t pixel = 0; pixel < count; ++pixel)
        hn::StoreU(hn::TableLookupLanes(hn::LoadU(d, x + pixel * step), hn::IndicesFromVec(d, places)), d,
                   to + pixel * inputs * kBlock);
  }

  const Problem& p_;
  const float* x_;
  Spreading spreading_;
  Block block_;
  LaneInputs inputs_;
};

/// Of one block.
class FloatResult {
 public:
  FloatResult(const Operands& o, const Block& block) : o_(o), channels_(block.count), store_(o.activation) {
    for (std::int64_t i = 0; i < channels_ && o.bias != nullptr; ++i) bias_[i] = o.bias[block.first + i];
  }

  HWY_INLINE Vector begin(int v, const TapRange& /*taps*/) const { return hn::LoadU(TagF(), bias_ + v * kLanes); }

  template <int kCount>
  HWY_INLINE void finish(const Vector (&sums)[kCount], int v, std::int64_t offset) const {
    unroll<kCount>([&](auto i) HWY_ATTR { put(sums[i], v * kLanes, o_.y + offset + i * o_.p.g.y.w_stride); });
  }

  void row_done(std::int64_t offset, std::int64_t count) const {
    if (!store_.complete()) activate_rows(o_.activation, o_.y + offset, count, o_.p.g.y.w_stride, channels_);
  }

 private:
  HWY_INLINE void put(Vector v, std::int64_t lane, float* pixel) const {
    const TagF d;
    if (lane + kLanes <= channels_) {
      store_(d, v, pixel + lane);
    } else if (lane < channels_) {
      store_partial(store_.limited(d, v), d, pixel + lane, static_cast<std::size_t>(channels_ - lane));
    }
  }

  const Operands& o_;
  std::int64_t channels_;
  ClampedStore store_;
  float bias_[kBlock] = {};
};

void convolve(const Operands& o, const Part& part, float* ring) {
  const Block block = block_at(o.p, part.block);
  convolve_part<FloatProducts>(o.p, o.w, FloatSpreader(o.p, o.x, block), FloatResult(o, block), part, ring);
}

}  // namespace
}  // namespace bantam::ops::narrow_groups::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bantam::ops::narrow_groups {

HWY_EXPORT(convolve);

Footprint footprint(const OpCall& call, const Problem& p, int threads) {
  constexpr std::int64_t kLeastColumns = 14;
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

std::int64_t packed_bytes(const Problem& p) { return block_count(p) * block_units(p) * kUnitBytes; }

/// A block's weights are a panel of a matrix product.
void pack(const Problem& p, const WeightStrides& strides, const float* weights, const Threads& threads, float* packed) {
  static_assert(kBlock == gemm::kPanel);
  const std::int64_t k = weight_units(p) / kBlock;
  const std::int64_t k_stride = p.inputs == 1 ? strides.tap : strides.input;
  parallel_ranges(threads, block_count(p), gemm::packing_grain(k), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t index = begin; index < end; ++index) {
      const Block block = block_at(p, index);
      gemm::pack_panels_simd(weights + block.first * strides.output, k, block.count, k_stride, strides.output, 0, 1,
                             packed + index * weight_units(p));
    }
  });
}

void run(const Invocation& call, const Problem& p, const Activation& activation) {
  const Operands operands{
      p, call.input<float>(0), call.input<float>(1), optional_input<float>(call, 2), call.output<float>(), activation};
  const auto convolve = HWY_DYNAMIC_DISPATCH(convolve);
  for_each_part(call, p,
                [&](const Part& part, std::byte* ring) { convolve(operands, part, reinterpret_cast<float*>(ring)); });
}

}  // namespace bantam::ops::narrow_groups
#endif
