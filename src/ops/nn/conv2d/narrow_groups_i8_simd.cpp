// Narrow groups of 8-bit images: pairs of inputs are multiplied in 16 bits and their sums are exact.
#include <algorithm>
#include <cstring>
#include <type_traits>

#include "ops/nn/conv2d/narrow_groups_layout.h"

#ifndef BANTAM_NARROW_GROUPS_I8_OPERANDS_
#define BANTAM_NARROW_GROUPS_I8_OPERANDS_
namespace bantam::ops::narrow_groups {
namespace {

/// What of a convolution its parts have in common.
struct ByteOperands {
  Problem p;
  const std::uint8_t* x;
  gemm::ByteForm form;
  const std::int32_t* w;
};

/// A byte of an image as a number.
inline std::int16_t number_of(std::uint8_t byte, gemm::ByteForm form) {
  return static_cast<std::int16_t>((byte ^ form.flip) - form.zero);
}

inline std::int32_t pair_of(std::int16_t first, std::int16_t second) {
  const std::int16_t pair[2] = {first, second};
  std::int32_t unit;
  std::memcpy(&unit, pair, sizeof unit);
  return unit;
}

}  // namespace
}  // namespace bantam::ops::narrow_groups
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/nn/conv2d/narrow_groups_i8_simd.cpp"
#include "hwy/foreach_target.h"
// Highway wants the headers below after foreach_target.h.
#include "hwy/highway.h"
#include "ops/common/activate_rows.h"
#include "ops/common/affine_simd-inl.h"
#include "ops/common/requantize_simd-inl.h"
#include "ops/common/rows_simd-inl.h"
#include "ops/nn/conv2d/narrow_groups-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::narrow_groups::HWY_NAMESPACE {
namespace {

using ops::HWY_NAMESPACE::AffineVector;
using ops::HWY_NAMESPACE::demote_to_bytes;
using ops::HWY_NAMESPACE::in_register;
using ops::HWY_NAMESPACE::RequantizeVector;
using ops::HWY_NAMESPACE::store_lanes;

using D32 = Tag<std::int32_t>;
using D16 = hn::RepartitionToNarrow<D32>;
using V32 = hn::Vec<D32>;

struct PairProducts {
  using Unit = std::int32_t;
  using Pairs = hn::Vec<D16>;

  static HWY_INLINE Pairs weights(V32 w) { return in_register(hn::BitCast(D16(), w)); }
  /// `rest`: see ReorderWidenMulAccumulate.
  static HWY_INLINE V32 add(V32 x, Pairs w, V32 sum, V32& rest) {
    return hn::ReorderWidenMulAccumulate(D32(), hn::BitCast(D16(), x), w, sum, rest);
  }
  static HWY_INLINE V32 total(V32 sum, V32 rest) { return hn::RearrangeToOddPlusEven(sum, rest); }
};

/// Finds the inputs of each lane's group.
class PairSpreader {
 public:
  PairSpreader(const ByteOperands& o, std::int64_t block) : p_(o.p), x_(o.x), form_(o.form), channels_(o.p, block) {
    // One load finds all channels where they lie together.
    base_ = std::min<std::int64_t>(channels_[0], p_.g.x.c - kLoaded);
    one_load_ = base_ >= 0 && channels_[kBlock - 1] + p_.inputs - base_ <= kLoaded;
  }

  /// Spreads, or copies, columns [first, first + count) of an image row, zeros where it has none.
  void row(std::int64_t item, std::int64_t iy, std::int64_t first, std::int64_t count, std::int32_t* to) const {
    spread_row(p_, x_ + p_.g.x.offset(item, iy, 0), first, count, to,
               [&](const std::uint8_t* x, std::int64_t n, std::int32_t* at) {
                 if (shares_inputs(p_)) {
                   copy(x + channels_[0], n, at);
                 } else if (one_load_) {
                   look_up(x + base_, n, at);
                 } else {
                   gather(x, n, at);
                 }
               });
  }

 private:
  using Bytes = hn::CappedTag<std::uint8_t, 16>;
  static constexpr std::int64_t kLoaded = 16;

