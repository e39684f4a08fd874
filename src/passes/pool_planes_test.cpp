#include <gtest/gtest.h>

#include <string>

#include "graph/testing/interpret.h"
#include "graph/text.h"
#include "ops/testing/sampling.h"
#include "passes/list.h"
#include "passes/testing/text_to_text.h"

namespace bantam::passes {
namespace {

using testing::after;
using testing::normalised;

/// `pools` from %1 to %8 between the transposes that importers write around them.
std::string between_transposes(const std::string& width, const std::string& pools, const std::string& more = "",
                               const std::string& channels = "3") {
  return "graph \"g\" {\n    %0 \"x\" = input : f32[2," + channels + ",9," + width +
         "]\n    %1 = transpose(%0) {perm=[0, 2, 3, 1]}\n" + pools +
         "\n    %9 \"y\" = transpose(%8) {perm=[0, 3, 1, 2]}\n    output \"y\" %9\n" + more + "}";
}

constexpr const char* kPool = "    %8 = pool2d(%1) {kernel_h=3, kernel_w=2, stride_w=2, pad_top=1}";
constexpr const char* kTwoPools =
    "    %2 = pool2d(%1) {kernel_h=2, kernel_w=2}\n    %8 = pool2d(%2) {kernel_w=3, stride_h=2, pad_right=1}";

TEST(PoolPlanes, LeavesOutTheTransposesAroundAPooling) {
  EXPECT_EQ(after(pool_planes, between_transposes("80", kPool)), normalised(R"(graph "g" {
    %0 "x" = input : f32[2,3,9,80]
    %1 = reshape(%0) {shape=[6, 9, 80, 1]}
    %2 = pool2d(%1) {kernel_h=3, kernel_w=2, stride_w=2, pad_top=1}
    %3 "y" = reshape(%2) {shape=[2, 3, 8, 40]}
    output "y" %3
  })"));
}

TEST(PoolPlanes, LeavesOutThoseAroundSeveral) {
  EXPECT_EQ(after(pool_planes, between_transposes("90", kTwoPools)), normalised(R"(graph "g" {
    %0 "x" = input : f32[2,3,9,90]
    %1 = reshape(%0) {shape=[6, 9, 90, 1]}
    %2 = pool2d(%1) {kernel_h=2, kernel_w=2}
    %3 = pool2d(%2) {kernel_w=3, stride_h=2, pad_right=1}
    %4 "y" = reshape(%3) {shape=[2, 3, 4, 88]}
    output "y" %4
  })"));
}

TEST(PoolPlanes, TransposesWhatIsLeftOfFewChannels) {
  EXPECT_EQ(after(pool_planes, R"(graph "g" {
    %0 "x" = input : f32[1,3,100,90]
    %1 = transpose(%0) {perm=[0, 2, 3, 1]}
    %2 = pool2d(%1) {kernel_h=2, kernel_w=2, stride_h=2, stride_w=2}
    %3 "y" = pool2d(%2) {kernel_h=3, kernel_w=3}
    output "y" %3
  })"),
            normalised(R"(graph "g" {
    %0 "x" = input : f32[1,3,100,90]
    %1 = transpose(%0) {perm=[1, 2, 3, 0]}
    %2 = pool2d(%1) {kernel_h=2, kernel_w=2, stride_h=2, stride_w=2}
    %3 = transpose(%2) {perm=[3, 0, 1, 2]}
    %4 = transpose(%3) {perm=[0, 2, 3, 1]}
    %5 "y" = pool2d(%4) {kernel_h=3, kernel_w=3}
    output "y" %5
  })"));
}

TEST(PoolPlanes, ResultsAreTheSame) {
  for (const char* pools : {kPool, kTwoPools}) {
    auto graph = graph::from_text(between_transposes("91", pools));
    ASSERT_TRUE(graph);
    ops::testing::Random random(1);
    graph::testing::HostTensor x{graph->value(graph->inputs[0].value).desc, {}};
    for (std::int64_t i = 0; i < x.desc.bytes(); ++i)
      x.bytes.push_back(static_cast<std::byte>(i % 4 == 3 ? 0x3f : random() % 256));
    const auto before = graph::testing::interpret(*graph, {{"x", x}});
    ASSERT_TRUE(pool_planes(*graph));
    const auto now = graph::testing::interpret(*graph, {{"x", x}});
    ASSERT_TRUE(before && now);
    EXPECT_EQ(before->at("y").bytes, now->at("y").bytes);
  }
}

TEST(PoolPlanes, KeepsWhatOthersReadShortRowsAndBytes) {
  for (const std::string& text :
       {std::string("graph \"g\" {\n    %0 \"x\" = input : u8[1,3,9,400]\n    %1 = transpose(%0) {perm=[0, 2, 3, 1]}\n"
                    "    %2 = pool2d(%1) {minimum=0, maximum=255}\n    %3 \"y\" = transpose(%2) {perm=[0, 3, 1, 2]}\n"
                    "    output \"y\" %3\n}"),
        between_transposes("79", kPool), between_transposes("80", kPool, "    output \"z\" %8\n", "16"),
        between_transposes("80", "    %2 = unary(%1) {function=\"tanh\"}\n    %8 = pool2d(%2)"),
        std::string("graph \"g\" {\n    %0 \"x\" = input : f32[1,80,80,1]\n    %1 = transpose(%0) {perm=[0, 2, 1, 3]}\n"
                    "    %2 = pool2d(%1)\n    %3 \"y\" = transpose(%2) {perm=[0, 3, 1, 2]}\n    output \"y\" %3\n}")})
    EXPECT_EQ(after(pool_planes, text), normalised(text));
}

TEST(PoolPlanes, KeepsMorePoolingsThanARuleMayEmit) {
  std::string pools;
  for (int i = 1; i < 100; ++i)
    pools += "    %p" + std::to_string(i) + " = pool2d(%" + (i == 1 ? "1" : "p" + std::to_string(i - 1)) + ")\n";
  const std::string text = between_transposes("80", pools + "    %8 = pool2d(%p99)", "", "16");
  EXPECT_EQ(after(pool_planes, text), normalised(text));
}

}  // namespace
}  // namespace bantam::passes
