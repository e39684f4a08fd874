#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "graph/testing/interpret.h"
#include "passes/list.h"
#include "passes/testing/text_to_text.h"

namespace bantam::passes {
namespace {

using graph::testing::HostTensor;
using testing::after;
using testing::normalised;

/// An image of 1x2 pixels and 3 channels, flattened channel by channel, and what follows it.
std::string flattened(const std::string& type, const std::string& rest) {
  return R"(graph "g" {
    %0 "x" = input : )" +
         type + R"([2,1,2,3]
    %1 = transpose(%0) {perm=[0, 3, 1, 2]}
    %2 = reshape(%1) {shape=[2, 6]}
    )" + rest +
         "\n}";
}

/// The pass keeps the graph.
void expect_not_turned(const std::string& text) { EXPECT_EQ(after(turn_weights, text), normalised(text)); }

constexpr const char* kFloatProduct = R"(%3 = const : f32[6,2] {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}
    %4 = const : f32[2] {100, 200}
    %5 = matmul(%2, %3, %4)
    output "y" %5)";

TEST(TurnWeights, ImagesAreMultipliedAsTheyLie) {
  EXPECT_EQ(after(turn_weights, flattened("f32", kFloatProduct)), normalised(R"(graph "g" {
    %0 "x" = input : f32[2,1,2,3]
    %1 = const : f32[2] {100, 200}
    %2 = const : f32[6,2] {0, 1, 4, 5, 8, 9, 2, 3, 6, 7, 10, 11}
    %3 = reshape(%0) {shape=[2, 6]}
    %4 = matmul(%3, %2, %1)
    output "y" %4
  })"));
}

TEST(TurnWeights, OfRowsOfWeightsColumnsAreTurned) {
  EXPECT_EQ(after(turn_weights, flattened("u8", R"(%3 = const : i8[2,6] {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}
    %4 = const : f32[1] {1}
    %5 = matmul_affine(%2, %3, _, %4) {transpose_b=true}
    output "y" %5)")),
            normalised(R"(graph "g" {
    %0 "x" = input : u8[2,1,2,3]
    %1 = const : f32[1] {1}
    %2 = const : i8[2,6] {0, 2, 4, 1, 3, 5, 6, 8, 10, 7, 9, 11}
    %3 = reshape(%0) {shape=[2, 6]}
    %4 = matmul_affine(%3, %2, _, %1) {transpose_b=true}
    output "y" %4
  })"));
}

TEST(TurnWeights, OnlyTheAxesThatAreJoinedMustBeTheOnesThatMove) {
  // A conformer's frames: channels and bands of each are joined.
  EXPECT_EQ(after(turn_weights, R"(graph "g" {
    %0 "x" = input : f32[1,2,2,3]
    %1 = transpose(%0) {perm=[0, 1, 3, 2]}
    %2 = reshape(%1) {shape=[1, 2, 6]}
    %3 = const : f32[6,1] {0, 1, 2, 3, 4, 5}
    %4 = matmul(%2, %3)
    output "y" %4
  })"),
            normalised(R"(graph "g" {
    %0 "x" = input : f32[1,2,2,3]
    %1 = const : f32[6,1] {0, 2, 4, 1, 3, 5}
    %2 = reshape(%0) {shape=[1, 2, 6]}
    %3 = matmul(%2, %1)
    output "y" %3
  })"));
  expect_not_turned(R"(graph "g" {
    %0 "x" = input : f32[1,2,2,3]
    %1 = transpose(%0) {perm=[0, 2, 3, 1]}
    %2 = reshape(%1) {shape=[1, 2, 6]}
    %3 = const : f32[6,1] {0, 1, 2, 3, 4, 5}
    %4 = matmul(%2, %3)
    output "y" %4
  })");
}

TEST(TurnWeights, ResultsAreTheSame) {
  auto graph = testing::parse(flattened("f32", kFloatProduct));
  HostTensor x{graph.value(graph.inputs[0].value).desc, std::vector<std::byte>(12 * sizeof(float))};
  for (int i = 0; i < 12; ++i) {
    const auto value = static_cast<float>(i * i % 7);
    std::memcpy(&x.bytes[static_cast<std::size_t>(i) * sizeof(float)], &value, sizeof value);
  }
  const auto before = graph::testing::interpret(graph, {{"x", x}});
  ASSERT_TRUE(turn_weights(graph));
  const auto now = graph::testing::interpret(graph, {{"x", x}});
  ASSERT_TRUE(before && now);
  EXPECT_EQ(before->at("y").bytes, now->at("y").bytes);
}

TEST(TurnWeights, StayWhereOthersReadThemOrWhatLiesBetween) {
  expect_not_turned(flattened("f32", std::string(kFloatProduct) + "\n    output \"flat\" %2"));
  expect_not_turned(flattened("f32", std::string(kFloatProduct) + "\n    output \"turned\" %1"));
  expect_not_turned(flattened("f32", std::string(kFloatProduct) + "\n    output \"weights\" %3"));
}

TEST(TurnWeights, StayWhereTheyAreNoConstantMatrix) {
  expect_not_turned(R"(graph "g" {
    %0 "x" = input : f32[2,1,2,3]
    %1 "w" = input : f32[6,2]
    %2 = transpose(%0) {perm=[0, 3, 1, 2]}
    %3 = reshape(%2) {shape=[2, 6]}
    %4 = matmul(%3, %1)
    output "y" %4
  })");
  expect_not_turned(R"(graph "g" {
    %0 "x" = input : f32[2,1,2,1]
    %1 = transpose(%0) {perm=[0, 3, 2, 1]}
    %2 = reshape(%1) {shape=[2, 1, 2]}
    %3 = const : f32[1,2,1] {1, 2}
    %4 = matmul(%2, %3)
    output "y" %4
  })");
}

}  // namespace
}  // namespace bantam::passes
