// GRU on packed weights: the inputs' share of the gates is one matrix product for many steps, the state's share two
// products per step for all items of the batch, the rest passes over the hidden units.
#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/nn/gru/gru_simd.cpp"
#include "hwy/foreach_target.h"
// Highway wants the headers below after foreach_target.h.
#include "hwy/highway.h"
#include "ops/common/rows_simd-inl.h"
#include "ops/elementwise/unary/activation_simd-inl.h"
#include "ops/nn/gemm/narrow_panels.h"
#include "ops/nn/gru/kernels.h"
#include "ops/nn/lstm/parts.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::HWY_NAMESPACE {
namespace {

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

HWY_INLINE V clip(D d, V x, float limit) {
  return limit == 0.0F ? x : at_most(d, at_least(d, x, hn::Set(d, -limit)), hn::Set(d, limit));
}

/// to[i] = f(load) for hidden units, `load(p)` giving the vector of p at the same units.
template <class F>
HWY_INLINE void map_units(std::size_t hidden, float* to, F f) {
  const D d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= hidden; i += lanes)
    hn::StoreU(f(d, [=](const float* from) HWY_ATTR { return hn::LoadU(d, from + i); }), d, to + i);
  if (i == hidden) return;
  const std::size_t n = hidden - i;
  store_partial(f(d, [=](const float* from) HWY_ATTR { return load_partial(d, from + i, n); }), d, to + i, n);
}

}  // namespace

/// gates [2H] through their sigmoids, in place.
void activate_gru_gates(const GruParams& p, const Activation& gate, std::size_t hidden, float* gates) {
  map_row(
      2 * hidden, gates, [&](D d, V x) HWY_ATTR { return apply_activation(d, clip(d, x, p.clip), gate); }, gates);
}

/// reset_state = r * h.
void reset_gru_state(std::size_t hidden, const float* gates, const float* h, float* reset_state) {
  map_units(hidden, reset_state, [=](D, auto load) HWY_ATTR { return hn::Mul(load(gates + hidden), load(h)); });
}

/// h from gates [3H], of which the last holds the input's share of the candidate. The reset gate scales the state's
/// share when the product came before the reset; else it is null, the input's share being the sum of both.
void update_gru_state(const GruParams& p, const Activation& activation, std::size_t hidden, const float* gates,
                      const float* state_share, float* h) {
  map_units(hidden, h, [&](D d, auto load) HWY_ATTR {
    V sum = load(gates + 2 * hidden);
    if (state_share != nullptr) sum = hn::MulAdd(load(gates + hidden), load(state_share), sum);
    const V candidate = apply_activation(d, clip(d, sum, p.clip), activation);
    // (1 - z) c + z h
    return hn::MulAdd(load(gates), hn::Sub(load(h), candidate), candidate);
  });
}

}  // namespace bantam::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bantam::ops::gru {

HWY_EXPORT(activate_gru_gates);
HWY_EXPORT(reset_gru_state);
HWY_EXPORT(update_gru_state);

