#include "ops/nn/lstm/kernels.h"

namespace bantam::ops::lstm {
namespace {

float dot(const float* a, const float* b, std::int64_t n) {
  float sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

/// gates = x w^T + h r^T + wb + rb.
void compute_gates(const Invocation& call, const rnn::Extents& e, std::int64_t d, const float* x, const float* h,
                   float* gates) {
  const std::int64_t count = kGates * e.hidden;
  const float* w = call.input<float>(rnn::kW) + d * count * e.input;
  const float* r = call.input<float>(rnn::kR) + d * count * e.hidden;
  const float* bias = call.has(rnn::kB) ? call.input<float>(rnn::kB) + d * 2 * count : nullptr;
  for (std::int64_t g = 0; g < count; ++g)
    gates[g] = dot(x, w + g * e.input, e.input) + dot(h, r + g * e.hidden, e.hidden) +
               (bias != nullptr ? bias[g] + bias[count + g] : 0.0F);
}

/// `d` is the direction, whose activations apply.
void update_state(const LstmParams& p, std::int64_t d, std::int64_t hidden, const float* gates, const float* peepholes,
                  float* h, float* c) {
  const RnnActivation gate = p.activations.of(d, 0);
  const RnnActivation candidate = p.activations.of(d, 1);
  const RnnActivation result = p.activations.of(d, 2);
  const auto peephole = [&](std::int64_t k, std::int64_t i) {
    return peepholes != nullptr ? peepholes[k * hidden + i] : 0.0F;
  };
  const auto activate = [&](float x, const RnnActivation& function) {
    return rnn::apply(rnn::clipped(x, p.clip), function);
  };
  for (std::int64_t i = 0; i < hidden; ++i) {
    const float in = activate(gates[i] + peephole(0, i) * c[i], gate);
    const float forget =
        p.input_forget != 0 ? 1.0F - in : activate(gates[2 * hidden + i] + peephole(2, i) * c[i], gate);
    c[i] = rnn::clipped(forget * c[i] + in * activate(gates[3 * hidden + i], candidate), p.cell_clip);
    h[i] = activate(gates[hidden + i] + peephole(1, i) * c[i], gate) * rnn::apply(c[i], result);
  }
}

}  // namespace

Footprint reference_footprint(const OpCall& call, int /*threads*/) {
  Footprint footprint;
  footprint.scratch_bytes = kGates * static_cast<std::int64_t>(call.in(rnn::kR).dims[2]) * 4;
  allow_state_in_place(call, &footprint);
  return footprint;
}

Status run_reference(const Invocation& call) {
  const auto& p = call.as<LstmParams>();
  const rnn::Extents e = rnn::extents_of(call.in(rnn::kX), call.in(rnn::kR));
  BANTAM_RETURN_IF_ERROR(start(call, e));
  auto* gates = reinterpret_cast<float*>(call.scratch);
  for (std::int64_t d = 0; d < e.directions; ++d) {
    const float* peepholes = call.has(kPeepholes) ? call.input<float>(kPeepholes) + d * 3 * e.hidden : nullptr;
    rnn::walk(call, e, d, rnn::is_backward(p.direction, d), [&](std::int64_t t, std::int64_t b) {
      float* h = call.output<float>(1) + d * e.state() + b * e.hidden;
      float* c = call.output<float>(2) + d * e.state() + b * e.hidden;
      compute_gates(call, e, d, call.input<float>(rnn::kX) + (t * e.batch + b) * e.input, h, gates);
      update_state(p, d, e.hidden, gates, peepholes, h, c);
    });
  }
  return ok_status();
}

}  // namespace bantam::ops::lstm
