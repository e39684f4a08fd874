// Text-to-text tests of fuse_attention, and a comparison of results with the graph as it was.
#include <gtest/gtest.h>

#include <string_view>

#include "passes/list.h"
#include "passes/testing/text_to_text.h"

namespace bantam::passes {
namespace {

using testing::after;
using testing::normalised;

/// The pass turns `text` into `expected`, with the same results.
void expect_fused(std::string_view text, std::string_view expected) {
  testing::expect_rewritten(fuse_attention, text, expected);
}

TEST(FuseAttention, ReadsAndWritesProjectionsWhereTheyLie) {
  expect_fused(R"(graph "g" {
    %0 "q" = input : f32[2,5,3,4]
    %1 "k" = input : f32[2,7,3,4]
    %2 "v" = input : f32[2,7,3,6]
    %3 = transpose(%0) {perm=[0, 2, 1, 3]}
    %4 = transpose(%1) {perm=[0, 2, 3, 1]}
    %5 = transpose(%2) {perm=[0, 2, 1, 3]}
    %6 = matmul(%3, %4)
    %7 = const : f32[] {2}
    %8 = binary(%6, %7) {function="div"}
    %9 = softmax(%8) {axis=3}
    %10 = matmul(%9, %5)
    %11 = transpose(%10) {perm=[0, 2, 1, 3]}
    output "y" %11
  })",
               R"(graph "g" {
    %0 "q" = input : f32[2,5,3,4]
    %1 "k" = input : f32[2,7,3,4]
    %2 "v" = input : f32[2,7,3,6]
    %3 = attention(%0, %1, %2, _, _, _) {scale=0.5, q_heads_last=true, k_heads_last=true, v_heads_last=true, y_heads_last=true}
    output "y" %3
  })");
}

TEST(FuseAttention, ReadsQueriesKeysAndValuesWithinOneProjection) {
  // As exporters of vision transformers write it: a projection of all three, transposed as one and taken apart.
  expect_fused(R"(graph "g" {
    %0 "x" = input : f32[2,5,3,4,6]
    %1 = transpose(%0) {perm=[2, 0, 3, 1, 4]}
    %2 = slice(%1) {starts=[0, 0, 0, 0, 0], steps=[1, 1, 1, 1, 1], sizes=[1, 2, 4, 5, 6]}
    %3 = reshape(%2) {shape=[2, 4, 5, 6]}
    %4 = slice(%1) {starts=[1, 0, 0, 0, 0], steps=[1, 1, 1, 1, 1], sizes=[1, 2, 4, 5, 6]}
    %5 = reshape(%4) {shape=[2, 4, 5, 6]}
    %6 = slice(%1) {starts=[2, 0, 0, 0, 0], steps=[1, 1, 1, 1, 1], sizes=[1, 2, 4, 5, 6]}
    %7 = reshape(%6) {shape=[2, 4, 5, 6]}
    %8 = const : f32[] {0.5}
    %9 = binary(%3, %8) {function="mul"}
    %10 = transpose(%5) {perm=[0, 1, 3, 2]}
    %11 = matmul(%9, %10)
    %12 = softmax(%11) {axis=3}
    %13 = matmul(%12, %7)
    output "y" %13
  })",
               R"(graph "g" {
    %0 "x" = input : f32[2,5,3,4,6]
    %1 = slice(%0) {starts=[0, 0, 0, 0, 0], steps=[1, 1, 1, 1, 1], sizes=[2, 5, 1, 4, 6]}
    %2 = reshape(%1) {shape=[2, 5, 4, 6]}
    %3 = slice(%0) {starts=[0, 0, 2, 0, 0], steps=[1, 1, 1, 1, 1], sizes=[2, 5, 1, 4, 6]}
    %4 = reshape(%3) {shape=[2, 5, 4, 6]}
    %5 = slice(%0) {starts=[0, 0, 1, 0, 0], steps=[1, 1, 1, 1, 1], sizes=[2, 5, 1, 4, 6]}
    %6 = reshape(%5) {shape=[2, 5, 4, 6]}
    %7 = attention(%2, %6, %4, _, _, _) {scale=0.5, q_heads_last=true, k_heads_last=true, v_heads_last=true}
    output "y" %7
  })");
}

