#include "graph/text.h"

#include <gtest/gtest.h>

#include "ops/nn/conv2d/conv2d.h"

namespace bantam::graph {
namespace {

std::string message_of(std::string_view text) {
  const auto graph = from_text(text);
  return graph ? "parsed" : graph.error().message;
}

/// Everything the form has: ports, states, constants of several types, absent operands, comments, parameters.
constexpr const char* kSample = R"(graph "tiny \"one\"" {
  %0 "x" = input : f32[1,4]
  %1 "h" = state : f32[1,2] {0.5, -1}
  %2 = const : f32[4,2] {1, 2, 3, 4, 5, 6, 7, 8}
  %3 = matmul(%0, %2, _) {activation="clip", activation_a=-1, activation_b=6} : f32[1,2]
  %4 "sum" = binary(%3, %1) : f32[1,2]
  %5 = const : f32[2] splat(0.25)
  %6 = binary(%4, %5) {function="mul"} : f32[1,2]
  %7 = transpose(%6) {perm=[1, 0]} : f32[2,1]
  %8 = cast(%7) {to="i8"} : i8[2,1]
  output "y" %8
  next "h" %4
}
)";

TEST(GraphText, PrintsWhatItParsed) {
  const auto graph = from_text(kSample);
  ASSERT_TRUE(graph) << graph.error().message;
  EXPECT_EQ(to_text(*graph), kSample);
}

TEST(GraphText, NumbersValuesByAppearance) {
  const auto graph = from_text(R"(graph "g" { # a comment
    %weights = const : i32[2] {1, -2}
    %in "x" = input : i32[2]
    %out = binary(%in, %weights) {function="sub"}
    output "y" %out
  })");
  ASSERT_TRUE(graph) << graph.error().message;
  EXPECT_EQ(to_text(*graph), R"(graph "g" {
  %0 "x" = input : i32[2]
  %1 = const : i32[2] {1, -2}
  %2 = binary(%0, %1) {function="sub"} : i32[2]
  output "y" %2
}
)");
}

TEST(GraphText, KeepsArraysAndElementsOfEveryType) {
  const char* text = R"(graph "g" {
  %0 = const : bool[2] {1, 0}
  output "a" %0
  %1 = const : u8[2] {255, 0}
  output "b" %1
  %2 = const : i64[2] {-9223372036854775807, 9223372036854775807}
  output "c" %2
  %3 = const : f64[2] {0.1, -2.5}
  output "d" %3
  %4 = const : f32[3] {inf, -inf, 1e-07}
  output "e" %4
  %5 = const : f32[0] {}
  output "f" %5
  %6 = const : i16[] {-32768}
  output "g" %6
}
)";
  const auto graph = from_text(text);
  ASSERT_TRUE(graph) << graph.error().message;
  EXPECT_EQ(to_text(*graph), text);
}

TEST(GraphText, AnAbsentResultPrintsAsUnderscore) {
  const char* text = R"(graph "g" {
  %0 "x" = input : f32[4]
  _, %1 = topk(%0) {axis=0, k=2} : _, i64[2]
  output "i" %1
}
)";
  const auto graph = from_text(text);
  ASSERT_TRUE(graph) << graph.error().message;
  EXPECT_EQ(to_text(*graph), text);
}

TEST(GraphText, LargeConstantsPrintAsDotsThatDoNotParse) {
  Graph graph;
  Value v;
  v.desc.type = ElementType::kI8;
  v.desc.rank = 1;
  v.desc.dims[0] = kPrintedElements + 1;
  v.desc.set_dense_strides();
  auto bytes = std::make_shared<std::vector<std::byte>>(kPrintedElements + 1);
  (*bytes)[3] = std::byte{1};
  v.constant = Constant{*bytes, bytes};
  graph.outputs.push_back({"y", graph.add_value(std::move(v))});
  const std::string text = to_text(graph);
  EXPECT_NE(text.find("i8[65] ..."), std::string::npos) << text;
  EXPECT_FALSE(from_text(text));
}

TEST(GraphText, ErrorsNameTheLineAndTheFinding) {
  EXPECT_EQ(message_of("graph \"g\" {\n  %0 = input : f33[1]\n}"), "line 2: unknown element type 'f33'");
  EXPECT_NE(message_of("graph {\n  output \"y\" %7\n}").find("%7 is not defined"), std::string::npos);
  EXPECT_NE(message_of("graph {\n\n  %0 = nonsense(_)\n}").find("line 3: unknown operator 'nonsense'"),
            std::string::npos);
  EXPECT_NE(message_of("graph { %0 = const : f32[2] {1} }").find("4 bytes of elements, 8 needed"), std::string::npos);
  EXPECT_NE(message_of("graph { %0 \"x\" = input : f32[2] %1 = unary(%0) {function=\"wobble\"} }").find("'wobble'"),
            std::string::npos);
  EXPECT_NE(message_of("graph { %0 \"x\" = input : f32[2] %1 = unary(%0) {slope=1} }").find("no parameter 'slope'"),
            std::string::npos);
  EXPECT_NE(message_of("graph { %0 \"x\" = input : f32[2] %1 = unary(%0) : f32[3] }").find("is f32[2], not f32[3]"),
            std::string::npos);
  EXPECT_NE(message_of("graph { %0 \"x\" = input : f32[2] %0 = unary(%0) }").find("defined twice"), std::string::npos);
}

TEST(GraphText, EveryCutOfAGraphIsAGraphOrAnError) {
  const std::string text = kSample;
  for (std::size_t n = 0; n + 2 < text.size(); ++n) EXPECT_FALSE(from_text(text.substr(0, n))) << n;
}

TEST(GraphText, ARankAboveTheLimitIsAnError) {
  EXPECT_FALSE(from_text("graph { %0 = input : f32[1,1,1,1,1,1,1,1,1] }"));
  EXPECT_FALSE(from_text("graph { %0 = input : f32[99999999999] }"));
  EXPECT_FALSE(from_text("graph { %0 = input : f32[-1] }"));
}

}  // namespace
}  // namespace bantam::graph