namespace {

/// Steps whose input products are computed at once: whole tiles of the matrix kernel, and the fewest that are worth
/// it.
constexpr std::int64_t kStepsAtOnce = 24;
constexpr std::int64_t kLeastStepsAtOnce = 4;

constexpr std::int64_t round_up(std::int64_t floats) { return align_up(floats, kAlignment / sizeof(float)); }

/// The matrices that one direction of an operand consists of, as rows of weights one after another: w is one, r is that
/// of the gates and that of the candidate.
struct Matrices {
  std::int64_t k = 0;
  std::int64_t columns[2] = {};
  int count = 0;
};

Matrices matrices_of(int input, const rnn::Extents& e) {
  if (input == rnn::kW) return {e.input, {kGates * e.hidden}, 1};
  return {e.hidden, {2 * e.hidden, e.hidden}, 2};
}

/// Calls f(panels, offset of the first element) for every matrix of every direction of an operand packed at `packed`;
/// null: nowhere yet.
template <typename F>
void for_each_matrix(int input, const rnn::Extents& e, ElementType type, const std::byte* packed, F f) {
  const Matrices matrices = matrices_of(input, e);
  std::int64_t element = 0;
  for (std::int64_t d = 0; d < e.directions; ++d)
    for (int i = 0; i < matrices.count; ++i) {
      const std::int64_t n = matrices.columns[i];
      f(gemm::NarrowPanels{type, packed, matrices.k, n}, element);
      if (packed != nullptr) packed += gemm::narrow_bytes(type, matrices.k, n);
      element += matrices.k * n;
    }
}

/// The regions of the scratch memory.
struct Scratch {
  float* states;    ///< [items, H] after their reset, or their share of the candidate
  float* products;  ///< [steps at once, items, 3H]; then the gates
};

/// Bytes of scratch for so many items of the batch and the products of so many steps at once.
std::int64_t scratch_bytes(const rnn::Extents& e, std::int64_t items, std::int64_t steps) {
  const std::int64_t floats = round_up(items * e.hidden) + steps * kGates * items * e.hidden;
  return floats * static_cast<std::int64_t>(sizeof(float));
}

/// The same of a part, for lstm/parts.h.
auto bytes_of_part(const rnn::Extents& e) {
  return [e](std::int64_t items, std::int64_t steps) { return scratch_bytes(e, items, steps); };
}

/// The regions begin at multiples of kAlignment.
Scratch scratch_of(const rnn::PartRun& run, const rnn::Extents& e) {
  auto* const states = reinterpret_cast<float*>(run.scratch);
  return {states, states + round_up(run.part.items() * e.hidden)};
}

/// One direction's packed weights, the bias of the inputs' share, and that which is added to the state's share of the
/// candidate before its reset.
struct Weights {
  gemm::NarrowPanels w;
  gemm::NarrowPanels gates;
  gemm::NarrowPanels candidate;
  const float* input_bias;
  const float* candidate_bias;
};

Weights weights_of(const Invocation& call, const rnn::Extents& e, ElementType type, std::int64_t d) {
  const rnn::Biases biases = rnn::biases_of(call, e, kGates, d);
  const bool apart = biases.state != nullptr && call.as<GruParams>().linear_before_reset != 0;
  Weights result{{}, {}, {}, biases.input, apart ? biases.state + 2 * e.hidden : nullptr};
  gemm::NarrowPanels* const parts[] = {&result.gates, &result.candidate};
  int next = 0;
  for_each_matrix(rnn::kW, e, type, call.input<std::byte>(rnn::kW),
                  [&](const gemm::NarrowPanels& panels, std::int64_t) {
                    if (next++ == d) result.w = panels;
                  });
  next = 0;
  for_each_matrix(rnn::kR, e, type, call.input<std::byte>(rnn::kR),
                  [&](const gemm::NarrowPanels& panels, std::int64_t) {
                    if (next / 2 == d) *parts[next % 2] = panels;
                    ++next;
                  });
  return result;
}

/// One step of all items of a part, also of those beyond their sequence, whose gates nobody reads. `gates` [items, 3H]
/// holds the input's share, and in the end the gates; the state's share of the candidate is added to it only if it
/// comes after the reset. h: the items' states.
void compute_gates(const GruParams& p, const rnn::PartRun& run, const rnn::Extents& e, const Weights& weights,
                   float* states, float* gates, const float* h) {
  const auto hidden = static_cast<std::size_t>(e.hidden);
  const std::int64_t items = run.part.items();
  const std::int64_t row = kGates * e.hidden;
  const bool resets_share = p.linear_before_reset != 0;
  const auto multiply_candidate = [&] {
    gemm::multiply_rows(run.threads, h, items, weights.candidate, weights.candidate_bias, states);
  };
  if (resets_share && weights.candidate.backward) multiply_candidate();
  gemm::add_rows(run.threads, h, items, weights.gates, gates, row);
  if (resets_share && !weights.candidate.backward) multiply_candidate();
  for (std::int64_t i = 0; i < items; ++i) HWY_DYNAMIC_DISPATCH(activate_gru_gates)
  (p, rnn::fused(p.activations.of(run.part.direction, 0)), hidden, gates + i * row);
  if (resets_share) return;
  for (std::int64_t i = 0; i < items; ++i)
    HWY_DYNAMIC_DISPATCH(reset_gru_state)(hidden, gates + i * row, h + i * e.hidden, states + i * e.hidden);
  gemm::add_rows(run.threads, states, items, weights.candidate, gates + 2 * e.hidden, row);
}

void run_part(const Invocation& call, const rnn::Extents& e, ElementType type, const rnn::PartRun& run) {
  const auto& p = call.as<GruParams>();
  const rnn::Part& part = run.part;
  const std::int64_t d = part.direction;
  const Scratch scratch = scratch_of(run, e);
  Weights weights = weights_of(call, e, type, d);
  const std::int64_t count = kGates * e.hidden;
  const bool backward = rnn::is_backward(p.direction, d);
  float* const h = call.output<float>(1) + d * e.state() + part.first * e.hidden;
  const rnn::GateRoom own{scratch.products, rnn::steps_at_once(run, kStepsAtOnce, bytes_of_part(e))};
  for (std::int64_t k = 0, last = 0; k < e.steps; k = last) {
    const rnn::GateRoom room = rnn::gate_room(call, e, run, backward, k, kGates, own);
    last = std::min(k + std::min(room.steps, kStepsAtOnce), e.steps);
    const std::int64_t first_step = std::min(rnn::step_at(e, backward, k), rnn::step_at(e, backward, last - 1));
    rnn::multiply_inputs(call, e, run, first_step, first_step + last - k, weights.w, weights.input_bias, room.data);
    for (std::int64_t i = k; i < last; ++i) {
      const std::int64_t t = rnn::step_at(e, backward, i);
      float* const gates = room.data + (t - first_step) * part.items() * count;
      // Weights that the step before read last come first: those are still in the cache, whatever its size.
      weights.gates.backward = weights.candidate.backward = !weights.gates.backward;
      compute_gates(p, run, e, weights, scratch.states, gates, h);
      rnn::walk_step(call, e, part, t, [&](std::int64_t b) {
        const std::int64_t item = b - part.first;
        const float* const share = p.linear_before_reset != 0 ? scratch.states + item * e.hidden : nullptr;
        HWY_DYNAMIC_DISPATCH(update_gru_state)
        (p, rnn::fused(p.activations.of(d, 1)), static_cast<std::size_t>(e.hidden), gates + item * count, share,
         h + item * e.hidden);
      });
    }
  }
}

}  // namespace