TEST(FuseAttention, TakesAllThatIsInFrontOfTheHeadsAsOneBatch) {
  // As over the pixels of patches, with a bias of each patch and a mask of all.
  expect_fused(R"(graph "g" {
    %0 "x" = input : f32[2,3,5,4,6]
    %1 "b" = input : f32[2,3,1,5,5]
    %2 "m" = input : bool[1,1,1,1,5]
    %3 = transpose(%0) {perm=[0, 1, 3, 2, 4]}
    %4 = matmul(%3, %3) {transpose_b=true}
    %5 = binary(%4, %1) {function="add"}
    %6 = const : f32[] {-10000}
    %7 = select(%2, %5, %6)
    %8 = softmax(%7) {axis=4}
    %9 = matmul(%8, %3)
    %10 = transpose(%9) {perm=[0, 1, 3, 2, 4]}
    output "y" %10
  })",
               R"(graph "g" {
    %0 "x" = input : f32[2,3,5,4,6]
    %1 "b" = input : f32[2,3,1,5,5]
    %2 "m" = input : bool[1,1,1,1,5]
    %3 = reshape(%0) {shape=[6, 5, 4, 6]}
    %4 = reshape(%0) {shape=[6, 5, 4, 6]}
    %5 = reshape(%0) {shape=[6, 5, 4, 6]}
    %6 = reshape(%1) {shape=[6, 1, 5, 5]}
    %7 = reshape(%2) {shape=[1, 1, 1, 5]}
    %8 = attention(%3, %4, %5, %6, %7, _) {masked_value=-10000, q_heads_last=true, k_heads_last=true, v_heads_last=true, y_heads_last=true}
    %9 = reshape(%8) {shape=[2, 3, 5, 4, 6]}
    output "y" %9
  })");
}

TEST(FuseAttention, KeepsABiasOfSomeOfWhatIsInFrontOfTheHeads) {
  const char* text = R"(graph "g" {
    %0 "x" = input : f32[2,3,4,5,6]
    %1 "b" = input : f32[2,1,1,5,5]
    %2 = matmul(%0, %0) {transpose_b=true}
    %3 = binary(%2, %1) {function="add"}
    %4 = softmax(%3) {axis=4}
    %5 = matmul(%4, %0)
    output "y" %5
  })";
  EXPECT_EQ(after(fuse_attention, text), normalised(text));
}

TEST(FuseAttention, SharesHeadsThatAreRepeatedForSeveralOfQueries) {
  expect_fused(R"(graph "g" {
    %0 "q" = input : f32[1,4,5,6]
    %1 "k" = input : f32[1,7,2,6]
    %2 "v" = input : f32[1,7,2,3]
    %3 = transpose(%1) {perm=[0, 2, 1, 3]}
    %4 = transpose(%2) {perm=[0, 2, 1, 3]}
    %5 = reshape(%3) {shape=[1, 2, 1, 7, 6]}
    %6 = expand(%5) {shape=[1, 2, 2, 7, 6]}
    %7 = reshape(%6) {shape=[1, 4, 7, 6]}
    %8 = reshape(%4) {shape=[1, 2, 1, 7, 3]}
    %9 = expand(%8) {shape=[1, 2, 2, 7, 3]}
    %10 = reshape(%9) {shape=[1, 4, 7, 3]}
    %11 = matmul(%0, %7) {transpose_b=true}
    %12 = softmax(%11) {axis=3}
    %13 = matmul(%12, %10)
    output "y" %13
  })",
               R"(graph "g" {
    %0 "q" = input : f32[1,4,5,6]
    %1 "k" = input : f32[1,7,2,6]
    %2 "v" = input : f32[1,7,2,3]
    %3 = attention(%0, %1, %2, _, _, _) {k_heads_last=true, v_heads_last=true}
    output "y" %3
  })");
}

TEST(FuseAttention, RepeatsHeadsWhereOnlyKeysOrValuesAreShared) {
  const std::string result = after(fuse_attention, R"(graph "g" {
    %0 "q" = input : f32[1,4,5,6]
    %1 "k" = input : f32[1,2,7,6]
    %2 "v" = input : f32[1,4,7,3]
    %3 = reshape(%1) {shape=[1, 2, 1, 7, 6]}
    %4 = expand(%3) {shape=[1, 2, 2, 7, 6]}
    %5 = reshape(%4) {shape=[1, 4, 7, 6]}
    %6 = matmul(%0, %5) {transpose_b=true}
    %7 = softmax(%6) {axis=3}
    %8 = matmul(%7, %2)
    output "y" %8
  })");
  EXPECT_NE(result.find("expand"), std::string::npos) << result;
  EXPECT_NE(result.find("attention"), std::string::npos) << result;
}

