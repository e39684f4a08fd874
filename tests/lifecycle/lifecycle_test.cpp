// Open, place, run and close, twice, for every model: what the sanitizer builds and scripts/valgrind.sh watch. The
// assertions are few; the tools' verdict is the test.
#include <gtest/gtest.h>

#include <cstring>

#include "bantam/open_fleet.h"
#include "support/models.h"

namespace bantam::testing {
namespace {

void clear_inputs(Session& session) {
  for (std::size_t i = 0; i < session.input_count(); ++i)
    std::memset(session.input(i).data, 0, static_cast<std::size_t>(session.input_info(i).bytes));
}

class Lifecycle : public ::testing::TestWithParam<TestModel> {};

TEST_P(Lifecycle, OpensRunsAndClosesTwiceWithEqualResults) {
  std::vector<std::byte> first;
  for (int round = 0; round < 2; ++round) {
    auto fleet = OpenFleet::compile({.models = {GetParam().spec()}});
    ASSERT_TRUE(fleet) << fleet.error().message;
    Session& session = fleet->session(0);
    std::vector<std::byte> results;
    for (int invoke = 0; invoke < 2; ++invoke) {
      clear_inputs(session);
      ASSERT_TRUE(session.invoke().ok());
      for (std::size_t o = 0; o < session.output_count(); ++o) {
        const auto* bytes = session.output(o).as<std::byte>();
        results.insert(results.end(), bytes, bytes + session.output_info(o).bytes);
      }
    }
    if (round == 0)
      first = std::move(results);
    else
      EXPECT_EQ(first, results);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Lifecycle, ::testing::ValuesIn(sampled(all_models())), test_name);

TEST(Lifecycle, BundledFleetOpensAndClosesTwice) {
  for (int round = 0; round < 2; ++round) {
    auto fleet = OpenFleet::compile(bundled_fleet(), {.threads = 2});
    ASSERT_TRUE(fleet) << fleet.error().message;
    for (std::size_t i = 0; i < fleet->size(); ++i) {
      clear_inputs(fleet->session(i));
      ASSERT_TRUE(fleet->session(i).invoke().ok());
    }
  }
}

}  // namespace
}  // namespace bantam::testing
