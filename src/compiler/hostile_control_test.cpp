// Packages whose jumps, limits and operands of control flow are forged: opening one is refused, or what runs ends and
// stays within its memory.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "compiler/emit.h"
#include "compiler/testing/compile_text.h"
#include "compiler/testing/placed_fleet.h"
#include "package/control_flow.h"

namespace bantam::compiler {
namespace {

using format::ControlParams;
using format::PackageData;
using format::StepControl;

/// A branch in a loop in a branch, and a loop after it.
constexpr const char* kModel = R"(graph "nested" {
  %c "c" = input : bool[]
  %n "n" = input : i64[]
  %x "x" = input : f32[8]
  %r = if(%c, %n, %x) : f32[8]
    body "then" {
      %n = input : i64[]
      %x = input : f32[8]
      %r = loop(%n, _, %x) {limit=5} : f32[8]
        body "body" {
          %i = input : i64[]
          %v = input : f32[8]
          %two = const : i64[] {2}
          %go = const : bool[] {1}
          %early = binary(%i, %two) {function="less"}
          %w = if(%early, %v) : f32[8]
            body "then" {
              %v = input : f32[8]
              %a = unary(%v) {function="neg"}
              output "w" %a
            }
            body "else" {
              %v = input : f32[8]
              %a = binary(%v, %v)
              output "w" %a
            }
          output "go" %go
          output "v" %w
        }
      output "r" %r
    }
    body "else" {
      %n = input : i64[]
      %x = input : f32[8]
      output "r" %x
    }
  %y = loop(_, %c, %r) {limit=7} : f32[8]
    body "body" {
      %i = input : i64[]
      %v = input : f32[8]
      %three = const : i64[] {3}
      %go = binary(%i, %three) {function="less"}
      %w = binary(%v, %v)
      output "go" %go
      output "v" %w
    }
  output "y" %y
})";

format::Step changed(const format::Step& s, std::uint32_t first_param, std::uint16_t kernel) {
  return {s.first_operand(), first_param, s.scratch_offset(), s.scratch_bytes(), kernel, s.inputs(), s.outputs()};
}

class HostileControl : public ::testing::Test {
 protected:
  void SetUp() override {
    auto planned = plan_model(testing::parse(kModel), {});
    ASSERT_TRUE(planned) << planned.error().message;
    planned_ = std::move(*planned);
    data_ = fresh();
    for (std::size_t s = 0; s < model().steps.size(); ++s)
      if (model().steps[s].kernel() == format::kControl) control_.push_back(s);
  }

  PackageData fresh() const {
    PackageData data;
    EXPECT_TRUE(emit_model(planned_, "nested", data));
    data.fleet.emplace_back("nested", std::uint16_t{0});
    // Equal parameters are shared: give every control step its own, so that one can be forged.
    format::ModelData& model = data.models.front();
    for (format::Step& step : model.steps) {
      if (step.kernel() != format::kControl) continue;
      const auto first = static_cast<std::uint32_t>(model.params.size());
      for (std::uint32_t w = 0; w < format::kControlWords; ++w) {
        const std::uint32_t word = model.params[step.first_param() + w];
        model.params.push_back(word);
      }
      step = changed(step, first, step.kernel());
    }
    return data;
  }

  format::ModelData& model() { return data_.models.front(); }
  ControlParams& params(std::size_t step) {
    return *reinterpret_cast<ControlParams*>(model().params.data() + model().steps[step].first_param());
  }
  std::size_t find(StepControl kind, std::size_t nth = 0) {
    for (const std::size_t s : control_)
      if (params(s).kind == kind && nth-- == 0) return s;
    ADD_FAILURE() << "no such step";
    return 0;
  }

  /// Opens what the data say; what opens must run within its memory, and end.
  bool survives() {
    const format::PackageBytes bytes = format::write_package(data_);
    Package package;
    if (!Package::open(bytes.bytes(), &package).ok()) return false;
    auto placed = testing::place_package(bytes.bytes());
    EXPECT_TRUE(placed);
    if (!placed) return false;
    for (const std::uint32_t seed : {1U, 2U, 3U}) {
      testing::fill_inputs(*placed->fleet->session(0), seed);
      static_cast<void>(placed->fleet->session(0)->invoke());
    }
    EXPECT_TRUE(placed->arena.intact());
    return true;
  }

  void expect_refused(const char* message) {
    const format::PackageBytes bytes = format::write_package(data_);
    Package package;
    const Status status = Package::open(bytes.bytes(), &package);
    EXPECT_EQ(status.code, StatusCode::kInvalidPackage);
    EXPECT_STREQ(status.message, message);
  }

  PlannedModel planned_;
  PackageData data_;
  std::vector<std::size_t> control_;
};

TEST_F(HostileControl, TheGoodOneOpensAndRuns) {
  EXPECT_EQ(control_.size(), 8U);
  EXPECT_TRUE(survives());
}

TEST_F(HostileControl, BranchBackwardsIsRefused) {
  params(find(StepControl::kBranch)).target = 0;
  expect_refused("a branch leaves what it is in");
}

