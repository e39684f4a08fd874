#include "ops/common/dispatch.h"
#include "ops/common/elementwise.h"
#include "ops/common/saturate.h"
#include "ops/elementwise/requantize/kernels.h"
#include "ops/elementwise/requantize/requantize.h"
#include "ops/fixed_point.h"

namespace bantam::ops {
namespace {

std::int64_t scale_negative(std::int32_t centred, const RequantizeParams& p) {
  const bool negative = p.negative_multiplier < 0;
  const std::int64_t scaled = multiply_by_quantized_multiplier(
      centred, negative ? -p.negative_multiplier : p.negative_multiplier, p.negative_shift);
  return negative ? -scaled : scaled;
}

template <typename TX, typename TY>
void requantize(const Invocation& invocation, const RequantizeParams& p) {
  map_elements<TY, TX>(invocation, [&p](TX x) {
    // The difference wraps for i32 operands, as in the formats' kernels.
    const auto centred =
        static_cast<std::int32_t>(static_cast<std::uint32_t>(x) - static_cast<std::uint32_t>(p.input_zero_point));
    const std::int64_t scaled = p.leaky != 0 && centred < 0
                                    ? scale_negative(centred, p)
                                    : multiply_by_quantized_multiplier(centred, p.multiplier, p.shift);
    return saturate_integer<TY>(scaled + p.output_zero_point);
  });
}

/// Requantises between those of the types that the operands have.
template <typename... Ts>
Status run(const Invocation& invocation) {
  const auto& p = invocation.as<RequantizeParams>();
  dispatch_type<Ts...>(invocation.in(0).type, [&](auto from) {
    dispatch_type<Ts...>(
        p.to, [&](auto to) { requantize<typename decltype(from)::type, typename decltype(to)::type>(invocation, p); });
  });
  return ok_status();
}

}  // namespace

bool supports_requantize_i8_portable(const OpCall& call) {
  return is_one_of<std::int8_t, std::uint8_t>(call.in(0).type) && is_one_of<std::int8_t, std::uint8_t>(call.out().type);
}

Status run_requantize_i8_portable(const Invocation& invocation) { return run<std::int8_t, std::uint8_t>(invocation); }

Status run_requantize_ref(const Invocation& invocation) {
  return run<std::int8_t, std::uint8_t, std::int16_t, std::int32_t>(invocation);
}

}  // namespace bantam::ops
