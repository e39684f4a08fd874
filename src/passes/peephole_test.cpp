// Text-to-text tests of the passes that rewrite a node by looking at its producers.
#include <gtest/gtest.h>

#include "passes/list.h"
#include "passes/testing/text_to_text.h"

namespace bantam::passes {
namespace {

using testing::after;
using testing::normalised;

TEST(FoldConstants, ComputesNodesOfConstantsOnly) {
  EXPECT_EQ(after(fold_constants, R"(graph "g" {
    %0 "x" = input : f32[2]
    %1 = const : f32[2] {1, 2}
    %2 = const : f32[2] {3, 5}
    %3 = binary(%1, %2) {function="mul"}
    %4 = unary(%3) {function="neg"}
    %5 = binary(%0, %4) {function="add"}
    output "y" %5
  })"),
            normalised(R"(graph "g" {
    %0 "x" = input : f32[2]
    %1 = const : f32[2] {-3, -10}
    %2 = binary(%0, %1) {function="add"}
    output "y" %2
  })"));
}

TEST(FoldConstants, LeavesADivisionByZeroToTheRuntime) {
  const char* text = R"(graph "g" {
    %0 = const : i32[1] {1}
    %1 = const : i32[1] {0}
    %2 = binary(%0, %1) {function="div"}
    output "y" %2
  })";
  EXPECT_EQ(after(fold_constants, text), normalised(text));
}

TEST(RemoveIdentities, CollapsesAChainAndKeepsThePort) {
  EXPECT_EQ(after(remove_identities, R"(graph "g" {
    %0 "x" = input : f32[2,3]
    %1 = unary(%0) {function="exp"}
    %2 = unary(%1) {function="identity"}
    %30 = const : f32[] {0}
    %4 = binary(%2, %30) {function="add"}
    %5 = const : f32[3] splat(1)
    %6 = binary(%5, %4) {function="mul"}
    %7 = cast(%6) {to="f32"}
    %8 = reshape(%7) {shape=[6]}
    %9 = reshape(%8) {shape=[3, 2]}
    %10 = slice(%9) {starts=[0, 0], steps=[1, 1], sizes=[3, 2]}
    %11 "y" = pad(%10) {before=[0, 0], after=[0, 0]}
    output "y" %11
  })"),
            normalised(R"(graph "g" {
    %0 "x" = input : f32[2,3]
    %1 = unary(%0) {function="exp"}
    %2 "y" = reshape(%1) {shape=[3, 2]}
    output "y" %2
  })"));
}

TEST(RemoveIdentities, KeepsABinaryThatBroadcasts) {
  const char* text = R"(graph "g" {
    %0 "x" = input : f32[1]
    %1 = const : f32[4] splat(0)
    %2 = binary(%0, %1) {function="add"}
    output "y" %2
  })";
  EXPECT_EQ(after(remove_identities, text), normalised(text));
}

TEST(RemoveIdentities, KeepsAReversingSlice) {
  const char* text = R"(graph "g" {
    %0 "x" = input : f32[4]
    %1 = slice(%0) {starts=[3], steps=[-1], sizes=[4]}
    output "y" %1
  })";
  EXPECT_EQ(after(remove_identities, text), normalised(text));
}

TEST(RemoveIdentities, DropsLosslessCastsOnly) {
  EXPECT_EQ(after(remove_identities, R"(graph "g" {
    %0 "x" = input : i16[4]
    %1 = cast(%0) {to="i64"}
    %2 = cast(%1) {to="f32"}
    %3 = cast(%0) {to="u8"}
    %4 = cast(%3) {to="i16"}
    output "y" %2
    output "z" %4
  })"),
            normalised(R"(graph "g" {
    %0 "x" = input : i16[4]
    %2 = cast(%0) {to="f32"}
    %3 = cast(%0) {to="u8"}
    %4 = cast(%3) {to="i16"}
    output "y" %2
    output "z" %4
  })"));
}

