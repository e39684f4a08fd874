// resize_affine by rows, as resize goes (nn/resize/rows.h): a row of the result is blended from rows of bytes into one
// of floats, sampled from that, and rounded to bytes: at once where runs fill vectors of bytes, else from another row
// of floats. So no image of floats is needed.
#include <algorithm>

#include "ops/common/dispatch.h"
#include "ops/common/operands.h"
#include "ops/common/parallel.h"
#include "ops/nn/resize/rows.h"
#include "ops/nn/resize_affine/kernels.h"

#ifndef BANTAM_RESIZE_AFFINE_ROWS_
#define BANTAM_RESIZE_AFFINE_ROWS_
namespace bantam::ops::resize_affine {
namespace {

/// What the rows of a call have in common.
struct Rows {
  const resize::Resampling& r;
  const resize::TapTables& tables;
  const Invocation& call;
  std::int32_t zero_point;
  float factor;
  AffineScaler scaler;
};

/// The weight in eighths of what it weighs; -1 where it is none of 0 to 8.
inline std::int16_t eighths(float weight) {
  const float scaled = weight * 8.0F;
  if (!(scaled >= 0.0F && scaled <= 8.0F)) return -1;
  const auto whole = static_cast<std::int16_t>(scaled);
  return static_cast<float>(whole) == scaled ? whole : std::int16_t{-1};
}

/// Do these two consist of eighths, and weigh no more than one number?
inline bool are_eighths(float first, float second) {
  return eighths(first) >= 0 && eighths(second) >= 0 && eighths(first) + eighths(second) <= 8;
}

inline bool has_eighths(const resize::TapTable& table) {
  if (table.count != 2) return false;
  for (std::int64_t i = 0; i < table.size; ++i)
    if (!are_eighths(table.weight[i], table.weight[table.size + i])) return false;
  return true;
}

inline bool has_eighths(const resize::Samples& samples) {
  return samples.count <= 2 && are_eighths(samples.weight[0], samples.count == 2 ? samples.weight[1] : 0.0F);
}

/// Do all consist of 256ths, up to 1? Products of two of them and a byte are exact in floats then, and their sums, in
/// whatever order.
inline bool has_256ths(const resize::TapTable& table) {
  return std::all_of(table.weight, table.weight + table.count * table.size, [](float weight) {
    const float scaled = weight * 256.0F;
    return scaled >= 0.0F && scaled <= 256.0F && static_cast<float>(static_cast<std::int32_t>(scaled)) == scaled;
  });
}

/// Are planes sampled row by row before rows are blended? Their results are those of the other order.
inline bool samples_planes_first(const resize::Resampling& r, const resize::TapTables& tables) {
  return upsamples_planes(r) && has_256ths(tables.axes[r.last - 1]) && has_256ths(tables.axes[r.last]);
}

/// The largest factor that, with usual weights, gives numbers of no more than 31 bits: 255 times Samples::kMax times
/// two taps, each weight at most 4, are less than 2^17.
constexpr float kMostFactor = 1 << 13;

/// None that makes numbers large, or no numbers at all.
inline bool are_usual(const float* weights, std::int64_t count) {
  constexpr float kMost = 4.0F;
  return std::all_of(weights, weights + count, [](float w) { return w >= -kMost && w <= kMost; });
}

/// Scratch of a thread: a blended row of the operand, and a row of the result, or two where planes grow.
struct FloatRows {
  float* blended;
  float* sampled;
};

}  // namespace
}  // namespace bantam::ops::resize_affine
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/nn/resize_affine/resize_affine_simd.cpp"
#include "hwy/foreach_target.h"
// Highway wants the headers below after foreach_target.h.
#include "hwy/highway.h"
#include "ops/common/fixed_point_simd-inl.h"
#include "ops/common/requantize_simd-inl.h"
#include "ops/common/step_bytes_simd-inl.h"
#include "ops/nn/gemm/unroll-inl.h"
#include "ops/nn/resize/sample_rows_simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::resize_affine::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using ops::HWY_NAMESPACE::demote_to_bytes;
using ops::HWY_NAMESPACE::nearest_in_range;
using ops::HWY_NAMESPACE::StepBytes;
using ops::HWY_NAMESPACE::unroll;
using DF = hn::ScalableTag<float>;
using DI = hn::RebindToSigned<DF>;

