#include <algorithm>
#include <cstring>

#include "ops/common/parallel.h"
#include "ops/nn/conv2d/winograd.h"
#include "ops/nn/conv2d/winograd_i8.h"
#include "ops/nn/gemm/gemm_i16.h"

#ifndef BANTAM_CONV2D_WINOGRAD_I8_GIVEN_
#define BANTAM_CONV2D_WINOGRAD_I8_GIVEN_
namespace bantam::ops::conv2d::winograd_i8 {
namespace {

/// What the transform back makes of a tile's products.
struct Given {
  winograd::BlockMemory<std::int32_t> products;
  std::int32_t* sums = nullptr;  ///< of the tile, 16 for each channel of a vector; not null where channels are in parts
  bool begins = true;            ///< this is the first part of the channels
  bool ends = true;              ///< the last one: there are results
};

}  // namespace
}  // namespace bantam::ops::conv2d::winograd_i8
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/nn/conv2d/winograd_i8_simd.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "ops/common/activate_rows.h"
#include "ops/common/affine_simd-inl.h"
#include "ops/common/requantize_simd-inl.h"
#include "ops/nn/gemm/unroll-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::conv2d::winograd_i8::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using namespace winograd;
using ops::HWY_NAMESPACE::AffineVector;
using ops::HWY_NAMESPACE::demote_to_bytes;
using ops::HWY_NAMESPACE::RequantizeVector;
using ops::HWY_NAMESPACE::unroll;

using D16 = hn::CappedTag<std::int16_t, 16>;  // channels are whole panels
using D32 = hn::CappedTag<std::int32_t, 16>;
using V16 = hn::Vec<D16>;
using V32 = hn::Vec<D32>;
constexpr D16 kD16;
constexpr D32 kD32;
constexpr auto kNumbers = static_cast<std::int64_t>(hn::MaxLanes(D16()));
constexpr auto kSums = static_cast<std::int64_t>(hn::MaxLanes(D32()));

/// The image's transform along one axis.
HWY_INLINE void transform_in(const V16 (&d)[kTile], V16 (&t)[kTile]) {
  const auto times_four = [](V16 v) HWY_ATTR { return hn::ShiftLeft<2>(v); };
  const auto times_five = [](V16 v) HWY_ATTR { return hn::Add(hn::ShiftLeft<2>(v), v); };
  const V16 even = hn::Sub(d[4], times_four(d[2]));
  const V16 odd = hn::Sub(d[3], times_four(d[1]));
  const V16 near = hn::Sub(d[4], d[2]);
  const V16 far = hn::ShiftLeft<1>(hn::Sub(d[3], d[1]));
  t[0] = hn::Add(hn::Sub(times_four(d[0]), times_five(d[2])), d[4]);
  t[1] = hn::Add(even, odd);
  t[2] = hn::Sub(even, odd);
  t[3] = hn::Add(near, far);
  t[4] = hn::Sub(near, far);
  t[5] = hn::Add(hn::Sub(times_four(d[1]), times_five(d[3])), d[5]);
}

/// The products' transform along one axis, 24 times what it gives of untransformed weights. The last one counts twice.
HWY_INLINE void transform_out(const V32 (&m)[kTile], V32 (&t)[kResults]) {
  const V32 near_sum = hn::Add(m[1], m[2]);
  const V32 near_difference = hn::Sub(m[1], m[2]);
  const V32 far_sum = hn::Add(m[3], m[4]);
  const V32 far_difference = hn::ShiftLeft<1>(hn::Sub(m[3], m[4]));
  t[0] = hn::Add(hn::Add(m[0], near_sum), far_sum);
  t[1] = hn::Add(near_difference, far_difference);
  t[2] = hn::Add(near_sum, hn::ShiftLeft<2>(far_sum));
  t[3] = hn::Add(hn::Add(near_difference, hn::ShiftLeft<2>(far_difference)), hn::ShiftLeft<1>(m[5]));
}

/// The sums of which transform_out, along both axes, gave 576-fold.
HWY_INLINE V32 divided(V32 sums) {
  constexpr std::uint32_t kInverseOfNine = 0x38E38E39;
  static_assert(9 * kInverseOfNine == 1);
  return hn::ShiftRight<6>(hn::Mul(sums, hn::Set(kD32, static_cast<std::int32_t>(kInverseOfNine))));
}

