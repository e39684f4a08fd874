// resize_affine by rows, as resize goes (nn/resize/rows.h): a row of the result is blended from rows of bytes into one
// of floats, sampled from that into another, and rounded to bytes. So no image of floats is needed.
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

/// Scratch of a thread: a blended row of the operand, and a row of the result.
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
#include "ops/nn/resize/sample_rows_simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::resize_affine::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using ops::HWY_NAMESPACE::demote_to_bytes;
using ops::HWY_NAMESPACE::nearest_in_range;
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

/// n results.
void round_row(const AffineScaler& scaler, float factor, const float* x, std::int64_t n, std::uint8_t* y) {
  const hn::Rebind<std::uint8_t, DF> bytes;
  const auto low = hn::Set(DF(), static_cast<float>(scaler.minimum - scaler.zero_point));
  const auto high = hn::Set(DF(), static_cast<float>(scaler.maximum - scaler.zero_point));
  const auto zero_point = hn::Set(DI(), scaler.zero_point);
  const auto flip = hn::Set(bytes, scaler.flip);
  const auto factors = hn::Set(DF(), factor);
  const auto round_vector = [&](std::int64_t i) HWY_ATTR {
    const auto scaled = hn::Mul(hn::LoadU(DF(), x + i), factors);
    const auto number = hn::IfThenElseZero(hn::Eq(scaled, scaled), scaled);
    const auto steps = nearest_in_range(hn::Min(hn::Max(number, low), high));
    const auto result = hn::BitCast(bytes, demote_to_bytes(DI(), hn::Add(steps, zero_point)));
    hn::StoreU(hn::Xor(result, flip), bytes, y + i);
  };
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(DF()));
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) round_vector(i);
  if (i < n && n >= lanes) return round_vector(n - lanes);  // some once more, with the same result
  for (; i < n; ++i) y[i] = scaler.to_byte(x[i] * factor);
}

template <typename T>
void resize_rows_of(const Rows& rows, std::int64_t begin, std::int64_t end, const FloatRows& scratch) {
  const resize::Resampling& r = rows.r;
  const resize::TapTable& table = rows.tables.axes[r.last];
  const bool close = r.run == 1 && resize::HWY_NAMESPACE::is_close(table, r.in);
  resize::RowCursor cursor(r, rows.tables, r.last, begin);
  resize::Samples samples{};
  auto* y = rows.call.output<std::uint8_t>() + begin * r.out * r.run;
  for (std::int64_t i = begin; i < end; ++i, cursor.next(), y += r.out * r.run) {
    cursor.find(&samples);
    blend(samples, rows.call.input<T>(0), rows.zero_point, r.in * r.run, scratch.blended);
    resize::HWY_NAMESPACE::sample_row<false>(table, r.in, r.run, close, scratch.blended, scratch.sampled);
    round_row(rows.scaler, rows.factor, scratch.sampled, r.out * r.run, y);
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

std::int64_t sampled_bytes(const resize::Resampling& r) {
  return align_up(r.out * r.run * static_cast<std::int64_t>(sizeof(float)), kAlignment);
}

}  // namespace

bool supports_rows(const OpCall& call) {
  return all_dense(call) && call.out().elements() > 0 && resampled_axes(call.as<ResizeAffineParams>(), call.in(0)) > 0;
}

Footprint rows_footprint(const OpCall& call, int threads) {
  const resize::Resampling r(call.as<ResizeAffineParams>().resize, call.in(0), call.out());
  return {.scratch_bytes = r.table_bytes() + (r.row_bytes() + sampled_bytes(r)) * threads};
}

Status run_rows(const Invocation& call) {
  const auto& p = call.as<ResizeAffineParams>();
  const resize::Resampling r(p.resize, call.in(0), call.out());
  const resize::TapTables tables(r, call.scratch);
  const Rows rows{r, tables, call, p.x_zero_point, factor_of(p), scaler_of(p)};
  const std::int64_t grain = std::max<std::int64_t>(8192 / (r.out * r.run), 1);
  parallel_slots(*call.threads, r.rows, grain, [&](std::int64_t slot, std::int64_t begin, std::int64_t end) {
    std::byte* const own = call.scratch + r.table_bytes() + slot * (r.row_bytes() + sampled_bytes(r));
    const FloatRows scratch{reinterpret_cast<float*>(own), reinterpret_cast<float*>(own + r.row_bytes())};
    HWY_DYNAMIC_DISPATCH(resize_rows)(rows, begin, end, scratch);
  });
  return ok_status();
}

}  // namespace bantam::ops::resize_affine
#endif
