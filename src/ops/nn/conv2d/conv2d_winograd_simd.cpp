// conv2d in f32 for 3x3 kernels with stride 1 as Winograd's F(4x4, 3x3) or F(2x2, 3x3) (winograd.h). Transformed
// weights are four times, or 1.8 times, as many. The order of sums differs from conv2d_simd.cpp's, so those of the
// larger form are some ten times as large, within the same bound.
#include <algorithm>

#include "ops/common/parallel.h"
#include "ops/nn/conv2d/kernels.h"
#include "ops/nn/conv2d/winograd.h"
#include "ops/nn/gemm/gemm_f32.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/nn/conv2d/conv2d_winograd_simd.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "ops/common/activate_rows.h"
#include "ops/common/clamped_store_simd-inl.h"
#include "ops/nn/gemm/unroll-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::conv2d::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using namespace winograd;
using ops::HWY_NAMESPACE::ClampedStore;
using ops::HWY_NAMESPACE::unroll;

using D = hn::CappedTag<float, 16>;  // channels are whole panels
using V = hn::Vec<D>;
constexpr D kD;
constexpr auto kLanes = static_cast<std::int64_t>(hn::MaxLanes(D()));

/// The image's transform along one axis, of each form.
HWY_INLINE void transform_in(const V (&d)[4], V (&t)[4]) {
  t[0] = hn::Sub(d[0], d[2]);
  t[1] = hn::Add(d[1], d[2]);
  t[2] = hn::Sub(d[2], d[1]);
  t[3] = hn::Sub(d[1], d[3]);
}
HWY_INLINE void transform_in(const V (&d)[6], V (&t)[6]) {
  const V two = hn::Set(kD, 2.0F);
  const V four = hn::Set(kD, 4.0F);
  const V five = hn::Set(kD, 5.0F);
  const V even = hn::NegMulAdd(four, d[2], d[4]);
  const V odd = hn::NegMulAdd(four, d[1], d[3]);
  const V near = hn::Sub(d[4], d[2]);
  const V far = hn::Mul(two, hn::Sub(d[3], d[1]));
  t[0] = hn::MulAdd(four, d[0], hn::NegMulAdd(five, d[2], d[4]));
  t[1] = hn::Add(even, odd);
  t[2] = hn::Sub(even, odd);
  t[3] = hn::Add(near, far);
  t[4] = hn::Sub(near, far);
  t[5] = hn::MulAdd(four, d[1], hn::NegMulAdd(five, d[3], d[5]));
}

/// The products' transform along one axis.
HWY_INLINE void transform_out(const V (&m)[4], V (&t)[2]) {
  t[0] = hn::Add(hn::Add(m[0], m[1]), m[2]);
  t[1] = hn::Sub(hn::Sub(m[1], m[2]), m[3]);
}
HWY_INLINE void transform_out(const V (&m)[6], V (&t)[4]) {
  const V four = hn::Set(kD, 4.0F);
  const V two = hn::Set(kD, 2.0F);
  const V near_sum = hn::Add(m[1], m[2]);
  const V near_difference = hn::Sub(m[1], m[2]);
  const V far_sum = hn::Add(m[3], m[4]);
  const V far_difference = hn::Mul(two, hn::Sub(m[3], m[4]));
  t[0] = hn::Add(hn::Add(m[0], near_sum), far_sum);
  t[1] = hn::Add(near_difference, far_difference);
  t[2] = hn::MulAdd(four, far_sum, near_sum);
  t[3] = hn::Add(hn::MulAdd(four, far_difference, near_difference), m[5]);
}

