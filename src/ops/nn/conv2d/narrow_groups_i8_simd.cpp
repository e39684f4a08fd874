// Narrow groups of 8-bit images: quads of bytes are multiplied where the processor does that, elsewhere pairs of inputs
// in 16 bits; sums are exact.
#include <algorithm>
#include <cstring>
#include <type_traits>

#include "ops/common/byte_products.h"
#include "ops/common/short_copy.h"
#include "ops/nn/conv2d/narrow_groups_layout.h"
#include "ops/nn/conv2d/problem.h"

#ifndef BANTAM_NARROW_GROUPS_I8_OPERANDS_
#define BANTAM_NARROW_GROUPS_I8_OPERANDS_
namespace bantam::ops::narrow_groups {
namespace {

/// What of a convolution its parts have in common.
struct ByteOperands {
  Problem p;
  const std::uint8_t* x;
  gemm::ByteForm form;
  const std::int32_t* w;  ///< quads of bytes
};

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
#include "ops/common/quad_products_simd-inl.h"
#include "ops/common/requantize_simd-inl.h"
#include "ops/common/rows_simd-inl.h"
#include "ops/nn/conv2d/narrow_groups-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::narrow_groups::HWY_NAMESPACE {
namespace {

using ops::HWY_NAMESPACE::AffineVector;
using ops::HWY_NAMESPACE::demote_to_bytes;
using ops::HWY_NAMESPACE::RequantizeVector;
using ops::HWY_NAMESPACE::store_lanes;
using ops::HWY_NAMESPACE::with_zero_point;

using D32 = Tag<std::int32_t>;
using D16 = hn::RepartitionToNarrow<D32>;
using V32 = hn::Vec<D32>;

#if (HWY_TARGET == HWY_AVX3_DL || HWY_TARGET == HWY_AVX2) && HWY_ARCH_X86
/// Bytes as they lie, but for flipped bits, times quads of weights.
struct QuadProducts {
  using Unit = std::int32_t;
  using Number = std::uint8_t;
  using Weights = V32;
  using D8 = hn::Repartition<std::uint8_t, D32>;
  static constexpr std::int64_t kUnitsOfWeight = 1;

  static std::int64_t units(const Problem& p) { return p.units(); }
  static HWY_INLINE V32 weights(V32 w, std::int64_t /*unit*/) { return in_register(w); }
  static HWY_INLINE V32 add(V32 x, V32 w, V32 sum, V32& /*rest*/) {
    return ops::HWY_NAMESPACE::add_quad_products(sum, x, w);
  }
  static HWY_INLINE V32 total(V32 sum, V32 /*rest*/) { return sum; }

  /// By how much numbers exceed those that they stand for.
  static std::int32_t surplus(gemm::ByteForm form) { return form.zero; }

  static HWY_INLINE void convert(gemm::ByteForm form, const std::uint8_t* from, std::int64_t count, Number* to) {
    const hn::CappedTag<std::uint8_t, 16> d8;
    std::int64_t i = 0;
    for (; i + 16 <= count; i += 16) hn::StoreU(hn::Xor(hn::LoadU(d8, from + i), hn::Set(d8, form.flip)), d8, to + i);
    const hn::CappedTag<std::uint8_t, 4> d4;
    for (; i + 4 <= count; i += 4) hn::StoreU(hn::Xor(hn::LoadU(d4, from + i), hn::Set(d4, form.flip)), d4, to + i);
    for (; i < count; ++i) to[i] = from[i] ^ form.flip;
  }

  /// The numbers of a vector from 16 bytes.
  static HWY_INLINE V32 look_up(gemm::ByteForm form, const std::uint8_t* from, const std::uint8_t* places) {
    const D8 d8;
    const auto bytes = hn::Xor(hn::LoadDup128(d8, from), hn::Set(d8, form.flip));
    return hn::BitCast(D32(), hn::TableLookupBytesOr0(bytes, hn::LoadU(d8, places)));
  }
};
#endif

#if HWY_TARGET != HWY_AVX3_DL
/// As many of 16 bytes as a vector has numbers of 16 bits.
template <class V>
HWY_INLINE auto of_vector(V bytes) {
  if constexpr (kLanes * 2 < 16) {
    return hn::LowerHalf(bytes);
  } else {
    return bytes;
  }
}

/// Numbers of 16 bits times pairs of weights, two of a quad.
struct PairProducts {
  using Unit = std::int32_t;
  using Number = std::int16_t;
  using Weights = hn::Vec<D16>;
  static constexpr std::int64_t kUnitsOfWeight = 2;

  static std::int64_t units(const Problem& p) { return (p.inputs + 1) / 2; }

