#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "graph/text.h"
#include "ops/data/transpose/transpose.h"
#include "ops/nn/conv2d/conv2d.h"
#include "passes/list.h"
#include "passes/testing/text_to_text.h"

namespace bantam::passes {
namespace {

using testing::after;
using testing::normalised;

TEST(ChannelsLast, TransposesBetweenConvolutionsVanish) {
  EXPECT_EQ(after(channels_last, R"(graph "g" {
    %0 "x" = input : f32[1,2,4,4]
    %1 = transpose(%0) {perm=[0, 2, 3, 1]}
    %2 = const : f32[3,1,1,2] splat(1)
    %3 = conv2d(%1, %2)
    %4 = transpose(%3) {perm=[0, 3, 1, 2]}
    %5 = const : f32[3,1,1] {1, 2, 3}
    %6 = binary(%4, %5) {function="mul"}
    %7 = unary(%6) {function="relu"}
    %8 = transpose(%7) {perm=[0, 2, 3, 1]}
    %9 = const : f32[5,1,1,3] splat(2)
    %10 = conv2d(%8, %9)
    %11 "y" = transpose(%10) {perm=[0, 3, 1, 2]}
    output "y" %11
  })"),
            normalised(R"(graph "g" {
    %0 "x" = input : f32[1,2,4,4]
    %1 = transpose(%0) {perm=[0, 2, 3, 1]}
    %2 = const : f32[3,1,1,2] splat(1)
    %3 = conv2d(%1, %2)
    %5 = const : f32[1,1,1,3] {1, 2, 3}
    %6 = binary(%3, %5) {function="mul"}
    %7 = unary(%6) {function="relu"}
    %9 = const : f32[5,1,1,3] splat(2)
    %10 = conv2d(%7, %9)
    %11 "y" = transpose(%10) {perm=[0, 3, 1, 2]}
    output "y" %11
  })"));
}

TEST(ChannelsLast, KeepsTheNamesOfTransposesThatVanish) {
  auto graph = graph::from_text(R"(graph "g" {
    %0 "x" = input : f32[1,2,4,5]
    %1 = transpose(%0) {perm=[0, 2, 3, 1]}
    %2 = const : f32[3,1,1,2] splat(1)
    %3 = conv2d(%1, %2)
    %4 "first" = transpose(%3) {perm=[0, 3, 1, 2]}
    %8 = transpose(%4) {perm=[0, 2, 3, 1]}
    %9 = const : f32[5,1,1,3] splat(2)
    %10 = conv2d(%8, %9)
    %11 "y" = transpose(%10) {perm=[0, 3, 1, 2]}
    output "y" %11
  })");
  ASSERT_TRUE(graph);
  ASSERT_TRUE(channels_last(*graph));
  const auto named = std::ranges::find(graph->values, "first", &graph::Value::name);
  ASSERT_NE(named, graph->values.end());
  EXPECT_TRUE(graph->node(named->producer).is(ops::kConv2d));
  // The axis of 3 channels is the tensor's axis 1 and the value's axis 3.
  EXPECT_EQ(std::vector(named->layout.v, named->layout.v + named->layout.size),
            (std::vector<std::int32_t>{0, 2, 3, 1}));
  EXPECT_EQ(named->desc.dims[3], 3);
}

// Of sequences, which are images with a row while they are convolved.
TEST(ChannelsLast, KeepsTheNamesOfSequencesThatAreImages) {
  auto graph = graph::from_text(R"(graph "g" {
    %0 "x" = input : f32[1,1,5,2]
    %1 = const : f32[3,1,1,2] splat(1)
    %2 = conv2d(%0, %1)
    %3 = reshape(%2) {shape=[1, 5, 3]}
    %4 "sequence" = transpose(%3) {perm=[0, 2, 1]}
    %5 = unary(%4) {function="relu"}
    %6 "y" = reshape(%5) {shape=[15]}
    output "y" %6
  })");
  ASSERT_TRUE(graph);
  ASSERT_TRUE(name_turned(*graph));
  const graph::Value& image = graph->value(graph->nodes[0].outputs[0]);
  EXPECT_EQ(image.name, "sequence");
  EXPECT_EQ(std::vector(image.layout.v, image.layout.v + image.layout.size),
            (std::vector{graph::kAddedAxis, graph::kAddedAxis, 2, 1}));
  EXPECT_EQ(graph->value(graph->nodes[3].outputs[0]).name, "") << "its elements are those of several axes";
}

