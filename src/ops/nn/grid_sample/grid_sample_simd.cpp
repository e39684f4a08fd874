// Sampling with neighbouring channels in the lanes of vectors, whose sums stay in registers; bilinear points of few
// channels in lanes of their own. Where bilinear points of two axes lie is computed for a vector of them.
#include "ops/nn/grid_sample/kernels.h"
#include "ops/nn/grid_sample/sampling.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/nn/grid_sample/grid_sample_simd.cpp"
#include "hwy/foreach_target.h"
// Highway wants the headers below after foreach_target.h.
#include "hwy/highway.h"
#include "ops/common/rows_simd-inl.h"
#include "ops/nn/gemm/unroll-inl.h"
#include "ops/nn/grid_sample/bilinear_simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::grid_sample::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using ops::HWY_NAMESPACE::load_partial;
using ops::HWY_NAMESPACE::store_partial;
using ops::HWY_NAMESPACE::unroll;

/// kVectors vectors of weighted sums, of channels from `image` on. Products are rounded before they are added, as the
/// reference does it.
template <int kVectors, class Load, class Store>
HWY_INLINE void sum_samples(const Sample* samples, int count, const float* image, float* to, Load load, Store store) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  hn::Vec<decltype(d)> sums[kVectors];
  unroll<kVectors>([&](auto v) HWY_ATTR { sums[v] = hn::Zero(d); });
  for (int s = 0; s < count; ++s) {
    const auto weight = hn::Set(d, samples[s].weight);
    const float* from = image + samples[s].offset;
    unroll<kVectors>([&](auto v) HWY_ATTR { sums[v] = hn::Add(sums[v], hn::Mul(weight, load(from + v * lanes))); });
  }
  unroll<kVectors>([&](auto v) HWY_ATTR { store(sums[v], to + v * lanes); });
}

void sum_channels(const Sample* samples, int count, const float* image, std::int64_t channels, float* to) {
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto load = [=](const float* from) HWY_ATTR { return hn::LoadU(d, from); };
  const auto store = [=](V sum, float* at) HWY_ATTR { hn::StoreU(sum, d, at); };
  constexpr int kVectors = 4;
  std::int64_t c = 0;
  for (; c + kVectors * lanes <= channels; c += kVectors * lanes)
    sum_samples<kVectors>(samples, count, image + c, to + c, load, store);
  for (; c + lanes <= channels; c += lanes) sum_samples<1>(samples, count, image + c, to + c, load, store);
  if (c == channels) return;
  const auto rest = static_cast<std::size_t>(channels - c);
  sum_samples<1>(
      samples, count, image + c, to + c, [=](const float* from) HWY_ATTR { return load_partial(d, from, rest); },
      [=](V sum, float* at) HWY_ATTR { store_partial(sum, d, at, rest); });
}

/// Bilinear points of images of two axes.
class BilinearPoints {
 public:
  explicit BilinearPoints(const Invocation& call)
      : params_(call.as<GridSampleParams>()),
        x_(call.in(0)),
        channels_(x_.dims[3]),
        per_image_(elements_between(call.out(), 1, 3)),
        images_(call.input<float>(0)),
        grid_(call.input<float>(1)),
        y_(call.output<float>()) {}

  /// Points [begin, end) of all images.
  void sample(std::int64_t begin, std::int64_t end) const {
    for (std::int64_t i = begin; i < end; i += kLanes) block(i, std::min(kLanes, end - i));
  }

 private:
  using D = BilinearAxis::D;
  using DI = BilinearAxis::DI;
  using V = hn::Vec<D>;
  using VI = hn::Vec<DI>;
  static constexpr std::int64_t kLanes = hn::MaxLanes(D());

  /// `count` points from the first on, at most a vector.
  HWY_INLINE void block(std::int64_t first, std::int64_t count) const {
    const D d;
    HWY_ALIGN float coordinates[2 * kLanes] = {};
    for (std::int64_t i = 0; i < 2 * count; ++i) coordinates[i] = grid_[2 * first + i];
    V across;
    V down;
    hn::LoadInterleaved2(d, coordinates, across, down);
    const BilinearAxis rows(params_, x_.dims[1], x_.strides[1], down);
    const BilinearAxis columns(params_, x_.dims[2], x_.strides[2], across);
    if (channels_ < kLanes) {
      gather(rows, columns, first, count);
    } else {
      sum_each(rows, columns, first, count);
    }
  }

