// LSTM on packed weights: the inputs' share of the gates is one matrix product for many steps, the state's share one
// product per step for all items of the batch, and the cell itself is one pass over the hidden units.
#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/nn/lstm/lstm_simd.cpp"
#include "hwy/foreach_target.h"
// Highway wants the headers below after foreach_target.h.
#include "hwy/highway.h"
#include "ops/common/rows_simd-inl.h"
#include "ops/elementwise/unary/activation_simd-inl.h"
#include "ops/nn/gemm/narrow_panels.h"
#include "ops/nn/lstm/kernels.h"
#include "ops/nn/lstm/units_simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::HWY_NAMESPACE {
namespace {

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

/// One vector of hidden units.
struct Cell {
  V in, out, forget, candidate;  ///< before their activations
  V in_peephole, out_peephole, forget_peephole;
  V c, h;
};

/// The activations of one direction.
struct Functions {
  Activation gate, candidate, result;
};

HWY_INLINE void update_cell(D d, const LstmParams& p, const Functions& f, Cell* cell) {
  const V in = apply_activation(d, clip_units(d, hn::MulAdd(cell->in_peephole, cell->c, cell->in), p.clip), f.gate);
  const V forget =
      p.input_forget != 0
          ? hn::Sub(hn::Set(d, 1.0F), in)
          : apply_activation(d, clip_units(d, hn::MulAdd(cell->forget_peephole, cell->c, cell->forget), p.clip),
                             f.gate);
  const V updated = hn::MulAdd(forget, cell->c,
                               hn::Mul(in, apply_activation(d, clip_units(d, cell->candidate, p.clip), f.candidate)));
  cell->c = clip_units(d, updated, p.cell_clip);
  const V out = apply_activation(d, clip_units(d, hn::MulAdd(cell->out_peephole, cell->c, cell->out), p.clip), f.gate);
  cell->h = hn::Mul(out, apply_activation(d, cell->c, f.result));
}

/// A block of units: gates in the order input, output, forget, cell, one after the other; peepholes (input, output,
/// forget) of all H units, or null.
HWY_INLINE void update_block(const LstmParams& p, const Functions& functions, std::size_t units, std::size_t hidden,
                             const float* gates, const float* peepholes, float* h, float* c) {
  const D d;
  const std::size_t lanes = hn::Lanes(d);
  for (std::size_t i = 0; i < units; i += lanes) {
    const std::size_t n = std::min(lanes, units - i);
    const auto load = [&](const float* from)
                          HWY_ATTR { return n < lanes ? load_partial(d, from + i, n) : hn::LoadU(d, from + i); };
    const auto peephole = [&](std::size_t gate)
                              HWY_ATTR { return peepholes != nullptr ? load(peepholes + gate * hidden) : hn::Zero(d); };
    Cell cell{load(gates),
              load(gates + units),
              load(gates + 2 * units),
              load(gates + 3 * units),
              peephole(0),
              peephole(1),
              peephole(2),
              load(c),
              hn::Zero(d)};
    update_cell(d, p, functions, &cell);
    if (n < lanes) {
      store_partial(cell.c, d, c + i, n);
      store_partial(cell.h, d, h + i, n);
    } else {
      hn::StoreU(cell.c, d, c + i);
      hn::StoreU(cell.h, d, h + i);
    }
  }
}

}  // namespace

/// Units [first, last), whole blocks, of one item: gates [4H], peepholes [3H] or null, h and c [H].
void update_lstm_state(const LstmParams& p, std::int64_t direction, std::size_t hidden, std::size_t first,
                       std::size_t last, const float* gates, const float* peepholes, float* h, float* c) {
  const Functions functions{rnn::fused(p.activations.of(direction, 0)), rnn::fused(p.activations.of(direction, 1)),
                            rnn::fused(p.activations.of(direction, 2))};
  for_each_block(
      hidden, first, last, [ =, &p ](std::size_t u, std::size_t count) __attribute__((always_inline)) HWY_ATTR {
        update_block(p, functions, count, hidden, gates + u * lstm::kGates,
                     peepholes != nullptr ? peepholes + u : nullptr, h + u, c + u);
      });
}

}  // namespace bantam::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bantam::ops::lstm {

HWY_EXPORT(update_lstm_state);

