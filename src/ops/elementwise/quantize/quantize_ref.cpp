#include <cmath>

#include "ops/common/dispatch.h"
#include "ops/common/elementwise.h"
#include "ops/common/quantization_operands.h"
#include "ops/common/saturate.h"
#include "ops/common/strides.h"
#include "ops/elementwise/quantize/kernels.h"
#include "ops/elementwise/quantize/quantize.h"
#include "ops/elementwise/unary/function.h"

namespace bantam::ops {
namespace {

template <typename T>
void quantize(const Invocation& invocation) {
  const auto& p = invocation.as<QuantizeParams>();
  const TensorDesc& x_desc = invocation.in(0);
  const std::int64_t slices = invocation.in(1).elements();
  // Seen as [outer, slices, inner]: the element's slice follows from its row-major index.
  const std::int64_t inner = slice_length(x_desc, slices, p.axis);
  const auto* scale = invocation.input<float>(1);
  const T* zero_point = invocation.has(2) ? invocation.input<T>(2) : nullptr;
  const auto* x = invocation.input<float>(0);
  auto* y = invocation.output<T>();
  std::int64_t index = 0;
  for_each_element(make_rows<2>(invocation.out(), {&invocation.out(), &x_desc}), [&](const auto& offsets) {
    const std::int64_t slice = slices > 1 ? index / inner % slices : 0;
    ++index;
    const float quotient = x[offsets[1]] / scale[slice];
    const float real = std::isnan(quotient) ? 0.0F : quotient;
    const float whole = p.round_half_away != 0 ? std::round(real) : apply_unary(real, UnaryFunction::kRound, 0, 0);
    // Exact in double, whatever the zero point.
    const double zero = zero_point != nullptr ? static_cast<double>(zero_point[slice]) : 0.0;
    y[offsets[0]] = saturate_float<T>(static_cast<double>(whole) + zero);
  });
}

}  // namespace

Status run_quantize_ref(const Invocation& invocation) {
  dispatch_type<std::int8_t, std::uint8_t, std::int16_t, std::uint16_t, std::int32_t>(
      invocation.out().type, [&](auto tag) { quantize<typename decltype(tag)::type>(invocation); });
  return ok_status();
}

}  // namespace bantam::ops