TEST(RemoveIdentities, MergesTransposesAndTurnsMovesOfSizeOneIntoReshapes) {
  EXPECT_EQ(after(remove_identities, R"(graph "g" {
    %0 "x" = input : f32[1,3,4,5]
    %1 = transpose(%0) {perm=[0, 2, 3, 1]}
    %2 = transpose(%1) {perm=[0, 3, 1, 2]}
    %3 = transpose(%1) {perm=[0, 2, 1, 3]}
    %4 = transpose(%0) {perm=[1, 0, 2, 3]}
    %5 = unary(%2) {function="exp"}
    output "a" %5
    output "b" %3
    output "c" %4
  })"),
            normalised(R"(graph "g" {
    %0 "x" = input : f32[1,3,4,5]
    %3 = transpose(%0) {perm=[0, 3, 2, 1]}
    %4 = reshape(%0) {shape=[3, 1, 4, 5]}
    %5 = unary(%0) {function="exp"}
    output "a" %5
    output "b" %3
    output "c" %4
  })"));
}

TEST(RemoveIdentities, AStateReadsTheRemovedNodesOperand) {
  EXPECT_EQ(after(remove_identities, R"(graph "g" {
    %0 "x" = input : f32[2]
    %1 "h" = state : f32[2]
    %2 = binary(%0, %1) {function="add"}
    %3 = copy(%2)
    output "y" %2
    next "h" %3
  })"),
            normalised(R"(graph "g" {
    %0 "x" = input : f32[2]
    %1 "h" = state : f32[2]
    %2 = binary(%0, %1) {function="add"}
    output "y" %2
    next "h" %2
  })"));
}

TEST(MergeSlices, AGatherOfEvenIndicesIsASlice) {
  EXPECT_EQ(after(merge_slices, R"(graph "g" {
    %0 "x" = input : f32[1,6,2]
    %1 = const : i64[3] {0, 2, -2}
    %2 = gather(%0, %1) {axis=1}
    %3 = const : i64[] {-1}
    %4 = gather(%0, %3) {axis=1}
    %5 = const : i64[3] {0, 1, 3}
    %6 = gather(%0, %5) {axis=1}
    output "a" %2
    output "b" %4
    output "c" %6
  })"),
            normalised(R"(graph "g" {
    %0 "x" = input : f32[1,6,2]
    %2 = slice(%0) {starts=[0, 0, 0], steps=[1, 2, 1], sizes=[1, 3, 2]}
    %3 = slice(%0) {starts=[0, 5, 0], steps=[1, 1, 1], sizes=[1, 1, 2]}
    %4 = reshape(%3) {shape=[1, 2]}
    %5 = const : i64[3] {0, 1, 3}
    %6 = gather(%0, %5) {axis=1}
    output "a" %2
    output "b" %4
    output "c" %6
  })"));
}

TEST(MergeSlices, LooksThroughSlicesAndConcats) {
  EXPECT_EQ(after(merge_slices, R"(graph "g" {
    %0 "x" = input : f32[8]
    %1 "z" = input : f32[4]
    %2 = slice(%0) {starts=[1], steps=[2], sizes=[3]}
    %3 = slice(%2) {starts=[1], steps=[1], sizes=[2]}
    %4 = concat(%0, %1) {axis=0}
    %5 = slice(%4) {starts=[9], steps=[1], sizes=[2]}
    %6 = slice(%0) {starts=[0], steps=[1], sizes=[3]}
    %7 = slice(%0) {starts=[3], steps=[1], sizes=[5]}
    %8 = concat(%6, %7) {axis=0}
    %9 = unary(%8) {function="exp"}
    output "a" %3
    output "b" %5
    output "c" %9
  })"),
            normalised(R"(graph "g" {
    %0 "x" = input : f32[8]
    %1 "z" = input : f32[4]
    %2 = slice(%0) {starts=[3], steps=[2], sizes=[2]}
    %3 = slice(%1) {starts=[1], steps=[1], sizes=[2]}
    %9 = unary(%0) {function="exp"}
    output "a" %2
    output "b" %3
    output "c" %9
  })"));
}