  /// Each weight becomes the upper byte of a number.
  static HWY_INLINE Weights weights(V32 w, std::int64_t unit) {
    alignas(16) static constexpr std::uint8_t kPlaces[2][16] = {
        {0, 0, 1, 1, 4, 4, 5, 5, 8, 8, 9, 9, 12, 12, 13, 13}, {2, 2, 3, 3, 6, 6, 7, 7, 10, 10, 11, 11, 14, 14, 15, 15}};
    const hn::Repartition<std::uint8_t, D32> d8;
    const auto bytes = hn::TableLookupBytes(hn::BitCast(d8, w), hn::LoadDup128(d8, kPlaces[unit % 2]));
    return in_register(hn::ShiftRight<8>(hn::BitCast(D16(), bytes)));
  }

  /// `rest`: see ReorderWidenMulAccumulate.
  static HWY_INLINE V32 add(V32 x, Weights w, V32 sum, V32& rest) {
    return hn::ReorderWidenMulAccumulate(D32(), hn::BitCast(D16(), x), w, sum, rest);
  }
  static HWY_INLINE V32 total(V32 sum, V32 rest) { return hn::RearrangeToOddPlusEven(sum, rest); }

  static std::int32_t surplus(gemm::ByteForm /*form*/) { return 0; }

  static HWY_INLINE void convert(gemm::ByteForm form, const std::uint8_t* from, std::int64_t count, Number* to) {
    const hn::Rebind<std::uint8_t, D16> d8;
    constexpr auto kNumbers = static_cast<std::int64_t>(hn::MaxLanes(D16()));
    std::int64_t i = 0;
    for (; i + kNumbers <= count; i += kNumbers) hn::StoreU(widened(form, hn::LoadU(d8, from + i)), D16(), to + i);
    for (; i < count; ++i) to[i] = static_cast<Number>((from[i] ^ form.flip) - form.zero);
  }

  static HWY_INLINE V32 look_up(gemm::ByteForm form, const std::uint8_t* from, const std::uint8_t* places) {
    const hn::CappedTag<std::uint8_t, 16> d8;
    const auto found = hn::TableLookupBytesOr0(hn::LoadU(d8, from), hn::LoadU(d8, places));
    return hn::BitCast(D32(), widened(form, of_vector(found)));
  }

 private:
  static HWY_INLINE Weights widened(gemm::ByteForm form, hn::Vec<hn::Rebind<std::uint8_t, D16>> bytes) {
    const hn::Rebind<std::uint8_t, D16> d8;
    const auto numbers = hn::PromoteTo(D16(), hn::Xor(bytes, hn::Set(d8, form.flip)));
    return hn::Sub(numbers, hn::Set(D16(), static_cast<std::int16_t>(form.zero)));
  }
};
#endif

/// Finds the inputs of each lane's group.
template <typename Products>
class ByteSpreader {
 public:
  using Number = typename Products::Number;

  ByteSpreader(const ByteOperands& o, const Block& block)
      : p_(o.p),
        x_(o.x),
        end_(o.x + p_.g.x.offset(p_.g.x.n - 1, p_.g.x.h - 1, p_.g.x.w - 1) + p_.g.x.c),
        form_(o.form),
        block_(block),
        inputs_(p_, block),
        units_(Products::units(p_)) {}

  /// Spreads, or copies, columns [first, first + count) of an image row, what stands for zero where it has none.
  void row(std::int64_t item, std::int64_t iy, std::int64_t first, std::int64_t count, std::int32_t* to) const {
    const std::int64_t pixel = ring_pixel<Products>(p_) * kNumbers;
    const std::uint8_t* row = x_ + p_.g.x.offset(item, iy, 0) + block_.input;
    spread_row(p_.g.x, row, first, count, pixel, padding(), reinterpret_cast<Number*>(to),
               [&](const std::uint8_t* x, std::int64_t n, Number* at) {
                 if (spreading(p_) == Spreading::kPerLane) {
                   for (int v = 0; v < used_vectors(block_); ++v) spread(x, n, v, at + v * kLanes * kNumbers);
                 } else {
                   copy(x, n, at);
                 }
               });
  }

  void fetch(std::int64_t item, std::int64_t iy, std::int64_t first, std::int64_t count) const {
    fetch_row(p_.g.x, x_ + p_.g.x.offset(item, iy, 0) + block_.input, first, count, block_inputs(p_, block_));
  }

 private:
  static constexpr std::int64_t kNumbers = kUnitBytes / static_cast<std::int64_t>(sizeof(Number));  ///< of a unit
  static constexpr std::int64_t kLoaded = 16;
  static constexpr std::uint8_t kNone = 0x80;  ///< the place of no input, of a lookup

