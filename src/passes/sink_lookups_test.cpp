// Text-to-text tests of sink_lookups, and a comparison of results with the graph as it was.
#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "graph/testing/interpret.h"
#include "passes/list.h"
#include "passes/testing/text_to_text.h"

namespace bantam::passes {
namespace {

using testing::after;
using testing::normalised;

/// A table of that type whose entry for bits i is entry(i).
std::string table_of(const std::string& type, const std::function<int(int)>& entry) {
  std::string text = "const : " + type + "[256] {";
  for (int i = 0; i < 256; ++i) text += (i > 0 ? ", " : "") + std::to_string(entry(i));
  return text + "}";
}

/// A max_pool of a look-up, of an image of that type.
std::string pooled(const std::string& type, const std::string& table, const std::string& pool) {
  return R"(graph "g" {
    %0 "x" = input : )" +
         type + R"([1,5,6,3]
    %1 = )" +
         table + R"(
    %2 = lookup8(%0, %1)
    %3 = pool2d(%2) {)" +
         pool + R"(}
    output "y" %3
  })";
}

/// The look-up of a max_pool.
std::string sunk(const std::string& type, const std::string& table, const std::string& pool) {
  return R"(graph "g" {
    %0 "x" = input : )" +
         type + R"([1,5,6,3]
    %1 = )" +
         table + R"(
    %2 = pool2d(%0) {)" +
         pool + R"(}
    %3 = lookup8(%2, %1)
    output "y" %3
  })";
}

const std::string kUnsigned =
    "kernel_h=3, kernel_w=3, stride_h=2, stride_w=2, pad_top=1, pad_left=1, minimum=0, maximum=255";
const std::string kSigned = "kernel_h=2, kernel_w=2, stride_h=2, stride_w=2, minimum=-128, maximum=127";
/// A relu on a finer grid.
int relu(int i) { return std::max(0, std::min(2 * i - 256, 255)); }
/// Grows with the signed number.
int half_of_signed(int i) { return (i < 128 ? i : i - 256) / 2 + 3; }

std::vector<std::byte> results_of_bytes(std::string_view text) {
  const graph::Graph graph = testing::parse(text);
  std::mt19937 random(3);
  graph::testing::HostTensor x{graph.value(graph.inputs[0].value).desc, {}};
  x.bytes.resize(static_cast<std::size_t>(x.desc.bytes()));
  for (std::byte& b : x.bytes) b = static_cast<std::byte>(random());
  auto results = graph::testing::interpret(graph, {{"x", x}});
  EXPECT_TRUE(results) << (results ? "" : results.error().message);
  return results ? results->at("y").bytes : std::vector<std::byte>{};
}

void expect_sunk(const std::string& text, const std::string& expected) {
  EXPECT_EQ(after(sink_lookups, text), normalised(expected));
  EXPECT_EQ(results_of_bytes(text), results_of_bytes(expected));
}

void expect_kept(const std::string& text) { EXPECT_EQ(after(sink_lookups, text), normalised(text)); }

TEST(SinkLookups, TablesThatGrowComeBehindMaxima) {
  const std::string table = table_of("u8", relu);
  expect_sunk(pooled("u8", table, kUnsigned), sunk("u8", table, kUnsigned));
}

TEST(SinkLookups, SignedNumbersGrowInTheirOwnOrder) {
  const std::string table = table_of("i8", half_of_signed);
  expect_sunk(pooled("i8", table, kSigned), sunk("i8", table, kSigned));
  expect_kept(pooled("i8", table_of("i8", [](int i) { return i / 2; }), kSigned));
}

TEST(SinkLookups, AMaximumTakesTheTypeOfItsNewOperand) {
  const std::string table = table_of("u8", [](int i) { return half_of_signed(i) + 61; });
  const std::string pool = "kernel_h=2, kernel_w=2, stride_h=2, stride_w=2, minimum=0, maximum=255";
  expect_sunk(pooled("i8", table, pool), sunk("i8", table, kSigned));
}

TEST(SinkLookups, TablesThatFallStay) {
  expect_kept(pooled("u8", table_of("u8", [](int i) { return i == 200 ? 3 : i; }), kUnsigned));
}

TEST(SinkLookups, WhatIsNoPlainMaximumOfFewerElementsStays) {
  const std::string table = table_of("u8", relu);
  expect_kept(pooled("u8", table, "kind=\"average\", " + kUnsigned));
  expect_kept(pooled(
      "u8", table, "kernel_h=3, kernel_w=3, pad_top=1, pad_left=1, pad_bottom=1, pad_right=1, minimum=0, maximum=255"));
  expect_kept(pooled("u8", table, "kernel_h=2, kernel_w=2, stride_h=2, stride_w=2, minimum=0, maximum=200"));
  // The first window lies outside the image.
  expect_kept(pooled("u8", table, "kernel_h=2, kernel_w=2, stride_h=2, stride_w=2, pad_top=2, minimum=0, maximum=255"));
}

TEST(SinkLookups, WhatOthersReadIsLookedUpBefore) {
  expect_kept(R"(graph "g" {
    %0 "x" = input : u8[1,4,4,1]
    %1 = )" + table_of("u8", relu) +
              R"(
    %2 = lookup8(%0, %1)
    %3 = pool2d(%2) {kernel_h=2, kernel_w=2, stride_h=2, stride_w=2, minimum=0, maximum=255}
    output "y" %3
    output "z" %2
  })");
}

}  // namespace
}  // namespace bantam::passes
