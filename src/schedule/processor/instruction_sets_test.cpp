#include "schedule/processor/instruction_sets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "hwy/highway.h"
#include "ops/nn/matmul/matmul.h"
#include "ops/testing/harness.h"

namespace bantam::schedule {
namespace {

using ::testing::HasSubstr;

std::string used() {
  const auto sets = instruction_sets();
  const auto found = std::ranges::find(sets, true, &InstructionSet::used);
  return found == sets.end() ? "" : std::string(found->name);
}

class InstructionSets : public ::testing::Test {
 protected:
  void TearDown() override {
    unsetenv("BANTAM_CPU");
    EXPECT_TRUE(limit_instruction_set("best"));
  }
};

TEST_F(InstructionSets, BestOneIsUsedUnlessItIsLimited) {
  const auto sets = instruction_sets();
  const auto best = std::ranges::find(sets, true, &InstructionSet::available);
  ASSERT_NE(best, sets.end());
  EXPECT_EQ(used(), best->name);
  for (const InstructionSet& set : sets) {
    if (!set.available) continue;
    ASSERT_TRUE(limit_instruction_set(set.name));
    EXPECT_EQ(used(), set.name);
  }
  ASSERT_TRUE(limit_instruction_set("best"));
  EXPECT_EQ(used(), best->name);
}

TEST_F(InstructionSets, OnlyProcessorsThatHaveWideVectorsHalveThem) {
  const auto sets = instruction_sets();
  const bool wide = std::ranges::any_of(
      sets, [](const InstructionSet& set) { return set.available && set.name.starts_with("avx512"); });
  EXPECT_LE(halves_wide_vectors(), wide);
  EXPECT_LE(halves_wide_vectors(), is_amd());
}

#if BANTAM_SIMD && HWY_ARCH_X86
TEST_F(InstructionSets, AskingWhichIsUsedLeavesKernelsWithIt) {
  const auto dispatched = [](std::string_view name) {
    EXPECT_TRUE(limit_instruction_set(name));
    EXPECT_FALSE(instruction_sets().empty());
    return hwy::GetChosenTarget().GetIndex();
  };
  const auto sets = instruction_sets();
  const auto best = std::ranges::find(sets, true, &InstructionSet::available);
  if (best->name == sets.back().name) GTEST_SKIP() << "this processor has one only";
  EXPECT_NE(dispatched(sets.back().name), dispatched(best->name));
}
#endif

TEST_F(InstructionSets, EnvironmentLimitsThem) {
  const std::string last(instruction_sets().back().name);
  setenv("BANTAM_CPU", last.c_str(), 1);
  ASSERT_TRUE(limit_instruction_set_by_environment());
  EXPECT_EQ(used(), last);
  setenv("BANTAM_CPU", "", 1);
  EXPECT_TRUE(limit_instruction_set_by_environment());
}

TEST_F(InstructionSets, UnknownOneIsRefusedWithThoseThatThereAre) {
  setenv("BANTAM_CPU", "mmx", 1);
  const auto limited = limit_instruction_set_by_environment();
  ASSERT_FALSE(limited);
  EXPECT_THAT(limited.error().message, HasSubstr("BANTAM_CPU"));
  EXPECT_THAT(limited.error().message, HasSubstr("'mmx'"));
  EXPECT_THAT(limited.error().remedy, HasSubstr(std::string(instruction_sets().back().name)));
}

TEST_F(InstructionSets, KernelsAgreeWithTheReferenceWithEach) {
  using namespace ops::testing;  // NOLINT: the harness is the vocabulary of operator tests
  Random random(3);
  const OpCase op_case = make_case(
      ops::kMatmul, ops::MatmulParams{},
      {random_tensor(ElementType::kF32, {5, 40}, random), constant(random_tensor(ElementType::kF32, {40, 7}, random))});
  const Outcome expected = run_reference(op_case);
  const auto fastest = std::ranges::find_if(
      ops::kMatmul.variants, [&](const ops::KernelVariant& variant) { return variant_supports(op_case, variant); });
  ASSERT_NE(fastest, ops::kMatmul.variants.end());
  for (const InstructionSet& set : instruction_sets()) {
    if (!set.available) continue;
    ASSERT_TRUE(limit_instruction_set(set.name));
    const Outcome y = run_variant(op_case, *fastest);
    EXPECT_EQ(compare(y.outputs[0], expected.outputs[0], {ops::Accuracy::Kind::kRelative, 1e-5F}), "") << set.name;
  }
}

}  // namespace
}  // namespace bantam::schedule