  Number padding() const { return static_cast<Number>(Products::surplus(form_)); }

  /// The inputs of all groups, each filled up to whole units.
  HWY_NOINLINE void copy(const std::uint8_t* x, std::int64_t count, Number* to) const {
    const std::int64_t whole = units_ * kNumbers;
    const std::int64_t inputs = block_inputs(p_, block_);
    const std::int64_t run = whole == p_.inputs ? inputs : p_.inputs;
    const bool looks_up = kLanes * kUnitBytes == 4 * kLoaded && inputs <= kLoaded;
    if (run < whole && looks_up) return look_up_groups(x, count, to);
    for (const std::int64_t pixel = ring_pixel<Products>(p_) * kNumbers; count > 0;
         --count, x += p_.g.x.w_stride, to += pixel) {
      Number* group = to;
      for (std::int64_t i = 0; i < inputs; i += run, group += whole) {
        Products::convert(form_, x + i, run, group);
        if (run < whole) std::fill_n(group + run, whole - run, padding());
      }
    }
  }

  /// body(kLoaded bytes that begin at channel `channel` of pixel x, then of the next ones): what would end behind the
  /// image, or between pixels that are not packed, where others may write meanwhile, is a copy.
  template <typename Body>
  HWY_INLINE void for_each_pixel(const std::uint8_t* x, std::int64_t channel, std::int64_t count, Body body) const {
    const ImageShape& image = p_.g.x;
    const std::int64_t inside = image.c - channel;
    const bool lies_packed = image.w_stride == image.c && conv2d::uniform_pixels(image);
    const auto there = [&] { return lies_packed ? end_ - x : inside; };
    for (; count > 0 && there() >= kLoaded; --count, x += image.w_stride) body(x);
    HWY_ALIGN std::uint8_t last[kLoaded] = {};
    for (; count > 0; --count, x += image.w_stride) {
      copy_at_most<kLoaded, 1>(x, std::min<std::int64_t>(there(), kLoaded), last);
      body(last);
    }
  }

  /// The same by one lookup in 16 bytes per pixel. A pixel's units fit a vector.
  HWY_INLINE void look_up_groups(const std::uint8_t* x, std::int64_t count, Number* to) const {
    constexpr std::int64_t kVector = kLanes * kNumbers;
    const std::int64_t pixel = ring_pixel<Products>(p_) * kNumbers;
    HWY_ALIGN std::uint8_t places[std::max(kVector, kLoaded)];
    std::fill_n(places, std::size(places), kNone);
    const std::int64_t groups = block_inputs(p_, block_) / p_.inputs;
    for (std::int64_t group = 0; group < groups; ++group)
      for (std::int64_t input = 0; input < p_.inputs; ++input)
        places[group * units_ * kNumbers + input] = static_cast<std::uint8_t>(group * p_.inputs + input);
    // What a vector has beyond its pixel is overwritten by the next ones; of the last pixels only theirs is stored.
    const std::int64_t whole = std::clamp<std::int64_t>(count - (kVector - 1) / pixel, 0, count);
    for_each_pixel(x, block_.input, whole, [&](const std::uint8_t* bytes) HWY_ATTR {
      hn::StoreU(Products::look_up(form_, bytes, places), D32(), reinterpret_cast<std::int32_t*>(to));
      to += pixel;
    });
    HWY_ALIGN Number one[kVector];
    for_each_pixel(x + whole * p_.g.x.w_stride, block_.input, count - whole, [&](const std::uint8_t* bytes) HWY_ATTR {
      hn::Store(Products::look_up(form_, bytes, places), D32(), reinterpret_cast<std::int32_t*>(one));
      std::copy_n(one, pixel, to);
      to += pixel;
    });
  }

  /// For the lanes of vector v of the block.
  HWY_NOINLINE void spread(const std::uint8_t* x, std::int64_t count, int v, Number* to) const {
    const std::int32_t* inputs = inputs_.first + v * kLanes;
    // One load finds all channels where they lie together.
    if (inputs[kLanes - 1] + p_.inputs - inputs[0] <= kLoaded) return look_up(x + inputs[0], count, inputs, to);
    for (; count > 0; --count, x += p_.g.x.w_stride, to += units_ * kBlock * kNumbers)
      for (std::int64_t unit = 0; unit < units_; ++unit)
        for (std::int64_t lane = 0; lane < kLanes; ++lane) {
          const std::int64_t first = unit * kNumbers;
          const std::int64_t there = std::min(p_.inputs - first, kNumbers);
          Number* at = to + (unit * kBlock + lane) * kNumbers;
          Products::convert(form_, x + inputs[lane] + first, there, at);
          std::fill_n(at + there, kNumbers - there, padding());
        }
  }

