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
#include "ops/nn/lstm/units_simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::HWY_NAMESPACE {
namespace {

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

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

/// Update and reset gates through their sigmoids, in place.
void activate_gru_gates(const GruParams& p, const Activation& gate, std::size_t count, float* gates) {
  map_row(
      count, gates, [&](D d, V x) HWY_ATTR { return apply_activation(d, clip_units(d, x, p.clip), gate); }, gates);
}

/// reset_state = r * h of units [first, last) of an item, which has gates [3H].
void reset_gru_state(std::size_t hidden, std::size_t first, std::size_t last, const float* gates, const float* h,
                     float* reset_state) {
  for_each_block(
      hidden, first, last, [&](std::size_t u, std::size_t count) __attribute__((always_inline)) HWY_ATTR {
        const float* const reset = gates + u * gru::kMixedGates + count;
        map_units(count, reset_state + u, [=](D, auto load) HWY_ATTR { return hn::Mul(load(reset), load(h + u)); });
      });
}

/// The new states y of units [first, last) of an item, from gates [3H] of which the last holds the input's share of the
/// candidate. The reset gate scales the state's share when the product came before the reset; else that is null, the
/// input's share being the sum of both.
void update_gru_state(const GruParams& p, const Activation& activation, std::size_t hidden, std::size_t first,
                      std::size_t last, const float* gates, const float* state_share, const float* h, float* y) {
  for_each_block(
      hidden, first, last, [&](std::size_t u, std::size_t count) __attribute__((always_inline)) HWY_ATTR {
        const float* const update = gates + u * gru::kMixedGates;
        map_units(count, y + u, [&](D d, auto load) HWY_ATTR {
          V sum = load(gates + gru::kMixedGates * hidden + u);
          if (state_share != nullptr) sum = hn::MulAdd(load(update + count), load(state_share + u), sum);
          const V candidate = apply_activation(d, clip_units(d, sum, p.clip), activation);
          // (1 - z) c + z h
          return hn::MulAdd(load(update), hn::Sub(load(h + u), candidate), candidate);
        });
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
  rnn::GateColumns columns[2];
  int count = 0;
};

/// Those of the inputs' share of all gates.
rnn::GateColumns gate_columns(const rnn::Extents& e) { return {e.hidden, kGates, kMixedGates}; }

Matrices matrices_of(int input, const rnn::Extents& e) {
  if (input == rnn::kW) return {e.input, {gate_columns(e)}, 1};
  return {e.hidden, {{e.hidden, kMixedGates, kMixedGates}, {e.hidden, kGates - kMixedGates, 1}}, 2};
}

/// Calls f(panels, their columns, offset of the first element) for every matrix of every direction of an operand packed
/// at `packed`; null: nowhere yet.
template <typename F>
void for_each_matrix(int input, const rnn::Extents& e, ElementType type, const std::byte* packed, F f) {
  const Matrices matrices = matrices_of(input, e);
  std::int64_t element = 0;
  for (std::int64_t d = 0; d < e.directions; ++d)
    for (int i = 0; i < matrices.count; ++i) {
      const std::int64_t n = matrices.columns[i].gates * e.hidden;
      f(gemm::NarrowPanels{type, packed, matrices.k, n}, matrices.columns[i], element);
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
  Weights result{{}, {}, {}, biases.input, apart ? biases.state + kMixedGates * e.hidden : nullptr};
  gemm::NarrowPanels* const parts[] = {&result.gates, &result.candidate};
  int next = 0;
  for_each_matrix(rnn::kW, e, type, call.input<std::byte>(rnn::kW),
                  [&](const gemm::NarrowPanels& panels, const rnn::GateColumns&, std::int64_t) {
                    if (next++ == d) result.w = panels;
                  });
  next = 0;
  for_each_matrix(rnn::kR, e, type, call.input<std::byte>(rnn::kR),
                  [&](const gemm::NarrowPanels& panels, const rnn::GateColumns&, std::int64_t) {
                    if (next / 2 == d) *parts[next % 2] = panels;
                    ++next;
                  });
  return result;
}

/// One direction of a part at work.
class Steps {
 public:
  Steps(const Invocation& call, const rnn::Extents& e, ElementType type, const rnn::PartRun& run)
      : p_(call.as<GruParams>()),
        e_(e),
        run_(run),
        weights_(weights_of(call, e, type, run.part.direction)),
        states_(scratch_of(run, e).states),
        h_(call, e, run.part) {}

  const Weights& weights() const { return weights_; }

  /// `gates` [items, 3H] holds the input's share of step t. Products are those of all items at once, also of those
  /// beyond their sequence, whose gates nobody reads.
  void step(std::int64_t t, float* gates) {
    // Weights that the step before read last come first: those are still in the cache, whatever its size.
    weights_.gates.backward = weights_.candidate.backward = !weights_.gates.backward;
    if (p_.linear_before_reset != 0) {
      rnn::share_units(run_, e_, kGates, [&](const rnn::Units& units) {
        if (weights_.candidate.backward) multiply_candidate(units);
        compute_gates(units, gates);
        if (!weights_.candidate.backward) multiply_candidate(units);
        update(units, t, gates, states_);
      });
    } else {
      rnn::share_units(run_, e_, kMixedGates, [&](const rnn::Units& units) {
        compute_gates(units, gates);
        reset(units, gates);
      });
      rnn::share_units(run_, e_, kGates - kMixedGates, [&](const rnn::Units& units) {
        gemm::add_rows(units.threads, states_, items(), weights_.candidate, units.panels(1),
                       gates + kMixedGates * e_.hidden, row());
        update(units, t, gates, nullptr);
      });
    }
    h_.end_step(t);
  }

  void end() const { h_.end(); }

 private:
  std::int64_t items() const { return run_.part.items(); }
  std::int64_t row() const { return kGates * e_.hidden; }
  std::int64_t direction() const { return run_.part.direction; }

  void multiply_candidate(const rnn::Units& units) const {
    gemm::multiply_rows(units.threads, h_.before(), items(), weights_.candidate, units.panels(1),
                        weights_.candidate_bias, states_);
  }

  void compute_gates(const rnn::Units& units, float* gates) const {
    gemm::add_rows(units.threads, h_.before(), items(), weights_.gates, units.panels(kMixedGates), gates, row());
    for (std::int64_t i = 0; i < items(); ++i) HWY_DYNAMIC_DISPATCH(activate_gru_gates)
    (p_, rnn::fused(p_.activations.of(direction(), 0)),
     static_cast<std::size_t>((units.last - units.first) * kMixedGates), gates + i * row() + units.first * kMixedGates);
  }

  void reset(const rnn::Units& units, const float* gates) const {
    for (std::int64_t i = 0; i < items(); ++i) HWY_DYNAMIC_DISPATCH(reset_gru_state)
    (static_cast<std::size_t>(e_.hidden), static_cast<std::size_t>(units.first), static_cast<std::size_t>(units.last),
     gates + i * row(), h_.before() + i * e_.hidden, states_ + i * e_.hidden);
  }

  /// `state_shares` [items, H] of the candidate, or null.
  void update(const rnn::Units& units, std::int64_t t, const float* gates, const float* state_shares) const {
    h_.for_each_item(t, [&](std::int64_t i) {
      const std::int64_t state = i * e_.hidden;
      HWY_DYNAMIC_DISPATCH(update_gru_state)
      (p_, rnn::fused(p_.activations.of(direction(), 1)), static_cast<std::size_t>(e_.hidden),
       static_cast<std::size_t>(units.first), static_cast<std::size_t>(units.last), gates + i * row(),
       state_shares != nullptr ? state_shares + state : nullptr, h_.before() + state, h_.at(t) + state);
    });
  }

  const GruParams& p_;
  const rnn::Extents& e_;
  const rnn::PartRun& run_;
  Weights weights_;
  float* states_;
  rnn::StateRows h_;
};

void run_part(const Invocation& call, const rnn::Extents& e, ElementType type, const rnn::PartRun& run) {
  const rnn::Part& part = run.part;
  Steps steps(call, e, type, run);
  const std::int64_t count = kGates * e.hidden;
  const bool backward = rnn::is_backward(call.as<GruParams>().direction, part.direction);
  const rnn::GateRoom own{scratch_of(run, e).products, rnn::steps_at_once(run, kStepsAtOnce, bytes_of_part(e))};
  for (std::int64_t k = 0, last = 0; k < e.steps; k = last) {
    const rnn::GateRoom room = rnn::gate_room(call, e, run, backward, k, kGates, own);
    last = std::min(k + std::min(room.steps, kStepsAtOnce), e.steps);
    const std::int64_t first_step = std::min(rnn::step_at(e, backward, k), rnn::step_at(e, backward, last - 1));
    rnn::multiply_inputs(call, e, run, first_step, first_step + last - k, steps.weights().w, steps.weights().input_bias,
                         room.data);
    for (std::int64_t i = k; i < last; ++i) {
      const std::int64_t t = rnn::step_at(e, backward, i);
      steps.step(t, room.data + (t - first_step) * part.items() * count);
    }
  }
  steps.end();
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
  for_each_matrix(input, e, type, nullptr, [&](const gemm::NarrowPanels& panels, const auto&, std::int64_t) {
    bytes += gemm::narrow_bytes(type, panels.k, panels.n);
  });
  return bytes;
}

void pack(const OpCall& call, int input, ElementType type, std::byte* destination) {
  const rnn::Extents e = rnn::extents_of(call.in(rnn::kX), call.in(rnn::kR));
  // The candidate's are added up where the reset gate does not come between them.
  const std::int64_t together = call.as<GruParams>().linear_before_reset != 0 ? kMixedGates : kGates;
  if (input == rnn::kB) return rnn::pack_biases(call, gate_columns(e), e.directions, together, destination);
  const auto* from = static_cast<const float*>(call.inputs[static_cast<std::size_t>(input)].data);
  std::byte* to = destination;
  for_each_matrix(input, e, type, destination,
                  [&](const gemm::NarrowPanels& panels, const rnn::GateColumns& columns, std::int64_t element) {
                    rnn::pack_gates(type, from + element, panels.k, columns, to);
                    to += gemm::narrow_bytes(type, panels.k, panels.n);
                  });
}

void restore(const OpCall& call, int input, ElementType type, const std::byte* packed, float* elements) {
  const rnn::Extents e = rnn::extents_of(call.in(rnn::kX), call.in(rnn::kR));
  for_each_matrix(input, e, type, packed,
                  [&](const gemm::NarrowPanels& panels, const rnn::GateColumns& columns, std::int64_t element) {
                    rnn::restore_gates(panels, columns, elements + element);
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