/// All channels of one tile of the image.
template <int kTileResults>
void take(const ConvGeometry& g, const float* x, const TilePlace& place, const BlockMemory<float>& to,
          std::int64_t tile) {
  constexpr int kTile = tile_size(kTileResults);
  const TileImage image(g, place, kTile);
  const bool whole = image.whole();
  for (std::int64_t c = 0; c < g.x.c; c += kLanes) {
    V half[kTile][kTile];  // [column][row]
    const float* from = x + c;
    unroll<kTile>([&](auto i) HWY_ATTR {
      V d[kTile];
      unroll<kTile>([&](auto r) HWY_ATTR {
        d[r] = whole || image.has(r, i) ? hn::LoadU(kD, from + image.offset(r, i)) : hn::Zero(kD);
      });
      transform_in(d, half[i]);
    });
    unroll<kTile>([&](auto r) HWY_ATTR {
      V d[kTile];
      V t[kTile];
      unroll<kTile>([&](auto i) HWY_ATTR { d[i] = half[i][r]; });
      transform_in(d, t);
      unroll<kTile>([&](auto i) HWY_ATTR { hn::StoreU(t[i], kD, to.at(r * kTile + i, tile) + c); });
    });
  }
}

/// All channels of one tile of results, whose products come in so many parts.
template <int kTileResults>
void give(std::int64_t channels, const BlockMemory<float>& from, std::int64_t parts, std::int64_t tile,
          const float* bias, const Activation& activation, const TileResults& at, float* y) {
  constexpr int kResults = kTileResults;
  constexpr int kTile = tile_size(kResults);
  constexpr int kProducts = product_count(kResults);
  if (!at.any()) return;
  const ClampedStore store(activation);
  y += at.first;
  for (std::int64_t c = 0; c < channels; c += kLanes) {
    const V start = bias != nullptr ? hn::LoadU(kD, bias + c) : hn::Zero(kD);
    V half[kTile][kResults];  // [column][row]
    unroll<kTile>([&](auto i) HWY_ATTR {
      V m[kTile];
      unroll<kTile>([&](auto r) HWY_ATTR { m[r] = hn::LoadU(kD, from.at(r * kTile + i, tile) + c); });
      for (std::int64_t part = 1; part < parts; ++part)
        unroll<kTile>([&](auto r) HWY_ATTR {
          m[r] = hn::Add(m[r], hn::LoadU(kD, from.at(part * kProducts + r * kTile + i, tile) + c));
        });
      transform_out(m, half[i]);
    });
    unroll<kResults>([&](auto r) HWY_ATTR {
      V m[kTile];
      V t[kResults];
      unroll<kTile>([&](auto i) HWY_ATTR { m[i] = half[i][r]; });
      transform_out(m, t);
      if (r >= at.rows) return;
      float* to = y + r * at.row_stride + c;
      unroll<kResults>([&](auto i) HWY_ATTR {
        if (i < at.columns) store(kD, hn::Add(t[i], start), to + i * at.column_stride);
      });
    });
  }
  for (std::int64_t r = 0; r < at.rows && !store.complete(); ++r)
    activate_rows(activation, y + r * at.row_stride, at.columns, at.column_stride, channels);
}

void take_tile(const Tiles& tiles, const float* x, const TilePlace& place, const BlockMemory<float>& to,
               std::int64_t tile) {
  if (tiles.results == kResults) return take<kResults>(tiles.g, x, place, to, tile);
  take<kFewResults>(tiles.g, x, place, to, tile);
}

void give_tile(const Tiles& tiles, const BlockMemory<float>& from, std::int64_t parts, std::int64_t tile,
               const float* bias, const Activation& activation, const TileResults& at, float* y) {
  const std::int64_t channels = tiles.g.y.c;
  if (tiles.results == kResults) return give<kResults>(channels, from, parts, tile, bias, activation, at, y);
  give<kFewResults>(channels, from, parts, tile, bias, activation, at, y);
}

}  // namespace
}  // namespace bantam::ops::conv2d::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bantam::ops::conv2d {

HWY_EXPORT(take_tile);
HWY_EXPORT(give_tile);

