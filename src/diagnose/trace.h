// A look at every intermediate tensor of a session while it runs: what `bantam run --trace` shows.
//
// Memory: all of it is taken when the trace is made; watching allocates nothing, so that a session that is watched
// keeps its promises. A trace watches one session, belongs to the thread that invokes it, and must outlive the
// watching.
#pragma once

#include <cstdint>
#include <vector>

#include "bantam/runtime.h"

namespace bantam::diagnose {

/// What one result of a step held after the last invoke in which the step ran.
struct TensorStatistics {
  std::int64_t elements = 0;  ///< finite ones
  std::int64_t nans = 0;
  std::int64_t infinities = 0;
  double min = 0;  ///< of the finite elements; in stored units for quantised tensors
  double max = 0;
  double mean = 0;
};

/// Requires a tensor with memory.
TensorStatistics measure(const Tensor& tensor);

struct StepTrace {
  std::size_t step = 0;
  std::int64_t runs = 0;
  double microseconds = 0;                ///< sum over all runs
  std::vector<TensorStatistics> results;  ///< of the last run
};

class Trace {
 public:
  explicit Trace(const Session& session);

  /// Valid while the trace is neither moved nor destroyed.
  const Observer* observer();
  const std::vector<StepTrace>& steps() const noexcept { return steps_; }

 private:
  static StepDecision before(void* context, const Session& session, std::size_t step);
  static Status after(void* context, const Session& session, std::size_t step);

  std::vector<StepTrace> steps_;
  std::int64_t start_ = 0;  ///< nanoseconds
  Observer observer_;
};

}  // namespace bantam::diagnose
