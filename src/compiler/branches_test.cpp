// Branches: graphs cut down to the outputs that are wanted, and invokes that compute some outputs only.
#include "compiler/branches.h"

#include <gtest/gtest.h>

#include "compiler/testing/compile_text.h"
#include "compiler/testing/placed_fleet.h"
#include "graph/text.h"

namespace bantam::compiler {
namespace {

using testing::compile_text;
using testing::place_package;

/// A backbone with two heads; one head has a state of its own.
constexpr const char* kHeads = R"(graph "heads" {
  %x "x" = input : f32[8]
  %z "z" = input : f32[8]
  %h "h" = state : f32[8]
  %b "features" = unary(%x) {function="neg"}
  %l "left raw" = unary(%b) {function="abs"}
  %m "left" = unary(%l) {function="sqrt"}
  %r "sum" = binary(%b, %h)
  %s "right" = binary(%r, %z)
  output "left" %m
  output "right" %s
  next "h" %r
})";

std::vector<std::string> names(const std::vector<graph::Port>& ports) {
  std::vector<std::string> result;
  for (const graph::Port& port : ports) result.push_back(port.name);
  return result;
}

using Names = std::vector<std::string>;

TEST(Branches, OnlyWhatTheChosenOutputsNeedIsLeft) {
  graph::Graph graph = testing::parse(kHeads);
  ASSERT_TRUE(choose_outputs(graph, {"left"}, {}));
  EXPECT_EQ(names(graph.outputs), Names({"left"}));
  EXPECT_EQ(names(graph.inputs), Names({"x"}));
  EXPECT_TRUE(graph.states.empty());
  EXPECT_EQ(graph.nodes.size(), 3U);
  EXPECT_TRUE(graph::verify(graph));
}

TEST(Branches, StateThatAChosenOutputReadsStaysWithWhatUpdatesIt) {
  graph::Graph graph = testing::parse(kHeads);
  ASSERT_TRUE(choose_outputs(graph, {"right"}, {}));
  EXPECT_EQ(names(graph.inputs), Names({"x", "z"}));
  EXPECT_EQ(graph.states.size(), 1U);
  EXPECT_EQ(graph.nodes.size(), 3U);
}

TEST(Branches, StateThatOnlyAnotherStateReadsStays) {
  graph::Graph graph = testing::parse(R"(graph "chain" {
    %x "x" = input : f32[4]
    %a "a" = state : f32[4]
    %b "b" = state : f32[4]
    %c "c" = state : f32[4]
    %y "y" = binary(%x, %b)
    %n = unary(%a) {function="neg"}
    %m = unary(%c) {function="neg"}
    output "y" %y
    output "other" %m
    next "a" %x
    next "b" %n
    next "c" %y
  })");
  ASSERT_TRUE(choose_outputs(graph, {"y"}, {}));
  ASSERT_EQ(graph.states.size(), 2U);
  EXPECT_EQ(graph.states[0].name, "a");
  EXPECT_EQ(graph.states[1].name, "b");
}

TEST(Branches, AnyTensorMayBeAnOutput) {
  graph::Graph graph = testing::parse(kHeads);
  ASSERT_TRUE(choose_outputs(graph, {"left raw", "left"}, {}));
  EXPECT_EQ(names(graph.outputs), Names({"left raw", "left"}));
  ASSERT_TRUE(choose_outputs(graph, {}, {"features", "left"}));
  EXPECT_EQ(names(graph.outputs), Names({"left raw", "left", "features"}));
}

TEST(Branches, UnknownNamesAreAllReportedWithWhatThereIs) {
  graph::Graph graph = testing::parse(kHeads);
  const auto chosen = choose_outputs(graph, {"lef", "nothing"}, {"feat"});
  ASSERT_FALSE(chosen);
  for (const char* part : {"'lef'", "outputs left, right", "left raw", "'nothing'", "'feat'", "features"})
    EXPECT_NE(chosen.error().message.find(part), std::string::npos) << part << " in " << chosen.error().message;
}

/// Counts the steps that really run.
struct StepCount {
  std::size_t steps = 0;

  Observer observer() {
    return {this,
            [](void* context, const Session&, std::size_t) {
              ++static_cast<StepCount*>(context)->steps;
              return StepDecision::kRun;
            },
            nullptr};
  }
};