namespace {

/// Steps whose input products are computed at once: whole tiles of the matrix kernel, and the fewest that are worth
/// it.
constexpr std::int64_t kStepsAtOnce = 24;
constexpr std::int64_t kLeastStepsAtOnce = 4;

/// Bytes of scratch for so many items of the batch: the products of so many steps at once, then their gates.
std::int64_t scratch_bytes(const rnn::Extents& e, std::int64_t items, std::int64_t steps) {
  return steps * items * kGates * e.hidden * static_cast<std::int64_t>(sizeof(float));
}

/// The same of a part, for parts.h.
auto bytes_of_part(const rnn::Extents& e) {
  return [e](std::int64_t items, std::int64_t steps) { return scratch_bytes(e, items, steps); };
}

/// The gates of a unit are updated together.
rnn::GateColumns gate_columns(const rnn::Extents& e) { return {e.hidden, kGates, kGates}; }

/// Bytes of the packed form of one direction of w or r, whose rows have k elements.
std::int64_t direction_bytes(ElementType type, std::int64_t k, const rnn::Extents& e) {
  return gemm::narrow_bytes(type, k, kGates * e.hidden);
}

/// Elements of a row of operand w or r.
std::int64_t row_elements(int input, const rnn::Extents& e) { return input == rnn::kW ? e.input : e.hidden; }

/// The packed form of direction d of operand w or r.
gemm::NarrowPanels direction_panels(const std::byte* packed, ElementType type, int input, const rnn::Extents& e,
                                    std::int64_t d) {
  const std::int64_t k = row_elements(input, e);
  return {type, packed + d * direction_bytes(type, k, e), k, kGates * e.hidden};
}

void run_part(const Invocation& call, const rnn::Extents& e, ElementType type, const rnn::PartRun& run) {
  const auto& p = call.as<LstmParams>();
  const rnn::Part& part = run.part;
  const std::int64_t d = part.direction;
  const std::int64_t count = kGates * e.hidden;
  const gemm::NarrowPanels w = direction_panels(call.input<std::byte>(rnn::kW), type, rnn::kW, e, d);
  gemm::NarrowPanels r = direction_panels(call.input<std::byte>(rnn::kR), type, rnn::kR, e, d);
  const float* peepholes = call.has(kPeepholes) ? call.input<float>(kPeepholes) + d * 3 * e.hidden : nullptr;
  const bool backward = rnn::is_backward(p.direction, d);
  rnn::StateRows h(call, e, part);
  float* const c = call.output<float>(2) + d * e.state() + part.first * e.hidden;
  const float* const bias = rnn::biases_of(call, e, kGates, d).input;
  const rnn::GateRoom own{reinterpret_cast<float*>(run.scratch),
                          rnn::steps_at_once(run, kStepsAtOnce, bytes_of_part(e))};
  for (std::int64_t k = 0, last = 0; k < e.steps; k = last) {
    const rnn::GateRoom room = rnn::gate_room(call, e, run, backward, k, kGates, own);
    last = std::min(k + std::min(room.steps, kStepsAtOnce), e.steps);
    const std::int64_t first_step = std::min(rnn::step_at(e, backward, k), rnn::step_at(e, backward, last - 1));
    rnn::multiply_inputs(call, e, run, first_step, first_step + last - k, w, bias, room.data);
    for (std::int64_t i = k; i < last; ++i) {
      const std::int64_t t = rnn::step_at(e, backward, i);
      float* const gates = room.data + (t - first_step) * part.items() * count;
      // Weights that the step before read last come first: those are still in the cache, whatever its size.
      r.backward = !r.backward;
      rnn::share_units(run, e, kGates, [&](const rnn::Units& units) {
        // Of all items at once, also of those beyond their sequence, whose gates nobody reads.
        gemm::add_rows(units.threads, h.before(), part.items(), r, units.panels(kGates), gates, count);
        h.for_each_item(t, [&](std::int64_t item) {
          HWY_DYNAMIC_DISPATCH(update_lstm_state)
          (p, d, static_cast<std::size_t>(e.hidden), static_cast<std::size_t>(units.first),
           static_cast<std::size_t>(units.last), gates + item * count, peepholes, h.at(t) + item * e.hidden,
           c + item * e.hidden);
        });
      });
      h.end_step(t);
    }
  }
  h.end();
}

}  // namespace

bool supports_packed(const OpCall& call) {
  return all_dense(call) && rnn::are_fusible(call.as<LstmParams>().activations) && rnn::has_constant_weights(call);
}

Footprint packed_footprint(const OpCall& call, int threads) {
  const rnn::Extents e = rnn::extents_of(call.in(rnn::kX), call.in(rnn::kR));
  Footprint footprint = rnn::footprint_of_parts(e, kGates, threads, kLeastStepsAtOnce, kStepsAtOnce, bytes_of_part(e));
  allow_state_in_place(call, &footprint);
  return footprint;
}

std::int64_t packed_bytes(const OpCall& call, int input, ElementType type) {
  if (input == rnn::kB) return call.in(input).bytes();
  if (input != rnn::kW && input != rnn::kR) return 0;
  const rnn::Extents e = rnn::extents_of(call.in(rnn::kX), call.in(rnn::kR));
  return e.directions * direction_bytes(type, row_elements(input, e), e);
}

void pack(const OpCall& call, int input, ElementType type, std::byte* destination) {
  const rnn::Extents e = rnn::extents_of(call.in(rnn::kX), call.in(rnn::kR));
  const rnn::GateColumns columns = gate_columns(e);
  if (input == rnn::kB) return rnn::pack_biases(call, columns, e.directions, kGates, destination);
  const std::int64_t k = row_elements(input, e);
  const auto* from = static_cast<const float*>(call.inputs[static_cast<std::size_t>(input)].data);
  for (std::int64_t d = 0; d < e.directions; ++d)
    rnn::pack_gates(type, from + d * kGates * e.hidden * k, k, columns, destination + d * direction_bytes(type, k, e));
}

void restore(const OpCall& call, int input, ElementType type, const std::byte* packed, float* elements) {
  const rnn::Extents e = rnn::extents_of(call.in(rnn::kX), call.in(rnn::kR));
  const std::int64_t k = row_elements(input, e);
  for (std::int64_t d = 0; d < e.directions; ++d)
    rnn::restore_gates(direction_panels(packed, type, input, e, d), gate_columns(e),
                       elements + d * kGates * e.hidden * k);
}

Status run_packed(const Invocation& call, ElementType type) {
  const rnn::Extents e = rnn::extents_of(call.in(rnn::kX), call.in(rnn::kR));
  BANTAM_RETURN_IF_ERROR(start(call, e));
  rnn::run_parts(call, e, kGates, bytes_of_part(e), [&](const rnn::PartRun& run) { run_part(call, e, type, run); });
  return ok_status();
}

}  // namespace bantam::ops::lstm
#endif