/// All channels of one tile of the image.
void take_tile(const ConvGeometry& g, const std::uint8_t* x, gemm::ByteForm form, const TilePlace& place,
               const BlockMemory<std::int16_t>& to, std::int64_t tile) {
  const hn::Rebind<std::uint8_t, D16> d8;
  const TileImage image(g, place);
  const bool whole = image.whole();
  const auto flip = hn::Set(d8, form.flip);
  const V16 zero = hn::Set(kD16, static_cast<std::int16_t>(form.zero));
  for (std::int64_t c = 0; c < g.x.c; c += kNumbers) {
    V16 half[kTile][kTile];  // [column][row]
    const std::uint8_t* from = x + c;
    const auto number = [&](std::int64_t row, std::int64_t column) HWY_ATTR {
      return hn::Sub(hn::PromoteTo(kD16, hn::Xor(hn::LoadU(d8, from + image.offset(row, column)), flip)), zero);
    };
    unroll<kTile>([&](auto i) HWY_ATTR {
      V16 d[kTile];
      unroll<kTile>([&](auto r) HWY_ATTR { d[r] = whole || image.has(r, i) ? number(r, i) : hn::Zero(kD16); });
      transform_in(d, half[i]);
    });
    unroll<kTile>([&](auto r) HWY_ATTR {
      V16 d[kTile];
      V16 t[kTile];
      unroll<kTile>([&](auto i) HWY_ATTR { d[i] = half[i][r]; });
      transform_in(d, t);
      unroll<kTile>([&](auto i) HWY_ATTR { hn::StoreU(t[i], kD16, to.at(r * kTile + i, tile) + c); });
    });
  }
}

/// Calls f(index of the result, offset) for the results of a tile.
template <typename F>
HWY_INLINE void for_each_result(const TileResults& at, F f) {
  unroll<kResults>([&](auto r) HWY_ATTR {
    if (r >= at.rows) return;
    unroll<kResults>([&](auto i) HWY_ATTR {
      if (i < at.columns) f(r * kResults + i, at.first + r * at.row_stride + i * at.column_stride);
    });
  });
}

constexpr int kTileResults = kResults * kResults;

/// Scales the sums of channels [c, c + kSums) and stores them.
HWY_INLINE void finish(const gemm::Int8Result& y, V32 (&sums)[kTileResults], std::int64_t c, const TileResults& at) {
  const RequantizeVector<D32> scale(kD32, y.requantize, c, kSums);
  const hn::Rebind<std::int8_t, D32> d8;
  for_each_result(at, [&](int i, std::int64_t offset)
                          HWY_ATTR { hn::StoreU(demote_to_bytes(kD32, scale(sums[i])), d8, y.data + offset + c); });
}

template <typename Y>
HWY_INLINE void finish(const gemm::AffineResult<Y>& y, V32 (&sums)[kTileResults], std::int64_t c,
                       const TileResults& at) {
  const AffineVector<D32> scale(kD32, y.scaler, c, kSums);
  if constexpr (std::is_same_v<Y, std::uint8_t>) scale.to_bytes(y.scaler, sums);
  for_each_result(at, [&](int i, std::int64_t offset) HWY_ATTR { scale.store(sums[i], kSums, y.data + offset + c); });
}

/// f32 results get their activation when all channels are there.
template <typename Result>
void activate(const Result& /*y*/, std::int64_t /*channels*/, const TileResults& /*at*/) {}
void activate(const gemm::AffineResult<float>& y, std::int64_t channels, const TileResults& at) {
  for (std::int64_t r = 0; r < at.rows; ++r)
    activate_rows(y.scaler.activation, y.data + at.first + r * at.row_stride, at.columns, at.column_stride, channels);
}

