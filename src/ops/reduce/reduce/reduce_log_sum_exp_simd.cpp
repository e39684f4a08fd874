// log(sum of e^x) of f32, less the largest element in between so that no power overflows. Vectors run over neighbouring
// results, or along rows; several of them are computed together, as each step of an exponential waits for the one
// before.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/reduce/reduce/reduce_log_sum_exp_simd.cpp"
#include "hwy/foreach_target.h"
// Highway wants the headers below after foreach_target.h.
#include <algorithm>
#include <cmath>
#include <limits>

#include "hwy/highway.h"
#include "ops/common/math_simd-inl.h"
#include "ops/common/parallel.h"
#include "ops/common/rows_simd-inl.h"
#include "ops/reduce/reduce/kernels.h"
#include "ops/reduce/reduce/reduce.h"
#include "ops/reduce/reduce_loops.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::HWY_NAMESPACE {
namespace {

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

constexpr int kAtOnce = 4;                ///< vectors
constexpr std::int64_t kBlockRows = 256;  ///< of terms added before they go to the total, which bounds the error
constexpr auto kLanes = static_cast<std::int64_t>(hn::MaxLanes(D()));

HWY_INLINE V minus_infinity() { return hn::Set(D(), -std::numeric_limits<float>::infinity()); }

/// The larger of two numbers; what is not a number stays.
HWY_INLINE V larger(V a, V b) { return hn::IfThenElse(hn::IsNaN(a), a, at_least(D(), b, a)); }

/// `rows` rows of some neighbouring vectors, each row `stride` elements behind the one before. The last vector has
/// `count` elements.
struct Rows {
  const float* x = nullptr;
  std::int64_t rows = 0;
  std::int64_t stride = 0;
  std::int64_t count = kLanes;

  HWY_INLINE V load(const float* from) const {
    if (count == kLanes) return hn::LoadU(D(), from);
    const auto n = static_cast<std::size_t>(count);
    return hn::IfThenElse(hn::FirstN(D(), n), load_partial(D(), from, n), minus_infinity());
  }

  /// Calls f(Lockstep) for `kAcross` vectors of each row, and several rows at once where these are few: then vector
  /// i is one of the (i % kAcross)-th of its row.
  template <int kAcross, class F>
  HWY_INLINE void for_each(F f) const {
    constexpr int kDown = kAtOnce / kAcross;
    std::int64_t row = 0;
    const auto step = [&](auto vectors) HWY_ATTR {
      const float* from = x + row * stride;
      Lockstep<vectors, V> v;
      v.set([&](auto i) HWY_ATTR { return load(from + i / kAcross * stride + i % kAcross * kLanes); });
      f(v);
      row += vectors / kAcross;
    };
    while (row + kDown <= rows) step(std::integral_constant<int, kAtOnce>());
    while (row < rows) step(std::integral_constant<int, kAcross>());
  }
};

/// Calls f(Rows) for the contiguous rows that are reduced to one number: whole vectors one below the other, and the
/// rest.
struct Contiguous {
  const StridedRows<1>& reduced;
  const float* x;

  template <class F>
  HWY_INLINE void for_each(F f) const {
    for_each_row(reduced, [&](const auto& offsets, std::int64_t n) HWY_ATTR {
      const float* row = x + offsets[0];
      const std::int64_t whole = n / kLanes;
      f(Rows{row, whole, kLanes});
      if (n % kLanes != 0) f(Rows{row + whole * kLanes, 1, 0, n % kLanes});
    });
  }

  /// Of all lanes, in all of them.
  static V largest_of(V v) {
    HWY_ALIGN float lanes[kLanes];
    hn::Store(v, D(), lanes);
    float largest = lanes[0];
    for (const float lane : lanes) largest = lane > largest || std::isnan(lane) ? lane : largest;
    return hn::Set(D(), largest);
  }
  static HWY_INLINE V sum_of(V v) { return hn::SumOfLanes(D(), v); }
};

/// The same for neighbouring results, whose terms lie in columns: `count` of them, where they are not whole vectors.
struct Columns {
  const StridedRows<1>& reduced;
  const float* x;
  std::int64_t count = kLanes;

  template <class F>
  HWY_INLINE void for_each(F f) const {
    for_each_row(reduced, [&](const auto& offsets, std::int64_t rows) HWY_ATTR {
      f(Rows{x + offsets[0], rows, reduced.row_strides[0], count});
    });
  }

