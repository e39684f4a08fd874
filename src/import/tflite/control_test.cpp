// IF and WHILE of TensorFlow Lite files, run by the interpreter.
#include "graph/control.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "graph/testing/interpret.h"
#include "import/import.h"
#include "import/tflite/testing/model_builder.h"

namespace bantam::import::tflite {
namespace {

using testing::BuiltinOperator;
using testing::BuiltinOptions;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::ModelBuilder;
using testing::source_of;
using testing::TensorType;

/// The floats of every output of one run, in the order of their names; inputs are floats, or bool for "c".
class ControlRunner {
 public:
  explicit ControlRunner(const graph::Graph& graph) : graph_(graph), interpreter_(graph) {}

  std::vector<float> run(const std::map<std::string, std::vector<float>>& inputs) {
    std::map<std::string, graph::testing::HostTensor> tensors;
    for (const graph::Port& port : graph_.inputs) {
      const TensorDesc& desc = graph_.value(port.value).desc;
      const std::vector<float>& given = inputs.at(port.name);
      std::vector<std::byte> bytes(static_cast<std::size_t>(desc.bytes()));
      if (desc.type == ElementType::kBool) {
        bytes[0] = static_cast<std::byte>(given[0] != 0 ? 1 : 0);
      } else {
        std::memcpy(bytes.data(), given.data(), bytes.size());
      }
      tensors[port.name] = {desc, std::move(bytes)};
    }
    auto outputs = interpreter_.run(tensors);
    EXPECT_TRUE(outputs) << outputs.error().message;
    std::vector<float> all;
    if (!outputs) return all;
    for (const auto& [name, tensor] : *outputs)
      for (const float f : tensor.as<float>()) all.push_back(f);
    return all;
  }

