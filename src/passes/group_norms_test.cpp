#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>

#include "passes/list.h"
#include "passes/testing/text_to_text.h"

namespace bantam::passes {
namespace {

using testing::after;
using testing::normalised;

/// As torch exports group normalisation of 4 channels: rows of one group each, then numbers of channels.
std::string exported(const std::string& groups, const std::string& rows, const std::string& scale = "{1}") {
  return R"(graph "g" {
    %0 "x" = input : f32[2,4,3,5]
    %1 = reshape(%0) {shape=[2, )" +
         groups + ", " + rows + R"(]}
    %2 = const : f32[1,1,1] )" +
         scale + R"(
    %3 = const : f32[1,1,1] {0}
    %4 = norm(%1, %2, %3) {axes=[2]}
    %5 = reshape(%4) {shape=[2, 4, 3, 5]}
    %6 = const : f32[4,1,1] {1, 2, 3, 4}
    %7 = binary(%5, %6) {function="mul"}
    %8 = const : f32[1,4,1,1] {5, 6, 7, 8}
    %9 = binary(%8, %7) {function="add"}
    output "y" %9
  })";
}

/// The pass turns `text` into `expected`, with the same results.
void expect_in_place(std::string_view text, std::string_view expected) {
  testing::expect_rewritten(group_norms, text, expected);
}

TEST(GroupNorms, ChannelsBecomeGroupsAndTheirMembers) {
  expect_in_place(exported("2", "30"), R"(graph "g" {
    %0 "x" = input : f32[2,4,3,5]
    %1 = const : f32[1,2,2,1,1] {1, 2, 3, 4}
    %2 = const : f32[1,2,2,1,1] {5, 6, 7, 8}
    %3 = reshape(%0) {shape=[2, 2, 2, 3, 5]}
    %4 = norm(%3, %1, %2) {axes=[2, 3, 4]}
    %5 = reshape(%4) {shape=[2, 4, 3, 5]}
    output "y" %5
  })");
}

TEST(GroupNorms, OneGroupIsAllOfTheImage) {
  expect_in_place(exported("1", "60"), R"(graph "g" {
    %0 "x" = input : f32[2,4,3,5]
    %1 = const : f32[4,1,1] {1, 2, 3, 4}
    %2 = const : f32[1,4,1,1] {5, 6, 7, 8}
    %3 = norm(%0) {axes=[1, 2, 3]}
    %4 = binary(%3, %1) {function="mul"}
    %5 = binary(%2, %4) {function="add"}
    output "y" %5
  })");
}

TEST(GroupNorms, GroupsOfOneChannelAreImagesOfTheirOwn) {
  expect_in_place(exported("4", "15"), R"(graph "g" {
    %0 "x" = input : f32[2,4,3,5]
    %1 = const : f32[4,1,1] {1, 2, 3, 4}
    %2 = const : f32[1,4,1,1] {5, 6, 7, 8}
    %3 = norm(%0) {axes=[2, 3]}
    %4 = binary(%3, %1) {function="mul"}
    %5 = binary(%2, %4) {function="add"}
    output "y" %5
  })");
}

TEST(GroupNorms, RowsOfAnyShapeAreTheSame) {
  std::string text = exported("2", "6, 5");
  text.replace(text.find("axes=[2]"), 8, "axes=[2, 3]");
  EXPECT_NE(after(group_norms, text).find("f32[1,2,2,1,1]"), std::string::npos);
}

TEST(GroupNorms, StayWhereGroupsHaveNumbersOfTheirOwn) {
  const std::string text = exported("2", "30", "{2}");
  EXPECT_EQ(after(group_norms, text), normalised(text));
}

TEST(GroupNorms, StayWhereRowsAreNoGroupsOfChannels) {
  for (const auto& [groups, rows] : {std::pair("3", "20"), std::pair("6", "10"), std::pair("60", "1")}) {
    const std::string text = exported(groups, rows);
    EXPECT_EQ(after(group_norms, text), normalised(text)) << groups;
  }
}

TEST(GroupNorms, NumbersThatAreNotOfChannelsStayBehind) {
  std::string text = exported("2", "30");
  text.replace(text.find("f32[4,1,1] {1, 2, 3, 4}"), 23, "f32[3,1] {1, 2, 3}");
  const std::string result = after(group_norms, text);
  EXPECT_NE(result.find("binary"), std::string::npos) << result;
  EXPECT_NE(result.find("[2, 2, 2, 3, 5]"), std::string::npos) << result;
}

}  // namespace
}  // namespace bantam::passes
