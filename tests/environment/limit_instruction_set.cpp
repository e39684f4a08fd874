// Has the test programs of the whole system follow BANTAM_CPU, as the command does.
#include <gtest/gtest.h>

#include "schedule/processor/instruction_sets.h"

namespace bantam::testing {
namespace {

class LimitedInstructionSet : public ::testing::Environment {
 public:
  void SetUp() override {
    const auto limited = schedule::limit_instruction_set_by_environment();
    ASSERT_TRUE(limited) << limited.error().message;
  }
};

[[maybe_unused]] const ::testing::Environment* const kRegistered =
    ::testing::AddGlobalTestEnvironment(new LimitedInstructionSet);

}  // namespace
}  // namespace bantam::testing