TEST(Branches, InvokeRunsOnlyTheStepsThatItsOutputsAndTheStatesNeed) {
  const auto text = compile_text(kHeads);
  ASSERT_TRUE(text) << text.error().message;
  auto placed = place_package(text->package.bytes());
  ASSERT_TRUE(placed);
  Session& session = *placed->fleet->session(0);
  const auto steps = [&](OutputSet outputs) {
    StepCount count;
    const Observer observer = count.observer();
    session.set_observer(&observer);
    testing::fill_inputs(session, 1);
    EXPECT_TRUE(session.invoke(outputs).ok());
    session.set_observer(nullptr);
    return count.steps;
  };
  // The state's next value needs "features" and "sum", whatever is asked for; legalising adds no step here.
  EXPECT_EQ(steps(OutputSet::all()), 5U);
  EXPECT_EQ(steps(OutputSet().add(0)), 4U);
  EXPECT_EQ(steps(OutputSet().add(1)), 3U);
  EXPECT_EQ(steps(OutputSet()), 2U);
}

TEST(Branches, OutputsBeyondTheSixtyThirdShareAMark) {
  std::string text = "graph \"many\" {\n  %x \"x\" = input : f32[2]\n";
  for (int o = 0; o < 70; ++o) text += "  %o" + std::to_string(o) + " = unary(%x) {function=\"neg\"}\n";
  for (int o = 0; o < 70; ++o) text += "  output \"o" + std::to_string(o) + "\" %o" + std::to_string(o) + "\n";
  const std::vector<std::uint64_t> marks = output_marks(testing::parse(text + "}\n"));
  ASSERT_EQ(marks.size(), 70U);
  for (std::size_t o = 0; o < marks.size(); ++o) EXPECT_EQ(marks[o], std::uint64_t{1} << std::min<std::size_t>(o, 63));
}

TEST(Observers, MaySkipAStepAndWriteItsResult) {
  const auto text = compile_text(R"(graph "g" {
    %x "x" = input : f32[4]
    %a "a" = unary(%x) {function="exp"}
    %b "b" = unary(%a) {function="neg"}
    output "b" %b
  })");
  ASSERT_TRUE(text) << text.error().message;
  auto placed = place_package(text->package.bytes());
  ASSERT_TRUE(placed);
  Session& session = *placed->fleet->session(0);
  const Observer observer{nullptr,
                          [](void*, const Session& s, std::size_t step) {
                            if (step != 0) return StepDecision::kRun;
                            for (int i = 0; i < 4; ++i)
                              s.step_operand(step, s.step_inputs(step)).as<float>()[i] = static_cast<float>(i);
                            return StepDecision::kSkip;
                          },
                          nullptr};
  session.set_observer(&observer);
  testing::fill_inputs(session, 1);
  ASSERT_TRUE(session.invoke().ok());
  for (int i = 0; i < 4; ++i) EXPECT_EQ(session.output(0).as<float>()[i], -static_cast<float>(i));
}

TEST(Observers, MayInterruptAnInvoke) {
  const auto text = compile_text(kHeads);
  ASSERT_TRUE(text) << text.error().message;
  auto placed = place_package(text->package.bytes());
  ASSERT_TRUE(placed);
  Session& session = *placed->fleet->session(0);
  std::size_t seen = 0;
  const Observer observer{&seen, nullptr, [](void* context, const Session&, std::size_t step) {
                            ++*static_cast<std::size_t*>(context);
                            return step == 1 ? failure(StatusCode::kOutOfRange, "enough", 7, 5) : ok_status();
                          }};
  session.set_observer(&observer);
  testing::fill_inputs(session, 1);
  const Status status = session.invoke();
  EXPECT_EQ(status.code, StatusCode::kOutOfRange);
  EXPECT_EQ(status.index, 1);
  EXPECT_STREQ(status.message, "enough");
  EXPECT_EQ(seen, 2U);
  session.set_observer(nullptr);
  session.reset();
  EXPECT_TRUE(session.invoke().ok());
}

TEST(Observers, LearnTheOperatorItsNameAndItsWork) {
  const auto text = compile_text(R"(graph "g" {
    %x "x" = input : f32[2,8]
    %w = const : f32[8,4] splat(0.5)
    %y "product" = matmul(%x, %w)
    output "y" %y
  })");
  ASSERT_TRUE(text) << text.error().message;
  auto placed = place_package(text->package.bytes());
  ASSERT_TRUE(placed);
  const Session& session = *placed->fleet->session(0);
  ASSERT_EQ(session.step_count(), 1U);
  EXPECT_EQ(session.step_operator(0), "matmul");
  EXPECT_EQ(session.step_name(0), "product");
  EXPECT_EQ(session.step_work(0), 2U * 8U * 4U);
  EXPECT_FALSE(session.step_operand_is_constant(0, 0));
  EXPECT_TRUE(session.step_operand_is_constant(0, 1));
}

}  // namespace
}  // namespace bantam::compiler
