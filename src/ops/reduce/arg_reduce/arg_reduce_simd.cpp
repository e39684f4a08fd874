// The first extremum along an axis. Along the innermost one the extremum is found, then its place, of bytes as 32-bit
// integers; along others vectors hold the best elements of neighbouring lines and their places.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/reduce/arg_reduce/arg_reduce_simd.cpp"
#include "hwy/foreach_target.h"
// Highway wants the headers below after foreach_target.h.
#include <algorithm>
#include <cstdint>

#include "hwy/highway.h"
#include "ops/common/dispatch.h"
#include "ops/common/parallel.h"
#include "ops/common/rows_simd-inl.h"
#include "ops/nn/gemm/unroll-inl.h"
#include "ops/reduce/arg_reduce/arg_reduce.h"
#include "ops/reduce/arg_reduce/kernels.h"
#include "ops/reduce/axis_loop.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::HWY_NAMESPACE {
namespace {

template <class D, class V>
HWY_INLINE hn::Mask<D> is_nan(D d, V x) {
  if constexpr (hwy::IsFloat<hn::TFromD<D>>()) {
    return hn::IsNaN(x);
  } else {
    return hn::FirstN(d, 0);
  }
}

/// Whether a number comes before another one.
template <bool kMinimum, class V>
HWY_INLINE auto beats(V candidate, V best) {
  return kMinimum ? hn::Lt(candidate, best) : hn::Lt(best, candidate);
}

/// Elements of a line of T are compared as these.
template <typename T>
using Compared = std::conditional_t<sizeof(T) == 1, std::int32_t, T>;

/// Where to load the elements from i on of a line of n: at the last place that has a whole vector behind it at most.
template <class D>
HWY_INLINE std::size_t place_of_vector(D d, std::size_t i, std::size_t n) {
  const std::size_t lanes = hn::Lanes(d);
  return n < lanes ? i : std::min(i, n - lanes);
}

/// A vector of the n elements of a line from `i` on; lanes beyond the line repeat its first element.
template <class D, typename T>
HWY_INLINE hn::Vec<D> load_line(D d, const T* from, std::size_t i, std::size_t n) {
  if constexpr (sizeof(T) == 1) {
    const hn::Rebind<T, D> bytes;
    if (i + hn::Lanes(d) <= n) return hn::PromoteTo(d, hn::LoadU(bytes, from + i));
    HWY_ALIGN T buffer[HWY_MAX_BYTES];
    hn::Store(hn::Set(bytes, *from), bytes, buffer);
    for (std::size_t k = 0; k < n - i; ++k) buffer[k] = from[i + k];
    return hn::PromoteTo(d, hn::Load(bytes, buffer));
  } else {
    if (i + hn::Lanes(d) <= n) return hn::LoadU(d, from + i);
    return hn::IfThenElse(hn::FirstN(d, n - i), load_partial(d, from + i, n - i), hn::Set(d, *from));
  }
}

/// The first place of a line for which found(elements) holds in its lane, or n.
template <typename T, class Found>
HWY_INLINE std::size_t find_first(const T* from, std::size_t n, Found found) {
  const hn::ScalableTag<Compared<T>> d;
  for (std::size_t i = 0; i < n; i += hn::Lanes(d)) {
    const std::size_t place = place_of_vector(d, i, n);
    const std::intptr_t lane = hn::FindFirstTrue(d, found(load_line(d, from, place, n)));
    if (lane >= 0) return place + static_cast<std::size_t>(lane);
  }
  return n;
}

/// The extremum's place in one contiguous line; the first NaN's where there is one.
template <bool kMinimum, typename T>
HWY_INLINE std::size_t place_in_line(const T* from, std::size_t n) {
  constexpr std::size_t kVectors = 4;  // maxima that do not wait for each other
  const hn::ScalableTag<Compared<T>> d;
  const std::size_t lanes = hn::Lanes(d);
  const auto better = [](auto a, auto b) HWY_ATTR { return hn::IfThenElse(beats<kMinimum>(a, b), a, b); };
  hn::Vec<decltype(d)> best[kVectors];
  unroll<kVectors>([&](auto v) HWY_ATTR { best[v] = hn::Set(d, *from); });
  auto nan = is_nan(d, best[0]);
  std::size_t i = 0;
  const auto take = [&](auto v) HWY_ATTR {
    const auto x = load_line(d, from, place_of_vector(d, i + v * lanes, n), n);
    best[v] = better(x, best[v]);
    nan = hn::Or(nan, is_nan(d, x));
  };
  for (; i + kVectors * lanes <= n; i += kVectors * lanes) unroll<kVectors>(take);
  for (; i < n; i += lanes) take(std::integral_constant<int, 0>());
  if (!hn::AllFalse(d, nan)) return find_first(from, n, [d](auto x) HWY_ATTR { return is_nan(d, x); });
  const auto all = better(better(best[0], best[1]), better(best[2], best[3]));
  const auto extremum = kMinimum ? hn::MinOfLanes(d, all) : hn::MaxOfLanes(d, all);
  return find_first(from, n, [extremum](auto x) HWY_ATTR { return hn::Eq(x, extremum); });
}

/// The places in `kVectors` vectors of neighbouring lines, whose elements lie `inner` apart. `n`: how many lines, if
/// less than a vector.
template <bool kMinimum, int kVectors, typename T, typename Index>
HWY_INLINE void places_in_columns(const T* from, std::int64_t length, std::int64_t inner, std::size_t n, Index* to) {
  const hn::ScalableTag<T> d;
  const hn::ScalableTag<std::int32_t> di;
  const std::size_t lanes = hn::Lanes(d);
  hn::Vec<decltype(d)> best[kVectors];
  hn::Vec<decltype(di)> place[kVectors];
  const auto load = [&](int v, std::int64_t i) HWY_ATTR {
    const T* row = from + i * inner + static_cast<std::size_t>(v) * lanes;
    return n < lanes ? load_partial(d, row, n) : hn::LoadU(d, row);
  };
  unroll<kVectors>([&](auto v) HWY_ATTR {
    best[v] = load(v, 0);
    place[v] = hn::Zero(di);
  });
  for (std::int64_t i = 1; i < length; ++i) {
    const auto here = hn::Set(di, static_cast<std::int32_t>(i));
    unroll<kVectors>([&](auto v) HWY_ATTR {
      const auto x = load(v, i);
      const auto replaces = hn::Or(beats<kMinimum>(x, best[v]), hn::AndNot(is_nan(d, best[v]), is_nan(d, x)));
      best[v] = hn::IfThenElse(replaces, x, best[v]);
      place[v] = hn::IfThenElse(hn::RebindMask(di, replaces), here, place[v]);
    });
  }
  std::int32_t places[kVectors * HWY_MAX_BYTES / sizeof(std::int32_t)];
  unroll<kVectors>([&](auto v) HWY_ATTR { hn::StoreU(place[v], di, places + static_cast<std::size_t>(v) * lanes); });
  std::copy_n(places, n, to);
}

/// `n` neighbouring lines.
template <bool kMinimum, typename T, typename Index>
HWY_INLINE void columns(const T* from, const AxisLoop& loop, std::size_t n, Index* to) {
  constexpr int kVectors = 4;
  const std::size_t lanes = hn::Lanes(hn::ScalableTag<T>());
  std::size_t i = 0;
  for (; i + kVectors * lanes <= n; i += kVectors * lanes)
    places_in_columns<kMinimum, kVectors>(from + i, loop.length, loop.inner, kVectors * lanes, to + i);
  for (; i < n; i += lanes)
    places_in_columns<kMinimum, 1>(from + i, loop.length, loop.inner, std::min(lanes, n - i), to + i);
}

template <bool kMinimum, typename T, typename Index>
void find_extrema(const Invocation& invocation) {
  const AxisLoop loop(invocation.in(0), invocation.as<ArgReduceParams>().axis);
  const auto* x = invocation.input<T>(0);
  auto* y = invocation.output<Index>();
  parallel_ranges(*invocation.threads, loop.lines(), loop.grain(), [&](std::int64_t begin, std::int64_t end) HWY_ATTR {
    for (std::int64_t line = begin; line < end;) {
      const T* from = x + loop.offset(line);
      const std::int64_t n = std::min(end - line, loop.inner - line % loop.inner);
      if (loop.inner == 1) {
        y[line] = static_cast<Index>(place_in_line<kMinimum>(from, static_cast<std::size_t>(loop.length)));
      } else if constexpr (sizeof(T) > 1) {
        columns<kMinimum>(from, loop, static_cast<std::size_t>(n), y + line);
      }
      line += n;
    }
  });
}

void run_arg_reduce(const Invocation& invocation) {
  dispatch_type<float, std::int32_t, std::int8_t, std::uint8_t>(invocation.in(0).type, [&](auto tag) {
    dispatch_type<std::int32_t, std::int64_t>(invocation.out().type, [&](auto index) {
      using T = typename decltype(tag)::type;
      using Index = typename decltype(index)::type;
      if (invocation.as<ArgReduceParams>().minimum != 0) {
        find_extrema<true, T, Index>(invocation);
      } else {
        find_extrema<false, T, Index>(invocation);
      }
    });
  });
}

}  // namespace
}  // namespace bantam::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bantam::ops {

HWY_EXPORT(run_arg_reduce);

bool supports_arg_reduce_simd(const OpCall& call) {
  const auto& p = call.as<ArgReduceParams>();
  const ElementType type = call.in(0).type;
  const bool suits = is_one_of<float, std::int32_t>(type) ||
                     (is_one_of<std::int8_t, std::uint8_t>(type) && AxisLoop(call.in(0), p.axis).inner == 1);
  return suits && p.select_last == 0 && call.in(0).is_dense() && call.out().is_dense();
}

Status run_arg_reduce_simd(const Invocation& invocation) {
  HWY_DYNAMIC_DISPATCH(run_arg_reduce)(invocation);
  return ok_status();
}

}  // namespace bantam::ops
#endif
