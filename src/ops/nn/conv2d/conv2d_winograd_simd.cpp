// conv2d in f32 for 3x3 kernels with strides of 1 or 2 as Winograd's F(4x4, 3x3) or F(2x2, 3x3) (winograd.h).
// Transformed weights are four times, or 1.8 times, as many. The order of sums differs from conv2d_simd.cpp's, so
// errors of the larger form are some ten times as large, within the same bound.
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

// The image's transform along one axis, of each form; with stride 2 the even pixels' first, then the odd pixels.
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
HWY_INLINE void transform_in(const V (&d)[5], V (&t)[5]) {
  t[0] = hn::Sub(d[0], d[2]);
  t[1] = d[2];
  t[2] = hn::Sub(d[4], d[2]);
  t[3] = d[1];
  t[4] = d[3];
}
HWY_INLINE void transform_in(const V (&d)[9], V (&t)[9]) {
  // By the points 0, 1, -1, 2 and infinity.
  const V two = hn::Set(kD, 2.0F);
  const V first = hn::Sub(d[0], d[4]);
  const V second = hn::Sub(d[6], d[2]);
  const V third = hn::Sub(d[8], d[4]);
  const V twice = hn::Add(d[2], d[2]);
  const V difference = hn::Sub(d[6], d[4]);
  t[0] = hn::MulAdd(two, first, second);
  t[1] = hn::Sub(difference, twice);
  t[2] = hn::Add(hn::NegMulAdd(two, d[4], difference), twice);
  t[3] = second;
  t[4] = hn::NegMulAdd(two, second, third);
  unroll<4>([&](auto i) HWY_ATTR { t[5 + i] = d[2 * i + 1]; });
}

// The products' transform along one axis.
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
HWY_INLINE void transform_out(const V (&m)[5], V (&t)[2]) {
  t[0] = hn::Add(hn::Add(m[0], m[1]), m[3]);
  t[1] = hn::Add(hn::Add(m[1], m[2]), m[4]);
}
HWY_INLINE void transform_out(const V (&m)[9], V (&t)[4]) {
  const V two = hn::Set(kD, 2.0F);
  const V four = hn::Set(kD, 4.0F);
  const V eight = hn::Set(kD, 8.0F);
  const V sum = hn::Add(m[1], m[2]);
  const V difference = hn::Sub(m[1], m[2]);
  t[0] = hn::Add(hn::Add(m[0], sum), hn::Add(m[3], m[5]));
  t[1] = hn::Add(hn::MulAdd(two, m[3], difference), m[6]);
  t[2] = hn::Add(hn::MulAdd(four, m[3], sum), m[7]);
  t[3] = hn::Add(hn::MulAdd(eight, m[3], difference), hn::Add(m[4], m[8]));
}

/// All channels of one tile of the image.
template <Form kForm>
void take(const ConvGeometry& g, const float* x, const TilePlace& place, const BlockMemory<float>& to,
          std::int64_t tile) {
  constexpr int kTile = kForm.tile();
  const TileImage image(g, place, kTile);
  const bool whole = image.whole();
  for (std::int64_t c = 0; c < g.x.c; c += kLanes) {
    V half[kTile][kTile];  // [column][row]
    const float* from = x + c;
    unroll<kTile>([&](auto i) __attribute__((always_inline)) HWY_ATTR {
      V d[kTile];
      unroll<kTile>([&](auto r) __attribute__((always_inline)) HWY_ATTR {
        d[r] = whole || image.has(r, i) ? hn::LoadU(kD, from + image.offset(r, i)) : hn::Zero(kD);
      });
      transform_in(d, half[i]);
    });
    unroll<kTile>([&](auto r) __attribute__((always_inline)) HWY_ATTR {
      V d[kTile];
      V t[kTile];
      unroll<kTile>([&](auto i) __attribute__((always_inline)) HWY_ATTR { d[i] = half[i][r]; });
      transform_in(d, t);
      unroll<kTile>([&](auto i) __attribute__((always_inline))
                    HWY_ATTR { hn::StoreU(t[i], kD, to.at(kForm.product(r, i), tile) + c); });
    });
  }
}

