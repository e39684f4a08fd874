// The plain recurrent layer on packed weights: the inputs' share of the sums is one matrix product for many steps, the
// state's share one product per step for all items of the batch, whose activations are computed in place.
#include <algorithm>

#include "ops/common/activate_rows.h"
#include "ops/nn/gemm/narrow_panels.h"
#include "ops/nn/lstm/units.h"
#include "ops/nn/simple_rnn/kernels.h"

namespace bantam::ops::simple_rnn {
namespace {

/// Steps whose input products are computed at once: enough rows for the matrix kernel, little scratch.
constexpr std::int64_t kStepsAtOnce = 16;

/// Bytes of scratch for so many items of the batch: the products of so many steps at once, then their sums.
std::int64_t scratch_bytes(const rnn::Extents& e, std::int64_t items, std::int64_t steps) {
  return steps * items * e.hidden * static_cast<std::int64_t>(sizeof(float));
}

/// The same of a part, for lstm/parts.h.
auto bytes_of_part(const rnn::Extents& e) {
  return [e](std::int64_t items, std::int64_t steps) { return scratch_bytes(e, items, steps); };
}

/// Elements of a row of operand w or r.
std::int64_t row_elements(int input, const rnn::Extents& e) { return input == rnn::kW ? e.input : e.hidden; }

/// Floats of the packed form of one direction of w or r.
std::int64_t direction_floats(int input, const rnn::Extents& e) {
  return gemm::packed_floats(row_elements(input, e), e.hidden);
}

gemm::NarrowPanels direction_panels(const Invocation& call, int input, const rnn::Extents& e, std::int64_t d) {
  const float* packed = call.input<float>(input) + d * direction_floats(input, e);
  return {ElementType::kF32, reinterpret_cast<const std::byte*>(packed), row_elements(input, e), e.hidden};
}

void activate(const RnnActivation& activation, float clip, float* sums, std::int64_t count) {
  if (clip != 0.0F) activate_rows({UnaryFunction::kClip, -clip, clip}, sums, 1, count, count);
  if (is_fusible(rnn::unary_of(activation.function))) {
    activate_rows(rnn::fused(activation), sums, 1, count, count);
  } else {
    for (std::int64_t i = 0; i < count; ++i) sums[i] = rnn::apply(sums[i], activation);
  }
}

void run_part(const Invocation& call, const rnn::Extents& e, const rnn::PartRun& run) {
  const auto& p = call.as<SimpleRnnParams>();
  const rnn::Part& part = run.part;
  const std::int64_t d = part.direction;
  auto* const products = reinterpret_cast<float*>(run.scratch);
  const gemm::NarrowPanels w = direction_panels(call, rnn::kW, e, d);
  const gemm::NarrowPanels r = direction_panels(call, rnn::kR, e, d);
  const bool backward = rnn::is_backward(p.direction, d);
  const std::int64_t state = part.items() * e.hidden;
  rnn::StateRows h(call, e, part);
  const float* const bias = rnn::biases_of(call, e, kGates, d).input;
  const std::int64_t at_once = rnn::steps_at_once(run, kStepsAtOnce, bytes_of_part(e));
  for (std::int64_t k = 0; k < e.steps; k += at_once) {
    const std::int64_t last = std::min(k + at_once, e.steps);
    const std::int64_t first_step = std::min(rnn::step_at(e, backward, k), rnn::step_at(e, backward, last - 1));
    rnn::multiply_inputs(call, e, run, first_step, first_step + last - k, w, bias, products);
    for (std::int64_t i = k; i < last; ++i) {
      const std::int64_t t = rnn::step_at(e, backward, i);
      float* const sums = products + (t - first_step) * state;
      // Of all items at once, also of those beyond their sequence, whose sums nobody reads.
      gemm::add_rows(run.threads, h.before(), part.items(), r, gemm::all_panels(r), sums, e.hidden);
      activate(p.activations.of(d, 0), p.clip, sums, state);
      h.for_each_item(
          t, [&](std::int64_t item) { std::copy_n(sums + item * e.hidden, e.hidden, h.at(t) + item * e.hidden); });
      h.end_step(t);
    }
  }
  h.end();
}

}  // namespace

bool supports_packed(const OpCall& call) { return all_dense(call) && rnn::has_constant_weights(call); }

Footprint packed_footprint(const OpCall& call, int threads) {
  const rnn::Extents e = rnn::extents_of(call.in(rnn::kX), call.in(rnn::kR));
  Footprint footprint = rnn::footprint_of_parts(e, 1, threads, 1, kStepsAtOnce, bytes_of_part(e));
  allow_state_in_place(call, &footprint);
  return footprint;
}

std::int64_t packed_bytes(const OpCall& call, int input) {
  if (input == rnn::kB) return call.in(input).bytes();
  if (input != rnn::kW && input != rnn::kR) return 0;
  const rnn::Extents e = rnn::extents_of(call.in(rnn::kX), call.in(rnn::kR));
  return e.directions * direction_floats(input, e) * static_cast<std::int64_t>(sizeof(float));
}

void pack(const OpCall& call, int input, std::byte* destination) {
  const rnn::Extents e = rnn::extents_of(call.in(rnn::kX), call.in(rnn::kR));
  if (input == rnn::kB) return rnn::pack_biases(call, {e.hidden, kGates, kGates}, e.directions, kGates, destination);
  const std::int64_t k = row_elements(input, e);
  const auto* from = static_cast<const float*>(call.inputs[static_cast<std::size_t>(input)].data);
  auto* const to = reinterpret_cast<float*>(destination);
  for (std::int64_t d = 0; d < e.directions; ++d)
    gemm::pack_narrow(ElementType::kF32, from + d * e.hidden * k, k, e.hidden, 1, k,
                      reinterpret_cast<std::byte*>(to + d * direction_floats(input, e)));
}

Status run_packed(const Invocation& call) {
  const rnn::Extents e = rnn::extents_of(call.in(rnn::kX), call.in(rnn::kR));
  BANTAM_RETURN_IF_ERROR(rnn::check_lengths(call, e));
  for (std::int64_t d = 0; d < e.directions; ++d) rnn::start_state(call, e, d, rnn::kInitialH, 1);
  rnn::run_parts(call, e, 1, bytes_of_part(e), [&](const rnn::PartRun& run) { run_part(call, e, run); });
  return ok_status();
}

}  // namespace bantam::ops::simple_rnn
