// Every operator as the samplers draw it, whatever its own tests try: all variants, instruction sets, threads, strides
// and in-place forms against the reference.
#include "ops/testing/sampling.h"

#include <gtest/gtest.h>

namespace bantam::ops::testing {
namespace {

class EveryOperator : public ::testing::TestWithParam<const OpDef*> {};

TEST_P(EveryOperator, CanBeDrawn) {
  const OpDef& op = *GetParam();
  int drawn = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Random random(seed);
    Sampling sampling(random);
    drawn += sample(op, sampling) ? 1 : 0;
  }
  EXPECT_GE(drawn, 16) << op.name
                       << " is hardly ever drawn by its fields; give it a row in src/ops/testing/samplers_*.cpp";
}

TEST_P(EveryOperator, GivesWhatItsReferenceGives) {
  const OpDef& op = *GetParam();
  expect_variants_match_reference(
      [&](Random& random) {
        Sampling sampling(random);
        for (int i = 0; i < 20 && !sample(op, sampling); ++i) continue;
        return to_case(op, sampling);
      },
      {.cases = 20});
}

INSTANTIATE_TEST_SUITE_P(Sampling, EveryOperator, ::testing::ValuesIn(all_ops().begin(), all_ops().end()),
                         [](const auto& suite) { return std::string(suite.param->name); });

}  // namespace
}  // namespace bantam::ops::testing
