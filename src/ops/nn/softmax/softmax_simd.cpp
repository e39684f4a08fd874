// Softmax on vectors. Three shapes of the same computation: a long contiguous row is reduced across lanes; where the
// axis is not innermost, neighbouring columns fill the lanes; short rows are turned in a small tile so that several of
// them fill the lanes.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/nn/softmax/softmax_simd.cpp"
#include "hwy/foreach_target.h"
// Highway wants the headers below after foreach_target.h.
#include "hwy/highway.h"
#include "ops/common/math_simd-inl.h"
#include "ops/common/parallel.h"
#include "ops/common/rows_simd-inl.h"
#include "ops/nn/softmax/kernels.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::HWY_NAMESPACE {
namespace {

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

constexpr std::size_t kMaxLanes = HWY_MAX_BYTES / sizeof(float);

/// Rows up to this long are turned.
constexpr std::int64_t kShortRow = 16;

V minus_infinity(D d) {
  return hn::BitCast(d, hn::Set(hn::RebindToSigned<D>(), static_cast<std::int32_t>(0xff800000U)));
}

/// The columns x[0..columns), each of `size` elements `stride` apart; 1 <= columns <= Lanes(d).
void normalize_columns(const float* x, float* y, std::int64_t size, std::int64_t stride, std::size_t columns,
                       bool log) {
  const D d;
  const bool whole = columns >= hn::Lanes(d);
  const auto load = [&](const float* from)
                        HWY_ATTR { return whole ? hn::LoadU(d, from) : load_partial(d, from, columns); };
  const auto store = [&](V v, float* to) HWY_ATTR {
    if (whole) {
      hn::StoreU(v, d, to);
    } else {
      store_partial(v, d, to, columns);
    }
  };
  V maximum = minus_infinity(d);
  for (std::int64_t i = 0; i < size; ++i) maximum = at_least(d, load(x + i * stride), maximum);
  V sum = hn::Zero(d);
  for (std::int64_t i = 0; i < size; ++i) {
    const V shifted = hn::Sub(load(x + i * stride), maximum);
    const V term = exp_f32(d, shifted);
    sum = hn::Add(sum, term);
    store(log ? shifted : term, y + i * stride);
  }
  const V scale = log ? log_f32(d, sum) : hn::Div(hn::Set(d, 1.0F), sum);
  for (std::int64_t i = 0; i < size; ++i) {
    const V term = load(y + i * stride);
    store(log ? hn::Sub(term, scale) : hn::Mul(term, scale), y + i * stride);
  }
}

void normalize_long_row(const float* x, float* y, std::size_t size, bool log) {
  const D d;
  const std::size_t lanes = hn::Lanes(d);
  V maxima = minus_infinity(d);
  std::size_t i = 0;
  for (; i + lanes <= size; i += lanes) maxima = at_least(d, hn::LoadU(d, x + i), maxima);
  if (i < size) {
    const auto used = hn::FirstN(d, size - i);
    maxima = at_least(d, hn::IfThenElse(used, load_partial(d, x + i, size - i), minus_infinity(d)), maxima);
  }
  const V maximum = hn::MaxOfLanes(d, maxima);
  V sums = hn::Zero(d);
  for (i = 0; i + lanes <= size; i += lanes) {
    const V shifted = hn::Sub(hn::LoadU(d, x + i), maximum);
    const V term = exp_f32(d, shifted);
    sums = hn::Add(sums, term);
    hn::StoreU(log ? shifted : term, d, y + i);
  }
  if (i < size) {
    const V shifted = hn::Sub(load_partial(d, x + i, size - i), maximum);
    const V term = exp_f32(d, shifted);
    sums = hn::Add(sums, hn::IfThenElseZero(hn::FirstN(d, size - i), term));
    store_partial(log ? shifted : term, d, y + i, size - i);
  }
  const V sum = hn::SumOfLanes(d, sums);
  if (log) {
    const V log_sum = log_f32(d, sum);
    map_row(
        size, y, [log_sum](D, V v) HWY_ATTR { return hn::Sub(v, log_sum); }, y);
  } else {
    const V scale = hn::Div(hn::Set(d, 1.0F), sum);
    map_row(
        size, y, [scale](D, V v) HWY_ATTR { return hn::Mul(v, scale); }, y);
  }
}

void normalize_short_rows(const float* x, float* y, std::int64_t rows, std::int64_t size, bool log) {
  const D d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  HWY_ALIGN float tile[kShortRow * kMaxLanes];
  for (std::int64_t r = 0; r < rows; r += lanes, x += lanes * size, y += lanes * size) {
    const std::int64_t n = std::min(lanes, rows - r);
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t c = 0; c < size; ++c) tile[c * lanes + i] = x[i * size + c];
    for (std::int64_t i = n; i < lanes; ++i)
      for (std::int64_t c = 0; c < size; ++c) tile[c * lanes + i] = 0.0F;
    normalize_columns(tile, tile, size, lanes, static_cast<std::size_t>(lanes), log);
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t c = 0; c < size; ++c) y[i * size + c] = tile[c * lanes + i];
  }
}

/// About 4096 elements per task keep the cost of handing it out small.
std::int64_t grain_of(std::int64_t elements_per_item) { return std::max<std::int64_t>(4096 / elements_per_item, 1); }

void run_rows(const Invocation& call, const softmax::Extents& e, bool log) {
  // Ranges start at multiples of whole tiles, so that the same rows share a tile with any number of threads.
  const std::int64_t grain = (grain_of(e.size) + 63) / 64 * 64;
  parallel_ranges(*call.threads, e.outer, grain, [&](std::int64_t begin, std::int64_t end) {
    const float* x = call.input<float>(0) + begin * e.size;
    float* y = call.output<float>() + begin * e.size;
    if (e.size <= kShortRow) {
      normalize_short_rows(x, y, end - begin, e.size, log);
      return;
    }
    for (std::int64_t r = begin; r < end; ++r, x += e.size, y += e.size)
      normalize_long_row(x, y, static_cast<std::size_t>(e.size), log);
  });
}

void run_columns(const Invocation& call, const softmax::Extents& e, bool log) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(D()));
  const std::int64_t blocks = (e.inner + lanes - 1) / lanes;
  parallel_ranges(*call.threads, e.outer * blocks, grain_of(e.size * lanes), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t block = begin; block < end; ++block) {
      const std::int64_t column = block % blocks * lanes;
      const std::int64_t first = block / blocks * e.size * e.inner + column;
      normalize_columns(call.input<float>(0) + first, call.output<float>() + first, e.size, e.inner,
                        static_cast<std::size_t>(std::min(lanes, e.inner - column)), log);
    }
  });
}

void run_softmax(const Invocation& call) {
  const softmax::Extents e = softmax::extents_of(call);
  const bool log = call.as<SoftmaxParams>().log != 0;
  if (e.outer * e.size * e.inner == 0) return;
  if (e.inner == 1) {
    run_rows(call, e, log);
  } else {
    run_columns(call, e, log);
  }
}

}  // namespace
}  // namespace bantam::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bantam::ops::softmax {

HWY_EXPORT(run_softmax);

Status run_simd(const Invocation& call) {
  HWY_DYNAMIC_DISPATCH(run_softmax)(call);
  return ok_status();
}

}  // namespace bantam::ops::softmax
#endif
