#include "passes/min_cut.h"

#include <gtest/gtest.h>

#include <array>
#include <random>

namespace bantam::passes {
namespace {

constexpr std::size_t kVariables = 8;

/// A random cost function, to be minimised both by the cut and by trying everything.
struct Function {
  std::array<MinCut::Cost, kVariables> of_0{};
  std::array<MinCut::Cost, kVariables> of_1{};
  std::array<std::array<MinCut::Cost, kVariables>, kVariables> of_01{};

  MinCut::Cost operator()(unsigned ones) const {
    MinCut::Cost sum = 0;
    for (std::size_t u = 0; u < kVariables; ++u) {
      const bool one = ((ones >> u) & 1U) != 0;
      sum += one ? of_1[u] : of_0[u];
      for (std::size_t v = 0; v < kVariables; ++v)
        if (!one && ((ones >> v) & 1U) != 0) sum += of_01[u][v];
    }
    return sum;
  }
};

TEST(MinCut, FindsTheMinimumOfRandomFunctions) {
  for (unsigned seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    std::uniform_int_distribution<MinCut::Cost> cost(0, 9);
    Function function;
    MinCut cut;
    std::array<int, kVariables> variables{};
    for (int& v : variables) v = cut.add_variable();
    for (std::size_t u = 0; u < kVariables; ++u) {
      cut.cost_of_0(variables[u], function.of_0[u] = cost(random));
      cut.cost_of_1(variables[u], function.of_1[u] = cost(random));
      for (std::size_t v = 0; v < kVariables; ++v)
        if (u != v && cost(random) < 4) cut.cost_of_01(variables[u], variables[v], function.of_01[u][v] = cost(random));
    }
    const std::vector<bool> solution = cut.solve();
    unsigned ones = 0;
    for (std::size_t u = 0; u < kVariables; ++u)
      if (solution[static_cast<std::size_t>(variables[u])]) ones |= 1U << u;
    MinCut::Cost least = MinCut::kInfinite;
    for (unsigned other = 0; other < (1U << kVariables); ++other) least = std::min(least, function(other));
    EXPECT_EQ(function(ones), least);
    if (function(0) == least) {
      EXPECT_EQ(ones, 0u) << "of several minima the one with the fewest ones wins";
    }
  }
}

TEST(MinCut, InfiniteCostsForbid) {
  MinCut cut;
  const int a = cut.add_variable();
  const int b = cut.add_variable();
  cut.cost_of_0(a, 5);                      // a wants to be 1
  cut.cost_of_01(b, a, MinCut::kInfinite);  // then b must be 1
  cut.cost_of_1(b, 3);
  const auto solution = cut.solve();
  EXPECT_TRUE(solution[static_cast<std::size_t>(a)]);
  EXPECT_TRUE(solution[static_cast<std::size_t>(b)]);
}

TEST(MinCut, SolvesLongChainsWithoutRecursion) {
  MinCut cut;
  int previous = cut.add_variable();
  cut.cost_of_0(previous, 7);
  for (int i = 0; i < 100000; ++i) {
    const int next = cut.add_variable();
    cut.cost_of_01(next, previous, 100);
    previous = next;
  }
  cut.cost_of_1(previous, 8);
  const auto solution = cut.solve();
  EXPECT_FALSE(solution[2]);
}

}  // namespace
}  // namespace bantam::passes
