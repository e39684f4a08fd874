// Random graphs over all operators, compiled and run in every way there is: see checks.h.
//
//   differential_test                          a few hundred graphs from a fixed seed, as ctest runs it
//   differential_test --seed 7 --seconds 3600  other graphs, for that long; the first failure ends it
//   differential_test --graph 7000123          the graph of that seed
//
// The graph's seed also chooses the instruction set, of those that this processor has, unless BANTAM_CPU limits it.
// A failure prints the seed, what is wrong, and the smallest graph found that fails in the same check.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/testing/sanitizers.h"
#include "differential/checks.h"
#include "differential/random_graph.h"
#include "schedule/processor/instruction_sets.h"

namespace bantam::testing {
namespace {

struct Options {
  std::uint64_t seed = 1;
  double seconds = 0;       ///< 0: a fixed number of graphs
  std::uint64_t graph = 0;  ///< not 0: this graph alone
};

Options& options() {
  static Options instance;
  return instance;
}

constexpr int kGraphs = kSanitized ? 10 : 250;

using OperatorCounts = std::map<std::string, int>;

void add(const Sample& sample, OperatorCounts& counts) {
  for (const auto& [name, count] : sample.operators) counts[name] += count;
}

/// Shrinks by the check that failed, so that another fault does not take its place.
void report(std::uint64_t seed, const Sample& sample, const Check& check, const std::string& problem) {
  const Sample small = shrink(sample, check.run);
  ADD_FAILURE() << "graph seed " << seed << ", check '" << check.name << "': " << problem
                << "\nsmallest graph that fails: " << check.run(small) << '\n'
                << describe(small);
}

/// The instruction set that kernels run with from now on.
std::string choose_instruction_set(std::uint64_t seed) {
  static const std::vector<schedule::InstructionSet> sets = [] {
    auto usable = schedule::instruction_sets();
    usable.erase(usable.begin(), std::ranges::find(usable, true, &schedule::InstructionSet::used));
    std::erase_if(usable, [](const schedule::InstructionSet& set) { return !set.available; });
    return usable;
  }();
  const std::string name(sets[seed % sets.size()].name);
  const auto limited = schedule::limit_instruction_set(name);
  EXPECT_TRUE(limited) << limited.error().message;
  return name;
}

bool holds(std::uint64_t seed, OperatorCounts& counts) {
  SCOPED_TRACE("instruction set " + choose_instruction_set(seed));
  const Sample sample = random_sample(seed);
  const auto sound = graph::verify(sample.graph);
  if (!sound) {
    ADD_FAILURE() << "graph seed " << seed << ": " << sound.error().message;
    return false;
  }
  add(sample, counts);
  for (const Check& check : all_checks())
    if (const std::string problem = check.run(sample); !problem.empty()) {
      report(seed, sample, check, problem);
      return false;
    }
  return true;
}

TEST(Differential, EveryWayToRunAGraphSaysTheSame) {
  OperatorCounts counts;
  const auto start = std::chrono::steady_clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
  std::uint64_t graphs = 0;
  const auto go_on = [&] { return options().seconds > 0 ? elapsed() < options().seconds : graphs < kGraphs; };
  if (options().graph != 0) {
    (void)holds(options().graph, counts);
    return;
  }
  for (std::uint64_t seed = options().seed * 1'000'000; go_on() && !HasFailure(); ++seed, ++graphs)
    (void)holds(seed, counts);
  int nodes = 0;
  for (const auto& [name, count] : counts) nodes += count;
  std::cout << graphs << " graphs with " << nodes << " nodes of " << counts.size() << " operators\n";
}

TEST(Differential, GraphsHaveEveryOperator) {
  OperatorCounts counts;
  for (std::uint64_t seed = 1; seed <= 3000 && counts.size() < ops::all_ops().size(); ++seed)
    add(random_sample(seed), counts);
  for (const ops::OpDef* op : ops::all_ops())
    EXPECT_GT(counts[std::string(op->name)], 0)
        << op->name << " is in no graph; give it a row in src/ops/testing/samplers_*.cpp";
}

}  // namespace
}  // namespace bantam::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view name = argv[i];
    if (name == "--seed") bantam::testing::options().seed = std::strtoull(argv[i + 1], nullptr, 10);
    if (name == "--graph") bantam::testing::options().graph = std::strtoull(argv[i + 1], nullptr, 10);
    if (name == "--seconds") bantam::testing::options().seconds = std::strtod(argv[i + 1], nullptr);
  }
  return RUN_ALL_TESTS();
}