/// The blend of rows of n bytes; offsets count from x.
template <typename T>
void blend(const resize::Samples& samples, const T* x, std::int32_t zero_point, std::int64_t n, float* to) {
  const auto blend_vectors = [&](auto d, std::int64_t i) HWY_ATTR {
    const hn::RebindToSigned<decltype(d)> di;
    const hn::Rebind<T, decltype(d)> bytes;
    const auto zero = hn::Set(di, zero_point);
    const auto numbers = [&](int s) HWY_ATTR {
      return hn::ConvertTo(d, hn::Sub(hn::PromoteTo(di, hn::LoadU(bytes, x + samples.from[s] + i)), zero));
    };
    auto sum = hn::Mul(hn::Set(d, samples.weight[0]), numbers(0));
    for (int s = 1; s < samples.count; ++s) sum = hn::Add(hn::Mul(hn::Set(d, samples.weight[s]), numbers(s)), sum);
    hn::StoreU(sum, d, to + i);
  };
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(DF()));
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) blend_vectors(DF(), i);
  if (i < n && n >= lanes) return blend_vectors(DF(), n - lanes);  // some once more, with the same result
  for (; i < n; ++i) {
    const auto number = [&](int s) { return static_cast<float>(std::int32_t{x[samples.from[s] + i]} - zero_point); };
    float sum = samples.weight[0] * number(0);
    for (int s = 1; s < samples.count; ++s) sum += samples.weight[s] * number(s);
    to[i] = sum;
  }
}

/// The same in eighths, of one row or two; n is no less than a vector has.
template <typename T>
void blend_eighths(const resize::Samples& samples, const T* x, std::int32_t zero_point, std::int64_t n,
                   std::int16_t* to) {
  const hn::Repartition<std::int16_t, DI> d;
  const hn::Rebind<T, decltype(d)> bytes;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const bool one = samples.count == 1;
  const std::int16_t weights[2] = {eighths(samples.weight[0]), one ? std::int16_t{0} : eighths(samples.weight[1])};
  const T* const rows[2] = {x + samples.from[0], x + samples.from[one ? 0 : 1]};
  const auto zero = hn::Set(d, static_cast<std::int16_t>(zero_point * (weights[0] + weights[1])));
  const auto blend_vector = [&](std::int64_t i) HWY_ATTR {
    const auto sum = hn::Add(hn::Mul(hn::Set(d, weights[0]), hn::PromoteTo(d, hn::LoadU(bytes, rows[0] + i))),
                             hn::Mul(hn::Set(d, weights[1]), hn::PromoteTo(d, hn::LoadU(bytes, rows[1] + i))));
    hn::StoreU(hn::Sub(sum, zero), d, to + i);
  };
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) blend_vector(i);
  if (i < n) blend_vector(n - lanes);  // some once more, with the same result
}

/// Numbers in steps of the result from its zero point, within its range. kUsual: they are numbers of no more than 31
/// bits, and limited later.
template <bool kUsual>
class Rounder {
 public:
  HWY_INLINE Rounder(const AffineScaler& scaler, float factor)
      : factor_(hn::Set(DF(), factor)),
        low_(hn::Set(DF(), static_cast<float>(scaler.minimum - scaler.zero_point))),
        high_(hn::Set(DF(), static_cast<float>(scaler.maximum - scaler.zero_point))) {}

  HWY_INLINE hn::Vec<DI> operator()(hn::Vec<DF> x) const {
    const auto scaled = hn::Mul(x, factor_);
    if constexpr (kUsual) return nearest_in_range(scaled);
    const auto number = hn::IfThenElseZero(hn::Eq(scaled, scaled), scaled);
    return nearest_in_range(hn::Min(hn::Max(number, low_), high_));
  }

 private:
  hn::Vec<DF> factor_;
  hn::Vec<DF> low_;
  hn::Vec<DF> high_;
};