TEST(MergeSlices, AScatterOfAContiguousBlockIsAConcat) {
  EXPECT_EQ(after(merge_slices, R"(graph "g" {
    %0 "x" = input : f32[4,2]
    %1 "u" = input : f32[2,2]
    %2 = const : i64[2,1] {1, 2}
    %3 = scatter_nd(%0, %2, %1)
    output "y" %3
  })"),
            normalised(R"(graph "g" {
    %0 "x" = input : f32[4,2]
    %1 "u" = input : f32[2,2]
    %2 = slice(%0) {starts=[0, 0], steps=[1, 1], sizes=[1, 2]}
    %3 = slice(%0) {starts=[3, 0], steps=[1, 1], sizes=[1, 2]}
    %4 = concat(%2, %1, %3) {axis=0}
    output "y" %4
  })"));
}

TEST(RecognizeFunctions, FindsActivationsWrittenOut) {
  EXPECT_EQ(after(recognize_functions, R"(graph "g" {
    %0 "x" = input : f32[4]
    %1 = unary(%0) {function="sigmoid"}
    %2 = binary(%0, %1) {function="mul"}
    %3 = const : f32[] {3}
    %4 = const : f32[] {6}
    %5 = const : f32[] {0}
    %6 = binary(%2, %3) {function="add"}
    %7 = binary(%6, %5) {function="max"}
    %8 = binary(%7, %4) {function="min"}
    %9 = binary(%2, %8) {function="mul"}
    %10 = binary(%9, %4) {function="div"}
    %11 = const : f32[] {1.4142135}
    %12 = binary(%10, %11) {function="div"}
    %13 = unary(%12) {function="erf"}
    %14 = const : f32[] {1}
    %15 = binary(%14, %13) {function="add"}
    %16 = const : f32[] {0.5}
    %17 = binary(%10, %15) {function="mul"}
    %18 = binary(%17, %16) {function="mul"}
    output "y" %18
  })"),
            normalised(R"(graph "g" {
    %0 "x" = input : f32[4]
    %1 = unary(%0) {function="silu"}
    %2 = unary(%1) {function="hard_swish"}
    %3 = unary(%2) {function="gelu"}
    output "y" %3
  })"));
}

TEST(RecognizeFunctions, FindsLayerNormalisationWithScaleAndBias) {
  EXPECT_EQ(after(recognize_functions, R"(graph "g" {
    %0 "x" = input : f32[2,4]
    %1 = reduce(%0) {function="mean", axes=[1]}
    %2 = binary(%0, %1) {function="sub"}
    %3 = const : f32[] {2}
    %4 = binary(%2, %3) {function="pow"}
    %5 = reduce(%4) {function="mean", axes=[1]}
    %6 = const : f32[] {0.5}
    %7 = binary(%5, %6) {function="add"}
    %8 = unary(%7) {function="sqrt"}
    %9 = binary(%2, %8) {function="div"}
    %10 = const : f32[4] {1, 2, 3, 4}
    %11 = binary(%9, %10) {function="mul"}
    %12 = const : f32[4] {5, 6, 7, 8}
    %13 = binary(%12, %11) {function="add"}
    output "y" %13
  })"),
            normalised(R"(graph "g" {
    %0 "x" = input : f32[2,4]
    %1 = const : f32[4] {1, 2, 3, 4}
    %2 = const : f32[4] {5, 6, 7, 8}
    %3 = norm(%0, %1, %2) {axes=[1], epsilon=0.5}
    output "y" %3
  })"));
}

// As Keras models of sounds have it: the difference is written once for the root and once for the squares.
TEST(RecognizeFunctions, FindsLayerNormalisationWhoseDifferenceIsWrittenTwice) {
  EXPECT_EQ(after(recognize_functions, R"(graph "g" {
    %0 "x" = input : f32[2,4]
    %1 = reduce(%0) {function="mean", axes=[1]}
    %2 = binary(%0, %1) {function="sub"}
    %3 = binary(%0, %1) {function="sub"}
    %4 = binary(%3, %3) {function="mul"}
    %5 = reduce(%4) {function="mean", axes=[1]}
    %6 = const : f32[] {0.5}
    %7 = binary(%5, %6) {function="add"}
    %8 = unary(%7) {function="sqrt"}
    %9 = binary(%2, %8) {function="div"}
    output "y" %9
  })"),
            normalised(R"(graph "g" {
    %0 "x" = input : f32[2,4]
    %1 = norm(%0) {axes=[1], epsilon=0.5}
    output "y" %1
  })"));
}

