// The ordering problem: in which order steps run decides which buffers are alive together, and so how small a plan can
// be. Knows steps and buffers, no operators: compiler/order_costs.h states a graph in these terms.
//
// A buffer is alive from the first step that writes it (or from the beginning) to the last step that reads or writes
// it (or to the end). While a step runs, everything alive before it, what it writes and its scratch are there at once;
// only where a step may write a result over an operand that nobody reads later, the smaller of the two counts once.
// `search_order` looks for the order whose largest step is smallest: a beam first, then a search of all sets of
// finished steps, smallest peak first, which proves the optimum or, when its effort is spent, a bound. Deterministic,
// except where a deadline cuts it off. Memory is bounded by `kMaxOrderBytes`. Thread rule: pure functions.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

namespace bantam::plan {

/// The tables of finished steps take no more than this.
inline constexpr std::int64_t kMaxOrderBytes = std::int64_t{256} << 20;

struct OrderBuffer {
  std::int64_t bytes = 0;
  bool from_start = false;  ///< alive before the first step
  bool to_end = false;      ///< alive after the last step
};

struct OrderStep {
  std::vector<std::int32_t> after;  ///< steps that must have run; any number of times each
  std::vector<std::int32_t> reads;  ///< buffers
  std::vector<std::int32_t> writes;
  std::int64_t scratch = 0;
  struct Overwrite {
    std::int32_t written = 0;
    std::int32_t read = 0;
    std::int64_t saves = -1;  ///< bytes that count once; -1: the smaller of the two buffers
  };
  std::vector<Overwrite> overwrites;  ///< permitted ones
};

struct OrderProblem {
  std::vector<OrderBuffer> buffers;
  std::vector<OrderStep> steps;  ///< so that 0, 1, 2, ... is a possible order
};

struct OrderOptions {
  std::int64_t step_budget = 60'000'000;  ///< elementary steps, about a nanosecond each
  std::optional<std::chrono::steady_clock::time_point> deadline = {};
};

struct OrderResult {
  std::vector<std::int32_t> order;
  std::int64_t peak = 0;   ///< of the order found
  std::int64_t bound = 0;  ///< no order has a smaller peak
  std::int64_t used = 0;   ///< elementary steps

  bool is_optimal() const { return peak == bound; }
};

/// The peak of an order, which must be a permutation that respects `after`.
std::int64_t peak_of_order(const OrderProblem& problem, const std::vector<std::int32_t>& order);

/// The largest sum that must be alive at some step, whatever the order.
std::int64_t order_bound(const OrderProblem& problem);

/// `known`: an order to begin with, the steps as they stand when empty.
OrderResult search_order(const OrderProblem& problem, const OrderOptions& options = {},
                         std::vector<std::int32_t> known = {});

}  // namespace bantam::plan