/// n results of numbers(d, i), the vector of those from i on.
template <class Numbers>
HWY_INLINE void round_row(const Rows& rows, std::int64_t n, Numbers numbers, std::uint8_t* y) {
  const AffineScaler& scaler = rows.scaler;
  const hn::Rebind<std::uint8_t, DF> bytes;
  const Rounder<false> rounded(scaler, rows.factor);
  const auto zero_point = hn::Set(DI(), scaler.zero_point);
  const auto flip = hn::Set(bytes, scaler.flip);
  const auto round_vector = [&](std::int64_t i) HWY_ATTR {
    const auto steps = rounded(numbers(DF(), i));
    const auto result = hn::BitCast(bytes, demote_to_bytes(DI(), hn::Add(steps, zero_point)));
    hn::StoreU(hn::Xor(result, flip), bytes, y + i);
  };
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(DF()));
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) round_vector(i);
  if (i < n && n >= lanes) return round_vector(n - lanes);  // some once more, with the same result
  const hn::CappedTag<float, 1> one;
  for (; i < n; ++i) y[i] = scaler.to_byte(hn::GetLane(numbers(one, i)) * rows.factor);
}

/// Numbers whose bytes are stored together.
constexpr auto kTogether = static_cast<std::int64_t>(StepBytes<std::uint8_t>::kVectors * hn::MaxLanes(DF()));

/// How numbers of T are sampled from a blended row: as vectors in steps of the result.
template <typename T, int kTaps, bool kUsual>
class Sampler;

template <int kTaps, bool kUsual>
class Sampler<float, kTaps, kUsual> {
 public:
  using Steps = hn::Vec<DI>[StepBytes<std::uint8_t>::kVectors];

  Sampler(const Rows& rows, const resize::TapTable& table, const float* weights)
      : rounded_(rows.scaler, rows.factor), table_(table), table_weights_(weights) {}

  /// For the coordinate i of the row.
  HWY_INLINE void set(const float* from, std::int64_t i) {
    unroll<kTaps>([&](auto t) HWY_ATTR {
      taps_[t] = from + table_.offset[t * table_.size + i];
      weights_[t] = hn::Set(DF(), table_weights_[t * table_.size + i]);
    });
  }

  /// kTogether elements from c on.
  HWY_INLINE void operator()(std::int64_t c, Steps& steps) const {
    unroll<StepBytes<std::uint8_t>::kVectors>([&](auto v) HWY_ATTR {
      const std::int64_t at = c + v * static_cast<std::int64_t>(hn::MaxLanes(DF()));
      auto sum = hn::Mul(weights_[0], hn::LoadU(DF(), taps_[0] + at));
      unroll<kTaps - 1>([&](auto t) HWY_ATTR {
        sum = resize::HWY_NAMESPACE::add_product<false>(weights_[t + 1], hn::LoadU(DF(), taps_[t + 1] + at), sum);
      });
      steps[v] = rounded_(sum);
    });
  }

 private:
  Rounder<kUsual> rounded_;
  const resize::TapTable& table_;
  const float* table_weights_;
  const float* taps_[kTaps];
  hn::Vec<DF> weights_[kTaps];
};

/// Of eighths, by eighths. Numbers are 64 times as large then, at most 255 * 64, and exact as they are in floats; so is
/// a 64th of the factor, unless that is so small that all numbers round to 0. Steps are limited where they become
/// bytes.
template <>
class Sampler<std::int16_t, 2, true> {
 public:
  using Steps = hn::Vec<DI>[StepBytes<std::uint8_t>::kVectors];
  using D16 = hn::Repartition<std::int16_t, DI>;

  Sampler(const Rows& rows, const resize::TapTable& table, const std::int16_t* weights)
      : factor_(hn::Set(DF(), rows.factor / 64.0F)), table_(table), table_weights_(weights) {}

  HWY_INLINE void set(const std::int16_t* from, std::int64_t i) {
    unroll<2>([&](auto t) HWY_ATTR {
      taps_[t] = from + table_.offset[t * table_.size + i];
      weights_[t] = hn::Set(D16(), table_weights_[t * table_.size + i]);
    });
  }

  HWY_INLINE void operator()(std::int64_t c, Steps& steps) const {
    constexpr hn::Half<D16> half;
    unroll<StepBytes<std::uint8_t>::kVectors / 2>([&](auto v) HWY_ATTR {
      const std::int64_t at = c + v * static_cast<std::int64_t>(hn::MaxLanes(D16()));
      const auto sum = hn::Add(hn::Mul(weights_[0], hn::LoadU(D16(), taps_[0] + at)),
                               hn::Mul(weights_[1], hn::LoadU(D16(), taps_[1] + at)));
      steps[2 * v] = rounded(hn::LowerHalf(half, sum));
      steps[2 * v + 1] = rounded(hn::UpperHalf(half, sum));
    });
  }

