// One operator application made ready to run many times, for benchmarks: the fastest variant that supports the case (or
// a named one), operands packed, outputs and scratch in place. Test code only: allocates, aborts on misuse.
#pragma once

#include <string_view>
#include <vector>

#include "ops/testing/harness.h"

namespace bantam::ops::testing {

class PreparedRun {
 public:
  /// An empty `variant` takes the first one that supports the case.
  explicit PreparedRun(const OpCase& op_case, std::string_view variant = {});

  void run() const;

  /// Multiply-accumulates of one run.
  std::int64_t work() const noexcept { return work_; }
  std::string_view variant() const noexcept { return variant_->name; }

 private:
  OpCase case_;
  const KernelVariant* variant_ = nullptr;
  std::vector<TensorDesc> output_descs_;
  std::vector<GuardedMemory> packed_;
  std::vector<TestTensor> outputs_;
  std::vector<Tensor> inputs_;
  std::vector<Tensor> results_;
  GuardedMemory scratch_;
  std::int64_t work_ = 0;
};

}  // namespace bantam::ops::testing