TEST(RecognizeFunctions, KeepsANormalisationThatItsEpsilonEnlarges) {
  const char* text = R"(graph "g" {
    %0 "x" = input : f32[2,1]
    %1 = unary(%0) {function="square"}
    %2 = reduce(%1) {function="mean", axes=[1]}
    %3 = const : f32[1,3] {0.5, 0.5, 0.5}
    %4 = binary(%2, %3) {function="add"}
    %5 = unary(%4) {function="rsqrt"}
    %6 = binary(%0, %5) {function="mul"}
    output "y" %6
  })";
  EXPECT_EQ(after(recognize_functions, text), normalised(text));
}

TEST(RecognizeFunctions, NormalisationByTheRootOfTheMeanSquareWithItsScale) {
  for (const char* division : {"%6 = unary(%5) {function=\"rsqrt\"}\n    %7 = binary(%0, %6) {function=\"mul\"}",
                               "%6 = unary(%5) {function=\"sqrt\"}\n    %7 = binary(%0, %6) {function=\"div\"}"})
    EXPECT_EQ(after(recognize_functions, R"(graph "g" {
    %0 "x" = input : f32[2,4]
    %1 = const : f32[] {2}
    %2 = binary(%0, %1) {function="pow"}
    %3 = reduce(%2) {axes=[1], function="mean", keep_dims=true}
    %4 = const : f32[] {0.5}
    %5 = binary(%3, %4) {function="add"}
    )" + std::string(division) + R"(
    %8 = const : f32[4] {1, 2, 3, 4}
    %9 = binary(%8, %7) {function="mul"}
    output "y" %9
  })"),
              normalised(R"(graph "g" {
    %0 "x" = input : f32[2,4]
    %1 = const : f32[4] {1, 2, 3, 4}
    %2 = norm(%0, %1, _) {axes=[1], epsilon=0.5, rms=true}
    output "y" %2
  })"));
}

TEST(RecognizeFunctions, SumsSquaresThatNothingElseReads) {
  EXPECT_EQ(after(recognize_functions, R"(graph "g" {
    %0 "x" = input : f32[2,4]
    %1 = const : f32[] {2}
    %2 = binary(%0, %1) {function="pow"}
    %3 = reduce(%2) {function="sum", axes=[1]}
    %4 = unary(%3) {function="square"}
    %5 = reduce(%4) {function="sum", axes=[0]}
    output "y" %5
    output "z" %4
  })"),
            normalised(R"(graph "g" {
    %0 "x" = input : f32[2,4]
    %1 = reduce(%0) {function="sum_square", axes=[1]}
    %2 = unary(%1) {function="square"}
    %3 = reduce(%2) {function="sum", axes=[0]}
    output "y" %3
    output "z" %2
  })"));
}

TEST(FuseAffine, FoldsBatchNormalisationIntoAConvolution) {
  EXPECT_EQ(after(fuse_affine, R"(graph "g" {
    %0 "x" = input : f32[1,2,2,1]
    %1 = const : f32[2,1,1,1] {1, 2}
    %2 = const : f32[2] {1, 1}
    %3 = conv2d(%0, %1, %2)
    %4 = const : f32[1,1,1,2] {3, 4}
    %5 = binary(%3, %4) {function="mul"}
    %6 = const : f32[2] {10, 20}
    %7 = binary(%5, %6) {function="add"}
    output "y" %7
  })"),
            normalised(R"(graph "g" {
    %0 "x" = input : f32[1,2,2,1]
    %1 = const : f32[2,1,1,1] {3, 8}
    %2 = const : f32[2] {13, 24}
    %3 = conv2d(%0, %1, %2)
    output "y" %3
  })"));
}

