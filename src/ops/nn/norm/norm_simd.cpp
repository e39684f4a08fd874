// Normalisation of contiguous rows: two passes for mean and variance (the operand is in cache after the first), one to
// write the result.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/nn/norm/norm_simd.cpp"
#include "hwy/foreach_target.h"
// Highway wants the headers below after foreach_target.h.
#include <cmath>

#include "hwy/highway.h"
#include "ops/common/operands.h"
#include "ops/common/parallel.h"
#include "ops/common/rows_simd-inl.h"
#include "ops/nn/norm/kernels.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::HWY_NAMESPACE {
namespace {

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

/// Sum of f(x[i]) over the row, in independent lanes.
template <class F>
float sum_row(const float* x, std::size_t n, F f) {
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

/// scale and bias: null, or n values.
struct RowParameters {
  const float* scale = nullptr;
  const float* bias = nullptr;
};

void normalize_row(const float* x, float* y, std::size_t n, const NormParams& p, const RowParameters& row) {
  const D d;
  const auto count = static_cast<float>(n);
  const float mean = p.rms != 0 ? 0.0F : sum_row(x, n, [](V v) HWY_ATTR { return v; }) / count;
  const V center = hn::Set(d, mean);
  const float squares = sum_row(x, n, [center](V v) HWY_ATTR {
    const V distance = hn::Sub(v, center);
    return hn::Mul(distance, distance);
  });
  const V factor = hn::Set(d, 1.0F / std::sqrt(squares / count + p.epsilon));
  const std::size_t lanes = hn::Lanes(d);
  const auto finish = [&](V v, V scale, V bias)
                          HWY_ATTR { return hn::MulAdd(hn::Mul(hn::Sub(v, center), factor), scale, bias); };
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const V scale = row.scale != nullptr ? hn::LoadU(d, row.scale + i) : hn::Set(d, 1.0F);
    const V bias = row.bias != nullptr ? hn::LoadU(d, row.bias + i) : hn::Zero(d);
    hn::StoreU(finish(hn::LoadU(d, x + i), scale, bias), d, y + i);
  }
  if (i == n) return;
  const V scale = row.scale != nullptr ? load_partial(d, row.scale + i, n - i) : hn::Set(d, 1.0F);
  const V bias = row.bias != nullptr ? load_partial(d, row.bias + i, n - i) : hn::Zero(d);
  store_partial(finish(load_partial(d, x + i, n - i), scale, bias), d, y + i, n - i);
}

void run_norm(const Invocation& call) {
  const auto& p = call.as<NormParams>();
  const TensorDesc& x = call.in(0);
  if (x.elements() == 0) return;
  const std::int64_t size = elements_between(x, x.rank - p.axes.size, x.rank);
  const RowParameters row{call.has(1) ? call.input<float>(1) : nullptr, call.has(2) ? call.input<float>(2) : nullptr};
  const std::int64_t grain = std::max<std::int64_t>(8192 / size, 1);
  parallel_ranges(*call.threads, x.elements() / size, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r)
      normalize_row(call.input<float>(0) + r * size, call.output<float>() + r * size, static_cast<std::size_t>(size), p,
                    row);
  });
}

}  // namespace
}  // namespace bantam::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bantam::ops::norm {
namespace {

/// True when the operand lists exactly the innermost dimensions that are normalised (leading ones may be 1).
bool lists_rows(const TensorDesc& parameter, const TensorDesc& x, int axes) {
  for (int i = 0; i < x.rank; ++i) {
    const int own = i - (x.rank - parameter.rank);
    const std::int32_t dim = own < 0 ? 1 : parameter.dims[own];
    if (dim != (i < x.rank - axes ? 1 : x.dims[i])) return false;
  }
  return true;
}

}  // namespace

HWY_EXPORT(run_norm);

bool supports_rows(const OpCall& call) {
  const IntList& axes = call.as<NormParams>().axes;
  const TensorDesc& x = call.in(0);
  if (x.type != ElementType::kF32 || !all_dense(call) || axes.size == 0) return false;
  if (axes[0] != x.rank - axes.size) return false;
  for (int i = 1; i <= 2; ++i)
    if (call.has(i) && !lists_rows(call.in(i), x, axes.size)) return false;
  return true;
}

Status run_rows(const Invocation& call) {
  HWY_DYNAMIC_DISPATCH(run_norm)(call);
  return ok_status();
}

}  // namespace bantam::ops::norm
#endif
