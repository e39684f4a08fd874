// The plain definition of lstm_q: one inner product at a time.
#include "ops/nn/lstm_q/kernels.h"

namespace bantam::ops::lstm_q {
namespace {

/// sum + sum over i < n of (x[i] - zero_point) * w[i].
template <typename Sum, typename T>
Sum add_products(Sum sum, const T* x, std::int32_t zero_point, const std::int8_t* w, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) sum += static_cast<Sum>(std::int64_t{x[i] - zero_point} * w[i]);
  return sum;
}

template <typename T, typename Bias, typename Sum>
void run(const Invocation& call) {
  const auto& p = call.as<LstmQParams>();
  const Extents e = extents_of(call.in(kX), call.in(kR));
  const auto* w = call.input<std::int8_t>(kW);
  const auto* r = call.input<std::int8_t>(kR);
  const auto* bias = call.input<Bias>(kB);
  run_sequence<T>(call, [&](const T* x, const T* h, std::int16_t* gates) {
    for (std::int64_t row = 0; row < kGates * e.hidden; ++row) {
      const std::int64_t g = row / e.hidden;
      const Sum of_input =
          add_products<Sum>(static_cast<Sum>(bias[row]), x, p.input_zero_point, w + row * e.input, e.input);
      const Sum of_state = add_products<Sum>(Sum{0}, h, p.hidden_zero_point, r + row * e.hidden, e.hidden);
      gates[row] = saturate16(scaled_sum(of_input, p.input_multiplier[g], p.input_shift[g]) +
                              scaled_sum(of_state, p.recurrent_multiplier[g], p.recurrent_shift[g]));
    }
  });
}

}  // namespace

Footprint footprint(const OpCall& call, int /*threads*/) {
  Footprint result;
  result.scratch_bytes = gate_bytes(extents_of(call.in(kX), call.in(kR)));
  result.overwrites[1] = std::uint64_t{1} << kInitialH;
  result.overwrites[2] = std::uint64_t{1} << kInitialC;
  return result;
}

Status run_reference(const Invocation& call) {
  if (call.in(kX).type == ElementType::kI8) {
    run<std::int8_t, std::int32_t, std::uint32_t>(call);
  } else {
    run<std::int16_t, std::int64_t, std::uint64_t>(call);
  }
  return ok_status();
}

}  // namespace bantam::ops::lstm_q
