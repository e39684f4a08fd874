#include <gtest/gtest.h>

#include "graph/graph.h"
#include "graph/text.h"
#include "ops/elementwise/unary/unary.h"

namespace bantam::graph {
namespace {

Graph sample() {
  auto graph = from_text(R"(graph "g" {
    %0 "x" = input : f32[2]
    %1 "h" = state : f32[2]
    %2 = const : f32[2] {1, 2}
    %3 = binary(%0, %1) {function="add"}
    %4 = binary(%3, %2) {function="mul"}
    output "y" %4
    next "h" %3
  })");
  EXPECT_TRUE(graph) << graph.error().message;
  return std::move(*graph);
}

/// What verify says about the sample after `damage`; empty when it finds nothing.
template <typename Damage>
std::string finding(Damage damage) {
  Graph graph = sample();
  damage(graph);
  const auto sound = verify(graph);
  return sound ? "" : sound.error().message;
}

TEST(Verify, AcceptsASoundGraphAndRemovedNodes) {
  EXPECT_EQ(finding([](Graph&) {}), "");
  EXPECT_EQ(finding([](Graph& g) {
              g.outputs[0].value = g.nodes[0].outputs[0];
              g.nodes[1].op = nullptr;
            }),
            "");
}

TEST(Verify, RefusesAReadBeforeTheDefinition) {
  EXPECT_NE(finding([](Graph& g) { std::swap(g.nodes[0], g.nodes[1]); }).find("before it is defined"),
            std::string::npos);
}

TEST(Verify, RefusesTwoProducersOfAValue) {
  EXPECT_NE(finding([](Graph& g) { g.nodes[1].outputs[0] = g.nodes[0].outputs[0]; }).find("defined twice"),
            std::string::npos);
  EXPECT_NE(finding([](Graph& g) { g.nodes[1].outputs[0] = g.inputs[0].value; }).find("defined twice"),
            std::string::npos);
}

TEST(Verify, RefusesAWrongProducerIndex) {
  EXPECT_NE(finding([](Graph& g) { g.value(g.nodes[1].outputs[0]).producer = 0; }).find("producer"), std::string::npos);
}

TEST(Verify, RefusesShapesThatTheOperatorDoesNotGive) {
  EXPECT_NE(finding([](Graph& g) {
              Value& v = g.value(g.nodes[1].outputs[0]);
              v.desc.dims[0] = 3;
              v.desc.set_dense_strides();
            }).find("f32[3]"),
            std::string::npos);
  EXPECT_NE(finding([](Graph& g) { g.value(g.nodes[1].outputs[0]).desc.type = ElementType::kI32; }).find("i32[2]"),
            std::string::npos);
}

TEST(Verify, RefusesParametersOfAnotherSize) {
  EXPECT_NE(finding([](Graph& g) { g.nodes[0].params = Params(); }).find("bytes of parameters"), std::string::npos);
}

TEST(Verify, RefusesOperandCountsTheOperatorDoesNotHave) {
  EXPECT_NE(finding([](Graph& g) { g.nodes[0].inputs.pop_back(); }), "");
  EXPECT_NE(finding([](Graph& g) { g.nodes[0].inputs[0] = kNone; }), "");
  EXPECT_NE(finding([](Graph& g) { g.nodes[0].outputs.push_back(kNone); }).find("results"), std::string::npos);
}

TEST(Verify, RefusesIndicesThatNameNoValue) {
  EXPECT_NE(finding([](Graph& g) { g.nodes[0].inputs[0] = 99; }).find("names no value"), std::string::npos);
  EXPECT_NE(finding([](Graph& g) { g.nodes[0].inputs[0] = -7; }).find("names no value"), std::string::npos);
  EXPECT_NE(finding([](Graph& g) { g.outputs[0].value = 99; }).find("names no value"), std::string::npos);
  EXPECT_NE(finding([](Graph& g) { g.inputs[0].value = kNone; }).find("names no value"), std::string::npos);
  EXPECT_NE(finding([](Graph& g) { g.states[0].out = 99; }).find("names no value"), std::string::npos);
}

TEST(Verify, RefusesConstantsOfTheWrongSize) {
  EXPECT_NE(finding([](Graph& g) {
              for (Value& v : g.values)
                if (v.constant) v.constant->bytes = v.constant->bytes.first(4);
            }).find("has 4 bytes"),
            std::string::npos);
}

TEST(Verify, RefusesStatesWhoseNextValueDiffers) {
  EXPECT_NE(finding([](Graph& g) {
              Value& in = g.value(g.states[0].in);
              in.desc.dims[0] = 1;
              in.desc.set_dense_strides();
            }).find("state 'h'"),
            std::string::npos);
}

TEST(Verify, RefusesStridedAndImpossibleShapes) {
  EXPECT_NE(finding([](Graph& g) { g.value(g.inputs[0].value).desc.strides[0] = 2; }).find("not dense"),
            std::string::npos);
  EXPECT_NE(finding([](Graph& g) { g.value(g.inputs[0].value).desc.dims[0] = -1; }), "");
  EXPECT_NE(finding([](Graph& g) { g.value(g.inputs[0].value).desc.rank = 200; }), "");
}

}  // namespace
}  // namespace bantam::graph
