// Linear and cubic resampling of channels-last images: each output pixel is a weighted sum of at most 16 input pixels,
// vectorised over the channels.
#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/nn/resize/resize_simd.cpp"
#include "hwy/foreach_target.h"
// Highway wants the headers below after foreach_target.h.
#include "hwy/highway.h"
#include "ops/common/operands.h"
#include "ops/common/parallel.h"
#include "ops/common/rows_simd-inl.h"
#include "ops/nn/resize/kernels.h"
#include "ops/nn/resize/sampling.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::HWY_NAMESPACE {
namespace {

constexpr int kMaxSamples = 16;

/// The pixels that make up one output pixel.
struct Samples {
  int count = 1;
  const float* from[kMaxSamples] = {};
  float weight[kMaxSamples] = {1.0F};
};

Samples collect_samples(const resize::Cursor& cursor, const TensorDesc& x, int last, const float* from) {
  Samples samples;
  samples.from[0] = from;
  for (int axis = 0; axis <= last; ++axis) {
    const resize::Taps& taps = cursor.taps(axis);
    const Samples outer = samples;
    samples.count = 0;
    for (int s = 0; s < outer.count; ++s)
      for (int t = 0; t < taps.count; ++t, ++samples.count) {
        samples.from[samples.count] = outer.from[s] + static_cast<std::int64_t>(taps.index[t]) * x.strides[axis];
        samples.weight[samples.count] = outer.weight[s] * taps.weight[t];
      }
  }
  return samples;
}

void blend(const Samples& samples, std::size_t n, float* to) {
  const hn::ScalableTag<float> d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    auto sum = hn::Mul(hn::Set(d, samples.weight[0]), hn::LoadU(d, samples.from[0] + i));
    for (int s = 1; s < samples.count; ++s)
      sum = hn::MulAdd(hn::Set(d, samples.weight[s]), hn::LoadU(d, samples.from[s] + i), sum);
    hn::StoreU(sum, d, to + i);
  }
  if (i == n) return;
  auto sum = hn::Zero(d);
  for (int s = 0; s < samples.count; ++s)
    sum = hn::MulAdd(hn::Set(d, samples.weight[s]), load_partial(d, samples.from[s] + i, n - i), sum);
  store_partial(sum, d, to + i, n - i);
}

void run_resize(const Invocation& call) {
  const auto& p = call.as<ResizeParams>();
  const TensorDesc& x = call.in(0);
  const TensorDesc& out = call.out();
  const int last = resize::last_resampled(p, x);
  const std::int64_t length = elements_between(out, last + 1, out.rank);
  if (out.elements() == 0) return;
  const std::int64_t grain = std::max<std::int64_t>(4096 / length, 1);
  parallel_ranges(*call.threads, out.elements() / length, grain, [&](std::int64_t begin, std::int64_t end) {
    resize::Cursor cursor(p, x, last, begin);
    for (std::int64_t run = begin; run < end; ++run, cursor.next()) {
      float* to = call.output<float>() + run * length;
      if (cursor.outside()) {
        std::fill_n(to, length, p.extrapolation);
      } else {
        blend(collect_samples(cursor, x, last, call.input<float>(0)), static_cast<std::size_t>(length), to);
      }
    }
  });
}

}  // namespace
}  // namespace bantam::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bantam::ops::resize {

HWY_EXPORT(run_resize);

bool supports_rows(const OpCall& call) {
  const auto& p = call.as<ResizeParams>();
  const TensorDesc& x = call.in(0);
  if (p.mode == ResizeMode::kNearest || p.antialias != 0 || !all_dense(call)) return false;
  int resampled = 0;
  for (int i = 0; i < x.rank; ++i) resampled += is_resampled(p, x, i) ? 1 : 0;
  return resampled <= 2 && elements_between(x, last_resampled(p, x) + 1, x.rank) >= 4;
}

Status run_rows(const Invocation& call) {
  HWY_DYNAMIC_DISPATCH(run_resize)(call);
  return ok_status();
}

}  // namespace bantam::ops::resize
#endif
