#include "ops/nn/simple_rnn/kernels.h"

namespace bantam::ops::simple_rnn {
namespace {

/// Row times column in ascending order.
float dot(const float* a, const float* b, std::int64_t n) {
  float sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

void run_direction(const Invocation& call, const rnn::Extents& e, std::int64_t d) {
  const auto& p = call.as<SimpleRnnParams>();
  const RnnActivation activation = p.activations.of(d, 0);
  const float* w = call.input<float>(rnn::kW) + d * e.hidden * e.input;
  const float* r = call.input<float>(rnn::kR) + d * e.hidden * e.hidden;
  const float* bias = call.has(rnn::kB) ? call.input<float>(rnn::kB) + d * 2 * e.hidden : nullptr;
  auto* next = reinterpret_cast<float*>(call.scratch);
  rnn::walk(call, e, d, rnn::is_backward(p.direction, d), [&](std::int64_t t, std::int64_t b) {
    const float* x = call.input<float>(rnn::kX) + (t * e.batch + b) * e.input;
    float* h = call.output<float>(1) + d * e.state() + b * e.hidden;
    for (std::int64_t i = 0; i < e.hidden; ++i) {
      const float sum = dot(x, w + i * e.input, e.input) + dot(h, r + i * e.hidden, e.hidden) +
                        (bias != nullptr ? bias[i] + bias[e.hidden + i] : 0.0F);
      next[i] = rnn::apply(rnn::clipped(sum, p.clip), activation);
    }
    std::memcpy(h, next, static_cast<std::size_t>(e.hidden) * sizeof(float));
  });
}

}  // namespace

Footprint reference_footprint(const OpCall& call, int /*threads*/) {
  Footprint footprint;
  footprint.scratch_bytes = static_cast<std::int64_t>(call.in(rnn::kR).dims[2]) * 4;
  allow_state_in_place(call, &footprint);
  return footprint;
}

Status run_reference(const Invocation& call) {
  const rnn::Extents e = rnn::extents_of(call.in(rnn::kX), call.in(rnn::kR));
  BANTAM_RETURN_IF_ERROR(rnn::check_lengths(call, e));
  for (std::int64_t d = 0; d < e.directions; ++d) {
    rnn::start_state(call, e, d, rnn::kInitialH, 1);
    run_direction(call, e, d);
  }
  return ok_status();
}

}  // namespace bantam::ops::simple_rnn