TEST_F(HostileControl, BranchIntoALoopIsRefused) {
  params(find(StepControl::kBranch)).target = static_cast<std::uint32_t>(find(StepControl::kLoopEnd, 1));
  EXPECT_FALSE(survives());
}

TEST_F(HostileControl, JumpBeyondTheStepsIsRefused) {
  params(find(StepControl::kJump)).target = static_cast<std::uint32_t>(model().steps.size()) + 1;
  EXPECT_FALSE(survives());
}

TEST_F(HostileControl, JumpOutOfALoopIsRefused) {
  params(find(StepControl::kJump)).target = static_cast<std::uint32_t>(model().steps.size());
  expect_refused("a jump leaves what it is in");
}

TEST_F(HostileControl, LoopWithoutALimitIsRefused) {
  for (const std::size_t s : {find(StepControl::kLoopBegin), find(StepControl::kLoopEnd)}) params(s).limit = 0;
  expect_refused("a loop's limit");
}

TEST_F(HostileControl, LoopsThatWouldRunForeverAreRefused) {
  for (const std::size_t s : {find(StepControl::kLoopBegin), find(StepControl::kLoopEnd)}) params(s).limit = 0x7fffffff;
  expect_refused("the limits of the loops allow too many steps");
}

TEST_F(HostileControl, LoopEndAloneIsRefused) {
  params(find(StepControl::kLoopBegin)).kind = StepControl::kJump;
  EXPECT_FALSE(survives());
}

TEST_F(HostileControl, ConditionOfAnotherTypeIsRefused) {
  const format::Step& step = model().steps[find(StepControl::kBranch)];
  for (std::uint32_t v = 0; v < model().values.size(); ++v)
    if (format::desc_of(model().values[v])->type == ElementType::kF32) model().operands[step.first_operand()] = v;
  expect_refused("an operand of a control step is not one element of its type");
}

TEST_F(HostileControl, IterationInTheWeightsIsRefused) {
  const format::Step& step = model().steps[find(StepControl::kLoopBegin)];
  for (std::uint32_t v = 0; v < model().values.size(); ++v)
    if (model().values[v].slot() == format::kWeights && format::desc_of(model().values[v])->type == ElementType::kI64)
      model().operands[step.first_operand() + 2] = v;
  expect_refused("a step writes to read-only memory");
}

TEST_F(HostileControl, AnyWordMayBeForged) {
  const auto count = static_cast<std::uint32_t>(model().steps.size());
  int opened = 0;
  for (const std::size_t s : control_) {
    for (std::uint32_t w = 0; w < format::kControlWords; ++w) {
      const std::uint32_t good = model().params[model().steps[s].first_param() + w];
      std::vector<std::uint32_t> words = {0xffffffff, 0x80000000, 0x7fffffff, good + 1, good - 1};
      for (std::uint32_t t = 0; t <= count + 1; ++t) words.push_back(t);
      for (const std::uint32_t word : words) {
        model().params[model().steps[s].first_param() + w] = word;
        SCOPED_TRACE(fmt::format("step {} word {} is {}", s, w, word));
        opened += survives() ? 1 : 0;
      }
      model().params[model().steps[s].first_param() + w] = good;
    }
  }
  EXPECT_GT(opened, 0) << "some words change nothing that matters";
}

TEST_F(HostileControl, SeveralThingsMayBeForgedAtOnce) {
  const auto seed = static_cast<unsigned>(::testing::UnitTest::GetInstance()->random_seed());
  std::mt19937 random(seed);
  SCOPED_TRACE(fmt::format("rerun with --gtest_random_seed={}", seed));
  const auto count = static_cast<std::uint32_t>(model().steps.size());
  for (int round = 0; round < 2000 && !HasFailure(); ++round) {
    data_ = fresh();
    for (auto forged = 1 + random() % 4; forged > 0; --forged) {
      format::Step& step = model().steps[control_[random() % control_.size()]];
      switch (random() % 5) {
        case 0:
          model().params[step.first_param() + random() % format::kControlWords] =
              static_cast<std::uint32_t>(random() % (count + 2));
          break;
        case 1: step = changed(step, step.first_param(), static_cast<std::uint16_t>(random() % 3)); break;
        case 2: {
          format::Step& any = model().steps[random() % count];
          any = changed(any, any.first_param(), format::kControl);
          break;
        }
        case 3:
          model().operands[random() % model().operands.size()] =
              static_cast<std::uint32_t>(random() % (model().values.size() + 1));
          break;
        default: std::swap(model().steps[random() % count], model().steps[random() % count]); break;
      }
    }
    // Marks that leave steps of a loop out must not keep it from ending.
    if (random() % 2 == 0)
      for (std::uint32_t s = 0; s < count; ++s)
        model().step_outputs.push_back(random() % 3 == 0 ? 0 : ~std::uint64_t{0});
    survives();
  }
}

}  // namespace
}  // namespace bantam::compiler
