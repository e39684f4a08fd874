// How many instances of each family (testing/instances.h) the search solves within ten thousand million elementary
// steps, and the median time of one. With BANTAM_INSTANCES=FOLDER each instance is also written there as CSV, for
// `bantam plan --problem` and for other planners; the capacity is 1048576 bytes.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <vector>

#include "plan/problem_csv.h"
#include "plan/solve.h"
#include "plan/testing/instances.h"

namespace bantam::plan {
namespace {

constexpr std::int64_t kStepBudget = 10'000'000'000;
constexpr std::uint64_t kInstances = 4;

/// A seed of its own for each instance, so that families and sizes share no cuts.
std::uint64_t seed_of(std::size_t family, int buffers, std::uint64_t number) {
  return 1000 * number + static_cast<std::uint64_t>(buffers) + 97 + family;
}

/// args: index of the family, buffers
void solve_family(benchmark::State& state) {
  const auto index = static_cast<std::size_t>(state.range(0));
  testing::CutFamily family = testing::cut_families()[index];
  family.cut.buffers = static_cast<int>(state.range(1));
  state.SetLabel(std::string(family.name));
  const char* const folder = std::getenv("BANTAM_INSTANCES");
  std::vector<double> seconds;
  int solved = 0;
  for (auto _ : state) {
    for (std::uint64_t number = 0; number < kInstances; ++number) {
      const Problem problem = testing::cut_square(seed_of(index, family.cut.buffers, number), family.cut);
      if (folder != nullptr)
        std::ofstream(fmt::format("{}/{}_{}_{}.csv", folder, index, family.cut.buffers, number))
            << format_problem_csv(problem);
      const std::clock_t start = std::clock();
      const auto result = solve(problem, {.step_budget = kStepBudget});
      seconds.push_back(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
      solved += result && result->solution.peak <= *problem.capacity ? 1 : 0;
    }
  }
  std::ranges::sort(seconds);
  state.counters["solved"] = solved;
  state.counters["of"] = static_cast<double>(seconds.size());
  state.counters["median_s"] = seconds[seconds.size() / 2];
}

BENCHMARK(solve_family)
    ->ArgsProduct({benchmark::CreateDenseRange(0, 9, 1), {200, 300, 450}})
    ->Iterations(1)
    ->Unit(benchmark::kSecond);

}  // namespace
}  // namespace bantam::plan