TEST(ChannelsLast, RemapsTheParametersOfWhatItMoves) {
  EXPECT_EQ(after(channels_last, R"(graph "g" {
    %0 "x" = input : f32[1,4,4,2]
    %1 = pool2d(%0)
    %2 = transpose(%1) {perm=[0, 3, 1, 2]}
    %3 = slice(%2) {starts=[0, 1, 0, 0], steps=[1, 1, 1, 2], sizes=[1, 1, 4, 2]}
    %4 = pad(%3) {before=[0, 0, 0, 1], after=[0, 0, 0, 1]}
    %5 = concat(%4, %2) {axis=1}
    %6 = reduce(%5) {function="max", axes=[2]}
    %7 = softmax(%6) {axis=1}
    %8 = transpose(%7) {perm=[0, 2, 3, 1]}
    %9 = pool2d(%8)
    output "y" %9
  })"),
            normalised(R"(graph "g" {
    %0 "x" = input : f32[1,4,4,2]
    %1 = pool2d(%0)
    %3 = slice(%1) {starts=[0, 0, 0, 1], steps=[1, 1, 2, 1], sizes=[1, 4, 2, 1]}
    %4 = pad(%3) {before=[0, 0, 1, 0], after=[0, 0, 1, 0]}
    %5 = concat(%4, %1) {axis=3}
    %6 = reduce(%5) {function="max", axes=[1]}
    %7 = softmax(%6) {axis=3}
    %9 = pool2d(%7)
    output "y" %9
  })"));
}

TEST(ChannelsLast, AFlattenOfOnePixelIsAReshape) {
  EXPECT_EQ(after(channels_last, R"(graph "g" {
    %0 "x" = input : f32[1,4,4,2]
    %1 = pool2d(%0) {kind="average", kernel_h=4, kernel_w=4}
    %2 = transpose(%1) {perm=[0, 3, 1, 2]}
    %3 = reshape(%2) {shape=[1, 2]}
    %4 = const : f32[2,2] {1, 2, 3, 4}
    %5 = matmul(%3, %4)
    output "y" %5
  })"),
            normalised(R"(graph "g" {
    %0 "x" = input : f32[1,4,4,2]
    %1 = pool2d(%0) {kind="average", kernel_h=4, kernel_w=4}
    %3 = reshape(%1) {shape=[1, 2]}
    %4 = const : f32[2,2] {1, 2, 3, 4}
    %5 = matmul(%3, %4)
    output "y" %5
  })"));
}

TEST(ChannelsLast, AReshapeThatMergesPixelsMovesWithTheLayout) {
  EXPECT_EQ(after(channels_last, R"(graph "g" {
    %0 "x" = input : f32[1,4,4,2]
    %1 = pool2d(%0)
    %2 = transpose(%1) {perm=[0, 3, 1, 2]}
    %3 = reshape(%2) {shape=[1, 2, 16]}
    %4 = transpose(%3) {perm=[0, 2, 1]}
    %5 = softmax(%4) {axis=2}
    output "y" %5
  })"),
            normalised(R"(graph "g" {
    %0 "x" = input : f32[1,4,4,2]
    %1 = pool2d(%0)
    %3 = reshape(%1) {shape=[1, 16, 2]}
    %5 = softmax(%3) {axis=2}
    output "y" %5
  })"));
}

TEST(ChannelsLast, TransposesOfOneDimensionalConvolutionsVanish) {
  EXPECT_EQ(after(channels_last, R"(graph "g" {
    %0 "x" = input : f32[1,1,3,4]
    %1 = pool2d(%0)
    %2 = reshape(%1) {shape=[1, 3, 4]}
    %3 = transpose(%2) {perm=[0, 2, 1]}
    %4 = unary(%3) {function="relu"}
    %5 = transpose(%4) {perm=[0, 2, 1]}
    %6 = reshape(%5) {shape=[1, 1, 3, 4]}
    %7 = pool2d(%6)
    output "y" %7
  })"),
            normalised(R"(graph "g" {
    %0 "x" = input : f32[1,1,3,4]
    %1 = pool2d(%0)
    %2 = reshape(%1) {shape=[1, 3, 4]}
    %4 = unary(%2) {function="relu"}
    %6 = reshape(%4) {shape=[1, 1, 3, 4]}
    %7 = pool2d(%6)
    output "y" %7
  })"));
}

