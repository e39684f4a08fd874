// Normalisation of rows of few numbers, which stay in registers from their sums to the result: so what one row waits
// for is computed beside what others do. Compiled once per instruction set.
#if defined(BANTAM_OPS_NORM_SHORT_ROWS_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BANTAM_OPS_NORM_SHORT_ROWS_SIMD_INL_H_
#undef BANTAM_OPS_NORM_SHORT_ROWS_SIMD_INL_H_
#else
#define BANTAM_OPS_NORM_SHORT_ROWS_SIMD_INL_H_
#endif

#include <cmath>
#include <cstdint>

#include "hwy/highway.h"
#include "ops/common/rows_simd-inl.h"
#include "ops/nn/gemm/unroll-inl.h"
#include "ops/nn/norm/geometry.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::norm::HWY_NAMESPACE {

/// Rows of n numbers that follow each other, and a scale and bias that all of them share, or one number of each row.
struct ShortRows {
  const float* x;
  float* y;  ///< possibly x
  std::int64_t n;
  Parameter scale;
  Parameter bias;
  float epsilon;
  bool rms;  ///< of the numbers themselves, not of their distances to the mean
};

constexpr int kMostRowVectors = 8;

/// Is the row short, and are scale and bias those of its elements in every row, or one for all of a row?
inline bool is_short_row(std::int64_t n, const Parameter& scale, const Parameter& bias) {
  const auto suits = [n](const Parameter& parameter) {
    return parameter.data == nullptr || parameter.steps == 1 || (parameter.period == 1 && parameter.steps == n);
  };
  const hn::ScalableTag<float> d;
  return n <= kMostRowVectors * static_cast<std::int64_t>(hn::Lanes(d)) && suits(scale) && suits(bias);
}

/// Rows of up to kVectors vectors of kLanes, and more than one vector less.
template <std::size_t kLanes, int kVectors>
class RowVectors {
 public:
  explicit HWY_INLINE RowVectors(const ShortRows& rows)
      : rows_(rows), rest_(static_cast<std::size_t>(rows.n) - (kVectors - 1) * kLanes) {
    read(rows.scale, 1.0F, scale_);
    read(rows.bias, 0.0F, bias_);
  }

  HWY_INLINE void normalize(std::int64_t row) const {
    using ops::HWY_NAMESPACE::unroll;
    const float* x = rows_.x + row * rows_.n;
    float* y = rows_.y + row * rows_.n;
    const float share = 1.0F / static_cast<float>(rows_.n);
    V v[kVectors];
    load(x, v);
    if (!rows_.rms) {
      const V mean = hn::Mul(hn::SumOfLanes(kD, sum_of(v)), hn::Set(kD, share));
      unroll<kVectors>([&](auto i) HWY_ATTR { v[i] = hn::Sub(v[i], mean); });
      v[kVectors - 1] = hn::IfThenElseZero(hn::FirstN(kD, rest_), v[kVectors - 1]);
    }
    V squares[kVectors];
    unroll<kVectors>([&](auto i) HWY_ATTR { squares[i] = hn::Mul(v[i], v[i]); });
    const float mean_square = hn::GetLane(hn::SumOfLanes(kD, sum_of(squares))) * share;
    const V factor = hn::Set(kD, 1.0F / std::sqrt(mean_square + rows_.epsilon));
    unroll<kVectors>([&](auto i) HWY_ATTR {
      v[i] = hn::MulAdd(hn::Mul(v[i], factor), at(rows_.scale, row, scale_[i]), at(rows_.bias, row, bias_[i]));
    });
    unroll<kVectors - 1>([&](auto i) HWY_ATTR { hn::StoreU(v[i], kD, y + i * kLanes); });
    store_last(v[kVectors - 1], y + (kVectors - 1) * kLanes);
  }

 private:
  using D = hn::CappedTag<float, kLanes>;
  using V = hn::Vec<D>;
  static constexpr D kD{};

  /// The lanes behind the row are 0.
  HWY_INLINE void load(const float* from, V (&v)[kVectors]) const {
    ops::HWY_NAMESPACE::unroll<kVectors - 1>([&](auto i) HWY_ATTR { v[i] = hn::LoadU(kD, from + i * kLanes); });
    v[kVectors - 1] = ops::HWY_NAMESPACE::load_partial(kD, from + (kVectors - 1) * kLanes, rest_);
  }
  HWY_INLINE void store_last(V v, float* to) const {
    if (rest_ == kLanes) return hn::StoreU(v, kD, to);
    // The next row of x would wait for a store by a mask that only seems to reach it.
    if (rows_.x == rows_.y) return ops::HWY_NAMESPACE::store_few(v, kD, to, rest_);
    ops::HWY_NAMESPACE::store_partial(v, kD, to, rest_);
  }
  HWY_INLINE void read(const Parameter& parameter, float absent, V (&v)[kVectors]) const {
    if (parameter.data != nullptr && parameter.steps > 1) return load(parameter.data, v);
    const V all = hn::Set(kD, parameter.data != nullptr ? *parameter.data : absent);
    ops::HWY_NAMESPACE::unroll<kVectors>([&](auto i) HWY_ATTR { v[i] = all; });
  }
  /// `shared`, unless the row has a number of its own.
  static HWY_INLINE V at(const Parameter& parameter, std::int64_t row, V shared) {
    return parameter.period > 1 ? hn::Set(kD, *parameter.block(row)) : shared;
  }
  static HWY_INLINE V sum_of(const V (&v)[kVectors]) {
    V sum = v[0];
    ops::HWY_NAMESPACE::unroll<kVectors - 1>([&](auto i) HWY_ATTR { sum = hn::Add(sum, v[i + 1]); });
    return sum;
  }

  const ShortRows& rows_;
  std::size_t rest_;  ///< elements of the last vector
  V scale_[kVectors];
  V bias_[kVectors];
};

template <std::size_t kLanes, int kVectors>
HWY_NOINLINE void normalize_rows_of(const ShortRows& rows, std::int64_t begin, std::int64_t end) {
  const RowVectors<kLanes, kVectors> vectors(rows);
  for (std::int64_t row = begin; row < end; ++row) vectors.normalize(row);
}

/// Rows [begin, end), for which is_short_row holds.
HWY_INLINE void normalize_short_rows(const ShortRows& rows, std::int64_t begin, std::int64_t end) {
  constexpr std::size_t kLanes = hn::MaxLanes(hn::ScalableTag<float>());
  if (rows.n <= 4) return normalize_rows_of<4, 1>(rows, begin, end);
  if constexpr (kLanes >= 8)
    if (rows.n <= 8) return normalize_rows_of<8, 1>(rows, begin, end);
  const auto vectors = (static_cast<std::size_t>(rows.n) + kLanes - 1) / kLanes;
  ops::HWY_NAMESPACE::unroll<kMostRowVectors>([&](auto i) HWY_ATTR {
    if (vectors == i + 1) normalize_rows_of<kLanes, i + 1>(rows, begin, end);
  });
}

}  // namespace bantam::ops::norm::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