namespace {

using namespace winograd;

constexpr std::int64_t kFloat = sizeof(float);

/// Channels of the image are multiplied in parts, whose sums are added in the end: errors, which the transform back
/// enlarges, then grow with the number of channels no faster than results do.
struct Parts {
  std::int64_t channels;
  std::int64_t count;

  explicit Parts(std::int64_t of)
      : channels(of), count(std::max<std::int64_t>((of + kMostChannels - 1) / kMostChannels, 1)) {}

  std::int64_t first_of(std::int64_t part) const { return channels * part / count; }

 private:
  static constexpr std::int64_t kMostChannels = 1024;  // errors of random numbers are two thirds of the bound then
};

std::int64_t tile_bytes(const TensorDesc& x, const TensorDesc& y, int results) {
  return product_count(results) * kFloat * (x.dims[3] + Parts(x.dims[3]).count * y.dims[3]);
}

/// Rows of G, which transforms three taps along one axis.
template <int kTileResults>
constexpr double kG[tile_size(kTileResults)][kTaps] = {};
template <>
constexpr double kG<kResults>[kTile][kTaps] = {{1.0 / 4, 0, 0},
                                               {-1.0 / 6, -1.0 / 6, -1.0 / 6},
                                               {-1.0 / 6, 1.0 / 6, -1.0 / 6},
                                               {1.0 / 24, 1.0 / 12, 1.0 / 6},
                                               {1.0 / 24, -1.0 / 12, 1.0 / 6},
                                               {0, 0, 1}};
template <>
constexpr double kG<kFewResults>[tile_size(kFewResults)][kTaps] = {
    {1, 0, 0}, {1.0 / 2, 1.0 / 2, 1.0 / 2}, {1.0 / 2, -1.0 / 2, 1.0 / 2}, {0, 0, 1}};

/// Product (i, j) of one 3x3 kernel g, transformed: G g G^T.
template <int kTileResults>
float transformed_weight(const float* g, std::int64_t tap_stride, int i, int j) {
  double sum = 0;
  for (int a = 0; a < kTaps; ++a)
    for (int b = 0; b < kTaps; ++b)
      sum += kG<kTileResults>[i][a] * kG<kTileResults>[j][b] * static_cast<double>(g[(a * kTaps + b) * tap_stride]);
  return static_cast<float>(sum);
}

}  // namespace

bool winograd_supports(const OpCall& call) {
  return packed_weights::supports_constant<kGemm>(call) && fits(call.as<Conv2dParams>(), call.in(1));
}

template <int kTileResults>
std::int64_t winograd_packed_bytes(const OpCall& call, int input) {
  const TensorDesc& w = call.in(1);
  return input == 1 ? product_count(kTileResults) * gemm::packed_floats(w.dims[3], w.dims[0]) * kFloat : 0;
}

template <int kTileResults>
Footprint winograd_footprint(const OpCall& call, int threads) {
  const ConvGeometry g = conv_geometry(call.as<Conv2dParams>(), call.in(0), call.out(), kTaps, kTaps);
  return footprint(call, Tiles(g, kTileResults), tile_bytes(call.in(0), call.out(), kTileResults),
                   winograd_packed_bytes<kTileResults>(call, 1), threads);
}

/// Product after product, each as the panels of the matrix [input channels, output channels].
template <int kTileResults>
void winograd_pack(const OpCall& call, int /*input*/, std::byte* destination) {
  constexpr int kSize = tile_size(kTileResults);
  const TensorDesc& w = call.in(1);
  const std::int64_t inputs = w.dims[3];
  const auto* data = static_cast<const float*>(call.inputs[1].data);
  auto* packed = reinterpret_cast<float*>(destination);
  const std::int64_t matrix = gemm::packed_floats(inputs, w.dims[0]);
  for (std::int64_t o = 0; o < w.dims[0]; ++o)
    for (std::int64_t i = 0; i < inputs; ++i) {
      const float* kernel = data + o * kTaps * kTaps * inputs + i;
      float* to = packed + (o / gemm::kPanel * inputs + i) * gemm::kPanel + o % gemm::kPanel;
      for (int product = 0; product < product_count(kTileResults); ++product)
        to[product * matrix] = transformed_weight<kTileResults>(kernel, inputs, product / kSize, product % kSize);
    }
}