TEST(FuseAffine, FoldsAScaleBeforeAPaddedConvolutionButNotAnOffset) {
  EXPECT_EQ(after(fuse_affine, R"(graph "g" {
    %0 "x" = input : f32[1,2,2,2]
    %1 = const : f32[2] {3, 4}
    %2 = binary(%0, %1) {function="add"}
    %3 = const : f32[2] {10, 20}
    %4 = binary(%2, %3) {function="mul"}
    %5 = const : f32[1,1,1,2] {5, 6}
    %6 = conv2d(%4, %5) {pad_top=1}
    output "y" %6
  })"),
            normalised(R"(graph "g" {
    %0 "x" = input : f32[1,2,2,2]
    %1 = const : f32[2] {3, 4}
    %2 = binary(%0, %1) {function="add"}
    %5 = const : f32[1,1,1,2] {50, 120}
    %6 = conv2d(%2, %5, _) {pad_top=1}
    output "y" %6
  })"));
}

TEST(FuseAffine, FoldsIntoDepthwiseAndMatmulOnBothSides) {
  EXPECT_EQ(after(fuse_affine, R"(graph "g" {
    %0 "x" = input : f32[1,1,1,2]
    %1 = const : f32[1,1,2] {1, 2}
    %2 = depthwise_conv2d(%0, %1)
    %3 = const : f32[2] {2, 3}
    %4 = binary(%2, %3) {function="mul"}
    %5 "z" = input : f32[1,2]
    %6 = binary(%5, %3) {function="add"}
    %7 = const : f32[2,1] {5, 7}
    %8 = matmul(%6, %7)
    output "a" %4
    output "b" %8
  })"),
            normalised(R"(graph "g" {
    %0 "x" = input : f32[1,1,1,2]
    %5 "z" = input : f32[1,2]
    %1 = const : f32[1,1,2] {2, 6}
    %2 = depthwise_conv2d(%0, %1, _)
    %7 = const : f32[2,1] {5, 7}
    %9 = const : f32[1] {31}
    %8 = matmul(%5, %7, %9)
    output "a" %2
    output "b" %8
  })"));
}

TEST(FuseAffine, LeavesAConvolutionThatOthersRead) {
  const char* text = R"(graph "g" {
    %0 "x" = input : f32[1,1,1,1]
    %1 = const : f32[1,1,1,1] {2}
    %2 = conv2d(%0, %1)
    %3 = const : f32[1] {3}
    %4 = binary(%2, %3) {function="mul"}
    output "a" %2
    output "b" %4
  })";
  EXPECT_EQ(after(fuse_affine, text), normalised(text));
}

TEST(FuseAffine, DividesByPowersOfTwoAsAProduct) {
  EXPECT_EQ(after(fuse_affine, R"(graph "g" {
    %0 "x" = input : f32[2]
    %1 = const : f32[2] {4, 0.5}
    %2 = binary(%0, %1) {function="div"}
    %3 = const : f32[2] {4, 3}
    %4 = binary(%2, %3) {function="div"}
    output "y" %4
  })"),
            normalised(R"(graph "g" {
    %0 "x" = input : f32[2]
    %1 = const : f32[2] {0.25, 2}
    %2 = binary(%0, %1) {function="mul"}
    %3 = const : f32[2] {4, 3}
    %4 = binary(%2, %3) {function="div"}
    output "y" %4
  })"));
}

TEST(FusePads, MovesZerosIntoAConvolutionAndCountsThemInAnAverage) {
  EXPECT_EQ(after(fuse_pads, R"(graph "g" {
    %0 "x" = input : f32[1,4,4,1]
    %1 = pad(%0) {before=[0, 1, 2, 0], after=[0, 0, 1, 0]}
    %2 = const : f32[1,2,2,1] splat(1)
    %3 = conv2d(%1, %2)
    %4 = pool2d(%1) {kind="average", kernel_h=2, kernel_w=2}
    output "a" %3
    output "b" %4
  })"),
            normalised(R"(graph "g" {
    %0 "x" = input : f32[1,4,4,1]
    %2 = const : f32[1,2,2,1] splat(1)
    %3 = conv2d(%0, %2) {pad_top=1, pad_left=2, pad_right=1}
    %4 = pool2d(%0) {kind="average", kernel_h=2, kernel_w=2, pad_top=1, pad_left=2, pad_right=1, count_include_pad=true}
    output "a" %3
    output "b" %4
  })"));
}

