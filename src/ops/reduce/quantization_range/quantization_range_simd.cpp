#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/reduce/quantization_range/quantization_range_simd.cpp"
#include "hwy/foreach_target.h"
// Highway wants the headers below after foreach_target.h.
#include "base/shape.h"
#include "hwy/highway.h"
#include "ops/common/elementwise.h"
#include "ops/common/parallel.h"
#include "ops/reduce/quantization_range/kernels.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

/// The range of numbers, several vectors at once: one waits for the one before.
NumberRange range_of(const float* x, std::int64_t n) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  auto low0 = hn::Zero(d), low1 = low0, low2 = low0, low3 = low0;
  auto high0 = low0, high1 = low0, high2 = low0, high3 = low0;
  const auto add = [d](const float* at, auto& low, auto& high) HWY_ATTR {
    const auto number = hn::LoadU(d, at);
    low = hn::IfThenElse(hn::Lt(number, low), number, low);
    high = hn::IfThenElse(hn::Gt(number, high), number, high);
  };
  std::int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    add(x + i, low0, high0);
    add(x + i + lanes, low1, high1);
    add(x + i + 2 * lanes, low2, high2);
    add(x + i + 3 * lanes, low3, high3);
  }
  for (; i + lanes <= n; i += lanes) add(x + i, low0, high0);
  NumberRange range{hn::GetLane(hn::MinOfLanes(d, hn::Min(hn::Min(low0, low1), hn::Min(low2, low3)))),
                    hn::GetLane(hn::MaxOfLanes(d, hn::Max(hn::Max(high0, high1), hn::Max(high2, high3))))};
  for (; i < n; ++i) range.add(x[i]);
  return range;
}

}  // namespace
}  // namespace bantam::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bantam::ops {

HWY_EXPORT(range_of);

bool supports_quantization_range_simd(const OpCall& call) { return call.in(0).is_dense(); }

/// A range of each thread.
Footprint footprint_quantization_range_simd(const OpCall& /*call*/, int threads) {
  return {.scratch_bytes = align_up(threads * static_cast<std::int64_t>(sizeof(NumberRange)), kAlignment)};
}

Status run_quantization_range_simd(const Invocation& invocation) {
  const auto* x = invocation.input<float>(0);
  auto* ranges = reinterpret_cast<NumberRange*>(invocation.scratch);
  const std::int32_t slots = std::max<std::int32_t>(invocation.threads->count, 1);
  std::fill_n(ranges, slots, NumberRange{});
  parallel_slots(*invocation.threads, invocation.in(0).elements(), kElementwiseGrain,
                 [&](std::int64_t slot, std::int64_t begin, std::int64_t end) {
                   ranges[slot] = HWY_DYNAMIC_DISPATCH(range_of)(x + begin, end - begin);
                 });
  NumberRange all;
  for (std::int32_t slot = 0; slot < slots; ++slot) {
    all.add(ranges[slot].low);
    all.add(ranges[slot].high);
  }
  store_quantization(all, invocation);
  return ok_status();
}

}  // namespace bantam::ops
#endif
