// The shadow of a session: see checks.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bantam/runtime.h"
#include "compiler/planned_model.h"
#include "graph/testing/interpret.h"

namespace bantam::testing {

class Shadow {
 public:
  /// `planned` is the plan that the session was made from. Both must outlive the shadow.
  Shadow(const compiler::PlannedModel& planned, Session& session);

  /// Invokes the session, whose inputs are filled, under observation. Empty, or what was wrong first.
  std::string invoke();

  /// The session reported a fault in its data, and so did the reference.
  bool faulted() const { return faulted_; }

 private:
  static StepDecision before(void* context, const Session& session, std::size_t step);
  static Status after(void* context, const Session& session, std::size_t step);

  void start();
  void advance(std::size_t node);
  void check_operands(std::size_t step);
  void check_results(std::size_t step);
  void check_ports();
  /// What a sum of products, or of an operand's elements, may be wrong by.
  double rounding_of_sums(const graph::Node& node, const graph::testing::HostTensor& result) const;
  /// What a result is wrong by when operands are rounded. Some operators amplify that: a normalisation of nearly equal
  /// numbers, say.
  double rounding_of_operands(const graph::Node& node, std::size_t output);
  void evaluate(const graph::Node& node);
  const graph::Node& node_of(std::size_t step) const;
  std::string name_of(std::size_t step) const;
  void report(std::string problem) {
    if (problem_.empty()) problem_ = std::move(problem);
  }

  const compiler::PlannedModel& planned_;
  Session& session_;
  std::vector<graph::testing::HostTensor> values_;  ///< by value
  std::vector<graph::testing::HostTensor> states_;  ///< by state, what the next invoke must read
  std::size_t next_node_ = 0;
  std::size_t running_ = 0;  ///< the step that runs
  bool faulted_ = false;
  std::string problem_;
};

}  // namespace bantam::testing
