// Normalisation over axes that lie side by side, so that x is [outer, n, inner] with n elements normalised together.
// Rows (inner = 1): a vector's lanes are neighbours that are normalised together. Columns: a vector's lanes are
// neighbours that are normalised apart, as are channels of a channels-last image or pixels of planes. Two passes for
// mean and variance (the operand is in cache after the first), one to write the result.
#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/nn/norm/norm_simd.cpp"
#include "hwy/foreach_target.h"
// Highway wants the headers below after foreach_target.h.
#include "hwy/highway.h"
#include "ops/common/parallel.h"
#include "ops/nn/norm/geometry.h"
#include "ops/nn/norm/kernels.h"
#include "ops/nn/norm/norm_columns_simd-inl.h"
#include "ops/nn/norm/short_rows_simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::norm::HWY_NAMESPACE {
namespace {

struct Job {
  const NormParams& p;
  Geometry g;
  const float* x;
  float* y;
  Parameter scale;  ///< without data: none
  Parameter bias;
};

HWY_INLINE V finished(V v, V center, V factor, V scale, V bias) {
  return hn::MulAdd(hn::Mul(hn::Sub(v, center), factor), scale, bias);
}

/// Sum of f(x[i]) over some elements, in independent lanes.
template <class F>
HWY_INLINE float sum_part(const float* x, std::size_t n, F f) {
  const D d;
  const std::size_t lanes = hn::Lanes(d);
  V a = hn::Zero(d);
  V b = hn::Zero(d);
  std::size_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    a = hn::Add(a, f(hn::LoadU(d, x + i)));
    b = hn::Add(b, f(hn::LoadU(d, x + i + lanes)));
  }
  for (; i + lanes <= n; i += lanes) a = hn::Add(a, f(hn::LoadU(d, x + i)));
  if (i < n) b = hn::Add(b, hn::IfThenElseZero(hn::FirstN(d, n - i), f(load_partial(d, x + i, n - i))));
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(a, b)));
}

/// The same of a row, a part at a time, so that rounding does not grow with n.
template <class F>
float sum_row(const float* x, std::size_t n, F f) {
  constexpr std::size_t kPart = 2048;
  if (n <= kPart) return sum_part(x, n, f);
  double total = 0;
  for (std::size_t i = 0; i < n; i += kPart) total += static_cast<double>(sum_part(x + i, std::min(kPart, n - i), f));
  return static_cast<float>(total);
}

/// Scales of one row, or of one step of it: one for each element, or one for all.
struct RowScale {
  const float* values = nullptr;
  float value = 1.0F;

  HWY_INLINE V load(std::size_t i) const {
    const D d;
    return values != nullptr ? hn::LoadU(d, values + i) : hn::Set(d, value);
  }
  HWY_INLINE V load_part(std::size_t i, std::size_t count) const {
    const D d;
    return values != nullptr ? load_partial(d, values + i, count) : hn::Set(d, value);
  }
};

void write_row(const float* x, float* y, std::size_t n, V center, V factor, const RowScale& scale,
               const RowScale& bias) {
  const D d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes)
    hn::StoreU(finished(hn::LoadU(d, x + i), center, factor, scale.load(i), bias.load(i)), d, y + i);
  if (i == n) return;
  const std::size_t rest = n - i;
  store_partial(
      finished(load_partial(d, x + i, rest), center, factor, scale.load_part(i, rest), bias.load_part(i, rest)), d,
      y + i, rest);
}

/// For step `step` of a row, of `length` elements, or `absent`.
RowScale row_scale(const Parameter& parameter, std::int64_t row, std::int64_t n, std::int64_t step, std::int64_t length,
                   float absent) {
  if (parameter.data == nullptr) return {nullptr, absent};
  const float* block = parameter.block(row);
  if (parameter.steps == n && n > 1) return {block + step * length, 0.0F};
  return {nullptr, block[parameter.steps == 1 ? 0 : step]};
}

void normalize_row(const Job& job, std::int64_t row) {
  const D d;
  const float* x = job.x + row * job.g.n;
  float* y = job.y + row * job.g.n;
  const auto n = static_cast<std::size_t>(job.g.n);
  const auto count = static_cast<float>(n);
  const float mean = job.p.rms != 0 ? 0.0F : sum_row(x, n, [](V v) HWY_ATTR { return v; }) / count;
  const V center = hn::Set(d, mean);
  const float squares = sum_row(x, n, [center](V v) HWY_ATTR {
    const V distance = hn::Sub(v, center);
    return hn::Mul(distance, distance);
  });
  const V factor = hn::Set(d, 1.0F / std::sqrt(squares / count + job.p.epsilon));
  // Elements that have a scale and bias of their own are one step.
  const auto steps_of = [&](const Parameter& parameter) { return parameter.steps == job.g.n ? 1 : parameter.steps; };
  const std::int64_t steps = std::max(steps_of(job.scale), steps_of(job.bias));
  const std::int64_t length = job.g.n / steps;
  for (std::int64_t s = 0; s < steps; ++s)
    write_row(x + s * length, y + s * length, static_cast<std::size_t>(length), center, factor,
              row_scale(job.scale, row, job.g.n, s, length, 1.0F), row_scale(job.bias, row, job.g.n, s, length, 0.0F));
}

void normalize_rows(const Job& job, std::int64_t begin, std::int64_t end) {
  if (is_short_row(job.g.n, job.scale, job.bias))
    return normalize_short_rows({job.x, job.y, job.g.n, job.scale, job.bias, job.p.epsilon, job.p.rms != 0}, begin,
                                end);
  for (std::int64_t row = begin; row < end; ++row) normalize_row(job, row);
}

