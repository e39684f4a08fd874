#include <gtest/gtest.h>

#include <string>

#include "graph/testing/interpret.h"
#include "graph/text.h"
#include "passes/list.h"
#include "passes/testing/text_to_text.h"

namespace bantam::passes {
namespace {

using graph::testing::HostTensor;
using testing::after;
using testing::normalised;

/// A pixel shuffle by 2 behind `convolution`, whose result %c has 8 channels.
std::string shuffled(const std::string& convolution, const std::string& more_outputs = "") {
  return R"(graph "g" {
    %0 "x" = input : u8[1,1,3,1])" +
         convolution + R"(
    %5 = reshape(%4) {shape=[1, 1, 3, 2, 2, 2]}
    %6 = transpose(%5) {perm=[0, 1, 4, 2, 5, 3]}
    %7 "y" = reshape(%6) {shape=[1, 2, 6, 2]}
    output "y" %7)" +
         more_outputs + "\n}";
}

constexpr const char* kConvolution = R"(
    %1 = const : i8[8,1,1,1] {0, 1, 2, 3, 4, 5, 6, 7}
    %2 = const : i32[8] {10, 11, 12, 13, 14, 15, 16, 17}
    %3 = const : f32[1] {1}
    %4 = conv2d_affine(%0, %1, %2, %3))";

TEST(OrderChannels, OfAPixelShuffleComeAsTheyLieInPixels) {
  EXPECT_EQ(after(order_channels, shuffled(kConvolution)), normalised(R"(graph "g" {
    %0 "x" = input : u8[1,1,3,1]
    %1 = const : i8[8,1,1,1] {0, 4, 1, 5, 2, 6, 3, 7}
    %2 = const : i32[8] {10, 14, 11, 15, 12, 16, 13, 17}
    %3 = const : f32[1] {1}
    %4 = conv2d_affine(%0, %1, %2, %3)
    %5 = reshape(%4) {shape=[1, 1, 3, 2, 2, 2]}
    %6 = transpose(%5) {perm=[0, 1, 3, 2, 4, 5]}
    %7 "y" = reshape(%6) {shape=[1, 2, 6, 2]}
    output "y" %7
  })"));
}

TEST(OrderChannels, ResultsAreTheSame) {
  auto graph = graph::from_text(shuffled(kConvolution));
  ASSERT_TRUE(graph);
  HostTensor x{graph->value(graph->inputs[0].value).desc, {std::byte{3}, std::byte{100}, std::byte{7}}};
  const auto before = graph::testing::interpret(*graph, {{"x", x}});
  ASSERT_TRUE(order_channels(*graph));
  const auto now = graph::testing::interpret(*graph, {{"x", x}});
  ASSERT_TRUE(before && now);
  EXPECT_EQ(before->at("y").bytes, now->at("y").bytes);
}

TEST(OrderChannels, StaysWhereOthersReadTheConvolution) {
  const std::string text = shuffled(kConvolution, "\n    output \"c\" %4");
  EXPECT_EQ(after(order_channels, text), normalised(text));
}

TEST(OrderChannels, StaysWhereRunsOfChannelsMoveAnyway) {
  const std::string text = R"(graph "g" {
    %0 "x" = input : f32[1,1,3,1]
    %1 = const : f32[8,1,1,1] {0, 1, 2, 3, 4, 5, 6, 7}
    %2 = conv2d(%0, %1)
    %3 = reshape(%2) {shape=[1, 1, 3, 2, 2, 2]}
    %4 = transpose(%3) {perm=[0, 1, 3, 2, 4, 5]}
    %5 "y" = reshape(%4) {shape=[1, 2, 6, 2]}
    output "y" %5
  })";
  EXPECT_EQ(after(order_channels, text), normalised(text));
}

TEST(OrderChannels, StaysWhereThereAreNoChannels) {
  const std::string text = R"(graph "g" {
    %0 "x" = input : f32[1,1,3,1]
    %1 = const : f32[0,1,1,1] {}
    %2 = conv2d(%0, %1)
    %3 = reshape(%2) {shape=[1, 1, 3, 0, 2]}
    %4 "y" = transpose(%3) {perm=[0, 1, 2, 4, 3]}
    output "y" %4
  })";
  EXPECT_EQ(after(order_channels, text), normalised(text));
}

TEST(OrderChannels, StaysInGroupsWhoseChannelsBelongTogether) {
  const std::string text = R"(graph "g" {
    %0 "x" = input : f32[1,1,3,2]
    %1 = const : f32[8,1,1,1] {0, 1, 2, 3, 4, 5, 6, 7}
    %2 = conv2d(%0, %1) {groups=2}
    %3 = reshape(%2) {shape=[1, 1, 3, 2, 4]}
    %4 = transpose(%3) {perm=[0, 1, 2, 4, 3]}
    %5 "y" = reshape(%4) {shape=[1, 1, 3, 8]}
    output "y" %5
  })";
  EXPECT_EQ(after(order_channels, text), normalised(text));
}

}  // namespace
}  // namespace bantam::passes