 private:
  const graph::Graph& graph_;
  graph::testing::Interpreter interpreter_;
};

void make_handle(ModelBuilder& m, int tensor) {
  m.op(BuiltinOperator::VAR_HANDLE, {}, {tensor}, BuiltinOptions::VarHandleOptions,
       schema::CreateVarHandleOptions(m.fbb(), 0, m.fbb().CreateString("count")).Union());
}

/// y = c ? x + 1 : x * 3; the first branch also adds x to a variable, whose value before is the other output.
std::vector<std::uint8_t> choice_model() {
  ModelBuilder m;
  const int c = m.tensor({.name = "c", .type = TensorType::BOOL});
  const int x = m.tensor({.name = "x", .shape = {2}});
  const int v = m.tensor({.name = "v", .type = TensorType::RESOURCE});
  const int old = m.tensor({.name = "old", .shape = {2}});
  const int y = m.tensor({.name = "y", .shape = {2}});
  make_handle(m, v);
  m.op(BuiltinOperator::READ_VARIABLE, {v}, {old});
  m.op(BuiltinOperator::IF, {c, x, v}, {y}, BuiltinOptions::IfOptions, schema::CreateIfOptions(m.fbb(), 1, 2).Union());
  m.end_subgraph({c, x}, {old, y});
  {
    const int a = m.tensor({.name = "a", .shape = {2}});
    const int handle = m.tensor({.name = "h", .type = TensorType::RESOURCE});
    const int one = m.constant<float>({}, {1});
    const int before = m.tensor({.name = "before", .shape = {2}});
    const int after = m.tensor({.name = "after", .shape = {2}});
    const int r = m.tensor({.name = "r", .shape = {2}});
    m.op(BuiltinOperator::READ_VARIABLE, {handle}, {before});
    m.op(BuiltinOperator::ADD, {before, a}, {after});
    m.op(BuiltinOperator::ASSIGN_VARIABLE, {handle, after}, {});
    m.op(BuiltinOperator::ADD, {a, one}, {r});
    m.end_subgraph({a, handle}, {r});
  }
  const int a = m.tensor({.name = "a", .shape = {2}});
  const int handle = m.tensor({.name = "h", .type = TensorType::RESOURCE});
  const int three = m.constant<float>({}, {3});
  const int r = m.tensor({.name = "r", .shape = {2}});
  m.op(BuiltinOperator::MUL, {a, three}, {r});
  return m.finish({a, handle}, {r});
}

TEST(TfliteIf, BranchesMayAssignVariables) {
  const auto graph = import_tflite(source_of(choice_model()), {});
  ASSERT_TRUE(graph) << graph.error().message;
  ASSERT_TRUE(graph::has_control(*graph));
  ControlRunner runner(*graph);
  EXPECT_THAT(runner.run({{"c", {1}}, {"x", {1, 2}}}), ElementsAre(0, 0, 2, 3));
  EXPECT_THAT(runner.run({{"c", {0}}, {"x", {1, 2}}}), ElementsAre(1, 2, 3, 6));
  EXPECT_THAT(runner.run({{"c", {1}}, {"x", {5, 5}}}), ElementsAre(1, 2, 6, 6));
  EXPECT_THAT(runner.run({{"c", {1}}, {"x", {0, 0}}}), ElementsAre(6, 7, 1, 1));
}

TEST(TfliteIf, FixedConditionIsFoldedAway) {
  Options options;
  options.values = {{"c", {1}}};
  const auto graph = import_tflite(source_of(choice_model()), options);
  ASSERT_TRUE(graph) << graph.error().message;
  EXPECT_FALSE(graph::has_control(*graph));
  ControlRunner runner(*graph);
  EXPECT_THAT(runner.run({{"x", {1, 2}}}), ElementsAre(0, 0, 2, 3));
  EXPECT_THAT(runner.run({{"x", {1, 2}}}), ElementsAre(1, 2, 2, 3));
}

/// i = 0; while (i < n) { acc = acc + x; ++i; } with n a constant, or below the input's first element.
std::vector<std::uint8_t> loop_model(bool counted, bool grows = false) {
  ModelBuilder m;
  const int x = m.tensor({.name = "x", .shape = {1}});
  const int i0 = m.constant<float>({1}, {0});
  const int acc0 = m.constant<float>({1}, {100});
  const int end = m.tensor({.name = "end", .shape = {1}});
  const int y = m.tensor({.name = "y", .shape = {1}});
  const int x_after = m.tensor({.name = "x_after", .shape = {1}});
  m.op(BuiltinOperator::WHILE, {i0, acc0, x}, {end, y, x_after}, BuiltinOptions::WhileOptions,
       schema::CreateWhileOptions(m.fbb(), 1, 2).Union());
  m.end_subgraph({x}, {y});
  {
    const int i = m.tensor({.name = "i", .shape = {1}});
    const int acc = m.tensor({.name = "acc", .shape = {1}});
    const int a = m.tensor({.name = "a", .shape = {1}});
    const int five = m.constant<float>({1}, {5});
    const int go = m.tensor({.name = "go", .type = TensorType::BOOL, .shape = {1}});
    m.op(BuiltinOperator::LESS, {i, counted ? five : a}, {go});
    m.end_subgraph({i, acc, a}, {go});
  }
  const int i = m.tensor({.name = "i", .shape = {1}});
  const int acc = m.tensor({.name = "acc", .shape = {1}});
  const int a = m.tensor({.name = "a", .shape = {1}});
  const int one = m.constant<float>({1}, {1});
  const int i_next = m.tensor({.name = "i_next", .shape = {1}});
  const int acc_next = m.tensor({.name = "acc_next", .shape = {grows ? 2 : 1}});
  m.op(BuiltinOperator::ADD, {i, one}, {i_next});
  if (grows) {
    m.op(BuiltinOperator::CONCATENATION, {acc, a}, {acc_next});
  } else {
    m.op(BuiltinOperator::ADD, {acc, a}, {acc_next});
  }
  return m.finish({i, acc, a}, {i_next, acc_next, a});
}

TEST(TfliteWhile, CounterGivesTheLimit) {
  const auto graph = import_tflite(source_of(loop_model(true)), {});
  ASSERT_TRUE(graph) << graph.error().message;
  ASSERT_EQ(graph->nodes.size(), 1U);
  EXPECT_EQ(graph->nodes[0].as<graph::LoopParams>().limit, 5);
  EXPECT_EQ(graph->nodes[0].outputs.size(), 2U) << "what never changes is not carried";
  EXPECT_THAT(ControlRunner(*graph).run({{"x", {3}}}), ElementsAre(115));
}

TEST(TfliteWhile, LengthThatDependsOnDataNeedsALimit) {
  const auto source = source_of(loop_model(false));
  const auto refused = import_tflite(source, {});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("--iterations 'end=N'"));
  Options options;
  options.iterations = {{"end", 10}};
  const auto graph = import_tflite(source, options);
  ASSERT_TRUE(graph) << graph.error().message;
  ControlRunner runner(*graph);
  EXPECT_THAT(runner.run({{"x", {3}}}), ElementsAre(109));
  EXPECT_THAT(runner.run({{"x", {-1}}}), ElementsAre(100));
}

TEST(TfliteWhile, ValueThatGrowsIsRefused) {
  const auto refused = import_tflite(source_of(loop_model(true, true)), {});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("f32[1] before an iteration and f32[2] after it"));
}

TEST(TfliteWhile, SubgraphThatCallsItselfIsRefused) {
  ModelBuilder m;
  const int c = m.tensor({.name = "c", .type = TensorType::BOOL});
  const int x = m.tensor({.name = "x", .shape = {1}});
  const int y = m.tensor({.name = "y", .shape = {1}});
  m.op(BuiltinOperator::IF, {c, c, x}, {y}, BuiltinOptions::IfOptions, schema::CreateIfOptions(m.fbb(), 1, 1).Union());
  m.end_subgraph({c, x}, {y});
  const int inner_c = m.tensor({.name = "c", .type = TensorType::BOOL});
  const int inner_x = m.tensor({.name = "x", .shape = {1}});
  const int inner_y = m.tensor({.name = "y", .shape = {1}});
  m.op(BuiltinOperator::IF, {inner_c, inner_c, inner_x}, {inner_y}, BuiltinOptions::IfOptions,
       schema::CreateIfOptions(m.fbb(), 1, 1).Union());
  const auto file = m.finish({inner_c, inner_x}, {inner_y});
  const auto at_run_time = import_tflite(source_of(file), {});
  ASSERT_FALSE(at_run_time);
  EXPECT_THAT(at_run_time.error().message, HasSubstr("control flow 9 deep"));
  Options options;
  options.values = {{"c", {1}}};
  const auto folded = import_tflite(source_of(file), options);
  ASSERT_FALSE(folded);
  EXPECT_THAT(folded.error().message, HasSubstr("subgraphs call one another more than 16 deep"));
}

}  // namespace
}  // namespace bantam::import::tflite
