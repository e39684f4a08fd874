// The hidden units of recurrent layers on packed weights: where their gates lie, how threads share the units of a step,
// each multiplying, activating and updating its own, and where their states lie. Freestanding; called by lstm/, gru/
// and simple_rnn/ only.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "ops/nn/lstm/parts.h"

namespace bantam::ops::rnn {

/// Units whose gates lie side by side, each gate a panel, so that any blocks of them are contiguous panels. Where the
/// units do not make up whole panels, all of them are one block.
constexpr std::int64_t block_units(std::int64_t hidden) noexcept {
  return hidden % gemm::kPanel == 0 ? gemm::kPanel : hidden;
}

/// The order of packed columns of `gates` gates of H units each: those of the first `mixed` gates block by block of
/// units, within a block gate by gate; behind them those of the other gates, one gate after the other.
struct GateColumns {
  std::int64_t hidden = 0;
  std::int64_t gates = 0;
  std::int64_t mixed = 0;

  /// Calls f(from, to, count) for columns [from, from + count) of the operand, which are columns [to, to + count) of
  /// the packed form; `to` begins a panel.
  template <typename F>
  void for_each_run(F f) const {
    const std::int64_t block = block_units(hidden);
    if (block == hidden) return f(std::int64_t{0}, std::int64_t{0}, gates * hidden);
    for (std::int64_t u = 0; u < hidden; u += block)
      for (std::int64_t g = 0; g < mixed; ++g) f(g * hidden + u, u * mixed + g * block, block);
    if (mixed < gates) f(mixed * hidden, mixed * hidden, (gates - mixed) * hidden);
  }
};

/// Packs weights of k elements a column, as gemm::pack_narrow does.
inline void pack_gates(ElementType type, const float* from, std::int64_t k, const GateColumns& columns,
                       std::byte* destination) {
  columns.for_each_run([&](std::int64_t first, std::int64_t to, std::int64_t count) {
    gemm::pack_narrow(type, from + first * k, k, count, 1, k,
                      destination + to / gemm::kPanel * gemm::narrow_panel_bytes(type, k));
  });
}

/// The inverse: writes the weights that the panels stand for.
inline void restore_gates(const gemm::NarrowPanels& packed, const GateColumns& columns, float* elements) {
  columns.for_each_run([&](std::int64_t first, std::int64_t to, std::int64_t count) {
    gemm::NarrowPanels run = packed;
    run.data += to / gemm::kPanel * gemm::narrow_panel_bytes(packed.type, packed.k);
    run.n = count;
    gemm::restore_narrow(run, 1, packed.k, elements + first * packed.k);
  });
}

/// Packs b [D,2,gates * H]: the state's bias is added to the inputs' in the first `together` gates, which are no fewer
/// than the mixed ones.
inline void pack_biases(const OpCall& call, const GateColumns& columns, std::int64_t directions, std::int64_t together,
                        std::byte* destination) noexcept {
  constexpr auto kBytes = static_cast<std::int64_t>(sizeof(float));
  // The model file may have them at any address.
  const auto* bias = static_cast<const std::byte*>(call.inputs[kB].data);
  auto* packed = reinterpret_cast<float*>(destination);
  const std::int64_t count = columns.gates * columns.hidden;
  for (std::int64_t i = 0; i < 2 * directions; ++i)
    columns.for_each_run([&](std::int64_t first, std::int64_t to, std::int64_t n) {
      std::memcpy(packed + i * count + to, bias + (i * count + first) * kBytes, static_cast<std::size_t>(n * kBytes));
    });
  for (std::int64_t d = 0; d < directions; ++d, packed += 2 * count)
    for (std::int64_t i = 0; i < together * columns.hidden; ++i) packed[i] += packed[count + i];
}

/// Units [first, last), whole blocks, which one thread works on.
struct Units {
  std::int64_t first = 0;
  std::int64_t last = 0;
  Threads threads;  ///< they share its products

  /// The panels of so many mixed gates, or of one.
  gemm::PanelRange panels(std::int64_t gates) const noexcept {
    return {first * gates / gemm::kPanel, gemm::panel_count(last * gates)};
  }
};

/// Calls f(Units) for ranges that make up all units, in parallel where the products of that many gates are worth it. f
/// must write nothing that it reads of other units.
template <typename F>
void share_units(const PartRun& run, const Extents& e, std::int64_t gates, F&& f) {
  const std::int64_t block = block_units(e.hidden);
  if (block == e.hidden) return f(Units{0, e.hidden, run.threads});
  constexpr std::int64_t kWorthwhile = 100'000;  // multiply-adds, some microseconds of work
  // So many panels are multiplied at once as hide the latency of multiply-adds.
  constexpr std::int64_t kFewestBlocks = 2;
  const std::int64_t work = std::max<std::int64_t>(gates * block * e.hidden * run.part.items(), 1);
  parallel_ranges(run.threads, e.hidden / block, std::max(kWorthwhile / work, kFewestBlocks),
                  [&](std::int64_t first, std::int64_t last) {
                    f(Units{first * block, last * block, Threads{}});
                  });
}

/// Where the states of a part's items lie, rows of H floats one after another: a step reads those that the step before
/// left in y and writes its own there. Beyond its sequence the state of an item rests in y_h, and y is zero: going
/// backward, an item thus begins at its own last step.
class StateRows {
 public:
  StateRows(const Invocation& call, const Extents& e, const Part& part)
      : call_(call), e_(e), part_(part), last_(final_rows()) {}

  /// The states before the present step.
  const float* before() const noexcept { return last_; }

  /// What step t makes them.
  float* at(std::int64_t t) const noexcept {
    return call_.output<float>(0) + ((t * e_.directions + part_.direction) * e_.batch + part_.first) * e_.hidden;
  }

  /// Calls update(i) for the part's items i that are still within their sequence at time t.
  template <typename F>
  void for_each_item(std::int64_t t, F update) const {
    for (std::int64_t i = 0; i < part_.items(); ++i)
      if (!rests(i, t)) update(i);
  }

  /// Step t has been computed.
  void end_step(std::int64_t t) {
    float* const y = at(t);
    if (!call_.has(kLengths)) {
      last_ = y;
      return;
    }
    for (std::int64_t i = 0; i < part_.items(); ++i) {
      if (rests(i, t)) {
        std::fill_n(y + i * e_.hidden, e_.hidden, 0.0F);
      } else {
        std::copy_n(y + i * e_.hidden, e_.hidden, final_rows() + i * e_.hidden);
      }
    }
  }

  /// All steps have been computed.
  void end() const {
    if (last_ != final_rows()) std::copy_n(last_, part_.items() * e_.hidden, final_rows());
  }

 private:
  bool rests(std::int64_t item, std::int64_t t) const noexcept { return is_beyond(call_, part_.first + item, t); }
  float* final_rows() const noexcept {
    return call_.output<float>(1) + part_.direction * e_.state() + part_.first * e_.hidden;
  }

  const Invocation& call_;
  const Extents& e_;
  const Part& part_;
  const float* last_;
};

}  // namespace bantam::ops::rnn
