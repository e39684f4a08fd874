// After placing, nothing calls the C or C++ allocator, on any thread, on any path.
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>

#include "compiler/testing/compile_text.h"
#include "compiler/testing/placed_fleet.h"
#include "diagnose/allocations/allocation_counter.h"
#include "support/models.h"

namespace bantam::testing {
namespace {

using compiler::testing::compile_text;
using compiler::testing::fill_inputs;
using compiler::testing::place_fleet;
using compiler::testing::place_package;

/// Calls of the allocator, in both directions.
std::uint64_t allocator_calls() { return diagnose::allocation_count() + diagnose::deallocation_count(); }

class Allocations : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!diagnose::counts_allocations()) GTEST_SKIP() << "sanitizers replace the allocator: nothing is counted";
  }
};

TEST_F(Allocations, AreCounted) {
  const std::uint64_t before = allocator_calls();
  // Through a volatile pointer, lest the compiler leaves both calls out.
  int* volatile memory = new int(1);
  delete memory;
  EXPECT_EQ(allocator_calls(), before + 2);
}

TEST_F(Allocations, AreCountedInBytesUntilTheyAreGivenBack) {
  const std::int64_t before = diagnose::live_bytes();
  void* volatile memory = std::malloc(1000);
  EXPECT_GE(diagnose::live_bytes(), before + 1000);
  EXPECT_LT(diagnose::live_bytes(), before + 1100);
  memory = std::realloc(memory, 5000);
  EXPECT_GE(diagnose::live_bytes(), before + 5000);
  EXPECT_LT(diagnose::live_bytes(), before + 5100);
  std::free(memory);
  EXPECT_EQ(diagnose::live_bytes(), before);
}

class ModelAllocations : public Allocations, public ::testing::WithParamInterface<std::tuple<TestModel, int>> {};

TEST_P(ModelAllocations, NoneAfterPlacing) {
  const auto& [model, threads] = GetParam();
  auto placed = place_fleet({.models = {model.spec()}}, {.threads = threads});
  ASSERT_TRUE(placed);
  Session& session = *placed->fleet->session(0);
  std::array<Status, 4> statuses;
  // Nothing of GoogleTest may run between the two counts. An invoke may overwrite its inputs: they are filled each
  // time.
  const auto invoke = [&] {
    fill_inputs(session, 1);
    return session.invoke();
  };
  const std::uint64_t before = allocator_calls();
  for (Status& status : statuses) status = invoke();
  session.reset();
  const Status again = invoke();
  const Status unknown_port = session.bind_input(99, nullptr, 0);
  const Status null_memory = session.bind_output(0, nullptr, 1 << 20);
  const Session* absent = placed->fleet->find("no such session");
  const int no_port = session.find_input("no such port");
  const std::uint64_t after = allocator_calls();
  EXPECT_EQ(after, before);
  for (const Status& status : statuses) EXPECT_TRUE(status.ok()) << status.message;
  EXPECT_TRUE(again.ok());
  EXPECT_EQ(unknown_port.code, StatusCode::kNotFound);
  EXPECT_EQ(null_memory.code, StatusCode::kInvalidArgument);
  EXPECT_EQ(absent, nullptr);
  EXPECT_EQ(no_port, -1);
}

std::string name_with_threads(const ::testing::TestParamInfo<std::tuple<TestModel, int>>& info) {
  return test_name({std::get<0>(info.param), info.index}) + "_threads_" + std::to_string(std::get<1>(info.param));
}

INSTANTIATE_TEST_SUITE_P(Bundled, ModelAllocations,
                         ::testing::Combine(::testing::ValuesIn(quick_models()), ::testing::Values(1, 2)),
                         name_with_threads);
INSTANTIATE_TEST_SUITE_P(Shared, ModelAllocations,
                         ::testing::Combine(::testing::ValuesIn(sampled(shared_models())), ::testing::Values(1, 2)),
                         name_with_threads);

TEST_F(Allocations, NoneWhenPlacingFails) {
  auto placed = place_fleet(bundled_fleet());
  ASSERT_TRUE(placed);
  Fleet* fleet = nullptr;
  const std::uint64_t before = allocator_calls();
  const Status small = Fleet::place(placed->package, placed->bytes().first(100), &fleet);
  const Status misaligned = Fleet::place(placed->package, placed->bytes().subspan(1), &fleet);
  const Status placed_again = Fleet::place(placed->package, placed->bytes(), &fleet);
  const std::uint64_t after = allocator_calls();
  EXPECT_EQ(after, before);
  EXPECT_EQ(small.code, StatusCode::kArenaTooSmall);
  EXPECT_EQ(misaligned.code, StatusCode::kMisaligned);
  EXPECT_TRUE(placed_again.ok());
}

TEST_F(Allocations, NoneWhenOpeningAPackage) {
  auto placed = place_fleet(bundled_fleet());
  ASSERT_TRUE(placed);
  Package package;
  const auto bytes = placed->compiled->package();
  const std::uint64_t before = allocator_calls();
  const Status opened = Package::open(bytes, &package);
  const Status truncated = Package::open(bytes.first(bytes.size() - 1), &package);
  const std::uint64_t after = allocator_calls();
  EXPECT_EQ(after, before);
  EXPECT_TRUE(opened.ok());
  EXPECT_EQ(truncated.code, StatusCode::kInvalidPackage);
}

TEST_F(Allocations, NoneWhenDataMakesAnInvokeFail) {
  for (const int threads : {1, 2}) {
    const auto text = compile_text(R"(graph "look-up" {
      %0 "table" = input : f32[4,8]
      %1 "at" = input : i64[3]
      %2 = gather(%0, %1)
      %3 = unary(%2) {function="exp"}
      output "rows" %3
    })",
                                   {.threads = threads});
    ASSERT_TRUE(text) << text.error().message;
    auto placed = place_package(text->package.bytes(), threads);
    ASSERT_TRUE(placed);
    Session& session = *placed->fleet->session(0);
    fill_inputs(session, 1);
    session.input(1).as<std::int64_t>()[2] = 4;
    const std::uint64_t before = allocator_calls();
    const Status failed = session.invoke();
    const std::uint64_t after = allocator_calls();
    EXPECT_EQ(after, before);
    EXPECT_EQ(failed.code, StatusCode::kOutOfRange) << failed.message;
    EXPECT_EQ(failed.index, 0);
    // The session recovers: the fault was the data's.
    fill_inputs(session, 1);
    session.input(1).as<std::int64_t>()[2] = 3;
    EXPECT_TRUE(session.invoke().ok());
    EXPECT_TRUE(placed->arena.intact());
  }
}

}  // namespace
}  // namespace bantam::testing