  static HWY_INLINE V largest_of(V v) { return v; }
  static HWY_INLINE V sum_of(V v) { return v; }
};

/// The results of kAcross vectors of columns, or of rows in all lanes of one.
template <int kAcross, class Terms>
HWY_INLINE Lockstep<kAcross, V> log_sum_exp(const Terms& terms) {
  Lockstep<kAcross, V> largest;
  Lockstep<kAcross, V> sum;
  unroll<kAcross>([&](auto i) HWY_ATTR {
    largest.v[i] = minus_infinity();
    sum.v[i] = hn::Zero(D());
  });
  terms.for_each([&](const Rows& rows) HWY_ATTR {
    rows.for_each<kAcross>([&]<int kVectors>(const Lockstep<kVectors, V>& x) HWY_ATTR {
      unroll<kVectors>([&](auto i) HWY_ATTR { largest.v[i % kAcross] = larger(largest.v[i % kAcross], x.v[i]); });
    });
  });
  unroll<kAcross>([&](auto i) HWY_ATTR { largest.v[i] = Terms::largest_of(largest.v[i]); });
  terms.for_each([&](Rows rows) HWY_ATTR {
    for (std::int64_t left = rows.rows; left > 0; left -= kBlockRows, rows.x += kBlockRows * rows.stride) {
      rows.rows = std::min(left, kBlockRows);
      Lockstep<kAcross, V> block;
      unroll<kAcross>([&](auto i) HWY_ATTR { block.v[i] = hn::Zero(D()); });
      rows.for_each<kAcross>([&]<int kVectors>(const Lockstep<kVectors, V>& x) HWY_ATTR {
        Lockstep<kVectors, V> less;
        less.set([&](auto i) HWY_ATTR { return hn::Sub(x.v[i], largest.v[i % kAcross]); });
        const Lockstep<kVectors, V> powers = exp_bounded_f32(D(), less);
        unroll<kVectors>([&](auto i) HWY_ATTR { block.v[i % kAcross] = hn::Add(block.v[i % kAcross], powers.v[i]); });
      });
      unroll<kAcross>([&](auto i) HWY_ATTR { sum.v[i] = hn::Add(sum.v[i], block.v[i]); });
    }
  });
  Lockstep<kAcross, V> result;
  result.set([&](auto i) HWY_ATTR {
    const V finite = hn::Add(largest.v[i], log_f32(D(), Terms::sum_of(sum.v[i])));
    return hn::IfThenElse(hn::IsInf(largest.v[i]), largest.v[i], finite);
  });
  return result;
}

void reduce_columns(const StridedRows<1>& reduced, const float* x, std::int64_t n, float* y) {
  std::int64_t at = 0;
  for (; at + kAtOnce * kLanes <= n; at += kAtOnce * kLanes) {
    const Lockstep<kAtOnce, V> results = log_sum_exp<kAtOnce>(Columns{reduced, x + at});
    unroll<kAtOnce>([&](auto i) HWY_ATTR { hn::StoreU(results.v[i], D(), y + at + i * kLanes); });
  }
  for (; at < n; at += kLanes) {
    const std::int64_t count = std::min(kLanes, n - at);
    const V result = log_sum_exp<1>(Columns{reduced, x + at, count}).v[0];
    store_partial(result, D(), y + at, static_cast<std::size_t>(count));
  }
}

void reduce_range(const ReduceLoops& loops, const float* x, float* y, std::int64_t begin, std::int64_t end) {
  for_each_segment(loops.kept, begin, end, [&](const auto& offsets, std::int64_t n) HWY_ATTR {
    const float* from = x + offsets[1];
    float* to = y + offsets[0];
    if (loops.by_columns()) return reduce_columns(loops.reduced, from, n, to);
    for (std::int64_t i = 0; i < n; ++i, from += loops.kept.row_strides[1], to += loops.kept.row_strides[0])
      *to = hn::GetLane(log_sum_exp<1>(Contiguous{loops.reduced, from}).v[0]);
  });
}

void run_log_sum_exp(const Invocation& call, const ReduceLoops& loops) {
  parallel_ranges(*call.threads, loops.kept.elements, reduce_grain(loops), [&](std::int64_t begin, std::int64_t end) {
    reduce_range(loops, call.input<float>(0), call.output<float>(), begin, end);
  });
}

}  // namespace
}  // namespace bantam::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bantam::ops {

HWY_EXPORT(run_log_sum_exp);

bool supports_log_sum_exp(const OpCall& call) {
  const auto& p = call.as<ReduceParams>();
  return p.function == ReduceFunction::kLogSumExp && p.sequential == 0 && call.in(0).type == ElementType::kF32 &&
         make_reduce_loops(p.axes, p.keep_dims, call.in(0), call.out()).suit_vectors();
}

Status run_log_sum_exp(const Invocation& call) {
  const auto& p = call.as<ReduceParams>();
  HWY_DYNAMIC_DISPATCH(run_log_sum_exp)(call, make_reduce_loops(p.axes, p.keep_dims, call.in(0), call.out()));
  return ok_status();
}

}  // namespace bantam::ops
#endif