  /// One lookup in 16 bytes gives a unit of all lanes.
  HWY_INLINE void look_up(const std::uint8_t* x, std::int64_t count, const std::int32_t* inputs, Number* to) const {
    constexpr std::int64_t kVector = std::max<std::int64_t>(kLanes * kNumbers, kLoaded);
    HWY_ALIGN std::uint8_t places[kLoaded / kNumbers * kVector] = {};
    for (std::int64_t unit = 0; unit < units_; ++unit)
      for (std::int64_t at = 0; at < kLanes * kNumbers; ++at) {
        const std::int64_t input = unit * kNumbers + at % kNumbers;
        places[unit * kVector + at] =
            input < p_.inputs ? static_cast<std::uint8_t>(inputs[at / kNumbers] - inputs[0] + input) : kNone;
      }
    for_each_pixel(x, block_.input + inputs[0], count, [&](const std::uint8_t* bytes) HWY_ATTR {
      for (std::int64_t unit = 0; unit < units_; ++unit, to += kBlock * kNumbers)
        hn::StoreU(Products::look_up(form_, bytes, places + unit * kVector), D32(),
                   reinterpret_cast<std::int32_t*>(to));
    });
  }

  const Problem& p_;
  const std::uint8_t* x_;
  const std::uint8_t* end_;  ///< of the image
  gemm::ByteForm form_;
  Block block_;
  LaneInputs inputs_;
  std::int64_t units_;  ///< of a group
};

/// The sums of some neighbouring pixels, a vector of channels each, and where their results go.
struct PixelSums {
  std::int32_t* sums;
  std::int64_t pixels;
  std::int64_t first;  ///< channel
  std::int64_t lanes;  ///< channels that there are
  std::int64_t offset;
  std::int64_t stride;  ///< from one pixel's results to the next

  HWY_INLINE V32 load(std::int64_t pixel) const { return hn::Load(D32(), sums + pixel * kLanes); }
};

HWY_INLINE void finish_sums(const gemm::Int8Result& y, const PixelSums& of) {
  const hn::Rebind<std::int8_t, D32> d8;
  const RequantizeVector<D32> scale(D32(), y.requantize, of.first, of.lanes);
  for (std::int64_t i = 0; i < of.pixels; ++i)
    store_lanes(d8, demote_to_bytes(D32(), scale(of.load(i))), of.lanes, y.data + of.offset + i * of.stride);
}

template <typename T>
HWY_INLINE void finish_sums(const gemm::AffineResult<T>& y, const PixelSums& of) {
  const AffineVector<D32> scale(D32(), y.scaler, of.first, of.lanes);
  const auto store = [&](auto result) HWY_ATTR {
    for (std::int64_t i = 0; i < of.pixels; ++i)
      scale.store(result(of.load(i)), of.lanes, y.data + of.offset + i * of.stride);
  };
  if constexpr (!std::is_same_v<T, std::uint8_t>) {
    store([](V32 sum) HWY_ATTR { return sum; });
  } else if (!y.scaler.has_activation()) {
    store([&](V32 sum) HWY_ATTR { return scale(sum); });
  } else {
    for (std::int64_t i = 0; i < of.pixels; ++i)
      hn::Store(hn::BitCast(D32(), scale.argument(of.load(i))), D32(), of.sums + i * kLanes);
    round_activated(y.scaler, of.sums, of.pixels * kLanes);
    store([&](V32 steps) HWY_ATTR { return with_zero_point(D32(), y.scaler, steps); });
  }
}

/// Int8Result or AffineResult, whichever it is: the loops that make sums are compiled once for them.
class AnyResult {
 public:
  template <typename Y>
  explicit AnyResult(const Y& y)
      : y_(&y), finish_([](const void* result, const PixelSums& of) HWY_ATTR {
          finish_sums(*static_cast<const Y*>(result), of);
        }) {
    if constexpr (std::is_same_v<Y, gemm::AffineResult<float>>) real_ = &y;
  }

  /// Not null: f32 results.
  const gemm::AffineResult<float>* real() const { return real_; }

  friend void finish_sums(const AnyResult& y, const PixelSums& of) { y.finish_(y.y_, of); }

