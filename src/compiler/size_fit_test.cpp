#include "compiler/size_fit.h"

#include <gtest/gtest.h>

#include <functional>

namespace bantam::compiler {
namespace {

std::vector<Sizes> one_dimension() {
  std::vector<Sizes> sizes;
  for (std::int64_t t = 40; t >= 24; --t) sizes.push_back({t});
  sizes.push_back({3});
  return sizes;
}

std::vector<Sizes> two_dimensions() {
  std::vector<Sizes> sizes;
  for (std::int64_t t = 1; t < 7; ++t)
    for (std::int64_t u = 2; u < 9; u += 3) sizes.push_back({t, u});
  return sizes;
}

std::optional<SizeExpression> fit(const std::vector<Sizes>& sizes,
                                  const std::function<std::int64_t(const Sizes&)>& number) {
  std::vector<std::int64_t> numbers;
  for (const Sizes& s : sizes) numbers.push_back(number(s));
  return fit_sizes(numbers, sizes);
}

/// The expression that fits must hold where nobody looked.
void expect_fits(const std::vector<Sizes>& samples, const Sizes& elsewhere,
                 const std::function<std::int64_t(const Sizes&)>& number) {
  const auto expression = fit(samples, number);
  ASSERT_TRUE(expression);
  EXPECT_EQ(evaluate(*expression, elsewhere), number(elsewhere));
}

TEST(SizeFit, FindsConstantsSumsAndQuotients) {
  EXPECT_TRUE(fit(one_dimension(), [](const Sizes&) { return 7; })->is_constant());
  expect_fits(one_dimension(), {11}, [](const Sizes& s) { return s[0] + 5; });
  expect_fits(one_dimension(), {11}, [](const Sizes& s) { return 100 - 3 * s[0]; });
  expect_fits(one_dimension(), {11}, [](const Sizes& s) { return (s[0] - 3) / 4 + 64; });
  expect_fits(one_dimension(), {12}, [](const Sizes& s) { return s[0] * s[0] * 8; });
  expect_fits(two_dimensions(), {9, 20}, [](const Sizes& s) { return s[1] * 4 - 1; });
  expect_fits(two_dimensions(), {9, 20}, [](const Sizes& s) { return s[0] * s[1] * 80; });
}

TEST(SizeFit, TakesThePowerOfTwoOfDivisorsThatFit) {
  std::vector<Sizes> samples;
  for (std::int64_t t = 131; t >= 96; --t) samples.push_back({t});
  for (const std::int64_t t : {64, 42, 32}) samples.push_back({t});
  // (t - 1) / 31 gives the same at all of these.
  for (const std::int64_t t : {29, 31, 61, 93})
    expect_fits(samples, {t}, [](const Sizes& s) { return (s[0] + 3) / 32; });
}

TEST(SizeFit, DoesNotGuess) {
  EXPECT_FALSE(fit(one_dimension(), [](const Sizes& s) { return s[0] % 3; }));
  EXPECT_FALSE(fit(one_dimension(), [](const Sizes& s) { return std::max<std::int64_t>(s[0], 30); }));
  EXPECT_FALSE(fit(two_dimensions(), [](const Sizes& s) { return s[0] + s[1] * s[1] * s[1]; }));
  // A divisor larger than the samples can tell from its neighbours.
  EXPECT_FALSE(fit({{160}, {320}, {500}}, [](const Sizes& s) { return s[0] / 160; }));
  EXPECT_FALSE(fit_sizes({}, {}));
}

}  // namespace
}  // namespace bantam::compiler