TEST(FuseAttention, TransposesWhatTheOperatorDoesNotReadAsItLies) {
  // Parts whose widths lie apart.
  expect_fused(R"(graph "g" {
    %0 "x" = input : f32[2,6,3,4]
    %1 = transpose(%0) {perm=[2, 0, 3, 1]}
    %2 = slice(%1) {starts=[1, 0, 0, 0], steps=[1, 1, 1, 1], sizes=[1, 2, 4, 6]}
    %3 = reshape(%2) {shape=[2, 4, 6]}
    %4 = matmul(%3, %3) {transpose_b=true}
    %5 = softmax(%4) {axis=2}
    %6 = matmul(%5, %3)
    output "y" %6
  })",
               R"(graph "g" {
    %0 "x" = input : f32[2,6,3,4]
    %1 = slice(%0) {starts=[0, 0, 1, 0], steps=[1, 1, 1, 1], sizes=[2, 6, 1, 4]}
    %2 = reshape(%1) {shape=[2, 6, 4]}
    %3 = slice(%0) {starts=[0, 0, 1, 0], steps=[1, 1, 1, 1], sizes=[2, 6, 1, 4]}
    %4 = reshape(%3) {shape=[2, 6, 4]}
    %5 = slice(%0) {starts=[0, 0, 1, 0], steps=[1, 1, 1, 1], sizes=[2, 6, 1, 4]}
    %6 = reshape(%5) {shape=[2, 6, 4]}
    %7 = transpose(%2) {perm=[0, 2, 1]}
    %8 = reshape(%7) {shape=[1, 2, 4, 6]}
    %9 = transpose(%6) {perm=[0, 2, 1]}
    %10 = reshape(%9) {shape=[1, 2, 4, 6]}
    %11 = transpose(%4) {perm=[0, 2, 1]}
    %12 = reshape(%11) {shape=[1, 2, 4, 6]}
    %13 = attention(%8, %10, %12, _, _, _)
    %14 = reshape(%13) {shape=[2, 4, 6]}
    output "y" %14
  })");
}

TEST(FuseAttention, TakesAnAdditiveMaskAndScaledOperands) {
  expect_fused(R"(graph "g" {
    %0 "q" = input : f32[1,2,5,4]
    %1 "k" = input : f32[1,2,7,4]
    %2 "v" = input : f32[1,2,7,4]
    %3 "m" = input : f32[5,7]
    %4 = const : f32[] {0.5}
    %5 = binary(%0, %4) {function="mul"}
    %6 = transpose(%1) {perm=[0, 1, 3, 2]}
    %7 = binary(%6, %4) {function="mul"}
    %8 = matmul(%5, %7)
    %9 = binary(%3, %8) {function="add"}
    %10 = softmax(%9) {axis=-1}
    %11 = matmul(%10, %2)
    output "y" %11
  })",
               R"(graph "g" {
    %0 "q" = input : f32[1,2,5,4]
    %1 "k" = input : f32[1,2,7,4]
    %2 "v" = input : f32[1,2,7,4]
    %3 "m" = input : f32[5,7]
    %4 = attention(%0, %1, %2, %3, _, _) {scale=0.25}
    output "y" %4
  })");
}

TEST(FuseAttention, TakesRelativePositionsAndAMaskThatZeroesEmptyRows) {
  // A conformer's scores: (q k + positions) / 2, masked before and after the softmax.
  expect_fused(R"(graph "g" {
    %0 "q" = input : f32[1,2,5,4]
    %1 "k" = input : f32[1,2,7,4]
    %2 "v" = input : f32[1,2,7,4]
    %3 "p" = input : f32[1,2,5,7]
    %4 "m" = input : bool[1,1,1,7]
    %5 = transpose(%1) {perm=[0, 1, 3, 2]}
    %6 = matmul(%0, %5)
    %7 = binary(%6, %3) {function="add"}
    %8 = const : f32[] {2}
    %9 = binary(%7, %8) {function="div"}
    %10 = const : f32[] {-inf}
    %11 = select(%4, %10, %9)
    %12 = softmax(%11) {axis=3}
    %13 = const : f32[] {0}
    %14 = select(%4, %13, %12)
    %15 = matmul(%14, %2)
    output "y" %15
  })",
               R"(graph "g" {
    %0 "q" = input : f32[1,2,5,4]
    %1 "k" = input : f32[1,2,7,4]
    %2 "v" = input : f32[1,2,7,4]
    %3 "p" = input : f32[1,2,5,7]
    %4 "m" = input : bool[1,1,1,7]
    %5 = attention(%0, %1, %2, %3, %4, _) {scale=0.5, bias_scale=0.5, mask_keeps=false, empty_rows_zero=true}
    output "y" %5
  })");
}