TEST(ChannelsLast, ReductionsDropTheAxesWhereTheyLie) {
  EXPECT_EQ(after(channels_last, R"(graph "g" {
    %0 "x" = input : f32[2,4,4,3]
    %1 = pool2d(%0)
    %2 = transpose(%1) {perm=[0, 3, 1, 2]}
    %3 = reduce(%2) {function="mean", axes=[2, 3], keep_dims=false}
    output "y" %3
  })"),
            normalised(R"(graph "g" {
    %0 "x" = input : f32[2,4,4,3]
    %1 = pool2d(%0)
    %3 = reduce(%1) {function="mean", axes=[1, 2], keep_dims=false}
    output "y" %3
  })"));
}

std::string normalised_sound(int channels, bool moved) {
  const std::string c = std::to_string(channels);
  return "graph \"g\" {\n    %0 \"x\" = input : f32[1,1,9," + c + "]\n    %1 = pool2d(%0)\n" +
         "    %2 = reshape(%1) {shape=[1, 9, " + c + "]}\n" +
         (moved ? "    %4 = norm(%2) {axes=[1]}\n    %6 = reshape(%4) {shape=[1, 1, 9, " + c + "]}\n"
                : "    %3 = transpose(%2) {perm=[0, 2, 1]}\n    %4 = norm(%3) {axes=[2]}\n"
                  "    %5 = transpose(%4) {perm=[0, 2, 1]}\n    %6 = reshape(%5) {shape=[1, 1, 9, " +
                      c + "]}\n") +
         "    %7 = pool2d(%6)\n    output \"y\" %7\n  }";
}

TEST(ChannelsLast, NormsOfChannelsAreComputedInColumnsIfThoseAreMany) {
  EXPECT_EQ(after(channels_last, normalised_sound(32, false)), normalised(normalised_sound(32, true)));
  EXPECT_EQ(after(channels_last, normalised_sound(4, false)), normalised(normalised_sound(4, false)));
}

TEST(ChannelsLast, QuantisedReductionsNameTheAxesWhereTheyLie) {
  EXPECT_EQ(after(channels_last, R"(graph "g" {
    %0 "x" = input : i8[2,4,4,3]
    %1 = transpose(%0) {perm=[0, 3, 1, 2]}
    %2 = reduce_affine(%1) {axes=[2, 3]}
    %3 = transpose(%2) {perm=[0, 2, 3, 1]}
    output "y" %3
  })"),
            normalised(R"(graph "g" {
    %0 "x" = input : i8[2,4,4,3]
    %1 = reduce_affine(%0) {axes=[1, 2]}
    output "y" %1
  })"));
}

TEST(ChannelsLast, NeverMovesMoreBytesThanBefore) {
  // Three readers want the operand as it is; moving the sum would turn two large inputs to save one transpose.
  const char* text = R"(graph "g" {
    %0 "x" = input : f32[1,8,8,3]
    %1 "a" = input : f32[1,3,8,8]
    %2 "b" = input : f32[1,3,8,8]
    %3 = transpose(%0) {perm=[0, 3, 1, 2]}
    %4 = binary(%1, %2) {function="add"}
    %5 = binary(%4, %3) {function="add"}
    output "y" %5
  })";
  EXPECT_EQ(after(channels_last, text), normalised(text));
}

TEST(ChannelsLast, OneTransposeServesAllReaders) {
  EXPECT_EQ(after(channels_last, R"(graph "g" {
    %0 "x" = input : f32[1,2,4,4]
    %1 = unary(%0) {function="relu"}
    %2 = transpose(%0) {perm=[0, 2, 3, 1]}
    %3 = pool2d(%2)
    %4 = transpose(%1) {perm=[0, 2, 3, 1]}
    %5 = pool2d(%4)
    output "a" %3
    output "b" %5
  })"),
            normalised(R"(graph "g" {
    %0 "x" = input : f32[1,2,4,4]
    %1 = transpose(%0) {perm=[0, 2, 3, 1]}
    %2 = unary(%1) {function="relu"}
    %3 = pool2d(%1)
    %4 = pool2d(%2)
    output "a" %3
    output "b" %4
  })"));
}