namespace {

/// Computes a share of the tiles, block after block, in which `threads` share the work.
void convolve_tiles(const Invocation& call, const Tiles& tiles, const Threads& threads, const Share& share) {
  const ConvGeometry& g = tiles.g;
  const auto take = HWY_DYNAMIC_DISPATCH(take_tile);
  const auto give = HWY_DYNAMIC_DISPATCH(give_tile);
  const std::int64_t count_of_products = product_count(tiles.results);
  const std::int64_t matrix = gemm::packed_floats(g.x.c, g.y.c);
  const BlockMemory<float> images{reinterpret_cast<float*>(share.memory), share.at_once, g.x.c};
  const BlockMemory<float> products{images.at(count_of_products, 0), share.at_once, g.y.c};
  const Parts parts(g.x.c);
  const auto multiply = [&](std::int64_t part, std::int64_t product, std::int64_t count) {
    const std::int64_t first = parts.first_of(part);
    gemm::multiply({.data = images.at(product, 0) + first,
                    .rows = count,
                    .row_stride = g.x.c,
                    .length = parts.first_of(part + 1) - first},
                   {.data = call.input<float>(1) + product * matrix,
                    .n = g.y.c,
                    .last = gemm::panel_count(g.y.c),
                    .first_k = first,
                    .k = g.x.c},
                   {.data = products.at(part * count_of_products + product, 0), .row_stride = g.y.c});
  };
  share.for_each_block([&](std::int64_t first, std::int64_t count) {
    parallel_ranges(threads, count, grain_of(count_of_products * g.x.c), [&](std::int64_t from, std::int64_t to) {
      for (std::int64_t t = from; t < to; ++t) take(tiles, call.input<float>(0), place_of(tiles, first + t), images, t);
    });
    parallel_ranges(threads, parts.count * count_of_products, grain_of(count * g.x.c / parts.count * g.y.c / 8),
                    [&](std::int64_t from, std::int64_t to) {
                      for (std::int64_t i = from; i < to; ++i)
                        multiply(i / count_of_products, i % count_of_products, count);
                    });
    parallel_ranges(threads, count, grain_of(count_of_products * g.y.c), [&](std::int64_t from, std::int64_t to) {
      for (std::int64_t t = from; t < to; ++t)
        give(tiles, products, parts.count, t, optional_input<float>(call, 2), call.as<Conv2dParams>().activation,
             TileResults(tiles, place_of(tiles, first + t)), call.output<float>());
    });
  });
}

}  // namespace

template <int kTileResults>
Status run_winograd(const Invocation& call) {
  const Tiles tiles(conv_geometry(call.as<Conv2dParams>(), call.in(0), call.out(), kTaps, kTaps), kTileResults);
  share_tiles(call, tiles, tile_bytes(call.in(0), call.out(), kTileResults),
              [&](const Threads& threads, const Share& share) { convolve_tiles(call, tiles, threads, share); });
  return ok_status();
}

template Footprint winograd_footprint<kResults>(const OpCall&, int);
template Footprint winograd_footprint<kFewResults>(const OpCall&, int);
template std::int64_t winograd_packed_bytes<kResults>(const OpCall&, int);
template std::int64_t winograd_packed_bytes<kFewResults>(const OpCall&, int);
template void winograd_pack<kResults>(const OpCall&, int, std::byte*);
template void winograd_pack<kFewResults>(const OpCall&, int, std::byte*);
template Status run_winograd<kResults>(const Invocation&);
template Status run_winograd<kFewResults>(const Invocation&);

}  // namespace bantam::ops::conv2d
#endif