TEST(FuseAttention, TakesBatchesOfMatricesAndSafeSoftmax) {
  expect_fused(R"(graph "g" {
    %0 "q" = input : f32[5,2,4]
    %1 "k" = input : f32[7,2,4]
    %2 "v" = input : f32[7,2,4]
    %3 "m" = input : bool[5,7]
    %4 = transpose(%0) {perm=[1, 0, 2]}
    %5 = transpose(%1) {perm=[1, 2, 0]}
    %6 = transpose(%2) {perm=[1, 0, 2]}
    %7 = matmul(%4, %5)
    %8 = const : f32[] {-10000}
    %9 = select(%3, %7, %8)
    %10 = softmax(%9) {axis=2}
    %11 = unary(%10) {function="is_nan"}
    %12 = const : f32[] {0}
    %13 = select(%11, %12, %10)
    %14 = matmul(%13, %6)
    %15 = transpose(%14) {perm=[1, 0, 2]}
    output "y" %15
  })",
               R"(graph "g" {
    %0 "q" = input : f32[5,2,4]
    %1 "k" = input : f32[7,2,4]
    %2 "v" = input : f32[7,2,4]
    %3 "m" = input : bool[5,7]
    %4 = reshape(%0) {shape=[1, 5, 2, 4]}
    %5 = reshape(%1) {shape=[1, 7, 2, 4]}
    %6 = reshape(%2) {shape=[1, 7, 2, 4]}
    %7 = attention(%4, %5, %6, _, %3, _) {masked_value=-10000, empty_rows_zero=true, q_heads_last=true, k_heads_last=true, v_heads_last=true, y_heads_last=true}
    %8 = reshape(%7) {shape=[5, 2, 4]}
    output "y" %8
  })");
}

TEST(FuseAttention, KeepsWhatIsReadElsewhere) {
  const char* text = R"(graph "g" {
    %0 "q" = input : f32[2,5,4]
    %1 "v" = input : f32[2,5,4]
    %2 = matmul(%0, %0) {transpose_b=true}
    %3 = softmax(%2) {axis=2}
    %4 = matmul(%3, %1)
    output "y" %4
    output "weights" %3
  })";
  EXPECT_EQ(after(fuse_attention, text), normalised(text));
}

TEST(FuseAttention, KeepsAnotherAxisAndKeysStoredAsColumns) {
  const char* columns = R"(graph "g" {
    %0 "q" = input : f32[2,5,4]
    %1 "k" = input : f32[2,4,5]
    %2 = matmul(%0, %1)
    %3 = softmax(%2) {axis=2}
    %4 = matmul(%3, %0)
    output "y" %4
  })";
  EXPECT_EQ(after(fuse_attention, columns), normalised(columns));
  const char* axis = R"(graph "g" {
    %0 "q" = input : f32[2,5,4]
    %1 = matmul(%0, %0) {transpose_b=true}
    %2 = softmax(%1) {axis=1}
    %3 = matmul(%2, %0)
    output "y" %3
  })";
  EXPECT_EQ(after(fuse_attention, axis), normalised(axis));
}

TEST(FuseAttention, KeepsAMaskThatEnlargesTheScores) {
  const char* text = R"(graph "g" {
    %0 "q" = input : f32[1,5,4]
    %1 "m" = input : f32[3,5,5]
    %2 = matmul(%0, %0) {transpose_b=true}
    %3 = binary(%2, %1) {function="add"}
    %4 = softmax(%3) {axis=2}
    %5 = matmul(%4, %0)
    output "y" %5
  })";
  EXPECT_EQ(after(fuse_attention, text), normalised(text));
}

}  // namespace
}  // namespace bantam::passes