/// All channels of one tile of results, whose products come in so many parts.
template <Form kForm>
void give(std::int64_t channels, const BlockMemory<float>& from, std::int64_t parts, std::int64_t tile,
          const float* bias, const Activation& activation, const TileResults& at, float* y) {
  constexpr int kResults = kForm.results;
  constexpr int kTile = kForm.tile();
  if (!at.any()) return;
  const ClampedStore store(activation);
  y += at.first;
  for (std::int64_t c = 0; c < channels; c += kLanes) {
    const V start = bias != nullptr ? hn::LoadU(kD, bias + c) : hn::Zero(kD);
    V half[kTile][kResults];  // [column][row]
    unroll<kTile>([&](auto i) __attribute__((always_inline)) HWY_ATTR {
      V m[kTile];
      unroll<kTile>([&](auto r) __attribute__((always_inline))
                    HWY_ATTR { m[r] = hn::LoadU(kD, from.at(kForm.product(r, i), tile) + c); });
      for (std::int64_t part = 1; part < parts; ++part)
        unroll<kTile>([&](auto r) __attribute__((always_inline)) HWY_ATTR {
          m[r] = hn::Add(m[r], hn::LoadU(kD, from.at(part * kForm.products() + kForm.product(r, i), tile) + c));
        });
      transform_out(m, half[i]);
    });
    unroll<kResults>([&](auto r) __attribute__((always_inline)) HWY_ATTR {
      V m[kTile];
      V t[kResults];
      unroll<kTile>([&](auto i) __attribute__((always_inline)) HWY_ATTR { m[i] = half[i][r]; });
      transform_out(m, t);
      if (r >= at.rows) return;
      float* to = y + r * at.row_stride + c;
      unroll<kResults>([&](auto i) __attribute__((always_inline)) HWY_ATTR {
        if (i < at.columns) store(kD, hn::Add(t[i], start), to + i * at.column_stride);
      });
    });
  }
  for (std::int64_t r = 0; r < at.rows && !store.complete(); ++r)
    activate_rows(activation, y + r * at.row_stride, at.columns, at.column_stride, channels);
}

/// Calls f with the form as a constant.
template <typename F>
void with_form(const Form& form, F f) {
  constexpr Form kForms[] = {{kResults, 1}, {kFewResults, 1}, {kResults, 2}, {kFewResults, 2}};
  unroll<4>([&](auto i) {
    if (form == kForms[i]) f(std::integral_constant<Form, kForms[i]>());
  });
}

void take_tile(const Tiles& tiles, const float* x, const TilePlace& place, const BlockMemory<float>& to,
               std::int64_t tile) {
  with_form(tiles.form, [&](auto form) { take<form.value>(tiles.g, x, place, to, tile); });
}

void give_tile(const Tiles& tiles, const BlockMemory<float>& from, std::int64_t parts, std::int64_t tile,
               const float* bias, const Activation& activation, const TileResults& at, float* y) {
  with_form(tiles.form, [&](auto form) { give<form.value>(tiles.g.y.c, from, parts, tile, bias, activation, at, y); });
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

std::int64_t tile_bytes(const TensorDesc& x, const TensorDesc& y, const Form& form) {
  return form.products() * kFloat * (x.dims[3] + Parts(x.dims[3]).count * y.dims[3]);
}

/// Of the image's matrices and those of the parts of products.
std::int64_t gaps_of(const TensorDesc& x, const Form& form) { return gap_bytes(form, 1 + Parts(x.dims[3]).count); }

std::int64_t weight_bytes(const Form& form, std::int64_t inputs, std::int64_t outputs) {
  return form.weights() * gemm::packed_floats(inputs, outputs) * kFloat;
}

/// A row of G, which transforms three taps along one axis.
using Point = double[kTaps];
constexpr Point kPoints[] = {{1.0 / 4, 0, 0},
                             {-1.0 / 6, -1.0 / 6, -1.0 / 6},
                             {-1.0 / 6, 1.0 / 6, -1.0 / 6},
                             {1.0 / 24, 1.0 / 12, 1.0 / 6},
                             {1.0 / 24, -1.0 / 12, 1.0 / 6},
                             {0, 0, 1}};
constexpr Point kFewPoints[] = {{1, 0, 0}, {1.0 / 2, 1.0 / 2, 1.0 / 2}, {1.0 / 2, -1.0 / 2, 1.0 / 2}, {0, 0, 1}};
// The outer taps', then the middle one.
constexpr Point kStridedPoints[] = {
    {1.0 / 2, 0, 0}, {-1.0 / 2, 0, -1.0 / 2}, {-1.0 / 6, 0, 1.0 / 6}, {1.0 / 6, 0, 2.0 / 6}, {0, 0, 1}, {0, 1, 0}};
constexpr Point kFewStridedPoints[] = {{1, 0, 0}, {1, 0, 1}, {0, 0, 1}, {0, 1, 0}};

const Point* points_of(const Form& form) {
  if (form.results == kResults) return form.stride == 1 ? kPoints : kStridedPoints;
  return form.stride == 1 ? kFewPoints : kFewStridedPoints;
}

/// Weight (i, j) of one 3x3 kernel g, transformed: G g G^T.
float transformed_weight(const float* g, std::int64_t tap_stride, const Point& i, const Point& j) {
  double sum = 0;
  for (int a = 0; a < kTaps; ++a)
    for (int b = 0; b < kTaps; ++b) sum += i[a] * j[b] * static_cast<double>(g[(a * kTaps + b) * tap_stride]);
  return static_cast<float>(sum);
}

Form form_of(const Conv2dParams& p, int results) { return {results, p.stride_h}; }

}  // namespace

bool winograd_supports(const OpCall& call) {
  constexpr int kMostStride = 2;
  return packed_weights::supports_constant<kGemm>(call) && fits(call.as<Conv2dParams>(), call.in(1), kMostStride);
}

