// The first k of contiguous lines: a heap of keys, while vectors look for the next element that belongs into it.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/reduce/topk/topk_simd.cpp"
#include "hwy/foreach_target.h"
// Highway wants the headers below after foreach_target.h.
#include <bit>
#include <cstdint>
#include <utility>

#include "hwy/highway.h"
#include "ops/common/dispatch.h"
#include "ops/common/parallel.h"
#include "ops/reduce/axis_loop.h"
#include "ops/reduce/topk/kernels.h"
#include "ops/reduce/topk/topk.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

/// Smaller for what comes earlier in the result: the value's place in the order of all, then the index.
HWY_INLINE std::uint64_t key_of(float value, std::size_t index, bool largest) {
  std::uint32_t order = 0;  // NaN
  if (value == value) {
    constexpr std::uint32_t kSign = 0x80000000;
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(value + 0.0F);  // zeros are equal
    order = (bits & kSign) != 0 ? ~bits : bits | kSign;
    if (largest) order = ~order;
  }
  return std::uint64_t{order} << 32 | index;
}

/// Puts a key into slot i of the first n or below, where it belongs: no parent is less than one of its children, so
/// that the root is the last of all.
HWY_INLINE void sink(std::uint64_t* heap, std::size_t i, std::size_t n, std::uint64_t key) {
  for (std::size_t child = 2 * i + 1; child < n; child = 2 * i + 1) {
    // No branch: which one it is cannot be foreseen.
    if (child + 1 < n) child += heap[child + 1] > heap[child] ? 1 : 0;
    if (heap[child] <= key) break;
    heap[i] = heap[child];
    i = child;
  }
  heap[i] = key;
}

/// The first i < n, from `i` on, of which x[i] may come before `last`; n if there is none.
std::size_t next_candidate(const float* x, std::size_t i, std::size_t n, float last, bool largest) {
  const hn::ScalableTag<float> d;
  const std::size_t lanes = hn::Lanes(d);
  const auto limit = hn::Set(d, last);
  for (; i + lanes <= n; i += lanes) {
    const auto v = hn::LoadU(d, x + i);
    // Not what comes behind, so that NaN counts.
    const auto behind = largest ? hn::Le(v, limit) : hn::Ge(v, limit);
    if (!hn::AllTrue(d, behind)) return i + hn::FindKnownFirstTrue(d, hn::Not(behind));
  }
  for (; i < n; ++i)
    if (!(largest ? x[i] <= last : x[i] >= last)) return i;
  return n;
}

template <typename Index>
void select_line(const float* x, std::size_t n, std::size_t k, bool largest, std::uint64_t* heap, float* values,
                 Index* indices) {
  for (std::size_t i = 0; i < k; ++i) heap[i] = key_of(x[i], i, largest);
  for (std::size_t i = k / 2; i-- > 0;) sink(heap, i, k, heap[i]);
  const auto place = [&](std::size_t slot) { return static_cast<std::uint32_t>(heap[slot]); };
  const auto next = [&](std::size_t i) { return next_candidate(x, i, n, x[place(0)], largest); };
  for (std::size_t i = next(k); i < n; i = next(i + 1)) {
    const std::uint64_t key = key_of(x[i], i, largest);
    if (key < heap[0]) sink(heap, 0, k, key);
  }
  for (std::size_t last = k - 1; last > 0; --last) sink(heap, 0, last, std::exchange(heap[last], heap[0]));
  for (std::size_t i = 0; i < k; ++i) {
    indices[i] = static_cast<Index>(place(i));
    values[i] = x[place(i)];
  }
}

void run_topk(const Invocation& invocation) {
  const auto& p = invocation.as<TopkParams>();
  if (p.k == 0) return;
  const AxisLoop loop(invocation.in(0), p.axis);
  const auto* x = invocation.input<float>(0);
  dispatch_type<std::int32_t, std::int64_t>(invocation.out(1).type, [&](auto tag) {
    auto* indices = invocation.output<typename decltype(tag)::type>(1);
    parallel_slots(
        *invocation.threads, loop.lines(), loop.grain(), [&](std::int64_t slot, std::int64_t begin, std::int64_t end) {
          auto* heap = reinterpret_cast<std::uint64_t*>(invocation.scratch + slot * heap_bytes(p.k));
          for (std::int64_t line = begin; line < end; ++line)
            select_line(x + line * loop.length, static_cast<std::size_t>(loop.length), static_cast<std::size_t>(p.k),
                        p.largest != 0, heap, invocation.output<float>(0) + line * p.k, indices + line * p.k);
        });
  });
}

}  // namespace
}  // namespace bantam::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bantam::ops {

HWY_EXPORT(run_topk);

bool supports_topk_f32_simd(const OpCall& call) {
  return call.in(0).type == ElementType::kF32 && AxisLoop(call.in(0), call.as<TopkParams>().axis).inner == 1 &&
         call.in(0).is_dense() && call.out(0).is_dense() && call.out(1).is_dense();
}

Footprint topk_f32_footprint(const OpCall& call, int threads) {
  return {.scratch_bytes = heap_bytes(call.as<TopkParams>().k) * threads};
}

Status run_topk_f32_simd(const Invocation& invocation) {
  HWY_DYNAMIC_DISPATCH(run_topk)(invocation);
  return ok_status();
}

}  // namespace bantam::ops
#endif
