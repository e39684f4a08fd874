#include "schedule/processor/roof.h"

#include <gtest/gtest.h>

#include "ops/nn/gemm/half_products.h"
#include "schedule/processor/instruction_sets.h"

namespace bantam::schedule {
namespace {

TEST(Roof, IsKnownForEveryInstructionSetThatHasVectors) {
  for (const InstructionSet& set : instruction_sets()) {
    if (!set.available) continue;
    ASSERT_TRUE(limit_instruction_set(set.name));
    const Roof roof = measure_roof();
    const bool vectors = set.name != "plain";
    EXPECT_EQ(roof.float_macs > 0, vectors) << set.name;
    EXPECT_EQ(roof.integer_macs > 0, vectors) << set.name;
    EXPECT_EQ(roof.half_macs > 0, ops::gemm::half_products()) << set.name;
  }
  ASSERT_TRUE(limit_instruction_set("best"));
}

}  // namespace
}  // namespace bantam::schedule
