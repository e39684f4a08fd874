#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/elementwise/requantize/requantize_simd.cpp"
#include "hwy/foreach_target.h"
// Highway wants the headers below after foreach_target.h.
#include <limits>

#include "hwy/highway.h"
#include "ops/common/dispatch.h"
#include "ops/common/elementwise.h"
#include "ops/common/fixed_point_simd-inl.h"
#include "ops/common/parallel.h"
#include "ops/common/strides.h"
#include "ops/elementwise/requantize/kernels.h"
#include "ops/elementwise/requantize/requantize.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::HWY_NAMESPACE {
namespace {

template <typename TX, typename TY>
void requantize_rows(const Invocation& invocation, const StridedRows<2>& rows) {
  const auto& p = invocation.as<RequantizeParams>();
  auto* y = invocation.output<TY>();
  const auto* x = invocation.input<TX>(0);
  // supports() keeps the output zero point so small that the sum cannot leave int32.
  const auto rescale = [&p](auto d, auto v) HWY_ATTR {
    const auto centred = hn::Sub(v, hn::Set(d, p.input_zero_point));
    const auto scaled = multiply_by_quantized_multiplier(d, centred, hn::Set(d, p.multiplier), p.shift);
    const auto low = hn::Set(d, static_cast<std::int32_t>(std::numeric_limits<TY>::min()) - p.output_zero_point);
    const auto high = hn::Set(d, static_cast<std::int32_t>(std::numeric_limits<TY>::max()) - p.output_zero_point);
    return hn::Add(hn::Min(hn::Max(scaled, low), high), hn::Set(d, p.output_zero_point));
  };
  parallel_ranges(*invocation.threads, rows.elements, kElementwiseGrain,
                  [&](std::int64_t begin, std::int64_t end) HWY_ATTR {
                    for_each_segment(rows, begin, end, [&](const auto& offsets, std::int64_t n) HWY_ATTR {
                      map_row_wide<TY, TX>(static_cast<std::size_t>(n), y + offsets[0], rescale, x + offsets[1]);
                    });
                  });
}

void run_requantize(const Invocation& invocation, const StridedRows<2>& rows) {
  dispatch_type<std::int8_t, std::uint8_t>(invocation.in(0).type, [&](auto from) {
    dispatch_type<std::int8_t, std::uint8_t>(invocation.out().type, [&](auto to) {
      requantize_rows<typename decltype(from)::type, typename decltype(to)::type>(invocation, rows);
    });
  });
}

}  // namespace
}  // namespace bantam::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bantam::ops {

HWY_EXPORT(run_requantize);

bool supports_requantize_i8_simd(const OpCall& call) {
  if (!is_one_of<std::int8_t, std::uint8_t>(call.in(0).type)) return false;
  if (!is_one_of<std::int8_t, std::uint8_t>(call.out().type)) return false;
  const std::int32_t zero_point = call.as<RequantizeParams>().output_zero_point;
  if (call.as<RequantizeParams>().leaky != 0) return false;
  if (zero_point < -65536 || zero_point > 65536) return false;
  return make_rows<2>(call.out(), {&call.out(), &call.in(0)}).all_contiguous();
}

Status run_requantize_i8_simd(const Invocation& invocation) {
  const auto rows = make_rows<2>(invocation.out(), {&invocation.out(), &invocation.in(0)});
  HWY_DYNAMIC_DISPATCH(run_requantize)(invocation, rows);
  return ok_status();
}

}  // namespace bantam::ops
#endif