TEST(FusePads, LeavesPaddingThatIsNotNeutral) {
  const char* text = R"(graph "g" {
    %0 "x" = input : f32[1,4,4,1]
    %1 = const : f32[] {1}
    %2 = pad(%0, %1) {before=[0, 1, 1, 0], after=[0, 1, 1, 0]}
    %3 = const : f32[1,3,3,1] splat(1)
    %4 = conv2d(%2, %3)
    %5 = pad(%0) {before=[0, 1, 1, 0], after=[0, 1, 1, 0]}
    %6 = pool2d(%5) {kernel_h=3, kernel_w=3}
    output "a" %4
    output "b" %6
  })";
  EXPECT_EQ(after(fuse_pads, text), normalised(text));
}

TEST(TrimWindows, KeepsTheTapsThatMeetTheImage) {
  EXPECT_EQ(after(trim_windows, R"(graph "g" {
    %0 "x" = input : f32[1,1,2,1]
    %1 = const : f32[1,3,3,1] {1, 2, 3, 4, 5, 6, 7, 8, 9}
    %2 "one" = conv2d(%0, %1) {pad_top=1, pad_left=1, pad_bottom=1, pad_right=1}
    %3 = const : f32[1,5,1] {1, 2, 3, 4, 5}
    %4 "two" = depthwise_conv2d(%0, %3) {dilation_w=3, pad_left=6, pad_right=8}
    output "a" %2
    output "b" %4
  })"),
            normalised(R"(graph "g" {
    %0 "x" = input : f32[1,1,2,1]
    %1 = const : f32[1,1,3,1] {4, 5, 6}
    %2 "one" = conv2d(%0, %1) {pad_left=1, pad_right=1}
    %3 = const : f32[1,2,1] {2, 3}
    %4 "two" = depthwise_conv2d(%0, %3) {dilation_w=3, pad_left=3, pad_right=2}
    output "a" %2
    output "b" %4
  })"));
}

TEST(TrimWindows, LeavesWindowsThatMeetTheImageOrNothing) {
  const char* text = R"(graph "g" {
    %0 "x" = input : f32[1,2,2,1]
    %1 = const : f32[1,3,3,1] splat(1)
    %2 = conv2d(%0, %1) {pad_top=1, pad_left=1, pad_bottom=1, pad_right=1}
    %3 = conv2d(%0, %1) {dilation_h=2, pad_top=3, pad_left=1, pad_bottom=3, pad_right=1}
    %4 = const : f32[1,1,1,1] splat(1)
    %5 = conv2d(%0, %4) {stride_h=4, stride_w=4, pad_top=2, pad_left=2}
    output "a" %2
    output "b" %3
    output "c" %5
  })";
  EXPECT_EQ(after(trim_windows, text), normalised(text));
}

TEST(FuseActivations, FusesOneActivationWhenNobodyElseReads) {
  EXPECT_EQ(after(fuse_activations, R"(graph "g" {
    %0 "x" = input : f32[1,2]
    %1 = const : f32[2,2] {1, 2, 3, 4}
    %2 = matmul(%0, %1)
    %3 = unary(%2) {function="clip", a=0, b=6}
    %4 = unary(%3) {function="tanh"}
    %5 = binary(%4, %0) {function="add"}
    %6 "y" = unary(%5) {function="relu"}
    output "y" %6
    output "z" %4
  })"),
            normalised(R"(graph "g" {
    %0 "x" = input : f32[1,2]
    %1 = const : f32[2,2] {1, 2, 3, 4}
    %2 = matmul(%0, %1) {activation="clip", activation_a=0, activation_b=6}
    %4 = unary(%2) {function="tanh"}
    %6 "y" = binary(%4, %0) {function="add", activation="relu"}
    output "y" %6
    output "z" %4
  })"));
}

TEST(FuseActivations, NamesTheFusedOrigin) {
  graph::Graph graph = testing::parse(R"(graph "g" {
    %0 "x" = input : f32[1,2]
    %1 = const : f32[2,2] {1, 2, 3, 4}
    %2 = matmul(%0, %1)
    %3 = unary(%2) {function="relu"}
    output "y" %3
  })");
  graph.nodes[0].origin = "Gemm";
  graph.nodes[1].origin = "Relu";
  ASSERT_TRUE(fuse_activations(graph));
  ASSERT_EQ(graph.nodes.size(), 1u);
  EXPECT_EQ(graph.nodes[0].origin, "Gemm+Relu");
}

