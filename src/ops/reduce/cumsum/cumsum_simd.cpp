// Sums along an axis that is not the innermost: neighbouring lines in the lanes of vectors.
#include <algorithm>
#include <type_traits>

#include "ops/common/dispatch.h"
#include "ops/common/parallel.h"
#include "ops/reduce/axis_loop.h"
#include "ops/reduce/cumsum/kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/reduce/cumsum/cumsum_simd.cpp"
#include "hwy/foreach_target.h"
// Highway wants the headers below after foreach_target.h.
#include "hwy/highway.h"
#include "ops/nn/gemm/unroll-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::cumsum::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using ops::HWY_NAMESPACE::unroll;

/// Neighbouring lines, as many as kVectors vectors have lanes, from `at` on. y may be x.
template <int kVectors, class D, typename T = hn::TFromD<D>>
void sum_lines(D d, const CumsumParams& p, const AxisLoop& loop, std::int64_t at, const T* x, T* y) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t step = loop.inner;
  if (p.reverse != 0) {
    at += (loop.length - 1) * step;
    step = -step;
  }
  hn::Vec<D> sums[kVectors];
  unroll<kVectors>([&](auto v) HWY_ATTR { sums[v] = hn::Zero(d); });
  for (std::int64_t i = 0; i < loop.length; ++i, at += step)
    unroll<kVectors>([&](auto v) HWY_ATTR {
      const auto next = hn::Add(sums[v], hn::LoadU(d, x + at + v * lanes));
      hn::StoreU(p.exclusive != 0 ? sums[v] : next, d, y + at + v * lanes);
      sums[v] = next;
    });
}

template <typename T>
void sum_range(const Invocation& call, const AxisLoop& loop, std::int64_t begin, std::int64_t end) {
  constexpr int kVectors = 4;
  const hn::ScalableTag<T> d;
  const auto& p = call.as<CumsumParams>();
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t line = begin;
  while (line < end) {
    const std::int64_t at = loop.offset(line);
    const std::int64_t neighbours = std::min(loop.inner - line % loop.inner, end - line);
    // Several vectors at once, since rows that lie powers of two apart meet in few sets of a cache.
    const auto sum = [&](auto vectors, auto tag) HWY_ATTR {
      sum_lines<vectors>(tag, p, loop, at, call.input<T>(0), call.output<T>());
      line += vectors * static_cast<std::int64_t>(hn::Lanes(tag));
    };
    if (neighbours >= kVectors * lanes) {
      sum(std::integral_constant<int, kVectors>(), d);
    } else if (neighbours >= lanes) {
      sum(std::integral_constant<int, 1>(), d);
    } else {
      sum(std::integral_constant<int, 1>(), hn::CappedTag<T, 1>());
    }
  }
}

void sum_range_of_type(const Invocation& call, const AxisLoop& loop, std::int64_t begin, std::int64_t end) {
  dispatch_type<float, double, std::int32_t, std::int64_t>(
      call.in(0).type, [&](auto tag) { sum_range<typename decltype(tag)::type>(call, loop, begin, end); });
}

}  // namespace
}  // namespace bantam::ops::cumsum::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bantam::ops::cumsum {

HWY_EXPORT(sum_range_of_type);

bool supports_columns(const OpCall& call) {
  if (!call.in(0).is_dense() || !call.out().is_dense()) return false;
  return AxisLoop(call.in(0), call.as<CumsumParams>().axis).inner > 1;
}

Status run_columns(const Invocation& call) {
  const AxisLoop loop(call.in(0), call.as<CumsumParams>().axis);
  parallel_ranges(*call.threads, loop.lines(), loop.grain(), [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(sum_range_of_type)(call, loop, begin, end);
  });
  return ok_status();
}

}  // namespace bantam::ops::cumsum
#endif