TEST(ChannelsLast, SwappedMatricesBecomeFlags) {
  EXPECT_EQ(after(channels_last, R"(graph "g" {
    %0 "a" = input : f32[2,3,4]
    %1 "b" = input : f32[2,5,4]
    %2 = transpose(%1) {perm=[0, 2, 1]}
    %3 = matmul(%0, %2)
    output "y" %3
  })"),
            normalised(R"(graph "g" {
    %0 "a" = input : f32[2,3,4]
    %1 "b" = input : f32[2,5,4]
    %3 = matmul(%0, %1) {transpose_b=true}
    output "y" %3
  })"));
}

TEST(ChannelsLast, FunctionsStayBesideWhatComputesTheirOperand) {
  EXPECT_EQ(after(channels_last, R"(graph "g" {
    %0 "x" = input : f32[1,4,4,2]
    %1 = pool2d(%0)
    %2 = transpose(%1) {perm=[0, 3, 1, 2]}
    %3 = unary(%2) {function="silu"}
    output "y" %3
  })"),
            normalised(R"(graph "g" {
    %0 "x" = input : f32[1,4,4,2]
    %1 = pool2d(%0)
    %2 = unary(%1) {function="silu"}
    %3 = transpose(%2) {perm=[0, 3, 1, 2]}
    output "y" %3
  })"));
}

TEST(ChannelsLast, TheRangeOfAllElementsIsTheSameInAnyOrder) {
  EXPECT_EQ(after(channels_last, R"(graph "g" {
    %0 "x" = input : f32[1,4,4,2]
    %1 = pool2d(%0)
    %2 = transpose(%1) {perm=[0, 3, 1, 2]}
    %3, %4 = quantization_range(%2)
    %5 = quantize(%2, %3, %4) {to="u8"}
    %6 = transpose(%5) {perm=[0, 2, 3, 1]}
    output "y" %6
  })"),
            normalised(R"(graph "g" {
    %0 "x" = input : f32[1,4,4,2]
    %1 = pool2d(%0)
    %2, %3 = quantization_range(%1)
    %4 = quantize(%1, %2, %3) {to="u8"}
    output "y" %4
  })"));
}

TEST(ChannelsLast, StatesAndPortsKeepTheirAxes) {
  graph::Graph graph = testing::parse(R"(graph "g" {
    %0 "x" = input : f32[1,4,4,2]
    %1 "h" = state : f32[1,2,4,4]
    %2 = pool2d(%0)
    %3 = transpose(%2) {perm=[0, 3, 1, 2]}
    %4 = binary(%3, %1) {function="add"}
    %5 = transpose(%4) {perm=[0, 2, 3, 1]}
    %6 = pool2d(%5)
    output "y" %6
    next "h" %4
  })");
  ASSERT_TRUE(channels_last(graph));
  ASSERT_TRUE(graph::verify(graph));
  EXPECT_EQ(graph::format_desc(graph.value(graph.states[0].in).desc), "f32[1,2,4,4]");
  EXPECT_EQ(graph::format_desc(graph.value(graph.states[0].out).desc), "f32[1,2,4,4]");
  EXPECT_EQ(graph.outputs[0].name, "y");
}

TEST(ChannelsLast, AChannelShuffleStaysOneTransposeOfTheSameBytes) {
  graph::Graph graph = testing::parse(R"(graph "g" {
    %0 "x" = input : f32[1,4,4,6]
    %1 = pool2d(%0)
    %2 = transpose(%1) {perm=[0, 3, 1, 2]}
    %3 = reshape(%2) {shape=[1, 2, 3, 4, 4]}
    %4 = transpose(%3) {perm=[0, 2, 1, 3, 4]}
    %5 = reshape(%4) {shape=[1, 6, 4, 4]}
    %6 = transpose(%5) {perm=[0, 2, 3, 1]}
    %7 = pool2d(%6)
    output "y" %7
  })");
  ASSERT_TRUE(channels_last(graph));
  ASSERT_TRUE(graph::verify(graph));
  EXPECT_EQ(std::count_if(graph.nodes.begin(), graph.nodes.end(), [](const auto& n) { return n.is(ops::kTranspose); }),
            1);
}

}  // namespace
}  // namespace bantam::passes