TEST(CommonSubexpressions, ComputesEqualChainsOnce) {
  EXPECT_EQ(after(common_subexpressions, R"(graph "g" {
    %0 "x" = input : f32[2]
    %1 = const : f32[] {2}
    %2 = const : f32[] {2}
    %3 = binary(%0, %1) {function="mul"}
    %4 = binary(%0, %2) {function="mul"}
    %5 = unary(%3) {function="exp"}
    %6 = unary(%4) {function="exp"}
    %7 = unary(%4) {function="log"}
    %8 = binary(%5, %6) {function="add"}
    output "a" %8
    output "b" %7
  })"),
            normalised(R"(graph "g" {
    %0 "x" = input : f32[2]
    %1 = const : f32[] {2}
    %2 = binary(%0, %1) {function="mul"}
    %3 = unary(%2) {function="exp"}
    %4 = unary(%2) {function="log"}
    %5 = binary(%3, %3) {function="add"}
    output "a" %5
    output "b" %4
  })"));
}

TEST(MergeConvolutions, ComputesHeadsTogetherAndSlicesThem) {
  EXPECT_EQ(after(merge_convolutions, R"(graph "g" {
    %0 "x" = input : f32[1,3,2,2]
    %1 = const : f32[1,1,1,2] {1, 2}
    %2 = const : f32[1] {0.5}
    %3 = const : f32[2,1,1,2] {3, 4, 5, 6}
    %4 "a" = conv2d(%0, %1, %2)
    %5 = unary(%4) {function="exp"}
    %6 "b" = conv2d(%0, %3)
    output "a" %5
    output "b" %6
  })"),
            normalised(R"(graph "g" {
    %0 "x" = input : f32[1,3,2,2]
    %1 = const : f32[3,1,1,2] {1, 2, 3, 4, 5, 6}
    %2 = const : f32[3] {0.5, 0, 0}
    %3 = conv2d(%0, %1, %2)
    %4 "a" = slice(%3) {starts=[0, 0, 0, 0], steps=[1, 1, 1, 1], sizes=[1, 3, 2, 1]}
    %5 = unary(%4) {function="exp"}
    %6 "b" = slice(%3) {starts=[0, 0, 0, 1], steps=[1, 1, 1, 1], sizes=[1, 3, 2, 2]}
    output "a" %5
    output "b" %6
  })"));
}

TEST(MergeConvolutions, KeepsOnesOfOtherStridesImagesAndWholePanels) {
  const char* text = R"(graph "g" {
    %0 "x" = input : f32[1,4,4,2]
    %1 = const : f32[1,1,1,2] {1, 2}
    %2 = const : f32[16,1,1,2] splat(1)
    %3 = const : f32[32,1,1,2] splat(2)
    %4 = unary(%0) {function="exp"}
    %5 = conv2d(%0, %1)
    %6 = conv2d(%4, %1)
    %7 = conv2d(%0, %1) {stride_h=2}
    %8 = conv2d(%0, %2) {stride_w=2}
    %9 = conv2d(%0, %3) {stride_w=2}
    output "a" %5
    output "b" %6
    output "c" %7
    output "d" %8
    output "e" %9
  })";
  EXPECT_EQ(after(merge_convolutions, text), normalised(text));
}

TEST(SinkReshapes, MovesThemBehindElementWiseOperators) {
  EXPECT_EQ(after(sink_reshapes, R"(graph "g" {
    %0 "x" = input : f32[1,3,2]
    %1 "row" = input : f32[1,2]
    %2 = const : f32[1] {0.5}
    %3 = reshape(%0) {shape=[3,2]}
    %4 = binary(%1, %3) {function="sub"}
    %5 = binary(%4, %2) {function="mul"}
    %6 = unary(%5) {function="relu"}
    %7 = cast(%6) {to="i32"}
    output "y" %7
  })"),
            normalised(R"(graph "g" {
    %0 "x" = input : f32[1,3,2]
    %1 "row" = input : f32[1,2]
    %2 = reshape(%1) {shape=[2]}
    %3 = binary(%2, %0) {function="sub"}
    %4 = const : f32[] {0.5}
    %5 = binary(%3, %4) {function="mul"}
    %6 = unary(%5) {function="relu"}
    %7 = cast(%6) {to="i32"}
    %8 = reshape(%7) {shape=[3,2]}
    output "y" %8
  })"));
}