 private:
  HWY_INLINE hn::Vec<DI> rounded(hn::Vec<hn::Half<D16>> numbers) const {
    return nearest_in_range(hn::Mul(hn::ConvertTo(DF(), hn::PromoteTo(DI(), numbers)), factor_));
  }

  hn::Vec<DF> factor_;
  const resize::TapTable& table_;
  const std::int16_t* table_weights_;
  const std::int16_t* taps_[2];
  hn::Vec<D16> weights_[2];
};

/// A row of results from a blended row, in runs of kTogether or more elements.
template <class Sampling, typename Number, typename Y>
void sample_bytes(const Rows& rows, const resize::TapTable& table, const Number* weights, const Number* from, Y* y) {
  const std::int64_t run = rows.r.run;
  const auto& p = rows.call.as<ResizeAffineParams>();
  const StepBytes<Y> bytes({p.y_zero_point, p.minimum, p.maximum});
  Sampling sampler(rows, table, weights);
  for (std::int64_t i = 0; i < table.size; ++i, y += run) {
    sampler.set(from, i);
    const auto sample = [&](std::int64_t c) __attribute__((always_inline)) HWY_ATTR {
      typename Sampling::Steps steps;
      sampler(c, steps);
      bytes.store(steps, y + c);
    };
    std::int64_t c = 0;
    for (; c + kTogether <= run; c += kTogether) sample(c);
    if (c < run) sample(run - kTogether);  // some once more, with the same result
  }
}

template <int kTaps, bool kUsual, typename Number>
void sample_any_bytes(const Rows& rows, const resize::TapTable& table, const Number* weights, const Number* from,
                      std::uint8_t* y) {
  using Sampling = Sampler<Number, kTaps, kUsual>;
  if (rows.call.as<ResizeAffineParams>().to == ElementType::kI8)
    return sample_bytes<Sampling>(rows, table, weights, from, reinterpret_cast<std::int8_t*>(y));
  sample_bytes<Sampling>(rows, table, weights, from, y);
}

void sample_floats(const Rows& rows, const resize::TapTable& table, bool usual, const float* from, std::uint8_t* y) {
  if (table.count == 2) {
    if (usual) return sample_any_bytes<2, true>(rows, table, table.weight, from, y);
    return sample_any_bytes<2, false>(rows, table, table.weight, from, y);
  }
  sample_any_bytes<4, false>(rows, table, table.weight, from, y);
}

/// Rows [begin, end) of the result where samples_planes_first holds.
template <typename T>
void resize_planes_of(const Rows& rows, std::int64_t begin, std::int64_t end, const FloatRows& scratch) {
  const resize::Resampling& r = rows.r;
  const resize::TapTable& table = rows.tables.axes[r.last];
  const bool close = resize::HWY_NAMESPACE::is_close(table, r.in);
  const auto sample = [&](std::int64_t row, float* to) HWY_ATTR {
    blend(resize::Samples{1, {row}, {1.0F}}, rows.call.input<T>(0), rows.zero_point, r.in, scratch.blended);
    resize::HWY_NAMESPACE::sample_row<false>(table, r.in, 1, close, scratch.blended, to);
  };
  resize::HWY_NAMESPACE::SampledRows<decltype(sample)> sampled(sample, r, scratch.sampled);
  auto* y = rows.call.output<std::uint8_t>();
  sampled.for_each(rows.tables, begin, end, [&](std::int64_t i, const resize::HWY_NAMESPACE::RowPair& pair) HWY_ATTR {
    const auto blended = [&](auto d, std::int64_t at) HWY_ATTR {
      return hn::MulAdd(hn::Set(d, pair.weights[1]), hn::LoadU(d, pair.lower + at),
                        hn::Mul(hn::Set(d, pair.weights[0]), hn::LoadU(d, pair.upper + at)));
    };
    round_row(rows, r.out, blended, y + i * r.out);
  });
}