  /// The one group's inputs as they are.
  HWY_NOINLINE void copy(const std::uint8_t* x, std::int64_t count, std::int32_t* to) const {
    const hn::Rebind<std::uint8_t, D16> d8;
    constexpr auto kNumbers = static_cast<std::int64_t>(hn::MaxLanes(D16()));
    const auto flip = hn::Set(d8, form_.flip);
    const auto zero = hn::Set(D16(), static_cast<std::int16_t>(form_.zero));
    const std::int64_t inputs = p_.inputs;
    for (const std::int64_t step = p_.g.x.w_stride; count > 0; --count, x += step) {
      std::int64_t i = 0;
      for (; i + kNumbers <= inputs; i += kNumbers, to += kNumbers / 2) {
        const auto numbers = hn::Sub(hn::PromoteTo(D16(), hn::Xor(hn::LoadU(d8, x + i), flip)), zero);
        hn::StoreU(hn::BitCast(D32(), numbers), D32(), to);
      }
      for (; i < inputs; i += 2) *to++ = pair(x, i);
    }
  }

  /// One lookup in 16 bytes gives a unit of all lanes.
  HWY_NOINLINE void look_up(const std::uint8_t* x, std::int64_t count, std::int32_t* to) const {
    constexpr std::int64_t kMostUnits = kLoaded / 2;
    constexpr std::uint8_t kNone = 0x80;
    HWY_ALIGN std::uint8_t places[kMostUnits * kLoaded];
    const std::int64_t units = p_.units();
    for (std::int64_t at = 0; at < units * kLoaded; ++at) {
      const std::int64_t input = at / kLoaded * 2 + at % 2;
      places[at] = input < p_.inputs ? static_cast<std::uint8_t>(channels_[at % kLoaded / 2] - base_ + input) : kNone;
    }
    const Bytes d8;
    const auto flip = hn::Set(d8, form_.flip);
    const auto zero = hn::Set(D16(), static_cast<std::int16_t>(form_.zero));
    for (const std::int64_t step = p_.g.x.w_stride; count > 0; --count, x += step) {
      const auto bytes = hn::Xor(hn::LoadU(d8, x), flip);
      for (std::int64_t unit = 0; unit < units; ++unit, to += kBlock) {
        const auto found = hn::TableLookupBytesOr0(bytes, hn::Load(d8, places + unit * kLoaded));
        unroll<kVectors>([&](auto v) HWY_ATTR {
          const auto numbers = hn::Sub(hn::PromoteTo(D16(), bytes_of<v>(found)), zero);
          hn::StoreU(hn::BitCast(D32(), numbers), D32(), to + v * kLanes);
        });
      }
    }
  }

  /// Those of vector kIndex of a block.
  template <int kIndex>
  static HWY_INLINE auto bytes_of(hn::Vec<Bytes> block) {
    if constexpr (kVectors == 1) {
      return block;
    } else if constexpr (kIndex == 0) {
      return hn::LowerHalf(block);
    } else {
      return hn::UpperHalf(hn::Half<Bytes>(), block);
    }
  }

  /// The same for channels that lie wherever.
  HWY_NOINLINE void gather(const std::uint8_t* x, std::int64_t count, std::int32_t* to) const {
    for (const std::int64_t step = p_.g.x.w_stride; count > 0; --count, x += step)
      for (std::int64_t i = 0; i < p_.inputs; i += 2)
        for (std::int64_t lane = 0; lane < kBlock; ++lane) *to++ = pair(x + channels_[lane], i);
  }

  /// Inputs i and i + 1 of the group at `x`; the second may be missing.
  HWY_INLINE std::int32_t pair(const std::uint8_t* x, std::int64_t i) const {
    return pair_of(number_of(x[i], form_), i + 1 < p_.inputs ? number_of(x[i + 1], form_) : std::int16_t{0});
  }

  const Problem& p_;
  const std::uint8_t* x_;
  gemm::ByteForm form_;
  LaneChannels channels_;
  std::int64_t base_ = 0;
  bool one_load_ = false;
};

/// Of one block. Y: Int8Result or AffineResult.
template <typename Y>
class ByteImageBlock {
 public:
  ByteImageBlock(const Problem& p, const Y& y, std::int64_t block)
      : p_(p), y_(y), first_(block * kBlock), channels_(std::min<std::int64_t>(p.g.y.c - first_, kBlock)) {}

  HWY_INLINE V32 begin(int /*v*/) const { return hn::Zero(D32()); }

  template <int kCount>
  HWY_INLINE void finish(V32 (&sums)[kCount], int v, std::int64_t offset) const {
    const std::int64_t lane = static_cast<std::int64_t>(v) * kLanes;
    if (lane >= channels_) return;
    store(y_, sums, lane, offset + lane);
  }

  void row_done(std::int64_t offset, std::int64_t count) const {
    // f32 results get their activation when all channels are there.
    if constexpr (std::is_same_v<Y, gemm::AffineResult<float>>)
      activate_rows(y_.scaler.activation, y_.data + offset, count, p_.g.y.w_stride, channels_);
  }