TEST(SinkReshapes, LeavesOthersReadersAndOtherAxesAlone) {
  const char* text = R"(graph "g" {
    %0 "x" = input : f32[2,3]
    %1 "row" = input : f32[2]
    %2 = reshape(%0) {shape=[3,2]}
    %3 = binary(%2, %1) {function="add"}
    %4 = reshape(%0) {shape=[6]}
    %5 = unary(%4) {function="relu"}
    %6 = const : f32[1,1,1] {0.5}
    %7 = reshape(%0) {shape=[1,6]}
    %8 = binary(%7, %6) {function="add"}
    output "y" %3
    output "read" %4
    output "z" %5
    output "wide" %8
  })";
  EXPECT_EQ(after(sink_reshapes, text), normalised(text));
}

TEST(ScaleIntegerSums, AScaleIsTheProductsOwn) {
  EXPECT_EQ(after(scale_integer_sums, R"(graph "g" {
    %0 "x" = input : u8[3,2]
    %1 = const : i8[2,2] {3, -4, 5, 6}
    %2 "z" = input : u8[]
    %3 "s" = input : f32[2]
    %4 = matmul_affine(%0, %1, _, _, %2) {to="i32"}
    %5 = cast(%4) {to="f32"}
    %6 "y" = binary(%5, %3) {function="mul"}
    output "y" %6
  })"),
            normalised(R"(graph "g" {
    %0 "x" = input : u8[3,2]
    %1 = const : i8[2,2] {3, -4, 5, 6}
    %2 "z" = input : u8[]
    %3 "s" = input : f32[2]
    %4 "y" = matmul_affine(%0, %1, _, %3, %2) {to="f32"}
    output "y" %4
  })"));
}

TEST(ScaleIntegerSums, AConstantRowIsTheBias) {
  EXPECT_EQ(after(scale_integer_sums, R"(graph "g" {
    %0 "x" = input : u8[1,1,3,2]
    %1 = const : i8[2,1,1,2] {3, -4, 5, 6}
    %2 "s" = input : f32[]
    %3 = const : f32[1,2] {7, 8}
    %4 = conv2d_affine(%0, %1) {to="i32"}
    %5 = cast(%4) {to="f32"}
    %6 = binary(%5, %2) {function="mul"}
    %7 = binary(%3, %6) {function="add", activation="relu"}
    output "y" %7
  })"),
            normalised(R"(graph "g" {
    %0 "x" = input : u8[1,1,3,2]
    %1 = const : i8[2,1,1,2] {3, -4, 5, 6}
    %2 "s" = input : f32[]
    %3 = const : f32[2] {7, 8}
    %4 = reshape(%2) {shape=[1]}
    %5 = conv2d_affine(%0, %1, %3, %4) {to="f32", activation="relu"}
    output "y" %5
  })"));
}

TEST(ScaleIntegerSums, LeavesWhatVariesAlongOtherAxesOrHasOtherReaders) {
  const char* text = R"(graph "g" {
    %0 "x" = input : u8[2,2]
    %1 = const : i8[2,2] {3, -4, 5, 6}
    %2 = const : f32[2,1] {0.5, 0.25}
    %3 "row" = input : f32[2]
    %4 "sums" = matmul_affine(%0, %1) {to="i32"}
    %5 = cast(%4) {to="f32"}
    %6 = binary(%5, %2) {function="mul"}
    %7 = const : f32[] {0.5}
    %8 = matmul_affine(%0, %1, _, %7) {to="f32"}
    %9 "y" = binary(%8, %3) {function="add"}
    output "z" %6
    output "y" %9
  })";
  EXPECT_EQ(after(scale_integer_sums, text), normalised(text));
}

}  // namespace
}  // namespace bantam::passes
