#include <gtest/gtest.h>

#include <string>

#include "passes/list.h"
#include "passes/testing/text_to_text.h"

namespace bantam::passes {
namespace {

using testing::after;
using testing::normalised;

/// A 1x1 convolution of an image of six channels in three groups; `form`: further parameters.
std::string grouped(const std::string& weights, const std::string& form) {
  return R"(graph "g" {
    %0 "x" = input : u8[1,2,2,6]
    %1 = const : )" +
         weights + R"(
    %2 "y" = conv2d_affine(%0, %1) {groups=3, to="i32")" +
         form + R"(}
    output "y" %2
  })";
}

TEST(JoinGroups, FillsWhatLiesBetweenWithTheZeroPoint) {
  EXPECT_EQ(after(join_groups, grouped("i8[3,1,1,2] {1, 2, 3, 4, 5, 6}", ", weights_zero_point=-7")),
            normalised(R"(graph "g" {
    %0 "x" = input : u8[1,2,2,6]
    %1 = const : i8[3,1,1,6] {1, 2, -7, -7, -7, -7, -7, -7, 3, 4, -7, -7, -7, -7, -7, -7, 5, 6}
    %2 "y" = conv2d_affine(%0, %1) {to="i32", weights_zero_point=-7}
    output "y" %2
  })"));
}

TEST(JoinGroups, LeavesOtherConvolutionsAlone) {
  for (const std::string& text :
       {grouped("i8[3,1,2,2] splat(1)", ""), grouped("i8[99,1,1,2] splat(1)", ""), std::string(R"(graph "g" {
    %0 "x" = input : f32[1,2,2,6]
    %1 = const : f32[3,1,1,2] splat(1)
    %2 "y" = conv2d(%0, %1) {groups=3}
    output "y" %2
  })")})
    EXPECT_EQ(after(join_groups, text), normalised(text));
}

}  // namespace
}  // namespace bantam::passes