/// All channels of one tile of results, or a part of their sums.
template <typename Result>
void give_tile(std::int64_t channels, const Given& given, std::int64_t tile, const TileResults& at, const Result& y) {
  if (!at.any()) return;
  std::int32_t* parts = given.sums != nullptr ? given.sums + tile * kTileResults * channels : nullptr;
  for (std::int64_t c = 0; c < channels; c += kSums) {
    V32 half[kTile][kResults];  // [column][row]
    unroll<kTile>([&](auto i) HWY_ATTR {
      V32 m[kTile];
      unroll<kTile>([&](auto r) HWY_ATTR { m[r] = hn::LoadU(kD32, given.products.at(r * kTile + i, tile) + c); });
      transform_out(m, half[i]);
    });
    V32 sums[kTileResults];
    unroll<kResults>([&](auto r) HWY_ATTR {
      V32 m[kTile];
      V32 t[kResults];
      unroll<kTile>([&](auto i) HWY_ATTR { m[i] = half[i][r]; });
      transform_out(m, t);
      unroll<kResults>([&](auto i) HWY_ATTR { sums[r * kResults + i] = divided(t[i]); });
    });
    if (parts != nullptr) {
      std::int32_t* part = parts + c * kTileResults;
      unroll<kTileResults>([&](auto i) HWY_ATTR {
        if (!given.begins) sums[i] = hn::Add(sums[i], hn::LoadU(kD32, part + i * kSums));
        if (!given.ends) hn::StoreU(sums[i], kD32, part + i * kSums);
      });
    }
    if (given.ends) finish(y, sums, c, at);
  }
  if (given.ends) activate(y, channels, at);
}

void give_int8(std::int64_t channels, const Given& given, std::int64_t tile, const TileResults& at,
               const gemm::Int8Result& y) {
  give_tile(channels, given, tile, at, y);
}
void give_affine_u8(std::int64_t channels, const Given& given, std::int64_t tile, const TileResults& at,
                    const gemm::AffineResult<std::uint8_t>& y) {
  give_tile(channels, given, tile, at, y);
}
void give_affine_i32(std::int64_t channels, const Given& given, std::int64_t tile, const TileResults& at,
                     const gemm::AffineResult<std::int32_t>& y) {
  give_tile(channels, given, tile, at, y);
}
void give_affine_f32(std::int64_t channels, const Given& given, std::int64_t tile, const TileResults& at,
                     const gemm::AffineResult<float>& y) {
  give_tile(channels, given, tile, at, y);
}

}  // namespace
}  // namespace bantam::ops::conv2d::winograd_i8::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bantam::ops::conv2d::winograd_i8 {

HWY_EXPORT(take_tile);
HWY_EXPORT(give_int8);
HWY_EXPORT(give_affine_u8);
HWY_EXPORT(give_affine_i32);
HWY_EXPORT(give_affine_f32);

namespace {

using namespace winograd;

/// Before the packed weights: into how many parts the channels are cut, an i32.
constexpr std::int64_t kHeaderBytes = kAlignment;

/// Sums of magnitudes from here on are not told from others.
constexpr std::int64_t kSumBound = std::int64_t{1} << 25;

/// The transform of one axis; see winograd_i8.h.
constexpr std::int32_t kG[kTile][kTaps] = {{6, 0, 0}, {-4, -4, -4}, {-4, 4, -4}, {1, 2, 4}, {1, -2, 4}, {0, 0, 12}};

std::int64_t matrix_numbers(std::int64_t inputs, std::int64_t outputs) {
  return gemm::packed_i16_numbers(inputs, outputs);
}

/// Bytes of scratch of one tile; with sums, if channels come in parts.
std::int64_t tile_bytes(const ConvGeometry& g, bool in_parts) {
  const std::int64_t sums = in_parts ? kResults * kResults : 0;
  return kProducts * static_cast<std::int64_t>(sizeof(std::int16_t)) * g.x.c +
         (kProducts + sums) * static_cast<std::int64_t>(sizeof(std::int32_t)) * g.y.c;
}

ConvGeometry geometry(const Conv2dParams& window, const TensorDesc& x, const TensorDesc& y) {
  return conv_geometry(window, x, y, kTaps, kTaps);
}

/// Weights w [OC,3,3,C] as numbers.
struct Numbers {
  const TensorDesc& w;
  const std::int8_t* data;
  const ZeroPoints& zeros;

