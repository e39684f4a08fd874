// Neighbouring columns of a matrix of floats, as normalisation loads, stores and sums them. Included by norm's
// *_simd.cpp files inside Highway's per-target compilation.
#if defined(BANTAM_OPS_NN_NORM_COLUMNS_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BANTAM_OPS_NN_NORM_COLUMNS_SIMD_INL_H_
#undef BANTAM_OPS_NN_NORM_COLUMNS_SIMD_INL_H_
#else
#define BANTAM_OPS_NN_NORM_COLUMNS_SIMD_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "hwy/highway.h"
#include "ops/common/rows_simd-inl.h"
#include "ops/nn/gemm/unroll-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::norm::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using ops::HWY_NAMESPACE::load_partial;
using ops::HWY_NAMESPACE::store_partial;
using ops::HWY_NAMESPACE::unroll;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

/// Columns of one block have their vectors in registers together.
constexpr int kVectorsAtOnce = 4;

HWY_INLINE std::int64_t columns_at_once() { return kVectorsAtOnce * static_cast<std::int64_t>(hn::Lanes(D())); }

/// Neighbouring columns: kVectors whole vectors, or with kPart the first `rest` lanes of one.
template <int kVectors, bool kPart>
struct Columns {
  static constexpr int kCount = kVectors;

  std::size_t rest = 0;

  HWY_INLINE V load(const float* x, int v) const {
    const D d;
    if constexpr (kPart) return load_partial(d, x, rest);
    return hn::LoadU(d, x + static_cast<std::size_t>(v) * hn::Lanes(d));
  }
  HWY_INLINE void store(V value, float* y, int v) const {
    const D d;
    if constexpr (kPart) return store_partial(value, d, y, rest);
    hn::StoreU(value, d, y + static_cast<std::size_t>(v) * hn::Lanes(d));
  }

  /// Of f(value, vector) over n rows, a few of them at a time, so that rounding does not grow with n.
  template <class F>
  HWY_INLINE void sum(const float* x, std::int64_t n, std::int64_t step, F f, V (&total)[kVectors]) const {
    constexpr std::int64_t kFewRows = 64;
    const D d;
    unroll<kVectors>([&](auto v) HWY_ATTR { total[v] = hn::Zero(d); });
    for (std::int64_t first = 0; first < n; first += kFewRows) {
      V few[kVectors];
      unroll<kVectors>([&](auto v) HWY_ATTR { few[v] = hn::Zero(d); });
      for (std::int64_t i = first; i < std::min(first + kFewRows, n); ++i)
        unroll<kVectors>([&](auto v) HWY_ATTR { few[v] = hn::Add(few[v], f(load(x + i * step, v), v)); });
      unroll<kVectors>([&](auto v) HWY_ATTR { total[v] = hn::Add(total[v], few[v]); });
    }
  }
};

/// Calls f(columns, first) for Columns that cover [begin, end), begin being a multiple of columns_at_once().
template <class F>
HWY_INLINE void for_column_blocks(std::int64_t begin, std::int64_t end, F f) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(D()));
  std::int64_t column = begin;
  for (; column + columns_at_once() <= end; column += columns_at_once()) f(Columns<kVectorsAtOnce, false>(), column);
  for (; column + lanes <= end; column += lanes) f(Columns<1, false>(), column);
  if (column < end) f(Columns<1, true>{static_cast<std::size_t>(end - column)}, column);
}

}  // namespace
}  // namespace bantam::ops::norm::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