template <int kTileResults>
std::int64_t winograd_packed_bytes(const OpCall& call, int input) {
  const TensorDesc& w = call.in(1);
  return input == 1 ? weight_bytes(form_of(call.as<Conv2dParams>(), kTileResults), w.dims[3], w.dims[0]) : 0;
}

template <int kTileResults>
Footprint winograd_footprint(const OpCall& call, int threads) {
  const ConvGeometry g = conv_geometry(call.as<Conv2dParams>(), call.in(0), call.out(), kTaps, kTaps);
  const Form form = form_of(call.as<Conv2dParams>(), kTileResults);
  return footprint(call, Tiles(g, form), tile_bytes(call.in(0), call.out(), form), gaps_of(call.in(0), form),
                   winograd_packed_bytes<kTileResults>(call, 1), threads);
}

/// Weight after weight, each as the panels of the matrix [input channels, output channels].
template <int kTileResults>
void winograd_pack(const OpCall& call, int /*input*/, std::byte* destination) {
  const Form form = form_of(call.as<Conv2dParams>(), kTileResults);
  const Point* points = points_of(form);
  const TensorDesc& w = call.in(1);
  const std::int64_t inputs = w.dims[3];
  const auto* data = static_cast<const float*>(call.inputs[1].data);
  auto* packed = reinterpret_cast<float*>(destination);
  const std::int64_t matrix = gemm::packed_floats(inputs, w.dims[0]);
  for (std::int64_t o = 0; o < w.dims[0]; ++o)
    for (std::int64_t i = 0; i < inputs; ++i) {
      const float* kernel = data + o * kTaps * kTaps * inputs + i;
      float* to = packed + (o / gemm::kPanel * inputs + i) * gemm::kPanel + o % gemm::kPanel;
      for (int weight = 0; weight < form.weights(); ++weight)
        to[weight * matrix] =
            transformed_weight(kernel, inputs, points[weight / form.points()], points[weight % form.points()]);
    }
}

namespace {

/// Computes a share of the tiles, block after block, in which `threads` share the work.
void convolve_tiles(const Invocation& call, const Tiles& tiles, const Threads& threads, const Share& share) {
  const ConvGeometry& g = tiles.g;
  const Form& form = tiles.form;
  const auto take = HWY_DYNAMIC_DISPATCH(take_tile);
  const auto give = HWY_DYNAMIC_DISPATCH(give_tile);
  const std::int64_t matrix = gemm::packed_floats(g.x.c, g.y.c);
  const Parts parts(g.x.c);
  const bool has_gaps = form.stride == 1 && share.has_gaps;
  share.for_each_block([&](std::int64_t first, std::int64_t count) {
    const BlockMemory<float> images{reinterpret_cast<float*>(share.memory), count, g.x.c, has_gaps};
    const BlockMemory<float> products{images.at(form.products(), 0), count, g.y.c, has_gaps};
    // All products of a weight are the rows of one.
    const auto multiply = [&](std::int64_t part, int weight) {
      const int row = weight / form.points();
      const int column = weight % form.points();
      const int product = form.product(row, column);
      const std::int64_t first_k = parts.first_of(part);
      gemm::multiply({.data = images.at(product, 0) + first_k,
                      .rows = form.sharing(row) * form.sharing(column) * count,
                      .row_stride = g.x.c,
                      .length = parts.first_of(part + 1) - first_k},
                     {.data = call.input<float>(1) + weight * matrix,
                      .n = g.y.c,
                      .last = gemm::panel_count(g.y.c),
                      .first_k = first_k,
                      .k = g.x.c},
                     {.data = products.at(part * form.products() + product, 0), .row_stride = g.y.c});
    };
    parallel_ranges(threads, count, grain_of(form.products() * g.x.c), [&](std::int64_t from, std::int64_t to) {
      for (std::int64_t t = from; t < to; ++t) take(tiles, call.input<float>(0), place_of(tiles, first + t), images, t);
    });
    parallel_ranges(threads, parts.count * form.weights(), grain_of(count * g.x.c / parts.count * g.y.c / 8),
                    [&](std::int64_t from, std::int64_t to) {
                      for (std::int64_t i = from; i < to; ++i)
                        multiply(i / form.weights(), static_cast<int>(i % form.weights()));
                    });
    parallel_ranges(threads, count, grain_of(form.products() * g.y.c), [&](std::int64_t from, std::int64_t to) {
      for (std::int64_t t = from; t < to; ++t)
        give(tiles, products, parts.count, t, optional_input<float>(call, 2), call.as<Conv2dParams>().activation,
             TileResults(tiles, place_of(tiles, first + t)), call.output<float>());
    });
  });
}

}  // namespace

template <int kTileResults>
Status run_winograd(const Invocation& call) {
  const auto& p = call.as<Conv2dParams>();
  const Form form = form_of(p, kTileResults);
  const Tiles tiles(conv_geometry(p, call.in(0), call.out(), kTaps, kTaps), form);
  share_tiles(call, tiles, tile_bytes(call.in(0), call.out(), form), gaps_of(call.in(0), form),
              weight_bytes(form, tiles.g.x.c, tiles.g.y.c),
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
