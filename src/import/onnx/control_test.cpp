// If, Loop and Scan that decide at run time, by the interpreter; compiler/control_flow_test.cpp runs such graphs
// planned.
#include "graph/control.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/testing/interpret.h"
#include "import/import.h"
#include "import/testing/onnx_writer.h"

namespace bantam::import {
namespace {

using graph::testing::host_tensor;
using graph::testing::HostTensor;
using testing::attr;
using ::testing::ElementsAre;
using testing::graph_attr;
using testing::GraphWriter;
using ::testing::HasSubstr;
using testing::source_of;
using testing::tensor;

using Inputs = std::map<std::string, HostTensor>;

HostTensor tensor(std::vector<std::int64_t> dims, std::vector<float> elements) {
  return host_tensor<float>(dims, elements);
}
HostTensor flag(bool value) { return host_tensor<bool>({}, std::span<const bool>(&value, 1)); }
HostTensor number(std::int64_t value) {
  return host_tensor<std::int64_t>({}, std::span<const std::int64_t>(&value, 1));
}

Result<graph::Graph> import_control(const GraphWriter& writer, const Options& options = {}) {
  return import_model(source_of(writer.model()), options);
}

std::string control_error(const GraphWriter& writer, const Options& options = {}) {
  auto graph = import_control(writer, options);
  return graph ? "(imported)" : graph.error().message;
}

/// The elements of the only output of one run; the same after a round through verify.
std::vector<float> run(const Result<graph::Graph>& graph, const Inputs& inputs) {
  EXPECT_TRUE(graph) << graph.error().message;
  if (!graph) return {};
  const auto sound = graph::verify(*graph);
  EXPECT_TRUE(sound) << sound.error().message;
  auto results = graph::testing::interpret(*graph, inputs);
  EXPECT_TRUE(results) << results.error().message;
  if (!results || results->empty()) return {};
  const auto elements = results->begin()->second.as<float>();
  return {elements.begin(), elements.end()};
}

std::string yes(std::string_view name) {
  return testing::raw_tensor(name, ElementType::kBool, {}, std::string_view("\1", 1));
}

GraphWriter choice(const std::string& then_branch, const std::string& else_branch) {
  GraphWriter writer;
  writer.input("x", {2}).input("c", {}, ElementType::kBool).node("Exp", {"x"}, {"e"});
  writer.node("If", {"c"}, {"y"}, {graph_attr("then_branch", then_branch), graph_attr("else_branch", else_branch)},
              "choice");
  return writer.output("y");
}

TEST(OnnxIfAtRunTime, BranchesReadValuesAndConstantsAroundThem) {
  const std::string then_branch = GraphWriter().node("Neg", {"x"}, {"r"}).output("r").graph();
  const std::string else_branch = GraphWriter()
                                      .initializer(tensor<float>("two", {}, {2}))
                                      .node("Mul", {"x", "two"}, {"m"})
                                      .node("Add", {"m", "x"}, {"r"})
                                      .output("r")
                                      .graph();
  const auto graph = import_control(choice(then_branch, else_branch));
  EXPECT_THAT(run(graph, {{"x", tensor({2}, {1, 2})}, {"c", flag(true)}}), ElementsAre(-1, -2));
  EXPECT_THAT(run(graph, {{"x", tensor({2}, {1, 2})}, {"c", flag(false)}}), ElementsAre(3, 6));
}

TEST(OnnxIfAtRunTime, BranchMayGiveAValueAroundItAsItIs) {
  const std::string then_branch = GraphWriter().output("x").graph();
  const std::string else_branch = GraphWriter().node("Neg", {"x"}, {"r"}).output("r").graph();
  const auto graph = import_control(choice(then_branch, else_branch));
  EXPECT_THAT(run(graph, {{"x", tensor({2}, {1, 2})}, {"c", flag(true)}}), ElementsAre(1, 2));
}

TEST(OnnxIfAtRunTime, BranchesOfDifferentShapesAreRefusedByName) {
  const std::string then_branch = GraphWriter().node("Neg", {"x"}, {"r"}).output("r").graph();
  const std::string else_branch =
      GraphWriter().node("Concat", {"x", "x"}, {"r"}, {attr("axis", 0)}).output("r").graph();
  const std::string message = control_error(choice(then_branch, else_branch));
  EXPECT_THAT(message, HasSubstr("node 'choice' (If): result 0 is f32[2] in the then branch and f32[4] in the else"));
  EXPECT_THAT(message, HasSubstr("--set 'c'"));
}

/// v = v * 2 while v < 100, as many times as M says.
std::string doubling(bool ends_early) {
  GraphWriter body;
  body.input("i", {}, ElementType::kI64).input("go_in", {}, ElementType::kBool).input("v", {1});
  body.node("Add", {"v", "v"}, {"v_out"});
  if (ends_early) {
    body.initializer(tensor<float>("most", {}, {100})).node("Less", {"v_out", "most"}, {"less"});
    body.node("Squeeze", {"less"}, {"go"});
  } else {
    body.node("Identity", {"go_in"}, {"go"});
  }
  return body.output("go", ElementType::kBool).output("v_out").graph();
}

TEST(OnnxLoop, RunsAsOftenAsAnInputSays) {
  Options options;
  options.iterations = {{"double", 20}};
  const auto graph =
      import_control(GraphWriter()
                         .input("n", {}, ElementType::kI64)
                         .input("x", {1})
                         .initializer(yes("go"))
                         .node("Loop", {"n", "go", "x"}, {"y"}, {graph_attr("body", doubling(false))}, "double")
                         .output("y"),
                     options);
  ASSERT_TRUE(graph) << graph.error().message;
  ASSERT_TRUE(graph::has_control(*graph));
  EXPECT_THAT(run(graph, {{"n", number(3)}, {"x", tensor({1}, {1})}}), ElementsAre(8));
  EXPECT_THAT(run(graph, {{"n", number(0)}, {"x", tensor({1}, {1})}}), ElementsAre(1));
}

TEST(OnnxLoop, EndsEarlyByItsCondition) {
  const auto graph = import_control(GraphWriter()
                                        .input("x", {1})
                                        .initializer(tensor<std::int64_t>("n", {}, {1000}))
                                        .node("Loop", {"n", "", "x"}, {"y"}, {graph_attr("body", doubling(true))})
                                        .output("y"));
  EXPECT_THAT(run(graph, {{"x", tensor({1}, {3})}}), ElementsAre(192));
}

TEST(OnnxLoop, WithoutACountOrALimitIsRefusedByNameWithTheRemedy) {
  const std::string message =
      control_error(GraphWriter()
                        .input("x", {1})
                        .node("Loop", {"", "", "x"}, {"y"}, {graph_attr("body", doubling(true))}, "grow")
                        .output("y"));
  EXPECT_THAT(message, HasSubstr("node 'grow' (Loop): how often the loop runs is known only at run time"));
  EXPECT_THAT(message, HasSubstr("--iterations 'grow=N'"));
}

TEST(OnnxLoop, LimitOfANodeThatIsNoLoopIsRefused) {
  Options options;
  options.iterations = {{"nobody", 3}};
  EXPECT_THAT(control_error(GraphWriter().input("x", {1}).node("Neg", {"x"}, {"y"}).output("y"), options),
              HasSubstr("--iterations nobody: the model has no loop of that name"));
}

TEST(OnnxLoop, CounterThatTheBodyStepsGivesTheCount) {
  const std::string body = GraphWriter()
                               .input("i", {}, ElementType::kI64)
                               .input("go_in", {}, ElementType::kBool)
                               .input("k", {}, ElementType::kI64)
                               .input("v", {2})
                               .initializer(tensor<std::int64_t>("step", {}, {3}))
                               .initializer(tensor<std::int64_t>("end", {}, {300}))
                               .node("Add", {"k", "step"}, {"k_out"})
                               .node("Less", {"k_out", "end"}, {"go"})
                               .node("Neg", {"v"}, {"v_out"})
                               .node("Add", {"v", "v"}, {"row"})
                               .output("go", ElementType::kBool)
                               .output("k_out", ElementType::kI64)
                               .output("v_out")
                               .output("row")
                               .graph();
  const auto graph =
      import_control(GraphWriter()
                         .input("x", {2})
                         .initializer(tensor<std::int64_t>("zero", {}, {0}))
                         .node("Loop", {"", "", "zero", "x"}, {"k", "v", "rows"}, {graph_attr("body", body)})
                         .output("rows"));
  const auto rows = run(graph, {{"x", tensor({2}, {1, 2})}});
  ASSERT_EQ(rows.size(), 200U) << "one row for each of the 100 iterations";
  EXPECT_THAT(std::vector<float>(rows.end() - 4, rows.end()), ElementsAre(2, 4, -2, -4));
}

TEST(OnnxLoop, ValueThatGrowsIsUnrolledWhenTheCountIsKnown) {
  const std::string body = GraphWriter()
                               .input("i", {}, ElementType::kI64)
                               .input("go_in", {}, ElementType::kBool)
                               .input("v", {"T"})
                               .node("Concat", {"v", "x"}, {"v_out"}, {attr("axis", 0)})
                               .output("go_in", ElementType::kBool)
                               .output("v_out")
                               .graph();
  const auto with_count = [&](std::int64_t n) {
    return GraphWriter()
        .input("x", {1})
        .initializer(tensor<std::int64_t>("n", {}, {n}))
        .initializer(yes("go"))
        .node("Loop", {"n", "go", "x"}, {"y"}, {graph_attr("body", body)}, "grow")
        .output("y");
  };
  EXPECT_THAT(run(import_control(with_count(3)), {{"x", tensor({1}, {7})}}), ElementsAre(7, 7, 7, 7));
  EXPECT_EQ(run(import_control(with_count(1000)), {{"x", tensor({1}, {7})}}).size(), 1001U);
  const std::string message = control_error(with_count(1 << 20));
  EXPECT_THAT(message, HasSubstr("node 'grow' (Loop): value 0 'v', carried from one iteration to the next, is f32[1] "
                                 "before the first and f32[2] after it"));
}

TEST(OnnxLoop, LoopsInsideOneAnotherDoNotUnrollWithoutEnd) {
  std::string body = GraphWriter()
                         .input("i", {}, ElementType::kI64)
                         .input("go_in", {}, ElementType::kBool)
                         .input("v", {1})
                         .node("Neg", {"v"}, {"v_out"})
                         .output("go_in", ElementType::kBool)
                         .output("v_out")
                         .graph();
  for (int depth = 0; depth < 6; ++depth)
    body = GraphWriter()
               .input("i", {}, ElementType::kI64)
               .input("go_in", {}, ElementType::kBool)
               .input("v", {1})
               .node("Loop", {"n", "go_in", "v"}, {"v_out"}, {graph_attr("body", body)})
               .output("go_in", ElementType::kBool)
               .output("v_out")
               .graph();
  const auto graph = import_control(GraphWriter()
                                        .input("v", {1})
                                        .initializer(tensor<std::int64_t>("n", {}, {50}))
                                        .initializer(yes("go_in"))
                                        .node("Loop", {"n", "go_in", "v"}, {"y"}, {graph_attr("body", body)})
                                        .output("y"));
  EXPECT_TRUE(!graph || graph->nodes.size() < (1U << 17));
}

TEST(OnnxScan, GoesThroughAnAxisBackwards) {
  // Running sums over the columns, from the last on; rows out along axis 1.
  const std::string body = GraphWriter()
                               .input("s", {2})
                               .input("column", {2})
                               .node("Add", {"s", "column"}, {"s_out"})
                               .node("Identity", {"s_out"}, {"row"})
                               .output("s_out")
                               .output("row")
                               .graph();
  const auto graph = import_control(GraphWriter()
                                        .input("x", {2, 3})
                                        .input("s0", {2})
                                        .node("Scan", {"s0", "x"}, {"s", "sums"},
                                              {graph_attr("body", body), attr("num_scan_inputs", 1),
                                               attr("scan_input_axes", std::vector<std::int64_t>{1}),
                                               attr("scan_input_directions", std::vector<std::int64_t>{1}),
                                               attr("scan_output_axes", std::vector<std::int64_t>{-1}),
                                               attr("scan_output_directions", std::vector<std::int64_t>{1})})
                                        .output("sums"));
  EXPECT_THAT(run(graph, {{"x", tensor({2, 3}, {1, 2, 3, 10, 20, 30})}, {"s0", tensor({2}, {0, 0})}}),
              ElementsAre(6, 5, 3, 60, 50, 30));
}

}  // namespace
}  // namespace bantam::import