bool supports_packed(const OpCall& call) {
  return all_dense(call) && rnn::are_fusible(call.as<GruParams>().activations) && rnn::has_constant_weights(call);
}

Footprint packed_footprint(const OpCall& call, int threads) {
  const rnn::Extents e = rnn::extents_of(call.in(rnn::kX), call.in(rnn::kR));
  Footprint footprint = rnn::footprint_of_parts(e, kGates, threads, kLeastStepsAtOnce, kStepsAtOnce, bytes_of_part(e));
  if (call.has(rnn::kInitialH)) footprint.overwrites[1] = std::uint64_t{1} << rnn::kInitialH;
  return footprint;
}

std::int64_t packed_bytes(const OpCall& call, int input, ElementType type) {
  if (input == rnn::kB) return call.in(input).bytes();
  if (input != rnn::kW && input != rnn::kR) return 0;
  const rnn::Extents e = rnn::extents_of(call.in(rnn::kX), call.in(rnn::kR));
  std::int64_t bytes = 0;
  for_each_matrix(input, e, type, nullptr, [&](const gemm::NarrowPanels& panels, std::int64_t) {
    bytes += gemm::narrow_bytes(type, panels.k, panels.n);
  });
  return bytes;
}

void pack(const OpCall& call, int input, ElementType type, std::byte* destination) {
  const rnn::Extents e = rnn::extents_of(call.in(rnn::kX), call.in(rnn::kR));
  // The candidate's are added up where the reset gate does not come between them.
  const std::int64_t together = call.as<GruParams>().linear_before_reset != 0 ? kGates - 1 : kGates;
  if (input == rnn::kB) return rnn::pack_biases(call, e, kGates, together, destination);
  const auto* from = static_cast<const float*>(call.inputs[static_cast<std::size_t>(input)].data);
  std::byte* to = destination;
  for_each_matrix(input, e, type, destination, [&](const gemm::NarrowPanels& panels, std::int64_t element) {
    gemm::pack_narrow(type, from + element, panels.k, panels.n, 1, panels.k, to);
    to += gemm::narrow_bytes(type, panels.k, panels.n);
  });
}

void restore(const OpCall& call, int input, ElementType type, const std::byte* packed, float* elements) {
  const rnn::Extents e = rnn::extents_of(call.in(rnn::kX), call.in(rnn::kR));
  for_each_matrix(input, e, type, packed, [&](const gemm::NarrowPanels& panels, std::int64_t element) {
    gemm::restore_narrow(panels, 1, panels.k, elements + element);
  });
}

Status run_packed(const Invocation& call, ElementType type) {
  const rnn::Extents e = rnn::extents_of(call.in(rnn::kX), call.in(rnn::kR));
  BANTAM_RETURN_IF_ERROR(rnn::check_lengths(call, e));
  for (std::int64_t d = 0; d < e.directions; ++d) rnn::start_state(call, e, d, rnn::kInitialH, 1);
  rnn::run_parts(call, e, kGates, bytes_of_part(e), [&](const rnn::PartRun& run) { run_part(call, e, type, run); });
  return ok_status();
}

}  // namespace bantam::ops::gru
#endif
