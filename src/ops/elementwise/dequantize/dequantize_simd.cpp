#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/elementwise/dequantize/dequantize_simd.cpp"
#include "hwy/foreach_target.h"
// Highway wants the headers below after foreach_target.h.
#include "hwy/highway.h"
#include "ops/common/dispatch.h"
#include "ops/common/elementwise.h"
#include "ops/common/parallel.h"
#include "ops/common/rows_simd-inl.h"
#include "ops/common/strides.h"
#include "ops/elementwise/dequantize/kernels.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

/// y = (x - zero_point) * scale. Differences have at most nine bits.
template <typename T>
void dequantize_row(const T* x, std::int64_t n, std::int32_t zero_point, float scale, float* y) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> d32;
  const hn::Rebind<T, decltype(d)> d8;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto zero = hn::Set(d32, zero_point);
  const auto factor = hn::Set(d, scale);
  std::int64_t i = 0;
  const auto real = [&](auto bytes) HWY_ATTR {
    return hn::Mul(hn::ConvertTo(d, hn::Sub(hn::PromoteTo(d32, bytes), zero)), factor);
  };
  for (; i + lanes <= n; i += lanes) hn::StoreU(real(hn::LoadU(d8, x + i)), d, y + i);
  if (i == n) return;
  const auto rest = static_cast<std::size_t>(n - i);
  store_partial(real(load_partial(d8, x + i, rest)), d, y + i, rest);
}

void run_dequantize(const Invocation& invocation, const StridedRows<2>& rows) {
  const float scale = *invocation.input<float>(1);
  auto* y = invocation.output<float>();
  dispatch_type<std::int8_t, std::uint8_t>(invocation.in(0).type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const std::int32_t zero_point = invocation.has(2) ? *invocation.input<T>(2) : 0;
    const auto* x = invocation.input<T>(0);
    parallel_ranges(*invocation.threads, rows.elements, kElementwiseGrain, [&](std::int64_t begin, std::int64_t end) {
      for_each_segment(rows, begin, end, [&](const auto& offsets, std::int64_t n) {
        dequantize_row(x + offsets[1], n, zero_point, scale, y + offsets[0]);
      });
    });
  });
}

}  // namespace
}  // namespace bantam::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bantam::ops {

HWY_EXPORT(run_dequantize);

bool supports_dequantize_i8_simd(const OpCall& call) {
  return is_one_of<std::int8_t, std::uint8_t>(call.in(0).type) && call.in(1).elements() == 1 &&
         make_rows<2>(call.out(), {&call.out(), &call.in(0)}).all_contiguous();
}

Status run_dequantize_i8_simd(const Invocation& invocation) {
  const auto rows = make_rows<2>(invocation.out(), {&invocation.out(), &invocation.in(0)});
  HWY_DYNAMIC_DISPATCH(run_dequantize)(invocation, rows);
  return ok_status();
}

}  // namespace bantam::ops
#endif