/// Scale or bias of row i, if it has one for every row.
template <class Block>
HWY_INLINE V parameter_at(const Block& columns, const Parameter& parameter, const float* block, std::int64_t i,
                          std::int64_t column, int v, float absent) {
  const D d;
  if (block == nullptr) return hn::Set(d, absent);
  if (parameter.inner > 1) return columns.load(block + column, v);
  return hn::Set(d, block[parameter.steps > 1 ? i : 0]);
}

template <int kVectors, bool kPart>
void normalize_block(const Columns<kVectors, kPart>& columns, const Job& job, std::int64_t outer, std::int64_t column) {
  const D d;
  const std::int64_t at = outer * job.g.n * job.g.inner + column;
  const float* x = job.x + at;
  float* y = job.y + at;
  const V share = hn::Set(d, 1.0F / static_cast<float>(job.g.n));
  V center[kVectors];
  V factor[kVectors];
  unroll<kVectors>([&](auto v) HWY_ATTR { center[v] = hn::Zero(d); });
  if (job.p.rms == 0) {
    columns.sum(
        x, job.g.n, job.g.inner, [](V value, int) HWY_ATTR { return value; }, center);
    unroll<kVectors>([&](auto v) HWY_ATTR { center[v] = hn::Mul(center[v], share); });
  }
  const auto square = [&](V value, int v) HWY_ATTR {
    const V distance = hn::Sub(value, center[v]);
    return hn::Mul(distance, distance);
  };
  columns.sum(x, job.g.n, job.g.inner, square, factor);
  const V epsilon = hn::Set(d, job.p.epsilon);
  unroll<kVectors>(
      [&](auto v) HWY_ATTR { factor[v] = hn::Div(hn::Set(d, 1.0F), hn::Sqrt(hn::MulAdd(factor[v], share, epsilon))); });
  const float* scales = job.scale.data != nullptr ? job.scale.block(outer) : nullptr;
  const float* biases = job.bias.data != nullptr ? job.bias.block(outer) : nullptr;
  for (std::int64_t i = 0; i < job.g.n; ++i)
    unroll<kVectors>([&](auto v) HWY_ATTR {
      columns.store(finished(columns.load(x + i * job.g.inner, v), center[v], factor[v],
                             parameter_at(columns, job.scale, scales, i, column, v, 1.0F),
                             parameter_at(columns, job.bias, biases, i, column, v, 0.0F)),
                    y + i * job.g.inner, v);
    });
}

/// Blocks [begin, end) of columns_at_once() columns.
void normalize_columns(const Job& job, std::int64_t begin, std::int64_t end) {
  const std::int64_t blocks = (job.g.inner + columns_at_once() - 1) / columns_at_once();
  for (std::int64_t block = begin; block < end; ++block) {
    const std::int64_t first = block % blocks * columns_at_once();
    for_column_blocks(first, std::min(first + columns_at_once(), job.g.inner),
                      [&](const auto& columns, std::int64_t column)
                          HWY_ATTR { normalize_block(columns, job, block / blocks, column); });
  }
}

void run_norm(const Invocation& call) {
  const auto& p = call.as<NormParams>();
  const TensorDesc& x = call.in(0);
  if (x.elements() == 0) return;
  const auto parameter = [&](int i) {
    return call.has(i) ? parameter_of(p, x, call.in(i), call.input<float>(i)) : Parameter{};
  };
  const Job job{p, geometry_of(p, x), call.input<float>(0), call.output<float>(), parameter(1), parameter(2)};
  constexpr std::int64_t kGrain = 8192;
  const Geometry& g = job.g;
  if (g.inner == 1)
    return parallel_ranges(*call.threads, g.outer, std::max<std::int64_t>(kGrain / g.n, 1),
                           [&](std::int64_t begin, std::int64_t end) { normalize_rows(job, begin, end); });
  const std::int64_t blocks = (g.inner + columns_at_once() - 1) / columns_at_once();
  const std::int64_t grain = std::max<std::int64_t>(kGrain / (g.n * std::min(columns_at_once(), g.inner)), 1);
  parallel_ranges(*call.threads, g.outer * blocks, grain,
                  [&](std::int64_t begin, std::int64_t end) { normalize_columns(job, begin, end); });
}

}  // namespace
}  // namespace bantam::ops::norm::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bantam::ops::norm {

HWY_EXPORT(run_norm);

bool supports_blocks(const OpCall& call) {
  const auto& p = call.as<NormParams>();
  const TensorDesc& x = call.in(0);
  if (x.type != ElementType::kF32 || !all_dense(call) || p.axes.size == 0) return false;
  if (p.axes[p.axes.size - 1] - p.axes[0] != p.axes.size - 1) return false;
  const Geometry g = geometry_of(p, x);
  std::int64_t steps = 1;
  for (int i = 1; i <= 2; ++i) {
    if (!call.has(i)) continue;
    const Parameter parameter = parameter_of(p, x, call.in(i), nullptr);
    if (!parameter.valid() || (parameter.steps > 1 && parameter.inner > 1)) return false;
    if (parameter.inner != 1 && parameter.inner != g.inner) return false;
    // Columns have one value for every row, or one for all; rows are written in equal steps.
    if (g.inner > 1 && parameter.steps != 1 && parameter.steps != g.n) return false;
    if (parameter.steps == 1 || parameter.steps == g.n) continue;
    if (steps != 1 && steps != parameter.steps) return false;
    steps = parameter.steps;
  }
  return true;
}

Status run_blocks(const Invocation& call) {
  HWY_DYNAMIC_DISPATCH(run_norm)(call);
  return ok_status();
}

}  // namespace bantam::ops::norm
#endif