 private:
  template <int kCount>
  HWY_INLINE void store(const gemm::Int8Result& y, V32 (&sums)[kCount], std::int64_t lane, std::int64_t offset) const {
    const hn::Rebind<std::int8_t, D32> d8;
    const std::int64_t lanes = std::min<std::int64_t>(channels_ - lane, kLanes);
    const RequantizeVector<D32> scale(D32(), y.requantize, first_ + lane, lanes);
    unroll<kCount>([&](auto i) HWY_ATTR {
      store_lanes(d8, demote_to_bytes(D32(), scale(sums[i])), lanes, y.data + offset + i * p_.g.y.w_stride);
    });
  }

  template <int kCount, typename T>
  HWY_INLINE void store(const gemm::AffineResult<T>& y, V32 (&sums)[kCount], std::int64_t lane,
                        std::int64_t offset) const {
    const std::int64_t lanes = std::min<std::int64_t>(channels_ - lane, kLanes);
    const AffineVector<D32> scale(D32(), y.scaler, first_ + lane, lanes);
    if constexpr (std::is_same_v<T, std::uint8_t>) scale.to_bytes(y.scaler, sums);
    unroll<kCount>([&](auto i) HWY_ATTR { scale.store(sums[i], lanes, y.data + offset + i * p_.g.y.w_stride); });
  }

  const Problem& p_;
  const Y& y_;
  std::int64_t first_;
  std::int64_t channels_;
};

template <typename Y>
void convolve(const ByteOperands& o, const Y& y, const Part& part, std::int32_t* ring) {
  convolve_part<PairProducts>(o.p, o.w, PairSpreader(o, part.block), ByteImageBlock<Y>(o.p, y, part.block), part, ring);
}

void convolve_int8(const ByteOperands& o, const gemm::Int8Result& y, const Part& part, std::int32_t* ring) {
  convolve(o, y, part, ring);
}
void convolve_affine_u8(const ByteOperands& o, const gemm::AffineResult<std::uint8_t>& y, const Part& part,
                        std::int32_t* ring) {
  convolve(o, y, part, ring);
}
void convolve_affine_i32(const ByteOperands& o, const gemm::AffineResult<std::int32_t>& y, const Part& part,
                         std::int32_t* ring) {
  convolve(o, y, part, ring);
}
void convolve_affine_f32(const ByteOperands& o, const gemm::AffineResult<float>& y, const Part& part,
                         std::int32_t* ring) {
  convolve(o, y, part, ring);
}

}  // namespace
}  // namespace bantam::ops::narrow_groups::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bantam::ops::narrow_groups {

HWY_EXPORT(convolve_int8);
HWY_EXPORT(convolve_affine_u8);
HWY_EXPORT(convolve_affine_i32);
HWY_EXPORT(convolve_affine_f32);

namespace {

template <typename Y, typename Convolve>
void run_with(const Invocation& call, const Problem& p, gemm::ByteForm x, const Y& y, Convolve convolve) {
  const ByteOperands operands{p, call.input<std::uint8_t>(0), x, call.input<std::int32_t>(1)};
  for_each_part(call, p, [&](const Part& part, std::byte* ring) {
    convolve(operands, y, part, reinterpret_cast<std::int32_t*>(ring));
  });
}

}  // namespace

void pack(const Problem& p, const WeightStrides& strides, const std::int8_t* weights, std::uint8_t flip,
          std::int16_t* packed) {
  pack_units(p, strides, weights, packed, [&](std::int8_t weight) -> std::int16_t {
    return static_cast<std::int8_t>(static_cast<std::uint8_t>(weight) ^ flip);
  });
}

void run(const Invocation& call, const Problem& p, gemm::ByteForm x, const gemm::Int8Result& y) {
  run_with(call, p, x, y, HWY_DYNAMIC_DISPATCH(convolve_int8));
}
void run(const Invocation& call, const Problem& p, gemm::ByteForm x, const gemm::AffineResult<std::uint8_t>& y) {
  run_with(call, p, x, y, HWY_DYNAMIC_DISPATCH(convolve_affine_u8));
}
void run(const Invocation& call, const Problem& p, gemm::ByteForm x, const gemm::AffineResult<std::int32_t>& y) {
  run_with(call, p, x, y, HWY_DYNAMIC_DISPATCH(convolve_affine_i32));
}
void run(const Invocation& call, const Problem& p, gemm::ByteForm x, const gemm::AffineResult<float>& y) {
  run_with(call, p, x, y, HWY_DYNAMIC_DISPATCH(convolve_affine_f32));
}

}  // namespace bantam::ops::narrow_groups
#endif
