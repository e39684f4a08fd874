// Sampling a row of a result along its innermost resampled axis, by the tables of rows.h. Included by *_simd.cpp files
// inside Highway's per-target compilation.
#if defined(BANTAM_OPS_RESIZE_SAMPLE_ROWS_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BANTAM_OPS_RESIZE_SAMPLE_ROWS_SIMD_INL_H_
#undef BANTAM_OPS_RESIZE_SAMPLE_ROWS_SIMD_INL_H_
#else
#define BANTAM_OPS_RESIZE_SAMPLE_ROWS_SIMD_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <utility>

#include "hwy/highway.h"
#include "ops/common/rows_simd-inl.h"
#include "ops/nn/gemm/unroll-inl.h"
#include "ops/nn/resize/rows.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::resize::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using ops::HWY_NAMESPACE::load_partial;
using ops::HWY_NAMESPACE::store_partial;
using ops::HWY_NAMESPACE::unroll;

/// a * b + sum. kFused: rounded once, where the target does so; otherwise twice, on every target.
template <bool kFused, class V>
HWY_INLINE V add_product(V a, V b, V sum) {
  if constexpr (kFused) return hn::MulAdd(a, b, sum);
  return hn::Add(hn::Mul(a, b), sum);
}

using DF = hn::ScalableTag<float>;
using DI = hn::RebindToSigned<DF>;

/// Where a load finds all that tap t of the coordinates from `i` on, as many as a vector has lanes, reads of a row of
/// `in` elements, if any load does.
HWY_INLINE std::int64_t load_of_tap(const TapTable& table, std::int64_t in, int t, std::int64_t i) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(DF()));
  return std::min<std::int64_t>(table.offset[t * table.size + i], in - lanes);
}

/// Does one load find them, wherever `i` is a multiple of the lanes or the last possible?
inline bool is_close(const TapTable& table, std::int64_t in) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(DF()));
  if (in < lanes || table.size < lanes) return false;
  for (int t = 0; t < table.count; ++t)
    for (std::int64_t first = 0; first < table.size; first += lanes) {
      const std::int64_t i = std::min(first, table.size - lanes);
      const std::int64_t load = load_of_tap(table, in, t, i);
      for (std::int64_t lane = 0; lane < lanes; ++lane) {
        const std::int64_t place = table.offset[t * table.size + i + lane] - load;
        if (place < 0 || place >= lanes) return false;
      }
    }
  return true;
}

/// A row of the result from one row of `in` elements: neighbouring coordinates in the lanes of a vector. kFused: see
/// add_product. kClose: see is_close; otherwise lanes are gathered.
template <bool kFused, bool kClose>
HWY_INLINE void sample_elements(const TapTable& table, std::int64_t in, const float* from, float* to) {
  const DF d;
  const DI di;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto tap = [&](int t, std::int64_t i) HWY_ATTR {
    const auto offsets = hn::LoadU(di, table.offset + t * table.size + i);
    if constexpr (!kClose) return hn::GatherIndex(d, from, offsets);
    const std::int64_t load = load_of_tap(table, in, t, i);
    const auto places = hn::Sub(offsets, hn::Set(di, static_cast<std::int32_t>(load)));
    return hn::TableLookupLanes(hn::LoadU(d, from + load), hn::IndicesFromVec(d, places));
  };
  const auto sample = [&](std::int64_t i) HWY_ATTR {
    auto sum = hn::Mul(hn::LoadU(d, table.weight + i), tap(0, i));
    for (int t = 1; t < table.count; ++t)
      sum = add_product<kFused>(hn::LoadU(d, table.weight + t * table.size + i), tap(t, i), sum);
    return sum;
  };
  std::int64_t i = 0;
  for (; i + lanes <= table.size; i += lanes) hn::StoreU(sample(i), d, to + i);
  // The last ones once more, with the same result.
  if (i < table.size && table.size >= lanes) {
    hn::StoreU(sample(table.size - lanes), d, to + table.size - lanes);
    return;
  }
  const hn::CappedTag<float, 1> one;
  for (; i < table.size; ++i) {
    auto sum = hn::Mul(hn::Set(one, table.weight[i]), hn::Set(one, from[table.offset[i]]));
    for (int t = 1; t < table.count; ++t) {
      const std::int64_t at = t * table.size + i;
      sum = add_product<kFused>(hn::Set(one, table.weight[at]), hn::Set(one, from[table.offset[at]]), sum);
    }
    hn::StoreU(sum, one, to + i);
  }
}

