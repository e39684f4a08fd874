// Sampling with neighbouring channels in the lanes of vectors, whose sums stay in registers.
#include "ops/nn/grid_sample/kernels.h"
#include "ops/nn/grid_sample/sampling.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/nn/grid_sample/grid_sample_simd.cpp"
#include "hwy/foreach_target.h"
// Highway wants the headers below after foreach_target.h.
#include "hwy/highway.h"
#include "ops/common/rows_simd-inl.h"
#include "ops/nn/gemm/unroll-inl.h"

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

/// Points [begin, end) of all images.
void sample_points(const Invocation& call, std::int64_t begin, std::int64_t end) {
  const TensorDesc& x = call.in(0);
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
