// What import_onnx does with options and with models that are wrong: findings, names, states, dimensions.
#include "import/import.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/testing/interpret.h"
#include "import/testing/onnx_writer.h"

namespace bantam::import {
namespace {

using graph::format_desc;
using graph::testing::host_tensor;
using graph::testing::HostTensor;
using testing::attr;
using ::testing::ElementsAre;
using testing::graph_attr;
using testing::GraphWriter;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::source_of;
using testing::tensor;

HostTensor floats(std::vector<std::int64_t> dims, std::vector<float> elements) {
  return host_tensor<float>(dims, elements);
}

Result<graph::Graph> import_of(const GraphWriter& writer, const Options& options = {}) {
  return import_model(source_of(writer.model()), options);
}

std::string error_of(const GraphWriter& writer, const Options& options = {}) {
  auto graph = import_of(writer, options);
  return graph ? "(imported)" : graph.error().message + "; " + graph.error().remedy;
}

/// The elements of the only output of one run.
std::vector<float> run(const graph::Graph& graph, const std::map<std::string, HostTensor>& inputs) {
  auto results = graph::testing::interpret(graph, inputs);
  EXPECT_TRUE(results) << results.error().message;
  if (!results || results->empty()) return {};
  const auto elements = results->begin()->second.as<float>();
  return {elements.begin(), elements.end()};
}

TEST(OnnxImport, KeepsPortsNamesAndMetadata) {
  auto graph = import_of(GraphWriter()
                             .input("x", {2})
                             .node("Relu", {"x"}, {"hidden"}, {}, "first")
                             .node("Neg", {"hidden"}, {"y"})
                             .output("y"));
  ASSERT_TRUE(graph) << graph.error().message;
  ASSERT_TRUE(graph::verify(*graph));
  ASSERT_EQ(graph->nodes.size(), 2U);
  EXPECT_EQ(graph->nodes[0].name, "first");
  EXPECT_EQ(graph->nodes[0].origin, "Relu");
  EXPECT_EQ(graph->nodes[1].name, "y") << "nodes without a name are called after their result";
  EXPECT_EQ(graph->value(graph->nodes[0].outputs[0]).name, "hidden");
  EXPECT_EQ(graph->inputs[0].name, "x");
  EXPECT_EQ(graph->outputs[0].name, "y");
  EXPECT_THAT(graph->metadata, ElementsAre(std::pair<std::string, std::string>("purpose", "a test")));
  EXPECT_THAT(run(*graph, {{"x", floats({2}, {-1, 3})}}), ElementsAre(0, -3));
}

TEST(OnnxImport, OutputsMayBeInputsAndConstants) {
  auto graph = import_of(GraphWriter()
                             .input("x", {2})
                             .initializer(tensor<float>("c", {1}, {7}))
                             .node("Identity", {"x"}, {"y"})
                             .output("y")
                             .output("c"));
  ASSERT_TRUE(graph) << graph.error().message;
  EXPECT_EQ(graph->outputs[0].value, graph->inputs[0].value);
  EXPECT_TRUE(graph->is_constant(graph->outputs[1].value));
}

TEST(OnnxImport, RawWeightsStayWhereTheyAre) {
  const auto source = source_of(GraphWriter()
                                    .input("x", {2})
                                    .initializer(tensor<float>("c", {2}, {5, 7}))
                                    .node("Add", {"x", "c"}, {"y"})
                                    .output("y")
                                    .model());
  auto graph = import_model(source, {});
  ASSERT_TRUE(graph) << graph.error().message;
  const auto weights = graph->value(graph->nodes[0].inputs[1]).constant->bytes;
  EXPECT_GE(weights.data(), source.bytes.data());
  EXPECT_LT(weights.data(), source.bytes.data() + source.bytes.size());
}

TEST(OnnxImport, InitializersThatAreInputsAreConstants) {
  auto graph = import_of(GraphWriter()
                             .input("x", {2})
                             .input("c", {2})
                             .initializer(tensor<float>("c", {2}, {5, 7}))
                             .node("Add", {"x", "c"}, {"y"})
                             .output("y"));
  ASSERT_TRUE(graph) << graph.error().message;
  EXPECT_EQ(graph->inputs.size(), 1U);
}

TEST(OnnxImport, NodesInAnyOrderAreSorted) {
  auto graph =
      import_of(GraphWriter().input("x", {1}).node("Neg", {"h"}, {"y"}).node("Relu", {"x"}, {"h"}).output("y"));
  ASSERT_TRUE(graph) << graph.error().message;
  EXPECT_EQ(graph->nodes[0].origin, "Relu");
}

TEST(OnnxImport, DeclarationListsPortsDimensionsAndOperators) {
  auto declared = declare_model(source_of(GraphWriter()
                                              .input("x", {"N", 3, ""})
                                              .node("Relu", {"x"}, {"y"})
                                              .node("Relu", {"y"}, {"z"})
                                              .node("Nonsense", {"z"}, {"w"}, {}, "", "my.domain")
                                              .output("w")
                                              .model(13)));
  ASSERT_TRUE(declared) << declared.error().message;
  EXPECT_EQ(declared->format, "ONNX");
  EXPECT_EQ(declared->version, "opset 13, my.domain 1, IR 8");
  EXPECT_EQ(declared->producer, "test");
  ASSERT_EQ(declared->inputs.size(), 1U);
  EXPECT_THAT(declared->inputs[0].dims, ElementsAre("N", "3", "?"));
  EXPECT_THAT(declared->operators, ElementsAre(std::pair<std::string, std::int64_t>("Relu", 2),
                                               std::pair<std::string, std::int64_t>("my.domain:Nonsense", 1)));
}

// Dimensions and values.

GraphWriter symbolic() {
  return GraphWriter()
      .input("x", {"N", 3})
      .input("s", {"N", ""})
      .node("Relu", {"x"}, {"y"})
      .node("Relu", {"s"}, {"t"})
      .output("y")
      .output("t");
}

TEST(OnnxOptions, MissingDimensionsAreListedTogether) {
  const std::string message = error_of(symbolic());
  EXPECT_THAT(message, HasSubstr("input 'x' [N,3]: no value is given for N"));
  EXPECT_THAT(message, HasSubstr("input 's' [N,?]: no value is given for N, ?"));
  EXPECT_THAT(message, HasSubstr("--dim N=VALUE"));
  EXPECT_THAT(message, HasSubstr("--shape s="));
}

TEST(OnnxOptions, ShapesWinOverDimensionsAndFixSymbolsElsewhere) {
  Options options;
  options.shapes = {{"s", {4, 5}}};
  auto graph = import_of(symbolic(), options);
  ASSERT_TRUE(graph) << graph.error().message;
  EXPECT_EQ(format_desc(graph->value(graph->inputs[0].value).desc), "f32[4,3]");
  options.dims = {{"N", 2}};
  graph = import_of(symbolic(), options);
  ASSERT_TRUE(graph) << graph.error().message;
  EXPECT_EQ(format_desc(graph->value(graph->inputs[0].value).desc), "f32[2,3]");
  EXPECT_EQ(format_desc(graph->value(graph->inputs[1].value).desc), "f32[4,5]");
}

TEST(OnnxOptions, WrongNamesAndShapesAreRefusedWithTheValidOnes) {
  Options options;
  options.dims = {{"N", 1}, {"M", 1}};
  options.shapes = {{"s", {1, 1}}, {"q", {1}}, {"x", {1, 4}}};
  const std::string message = error_of(symbolic(), options);
  EXPECT_THAT(message, HasSubstr("--dim M: the model has no such dimension; it has: 'N'"));
  EXPECT_THAT(message, HasSubstr("--shape q: the model has no such input; it has: 'x', 's'"));
  EXPECT_THAT(message, HasSubstr("--shape x=1x4: the model declares [N,3]"));
}

TEST(OnnxOptions, ValuesTurnInputsAndInnerValuesIntoConstants) {
  const auto writer = GraphWriter()
                          .input("x", {2})
                          .input("k", {}, ElementType::kI64)
                          .node("Abs", {"k"}, {"inner"})
                          .node("Cast", {"inner"}, {"f"}, {attr("to", 1)})
                          .node("Mul", {"x", "f"}, {"y"})
                          .output("y");
  Options options;
  options.values = {{"k", {-3}}};
  auto graph = import_of(writer, options);
  ASSERT_TRUE(graph) << graph.error().message;
  EXPECT_EQ(graph->inputs.size(), 1U);
  EXPECT_THAT(run(*graph, {{"x", floats({2}, {1, 2})}}), ElementsAre(3, 6));
  options.values = {{"inner", {10}}};
  graph = import_of(writer, options);
  ASSERT_TRUE(graph) << graph.error().message;
  EXPECT_EQ(graph->inputs.size(), 2U);
  const std::int64_t k = 1;
  EXPECT_THAT(run(*graph, {{"x", floats({2}, {1, 2})}, {"k", host_tensor<std::int64_t>({}, {&k, 1})}}),
              ElementsAre(10, 20));
}

TEST(OnnxOptions, ValuesThatDoNotFitAreRefused) {
  const auto writer =
      GraphWriter().input("k", {2}, ElementType::kI32).node("Neg", {"k"}, {"y"}).output("y", ElementType::kI32);
  Options options;
  options.values = {{"k", {1, 2, 3}}};
  EXPECT_THAT(error_of(writer, options), HasSubstr("3 values are given for i32[2], expected 1 or 2"));
  options.values = {{"k", {1.5}}};
  EXPECT_THAT(error_of(writer, options), HasSubstr("1.5 is not a value of i32[2]"));
  options.values = {{"j", {1}}};
  EXPECT_THAT(error_of(writer, options), HasSubstr("--set j: the model has no such input or value"));
}

TEST(OnnxOptions, StatesLeaveThePorts) {
  const auto writer = GraphWriter()
                          .input("x", {2})
                          .input("h", {2})
                          .node("Add", {"x", "h"}, {"next"})
                          .node("Neg", {"next"}, {"y"})
                          .output("y")
                          .output("next");
  Options options;
  options.states = {{"h", "next"}};
  auto graph = import_of(writer, options);
  ASSERT_TRUE(graph) << graph.error().message;
  ASSERT_TRUE(graph::verify(*graph));
  EXPECT_EQ(graph->inputs.size(), 1U);
  EXPECT_EQ(graph->outputs.size(), 1U);
  graph::testing::Interpreter interpreter(*graph);
  for (const float expected : {-1.0F, -2.0F, -3.0F}) {
    auto results = interpreter.run({{"x", floats({2}, {1, 1})}});
    ASSERT_TRUE(results) << results.error().message;
    EXPECT_EQ(results->at("y").as<float>()[0], expected);
  }
}

TEST(OnnxOptions, StatesThatDoNotFitAreRefused) {
  const auto writer = GraphWriter()
                          .input("x", {2})
                          .input("h", {3})
                          .node("Neg", {"x"}, {"y"})
                          .node("Neg", {"h"}, {"z"})
                          .output("y")
                          .output("z");
  const auto with = [&](std::vector<std::pair<std::string, std::string>> states) {
    Options options;
    options.states = std::move(states);
    return error_of(writer, options);
  };
  EXPECT_THAT(with({{"h", "y"}}), HasSubstr("--state h=y: the input is f32[3], the output is f32[2]"));
  EXPECT_THAT(with({{"q", "y"}}), HasSubstr("--state q=y: the model has no such input; it has: 'x', 'h'"));
  EXPECT_THAT(with({{"h", "q"}}), HasSubstr("--state h=q: the model has no such output; it has: 'y', 'z'"));
  EXPECT_THAT(with({{"h", "z"}, {"x", "z"}}), HasSubstr("belongs to another state already"));
}

// Findings.

TEST(OnnxFindings, EverythingUnsupportedIsReportedAtOnce) {
  const std::string message = error_of(GraphWriter()
                                           .input("x", {2})
                                           .node("Frobnicate", {"x"}, {"a"}, {}, "n1")
                                           .node("Relu", {"a"}, {"b"}, {}, "n2")
                                           .node("Relu", {"x"}, {"c"}, {attr("colour", 3)}, "n3")
                                           .node("Other", {"b"}, {"d"}, {}, "n4", "my.domain")
                                           .node("Elu", {"c"}, {"e"}, {attr("alpha", "big")}, "n5")
                                           .output("d")
                                           .output("e"));
  EXPECT_THAT(message, HasSubstr("node 'n1' (Frobnicate): the operator is not supported"));
  EXPECT_THAT(message, Not(HasSubstr("n2"))) << "readers of an unknown value must not be reported";
  EXPECT_THAT(message, HasSubstr("node 'n3' (Relu): attribute 'colour' is not supported"));
  EXPECT_THAT(message, HasSubstr("node 'n4' (Other): the operator of domain 'my.domain' is not supported"));
  EXPECT_THAT(message, HasSubstr("node 'n5' (Elu): attribute 'alpha' is a string, expected a float"));
}

TEST(OnnxFindings, NodesThatNothingNeedsAreNotLookedAt) {
  EXPECT_TRUE(
      import_of(GraphWriter().input("x", {2}).node("Frobnicate", {"x"}, {"a"}).node("Relu", {"x"}, {"y"}).output("y")));
}

TEST(OnnxFindings, CyclesNameANodeOnTheCycle) {
  const std::string message = error_of(GraphWriter()
                                           .input("x", {1})
                                           .node("Add", {"x", "c"}, {"a"}, {}, "n1")
                                           .node("Relu", {"a"}, {"b"}, {}, "n2")
                                           .node("Relu", {"b"}, {"c"}, {}, "n3")
                                           .node("Relu", {"c"}, {"y"}, {}, "after")
                                           .output("y"));
  EXPECT_THAT(message, HasSubstr("the graph has a cycle through node 'n"));
}

TEST(OnnxFindings, MissingAndRepeatedValuesAreNamed) {
  EXPECT_THAT(error_of(GraphWriter().input("x", {1}).node("Add", {"x", "ghost"}, {"y"}, {}, "n").output("y")),
              HasSubstr("node 'n' (Add) reads 'ghost', which no node, input or initializer produces"));
  EXPECT_THAT(error_of(GraphWriter().input("x", {1}).node("Neg", {"x"}, {"y"}).node("Abs", {"x"}, {"y"}).output("y")),
              HasSubstr("value 'y' is produced twice"));
  EXPECT_THAT(error_of(GraphWriter().input("x", {1}).output("nowhere")),
              HasSubstr("output 'nowhere' is produced by no node, input or initializer"));
}

TEST(OnnxFindings, WrongShapesAndTypesNameTheNode) {
  const std::string message = error_of(
      GraphWriter().input("x", {2, 3}).input("w", {4, 5}).node("MatMul", {"x", "w"}, {"y"}, {}, "product").output("y"));
  EXPECT_THAT(message, HasSubstr("product"));
  EXPECT_THAT(message, HasSubstr("f32[2,3]"));
  EXPECT_THAT(
      error_of(GraphWriter().input("x", {2}, ElementType::kBool).node("Exp", {"x"}, {"y"}, {}, "e").output("y")),
      HasSubstr("'e'"));
}

TEST(OnnxFindings, ResultsThatNobodyCanGiveAreReportedWhereTheyAreRead) {
  const auto norm = [](bool read) {
    GraphWriter writer;
    writer.input("x", {1, 2})
        .initializer(tensor<float>("w", {2}, {1, 1}))
        .node("SkipLayerNormalization", {"x", "x", "w"}, {"y", "mean"}, {}, "norm", "com.microsoft")
        .output("y");
    if (read) writer.output("mean");
    return writer;
  };
  EXPECT_TRUE(import_of(norm(false)));
  EXPECT_THAT(error_of(norm(true)),
              HasSubstr("node 'norm' (SkipLayerNormalization): result 1 'mean' is not supported"));
}

TEST(OnnxFindings, OperatorSetsWithOtherRulesAreRefused) {
  // Before operator set 6, Add was not defined for integers and named inputs that its result overwrites.
  auto graph =
      import_model(source_of(GraphWriter().input("x", {1}).node("Add", {"x", "x"}, {"y"}).output("y").model(5)), {});
  ASSERT_FALSE(graph);
  EXPECT_THAT(graph.error().message, HasSubstr("not supported in operator set 5, only from 6 on"));
}

TEST(OnnxFindings, ModelsWithoutOutputsAreRefused) {
  EXPECT_THAT(error_of(GraphWriter().input("x", {1})), HasSubstr("the model has no outputs"));
}

TEST(OnnxFindings, RunTimeShapesSayWhatToFix) {
  const std::string message = error_of(GraphWriter()
                                           .input("x", {6})
                                           .input("shape", {2}, ElementType::kI64)
                                           .node("Reshape", {"x", "shape"}, {"y"}, {}, "r")
                                           .output("y"));
  EXPECT_THAT(message, HasSubstr("operand 1 (shape) 'shape' must be known when the model is imported"));
  EXPECT_THAT(message, HasSubstr("--set shape="));
}

// If.

std::string branch(std::string_view op, const std::string& read) {
  return GraphWriter().node(op, {read}, {"r"}).output("r").graph();
}

TEST(OnnxIf, OnlyTheTakenBranchIsImported) {
  const auto writer =
      GraphWriter()
          .input("x", {1})
          .input("c", {}, ElementType::kBool)
          .node("If", {"c"}, {"y"},
                {graph_attr("then_branch", branch("Neg", "x")), graph_attr("else_branch", branch("Frobnicate", "x"))},
                "choice")
          .output("y");
  Options options;
  options.values = {{"c", {1}}};
  auto graph = import_of(writer, options);
  ASSERT_TRUE(graph) << graph.error().message;
  EXPECT_THAT(run(*graph, {{"x", floats({1}, {5})}}), ElementsAre(-5));
  options.values = {{"c", {0}}};
  EXPECT_THAT(error_of(writer, options), HasSubstr("Frobnicate"));
  EXPECT_THAT(error_of(writer), HasSubstr("node 'choice' (If): the condition is computed at run time"));
}

TEST(OnnxIf, BranchesSeeValuesAroundThemThatAreComputedLaterInTheFile) {
  const std::string inner =
      GraphWriter()
          .node("If", {"yes"}, {"r"},
                {graph_attr("then_branch", branch("Neg", "late")), graph_attr("else_branch", branch("Abs", "late"))})
          .output("r")
          .graph();
  auto graph =
      import_of(GraphWriter()
                    .input("x", {1})
                    .initializer(testing::raw_tensor("yes", ElementType::kBool, {}, {}))
                    .initializer(tensor<float>("two", {}, {2}))
                    .node("If", {"yes"}, {"y"}, {graph_attr("then_branch", inner), graph_attr("else_branch", inner)})
                    .node("Mul", {"x", "two"}, {"late"})
                    .output("y"));
  EXPECT_FALSE(graph) << "an initializer without data must be refused";
  const std::string yes = testing::raw_tensor("yes", ElementType::kBool, {}, std::string_view("\1", 1));
  graph =
      import_of(GraphWriter()
                    .input("x", {1})
                    .initializer(yes)
                    .initializer(tensor<float>("two", {}, {2}))
                    .node("If", {"yes"}, {"y"}, {graph_attr("then_branch", inner), graph_attr("else_branch", inner)})
                    .node("Mul", {"x", "two"}, {"late"})
                    .output("y"));
  ASSERT_TRUE(graph) << graph.error().message;
  EXPECT_THAT(run(*graph, {{"x", floats({1}, {5})}}), ElementsAre(-10));
}

TEST(ImportModel, FilesOfOtherKindsAreNamedAsSuch) {
  const auto message = [](const std::string& bytes) { return import_model(source_of(bytes), {}).error().message; };
  EXPECT_THAT(message(""), HasSubstr("test.onnx: the file is empty"));
  EXPECT_THAT(message("Hello, world. This is a text.\n"),
              HasSubstr("neither an ONNX nor a TensorFlow Lite model; it begins with the bytes 48 65"));
  EXPECT_THAT(message(std::string(100, '\0')), HasSubstr("neither an ONNX nor"));
  EXPECT_THAT(open_source("/nonexistent/model.onnx").error().message, HasSubstr("/nonexistent/model.onnx"));
}

}  // namespace
}  // namespace bantam::import