template <typename T>
void resize_rows_of(const Rows& rows, std::int64_t begin, std::int64_t end, const FloatRows& scratch) {
  const resize::Resampling& r = rows.r;
  if (samples_planes_first(r, rows.tables)) return resize_planes_of<T>(rows, begin, end, scratch);
  const resize::TapTable& table = rows.tables.axes[r.last];
  const T* x = rows.call.input<T>(0);
  const bool close = r.run == 1 && resize::HWY_NAMESPACE::is_close(table, r.in);
  const bool usual_row = rows.factor <= kMostFactor && are_usual(table.weight, table.count * table.size);
  const bool by_eighths = r.run >= kTogether && usual_row && has_eighths(table);
  // Rows of eighths are sampled into no floats.
  auto* const table_eighths = reinterpret_cast<std::int16_t*>(scratch.sampled);
  for (std::int64_t i = 0; by_eighths && i < 2 * table.size; ++i) table_eighths[i] = eighths(table.weight[i]);
  resize::RowCursor cursor(r, rows.tables, r.last, begin);
  resize::Samples samples{};
  auto* y = rows.call.output<std::uint8_t>() + begin * r.out * r.run;
  for (std::int64_t i = begin; i < end; ++i, cursor.next(), y += r.out * r.run) {
    cursor.find(&samples);
    if (by_eighths && has_eighths(samples)) {
      auto* blended = reinterpret_cast<std::int16_t*>(scratch.blended);
      blend_eighths(samples, x, rows.zero_point, r.in * r.run, blended);
      sample_any_bytes<2, true>(rows, table, table_eighths, blended, y);
      continue;
    }
    blend(samples, x, rows.zero_point, r.in * r.run, scratch.blended);
    if (r.run >= kTogether) {
      sample_floats(rows, table, usual_row && are_usual(samples.weight, samples.count), scratch.blended, y);
    } else {
      resize::HWY_NAMESPACE::sample_row<false>(table, r.in, r.run, close, scratch.blended, scratch.sampled);
      const auto sampled = [&](auto d, std::int64_t at) HWY_ATTR { return hn::LoadU(d, scratch.sampled + at); };
      round_row(rows, r.out * r.run, sampled, y);
    }
  }
}

void resize_rows(const Rows& rows, std::int64_t begin, std::int64_t end, const FloatRows& scratch) {
  dispatch_type<std::int8_t, std::uint8_t>(
      rows.call.in(0).type, [&](auto tag) { resize_rows_of<typename decltype(tag)::type>(rows, begin, end, scratch); });
}

}  // namespace
}  // namespace bantam::ops::resize_affine::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bantam::ops::resize_affine {
namespace {

HWY_EXPORT(resize_rows);

/// Scratch of a thread for rows of the result.
std::int64_t own_sampled_bytes(const resize::Resampling& r) {
  if (upsamples_planes(r)) return 2 * resize::sampled_bytes(r);
  return align_up(r.out * r.run * static_cast<std::int64_t>(sizeof(float)), kAlignment);
}

}  // namespace

bool supports_rows(const OpCall& call) {
  return all_dense(call) && call.out().elements() > 0 && resampled_axes(call.as<ResizeAffineParams>(), call.in(0)) > 0;
}

Footprint rows_footprint(const OpCall& call, int threads) {
  const resize::Resampling r(call.as<ResizeAffineParams>().resize, call.in(0), call.out());
  return {.scratch_bytes = r.table_bytes() + (r.row_bytes() + own_sampled_bytes(r)) * threads};
}

Status run_rows(const Invocation& call) {
  const auto& p = call.as<ResizeAffineParams>();
  const resize::Resampling r(p.resize, call.in(0), call.out());
  const resize::TapTables tables(r, call.scratch);
  const Rows rows{r, tables, call, p.x_zero_point, factor_of(p), scaler_of(p)};
  const std::int64_t grain = std::max<std::int64_t>(8192 / (r.out * r.run), 1);
  parallel_slots(*call.threads, r.rows, grain, [&](std::int64_t slot, std::int64_t begin, std::int64_t end) {
    std::byte* const own = call.scratch + r.table_bytes() + slot * (r.row_bytes() + own_sampled_bytes(r));
    const FloatRows scratch{reinterpret_cast<float*>(own), reinterpret_cast<float*>(own + r.row_bytes())};
    HWY_DYNAMIC_DISPATCH(resize_rows)(rows, begin, end, scratch);
  });
  return ok_status();
}

}  // namespace bantam::ops::resize_affine
#endif