  std::int32_t operator()(std::int64_t output, int tap, std::int64_t channel) const {
    const auto byte = static_cast<std::uint8_t>(data[(output * kTaps * kTaps + tap) * w.dims[3] + channel]);
    return static_cast<std::int8_t>(byte ^ zeros.flip) - zeros[output];
  }
};

/// The largest magnitude of a sum over channels [first, last) with the weights of one output.
std::int64_t largest_sum(const Numbers& numbers, std::int64_t output, gemm::ByteForm x, std::int64_t first,
                         std::int64_t last) {
  std::int64_t positive = 0;
  std::int64_t negative = 0;
  for (int tap = 0; tap < kTaps * kTaps; ++tap)
    for (std::int64_t c = first; c < last; ++c) {
      const std::int32_t weight = numbers(output, tap, c);
      (weight < 0 ? negative : positive) += weight < 0 ? -weight : weight;
    }
  const std::int64_t most = 255 - x.zero;
  const std::int64_t least = x.zero;  // numbers of x are in [-zero, 255 - zero]
  return std::max(positive * most + negative * least, positive * least + negative * most);
}

/// Channels [first_of(i), first_of(i + 1)) are part i: whole panels.
struct Parts {
  std::int64_t count = 1;
  std::int64_t channels = 0;

  std::int64_t first_of(std::int64_t i) const { return channels / gemm::kPanel * i / count * gemm::kPanel; }
};

/// The fewest parts whose sums are below kSumBound.
Parts cut_channels(const Numbers& numbers, gemm::ByteForm x) {
  const std::int64_t channels = numbers.w.dims[3];
  Parts parts{1, channels};
  const auto small = [&] {
    for (std::int64_t i = 0; i < parts.count; ++i)
      for (std::int64_t o = 0; o < numbers.w.dims[0]; ++o)
        if (largest_sum(numbers, o, x, parts.first_of(i), parts.first_of(i + 1)) >= kSumBound) return false;
    return true;
  };
  static_assert(gemm::kPanel * kTaps * kTaps * std::int64_t{kMostWeight} * 255 < kSumBound, "of one panel they are");
  while (parts.count < channels / gemm::kPanel && !small()) ++parts.count;
  return parts;
}

/// What pack wrote; a hostile package may have any number there.
Parts packed_parts(const std::byte* packed, std::int64_t channels) {
  std::int32_t count = 1;
  std::memcpy(&count, packed, sizeof count);
  return {std::clamp<std::int64_t>(count, 1, channels / gemm::kPanel), channels};
}

template <typename Result, typename Give>
struct Run {
  const Invocation& call;
  const Tiles& tiles;
  gemm::ByteForm x;
  const Result& y;
  Give give;
  Parts parts;

  /// Computes a share of the tiles, block after block, in which `threads` share the work.
  void operator()(const Threads& threads, const Share& share) const {
    const ConvGeometry& g = tiles.g;
    const auto take = HWY_DYNAMIC_DISPATCH(take_tile);
    const auto* weights = reinterpret_cast<const std::int16_t*>(call.input<std::byte>(1) + kHeaderBytes);
    const BlockMemory<std::int16_t> images{reinterpret_cast<std::int16_t*>(share.memory), share.at_once, g.x.c,
                                           share.has_gaps};
    const BlockMemory<std::int32_t> products{reinterpret_cast<std::int32_t*>(images.at(kProducts, 0)), share.at_once,
                                             g.y.c, share.has_gaps};
    Given given{.products = products, .sums = parts.count > 1 ? products.at(kProducts, 0) : nullptr};
    share.for_each_block([&](std::int64_t first, std::int64_t count) {
      parallel_ranges(threads, count, grain_of(kProducts * g.x.c), [&](std::int64_t from, std::int64_t to) {
        for (std::int64_t t = from; t < to; ++t)
          take(g, call.input<std::uint8_t>(0), x, place_of(tiles, first + t), images, t);
      });
      for (std::int64_t part = 0; part < parts.count; ++part) {
        multiply_part(threads, weights, images, products, count, part);
        given.begins = part == 0;
        given.ends = part + 1 == parts.count;
        parallel_ranges(threads, count, grain_of(kProducts * g.y.c), [&](std::int64_t from, std::int64_t to) {
          for (std::int64_t t = from; t < to; ++t)
            give(g.y.c, given, t, TileResults(tiles, place_of(tiles, first + t)), y);
        });
      }
    });
  }

