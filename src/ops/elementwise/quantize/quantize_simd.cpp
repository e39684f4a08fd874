#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/elementwise/quantize/quantize_simd.cpp"
#include "hwy/foreach_target.h"
// Highway wants the headers below after foreach_target.h.
#include <limits>

#include "hwy/highway.h"
#include "ops/common/dispatch.h"
#include "ops/common/elementwise.h"
#include "ops/common/parallel.h"
#include "ops/common/strides.h"
#include "ops/elementwise/quantize/kernels.h"
#include "ops/elementwise/quantize/quantize.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

/// round(x / scale) + zero_point as int32, limited to T before the zero point is added; NaN counts as 0.
template <typename T, class D>
HWY_INLINE hn::Vec<hn::RebindToSigned<D>> quantize(D d, hn::Vec<D> x, float scale, std::int32_t zero_point, bool away) {
  const hn::RebindToSigned<D> di;
  const auto real = hn::Div(x, hn::Set(d, scale));
  const auto number = hn::IfThenElseZero(hn::Eq(real, real), real);
  // Beyond +-1000 everything saturates, and rounding there cannot matter.
  const auto bounded = hn::Min(hn::Max(number, hn::Set(d, -1000.0F)), hn::Set(d, 1000.0F));
  auto whole = hn::NearestInt(bounded);
  if (away) {
    // Truncation, then one step away from zero where the rest is at least a half; all exact for such small numbers.
    const auto truncated = hn::ConvertTo(di, bounded);
    const auto rest = hn::Abs(hn::Sub(bounded, hn::ConvertTo(d, truncated)));
    const auto step = hn::IfThenElse(hn::Lt(bounded, hn::Zero(d)), hn::Set(d, -1.0F), hn::Set(d, 1.0F));
    whole = hn::Add(truncated, hn::ConvertTo(di, hn::IfThenElseZero(hn::Ge(rest, hn::Set(d, 0.5F)), step)));
  }
  const auto low = hn::Set(di, static_cast<std::int32_t>(std::numeric_limits<T>::min()));
  const auto high = hn::Set(di, static_cast<std::int32_t>(std::numeric_limits<T>::max()));
  return hn::Min(hn::Max(hn::Add(whole, hn::Set(di, zero_point)), low), high);
}

template <typename T>
void quantize_row(std::size_t n, const float* x, T* y, float scale, std::int32_t zero_point, bool away) {
  const hn::ScalableTag<float> d;
  const hn::Rebind<T, decltype(d)> narrow;
  const std::size_t lanes = hn::Lanes(d);
  constexpr std::size_t kMaxLanes = HWY_MAX_BYTES / sizeof(float);
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto q = quantize<T>(d, hn::LoadU(d, x + i), scale, zero_point, away);
    hn::StoreU(hn::DemoteTo(narrow, q), narrow, y + i);
  }
  if (i == n) return;
  float tail[kMaxLanes] = {};
  T result[kMaxLanes] = {};
  for (std::size_t k = 0; k < n - i; ++k) tail[k] = x[i + k];
  const auto q = quantize<T>(d, hn::LoadU(d, tail), scale, zero_point, away);
  hn::StoreU(hn::DemoteTo(narrow, q), narrow, result);
  for (std::size_t k = 0; k < n - i; ++k) y[i + k] = result[k];
}

template <typename T>
void quantize_rows(const Invocation& invocation, const StridedRows<2>& rows) {
  const float scale = *invocation.input<float>(1);
  const std::int32_t zero_point = invocation.has(2) ? *invocation.input<T>(2) : 0;
  const bool away = invocation.as<QuantizeParams>().round_half_away != 0;
  auto* y = invocation.output<T>();
  const auto* x = invocation.input<float>(0);
  parallel_ranges(*invocation.threads, rows.elements, kElementwiseGrain, [&](std::int64_t begin, std::int64_t end) {
    for_each_segment(rows, begin, end, [&](const auto& offsets, std::int64_t n) {
      quantize_row<T>(static_cast<std::size_t>(n), x + offsets[1], y + offsets[0], scale, zero_point, away);
    });
  });
}

void run_quantize(const Invocation& invocation, const StridedRows<2>& rows) {
  dispatch_type<std::int8_t, std::uint8_t>(
      invocation.out().type, [&](auto tag) { quantize_rows<typename decltype(tag)::type>(invocation, rows); });
}

}  // namespace
}  // namespace bantam::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bantam::ops {

HWY_EXPORT(run_quantize);

bool supports_quantize_i8_simd(const OpCall& call) {
  return is_one_of<std::int8_t, std::uint8_t>(call.out().type) && call.in(1).elements() == 1 &&
         make_rows<2>(call.out(), {&call.out(), &call.in(0)}).all_contiguous();
}

Status run_quantize_i8_simd(const Invocation& invocation) {
  const auto rows = make_rows<2>(invocation.out(), {&invocation.out(), &invocation.in(0)});
  HWY_DYNAMIC_DISPATCH(run_quantize)(invocation, rows);
  return ok_status();
}

}  // namespace bantam::ops
#endif