  /// A channel of all points at once. What does not count adds zero to sums that begin with one, which changes no bit.
  HWY_INLINE void gather(const BilinearAxis& rows, const BilinearAxis& columns, std::int64_t first,
                         std::int64_t count) const {
    const D d;
    const VI image = images_of(first, count);
    for (std::int64_t c = 0; c < channels_; ++c) {
      V sum = hn::Zero(d);
      unroll<4>([&](auto tap) HWY_ATTR {
        const VI offset = hn::Add(image, hn::Add(rows.offset(tap / 2), columns.offset(tap % 2)));
        const VI counts = hn::And(rows.counts(tap / 2), columns.counts(tap % 2));
        const V number = hn::And(hn::BitCast(d, counts), hn::GatherIndex(d, images_ + c, offset));
        sum = hn::Add(sum, hn::Mul(hn::Mul(rows.weight(tap / 2), columns.weight(tap % 2)), number));
      });
      HWY_ALIGN float sums[kLanes];
      hn::Store(sum, d, sums);
      float* y = y_ + first * channels_ + c;
      for (std::int64_t i = 0; i < count; ++i) y[i * channels_] = sums[i];
    }
  }

  /// The channels of one point after those of another.
  HWY_INLINE void sum_each(const BilinearAxis& rows, const BilinearAxis& columns, std::int64_t first,
                           std::int64_t count) const {
    const D d;
    const DI di;
    HWY_ALIGN float weights[4][kLanes];
    HWY_ALIGN std::int32_t offsets[4][kLanes];
    HWY_ALIGN std::int32_t counts[4][kLanes];
    unroll<4>([&](auto tap) HWY_ATTR {
      hn::Store(hn::Mul(rows.weight(tap / 2), columns.weight(tap % 2)), d, weights[tap]);
      hn::Store(hn::Add(rows.offset(tap / 2), columns.offset(tap % 2)), di, offsets[tap]);
      hn::Store(hn::And(rows.counts(tap / 2), columns.counts(tap % 2)), di, counts[tap]);
    });
    for (std::int64_t i = 0; i < count; ++i) {
      Sample samples[4];
      int used = 0;
      for (int tap = 0; tap < 4; ++tap)
        if (counts[tap][i] != 0) samples[used++] = {offsets[tap][i], weights[tap][i]};
      sum_channels(samples, used, images_ + image_of(first + i), channels_, y_ + (first + i) * channels_);
    }
  }

  /// image_of `count` points from the first on; lanes behind them repeat the last.
  HWY_INLINE VI images_of(std::int64_t first, std::int64_t count) const {
    HWY_ALIGN std::int32_t images[kLanes];
    std::int64_t image = image_of(first);
    std::int64_t left = per_image_ - first % per_image_;  // points of this image
    for (std::int64_t i = 0; i < kLanes; ++i) {
      images[i] = static_cast<std::int32_t>(image);
      if (i >= count - 1 || --left > 0) continue;
      image += x_.strides[0];
      left = per_image_;
    }
    return hn::Load(DI(), images);
  }

  /// The first number of a point's image.
  std::int64_t image_of(std::int64_t point) const { return point / per_image_ * x_.strides[0]; }

  const GridSampleParams& params_;
  const TensorDesc& x_;
  std::int64_t channels_;
  std::int64_t per_image_;
  const float* images_;
  const float* grid_;
  float* y_;
};

/// Points [begin, end) of all images.
void sample_points(const Invocation& call, std::int64_t begin, std::int64_t end) {
  const TensorDesc& x = call.in(0);
  if (suits_bilinear(call.as<GridSampleParams>(), x)) return BilinearPoints(call).sample(begin, end);
  const std::int64_t channels = x.last(0);
  const std::int64_t per_image = elements_between(call.out(), 1, x.rank - 1);
  Sample samples[kMaxSamples];
  for (std::int64_t i = begin; i < end; ++i) {
    const int count = samples_at(call.as<GridSampleParams>(), x, call.input<float>(1) + i * (x.rank - 2), samples);
    sum_channels(samples, count, call.input<float>(0) + i / per_image * x.strides[0], channels,
                 call.output<float>() + i * channels);
  }
}

}  // namespace
}  // namespace bantam::ops::grid_sample::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bantam::ops::grid_sample {

HWY_EXPORT(sample_points);

Status run_channels(const Invocation& call) {
  for_each_range(call, [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(sample_points)(call, begin, end);
  });
  return ok_status();
}

}  // namespace bantam::ops::grid_sample
#endif