  void multiply_part(const Threads& threads, const std::int16_t* weights, const BlockMemory<std::int16_t>& images,
                     const BlockMemory<std::int32_t>& products, std::int64_t count, std::int64_t part) const {
    const ConvGeometry& g = tiles.g;
    const std::int64_t first = parts.first_of(part);
    const std::int64_t channels = parts.first_of(part + 1) - first;
    parallel_ranges(
        threads, kProducts, grain_of(count * channels * g.y.c / 16), [&](std::int64_t from, std::int64_t to) {
          for (std::int64_t product = from; product < to; ++product)
            gemm::multiply({images.at(product, 0) + first, count, g.x.c},
                           {weights + product * matrix_numbers(g.x.c, g.y.c), g.x.c, g.y.c, first, channels},
                           products.at(product, 0));
        });
  }
};

template <typename Result, typename Give>
void run_with(const Invocation& call, const Conv2dParams& window, gemm::ByteForm x, const Result& y, Give give) {
  const Tiles tiles(geometry(window, call.in(0), call.out()));
  const Parts parts = packed_parts(call.input<std::byte>(1), tiles.g.x.c);
  share_tiles(call, tiles, tile_bytes(tiles.g, parts.count > 1), gap_bytes(Form{}, 2), packed_bytes(call.in(1)),
              Run<Result, Give>{call, tiles, x, y, give, parts});
}

}  // namespace

bool fits(const OpCall& call, const Conv2dParams& window) noexcept {
  return call.inputs[1].data != nullptr && call.in(1).is_dense() && call.in(1).elements() > 0 &&
         call.out().elements() > 0 && winograd::fits(window, call.in(1));
}

Footprint footprint(const OpCall& call, const Conv2dParams& window, int threads) {
  const ConvGeometry g = geometry(window, call.in(0), call.out());
  return winograd::footprint(call, Tiles(g), tile_bytes(g, false), gap_bytes(Form{}, 2), packed_bytes(call.in(1)),
                             threads);
}

std::int64_t packed_bytes(const TensorDesc& w) noexcept {
  return kHeaderBytes +
         kProducts * matrix_numbers(w.dims[3], w.dims[0]) * static_cast<std::int64_t>(sizeof(std::int16_t));
}

void pack(const TensorDesc& w, const std::int8_t* data, const ZeroPoints& zeros, gemm::ByteForm x,
          std::byte* destination) {
  const Numbers numbers{w, data, zeros};
  const std::int64_t inputs = w.dims[3];
  const auto count = static_cast<std::int32_t>(cut_channels(numbers, x).count);
  std::memset(destination, 0, kHeaderBytes);
  std::memcpy(destination, &count, sizeof count);
  auto* packed = reinterpret_cast<std::int16_t*>(destination + kHeaderBytes);
  const std::int64_t matrix = matrix_numbers(inputs, w.dims[0]);
  for (std::int64_t o = 0; o < w.dims[0]; ++o)
    for (std::int64_t c = 0; c < inputs; ++c) {
      std::int16_t* to = packed + gemm::packed_i16_index(inputs, c, o);
      for (int i = 0; i < kTile; ++i)
        for (int j = 0; j < kTile; ++j) {
          std::int32_t sum = 0;
          for (int a = 0; a < kTaps; ++a)
            for (int b = 0; b < kTaps; ++b) sum += kG[i][a] * kG[j][b] * numbers(o, a * kTaps + b, c);
          to[(i * kTile + j) * matrix] = static_cast<std::int16_t>(sum);
        }
    }
}

void run(const Invocation& call, const Conv2dParams& window, gemm::ByteForm x, const gemm::Int8Result& y) {
  run_with(call, window, x, y, HWY_DYNAMIC_DISPATCH(give_int8));
}
void run(const Invocation& call, const Conv2dParams& window, gemm::ByteForm x,
         const gemm::AffineResult<std::uint8_t>& y) {
  run_with(call, window, x, y, HWY_DYNAMIC_DISPATCH(give_affine_u8));
}
void run(const Invocation& call, const Conv2dParams& window, gemm::ByteForm x,
         const gemm::AffineResult<std::int32_t>& y) {
  run_with(call, window, x, y, HWY_DYNAMIC_DISPATCH(give_affine_i32));
}
void run(const Invocation& call, const Conv2dParams& window, gemm::ByteForm x, const gemm::AffineResult<float>& y) {
  run_with(call, window, x, y, HWY_DYNAMIC_DISPATCH(give_affine_f32));
}

}  // namespace bantam::ops::conv2d::winograd_i8
#endif