 private:
  const void* y_;
  void (*finish_)(const void* y, const PixelSums& of);
  const gemm::AffineResult<float>* real_ = nullptr;
};

/// Of one block. Result: AnyResult, or the type that is usual.
template <typename Result>
class ByteImageBlock {
 public:
  /// row_sums: those of the block's weights, kBlock for each kernel row; `surplus` times these are taken off.
  ByteImageBlock(const Problem& p, const Result& y, const Block& block, const std::int32_t* row_sums,
                 std::int32_t surplus)
      : p_(p), y_(y), first_(block.first), channels_(block.count), row_sums_(row_sums), surplus_(surplus) {}

  HWY_INLINE V32 begin(int v, const TapRange& taps) const {
    auto sums = hn::Zero(D32());
    if (surplus_ == 0) return sums;
    for (std::int64_t row = taps.first; row < taps.last; ++row)
      sums = hn::Sub(sums, hn::LoadU(D32(), row_sums_ + row * kBlock + v * kLanes));
    return hn::Mul(sums, hn::Set(D32(), surplus_));
  }

  template <int kCount>
  HWY_INLINE void finish(const V32 (&totals)[kCount], int v, std::int64_t offset) const {
    HWY_ALIGN std::int32_t sums[kCount * kLanes];
    unroll<kCount>([&](auto i) HWY_ATTR { hn::Store(totals[i], D32(), sums + i * kLanes); });
    const std::int64_t lane = static_cast<std::int64_t>(v) * kLanes;
    finish_sums(y_, {sums, kCount, first_ + lane, std::min<std::int64_t>(channels_ - lane, kLanes), offset + lane,
                     p_.g.y.w_stride});
  }

  void row_done(std::int64_t offset, std::int64_t count) const {
    // f32 results get their activation when all channels are there.
    if constexpr (std::is_same_v<Result, AnyResult>)
      if (const auto* y = y_.real())
        activate_rows(y->scaler.activation, y->data + offset, count, p_.g.y.w_stride, channels_);
  }

 private:
  const Problem& p_;
  const Result& y_;
  std::int64_t first_;
  std::int64_t channels_;
  const std::int32_t* row_sums_;
  std::int32_t surplus_;
};

template <typename Products, typename Y>
void convolve_with(const ByteOperands& o, const Y& y, const Part& part, std::int32_t* ring) {
  const Block block = block_at(o.p, part.block);
  const std::int32_t* row_sums = o.w + part.block * block_units(o.p) + weight_units(o.p);
  const ByteImageBlock<Y> result(o.p, y, block, row_sums, Products::surplus(o.form));
  convolve_part<Products>(o.p, o.w, ByteSpreader<Products>(o, block), result, part, ring);
}

template <typename Y>
void convolve(const ByteOperands& o, const Y& y, const Part& part, std::int32_t* ring) {
#if HWY_TARGET == HWY_AVX3_DL
  convolve_with<QuadProducts>(o, y, part, ring);
#elif HWY_TARGET == HWY_AVX2
  if (byte_products() >= ByteProducts::kDot) return convolve_with<QuadProducts>(o, y, part, ring);
  convolve_with<PairProducts>(o, y, part, ring);
#else
  convolve_with<PairProducts>(o, y, part, ring);
#endif
}

void convolve_int8(const ByteOperands& o, const gemm::Int8Result& y, const Part& part, std::int32_t* ring) {
  convolve(o, AnyResult(y), part, ring);
}
void convolve_affine_u8(const ByteOperands& o, const gemm::AffineResult<std::uint8_t>& y, const Part& part,
                        std::int32_t* ring) {
  convolve(o, y, part, ring);
}
void convolve_affine_i32(const ByteOperands& o, const gemm::AffineResult<std::int32_t>& y, const Part& part,
                         std::int32_t* ring) {
  convolve(o, AnyResult(y), part, ring);
}
void convolve_affine_f32(const ByteOperands& o, const gemm::AffineResult<float>& y, const Part& part,
                         std::int32_t* ring) {
  convolve(o, AnyResult(y), part, ring);
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
          std::int8_t* packed) {
  for (std::int64_t block = 0; block < block_count(p); ++block) {
    auto* row_sums = reinterpret_cast<std::int32_t*>(packed + weight_units(p) * kUnitBytes);
    std::fill_n(row_sums, p.g.vertical.kernel * kBlock, 0);
    std::int8_t* next = packed;
    for_each_weight(p, block_at(p, block), strides, weights,
                    [&](std::int64_t row, std::int64_t lane, const std::int8_t* weight) {
                      const auto bits = weight != nullptr ? static_cast<std::uint8_t>(*weight) ^ flip : 0;
                      *next = static_cast<std::int8_t>(bits);
                      row_sums[row * kBlock + lane] += *next++;
                    });
    packed += block_units(p) * kUnitBytes;
  }
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
