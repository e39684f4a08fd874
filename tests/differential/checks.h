// What must hold for any graph, each as a function of a sample: empty, or what is wrong.
//
// The core of most of them is a shadow: an observer keeps what every value must hold, in memory of its own. Before a
// step runs, its operands in the arena must equal the shadow, bit for bit: so no plan, view or kernel may have written
// where it should not. After it, its results must be what the reference kernel makes of the shadow's operands, as close
// as the kernel's accuracy says; then they become the shadow. Errors of floats therefore never add up, and a graph may
// hold operators that turn a last place into a whole step.
#pragma once

#include <span>
#include <string>

#include "differential/random_graph.h"

namespace bantam::testing {

struct Check {
  const char* name = nullptr;
  std::string (*run)(const Sample& sample) = nullptr;
};

std::span<const Check> all_checks();

/// The graph with a dimension that may change, at sizes below its bound, is the graph made for that size (sizes.cpp).
std::string smaller_sizes(const Sample& sample);

/// Runs all checks: "name: what is wrong", or empty.
std::string first_failure(const Sample& sample);

}  // namespace bantam::testing
