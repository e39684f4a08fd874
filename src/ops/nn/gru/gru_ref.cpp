#include "ops/nn/gru/kernels.h"

namespace bantam::ops::gru {
namespace {

/// One direction's weights.
struct Weights {
  const float* w;
  const float* r;
  const float* bias;  ///< wb [3H], then rb [3H]; or null
  std::int64_t input;
  std::int64_t hidden;

  float bias_at(std::int64_t i) const { return bias != nullptr ? bias[i] : 0.0F; }

  /// x times row g of w, plus its bias.
  float input_share(std::int64_t g, const float* x) const {
    float sum = bias_at(g);
    for (std::int64_t i = 0; i < input; ++i) sum += x[i] * w[g * input + i];
    return sum;
  }

  /// h times row g of r, plus its bias.
  float state_share(std::int64_t g, const float* h) const {
    float sum = bias_at(3 * hidden + g);
    for (std::int64_t i = 0; i < hidden; ++i) sum += h[i] * r[g * hidden + i];
    return sum;
  }
};

/// `scratch` has 4H floats: update and reset gates, r * h, candidates. `d` is the direction, whose activations apply.
void update_state(const GruParams& p, std::int64_t d, const Weights& weights, const float* x, float* h,
                  float* scratch) {
  const std::int64_t hidden = weights.hidden;
  float* gates = scratch;
  float* reset_state = scratch + 2 * hidden;
  float* candidates = scratch + 3 * hidden;
  for (std::int64_t g = 0; g < 2 * hidden; ++g)
    gates[g] =
        rnn::apply(rnn::clipped(weights.input_share(g, x) + weights.state_share(g, h), p.clip), p.activations.of(d, 0));
  for (std::int64_t i = 0; i < hidden; ++i) reset_state[i] = gates[hidden + i] * h[i];
  for (std::int64_t i = 0; i < hidden; ++i) {
    const std::int64_t g = 2 * hidden + i;
    const float state_share = p.linear_before_reset != 0 ? gates[hidden + i] * weights.state_share(g, h)
                                                         : weights.state_share(g, reset_state);
    candidates[i] = rnn::apply(rnn::clipped(weights.input_share(g, x) + state_share, p.clip), p.activations.of(d, 1));
  }
  for (std::int64_t i = 0; i < hidden; ++i) h[i] = (1.0F - gates[i]) * candidates[i] + gates[i] * h[i];
}

}  // namespace

Footprint reference_footprint(const OpCall& call, int /*threads*/) {
  Footprint footprint;
  footprint.scratch_bytes = 4 * static_cast<std::int64_t>(call.in(rnn::kR).dims[2]) * 4;
  if (call.has(rnn::kInitialH)) footprint.overwrites[1] = std::uint64_t{1} << rnn::kInitialH;
  return footprint;
}

Status run_reference(const Invocation& call) {
  const auto& p = call.as<GruParams>();
  const rnn::Extents e = rnn::extents_of(call.in(rnn::kX), call.in(rnn::kR));
  BANTAM_RETURN_IF_ERROR(rnn::check_lengths(call, e));
  for (std::int64_t d = 0; d < e.directions; ++d) {
    rnn::start_state(call, e, d, rnn::kInitialH, 1);
    const std::int64_t count = kGates * e.hidden;
    const Weights weights{call.input<float>(rnn::kW) + d * count * e.input,
                          call.input<float>(rnn::kR) + d * count * e.hidden,
                          call.has(rnn::kB) ? call.input<float>(rnn::kB) + d * 2 * count : nullptr, e.input, e.hidden};
    rnn::walk(call, e, d, rnn::is_backward(p.direction, d), [&](std::int64_t t, std::int64_t b) {
      update_state(p, d, weights, call.input<float>(rnn::kX) + (t * e.batch + b) * e.input,
                   call.output<float>(1) + d * e.state() + b * e.hidden, reinterpret_cast<float*>(call.scratch));
    });
  }
  return ok_status();
}

}  // namespace bantam::ops::gru