/// The same of runs of several elements, which are the lanes.
template <bool kFused, int kTaps>
HWY_INLINE void sample_runs(const TapTable& table, std::int64_t run, const float* from, float* to) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t i = 0; i < table.size; ++i, to += run) {
    const float* taps[kTaps];
    hn::Vec<decltype(d)> weights[kTaps];
    unroll<kTaps>([&](auto t) HWY_ATTR {
      taps[t] = from + table.offset[t * table.size + i];
      weights[t] = hn::Set(d, table.weight[t * table.size + i]);
    });
    const auto sample = [&](auto load) HWY_ATTR {
      auto sum = hn::Mul(weights[0], load(taps[0]));
      unroll<kTaps - 1>([&](auto t) HWY_ATTR { sum = add_product<kFused>(weights[t + 1], load(taps[t + 1]), sum); });
      return sum;
    };
    std::int64_t c = 0;
    for (; c + lanes <= run; c += lanes)
      hn::StoreU(sample([&](const float* tap) HWY_ATTR { return hn::LoadU(d, tap + c); }), d, to + c);
    if (c == run) continue;
    const auto rest = static_cast<std::size_t>(run - c);
    store_partial(sample([&](const float* tap) HWY_ATTR { return load_partial(d, tap + c, rest); }), d, to + c, rest);
  }
}

/// A row of the result, of whichever kind; `close`: what is_close says of runs of one element, or false.
template <bool kFused>
HWY_INLINE void sample_row(const TapTable& table, std::int64_t in, std::int64_t run, bool close, const float* from,
                           float* to) {
  if (close) {
    sample_elements<kFused, true>(table, in, from, to);
  } else if (run == 1) {
    sample_elements<kFused, false>(table, in, from, to);
  } else if (table.count == 2) {
    sample_runs<kFused, 2>(table, run, from, to);
  } else {
    sample_runs<kFused, 4>(table, run, from, to);
  }
}

/// Two rows as wide as the result, and what they weigh in one of its rows.
struct RowPair {
  const float* upper;
  const float* lower;
  float weights[2];
};

/// Rows of the operand as wide as the result, where upsamples_planes holds: each is sampled once, by sample(row, to) of
/// the element at which it begins, for all rows of the result that neighbour each other and are made of it.
template <class Sample>
class SampledRows {
 public:
  /// memory: two rows of sampled_bytes(r).
  HWY_INLINE SampledRows(const Sample& sample, const Resampling& r, float* memory)
      : sample_(sample),
        r_(r),
        rows_{{-1, memory}, {-1, memory + sampled_bytes(r) / static_cast<std::int64_t>(sizeof(float))}} {}

  /// Calls f(i, pair) for rows [begin, end) of the result.
  template <class F>
  HWY_INLINE void for_each(const TapTables& tables, std::int64_t begin, std::int64_t end, F f) {
    const TapTable& vertical = tables.axes[r_.last - 1];
    const std::int64_t plane = r_.x.dims[r_.last - 1] * r_.in;
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t first = i / vertical.size * plane;
      const std::int64_t row = i % vertical.size;
      const std::int64_t lower = vertical.size + row;
      f(i,
        at(first + vertical.offset[row], first + vertical.offset[lower], vertical.weight[row], vertical.weight[lower]));
    }
  }

 private:
  struct Row {
    std::int64_t from;
    float* data;
  };

  /// The rows that begin at elements `upper` and `lower`.
  HWY_INLINE RowPair at(std::int64_t upper, std::int64_t lower, float upper_weight, float lower_weight) {
    if (rows_[0].from != upper && (rows_[1].from == upper || rows_[0].from == lower)) std::swap(rows_[0], rows_[1]);
    fill(upper, rows_[0]);
    if (lower != upper) fill(lower, rows_[1]);
    return {rows_[0].data, rows_[lower != upper ? 1 : 0].data, {upper_weight, lower_weight}};
  }

  HWY_INLINE void fill(std::int64_t from, Row& row) {
    if (row.from == from) return;
    row.from = from;
    sample_(from, row.data);
  }

  const Sample& sample_;
  const Resampling& r_;
  Row rows_[2];
};

}  // namespace bantam::ops::resize::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
