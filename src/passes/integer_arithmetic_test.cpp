#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "graph/builder.h"
#include "graph/testing/interpret.h"
#include "graph/text.h"
#include "ops/data/concat/concat.h"
#include "ops/data/pad/pad.h"
#include "ops/data/slice/slice.h"
#include "ops/elementwise/binary/binary.h"
#include "ops/elementwise/dequantize/dequantize.h"
#include "ops/elementwise/quantize/quantize.h"
#include "ops/elementwise/select/select.h"
#include "ops/elementwise/unary/unary.h"
#include "ops/nn/conv2d/conv2d.h"
#include "ops/nn/conv_transpose2d/conv_transpose2d.h"
#include "ops/nn/depthwise_conv2d/depthwise_conv2d.h"
#include "ops/nn/matmul/matmul.h"
#include "ops/nn/pool2d/pool2d.h"
#include "ops/reduce/reduce/reduce.h"
#include "passes/list.h"
#include "passes/passes.h"
#include "passes/testing/text_to_text.h"

namespace bantam::passes {
namespace {

using graph::Graph;
using graph::ValueId;
using graph::testing::HostTensor;
using testing::after;
using testing::normalised;

TEST(IntegerArithmetic, MultipliesInIntegersAndTakesReluAsALimit) {
  EXPECT_EQ(after(integer_arithmetic, R"(graph "g" {
    %0 "x" = input : u8[1,2]
    %1 = const : f32[] {0.5}
    %2 = const : u8[] {128}
    %3 = dequantize(%0, %1, %2)
    %4 = const : i8[2,1] {3, -4}
    %5 = const : f32[1] {0.25}
    %6 = dequantize(%4, %5)
    %7 = const : f32[1] {1}
    %8 = matmul(%3, %6, %7)
    %9 = unary(%8) {function="relu"}
    %10 = const : f32[] {2}
    %11 = const : i8[] {-10}
    %12 "y" = quantize(%9, %10, %11) {to="i8"}
    output "y" %12
  })"),
            normalised(R"(graph "g" {
    %0 "x" = input : u8[1,2]
    %1 = const : i8[2,1] {3, -4}
    %2 = const : i32[1] {8}
    %3 = const : f32[1] {0.0625}
    %4 "y" = matmul_affine(%0, %1, %2, %3) {to="i8", input_zero_point=128, output_zero_point=-10, minimum=-10}
    output "y" %4
  })"));
}

/// An image %2 and weights %5 with a scale per channel, both dequantised.
constexpr const char* kQuantizedImage = R"(graph "g" {
    %0 "x" = input : i8[1,3,3,1]
    %1 = const : f32[] {0.5}
    %2 = dequantize(%0, %1)
    %3 = const : i8[2,1,1,1] {3, -4}
    %4 = const : f32[2] {0.25, 0.5}
    %5 = dequantize(%3, %4))";

TEST(IntegerArithmetic, ConvolvesInIntegersWithAScalePerChannel) {
  EXPECT_EQ(after(integer_arithmetic, std::string(kQuantizedImage) + R"(
    %6 = conv2d(%2, %5) {pad_top=1}
    %7 = const : i8[] {7}
    %8 "y" = quantize(%6, %1, %7) {to="i8"}
    output "y" %8
  })"),
            normalised(R"(graph "g" {
    %0 "x" = input : i8[1,3,3,1]
    %1 = const : i8[2,1,1,1] {3, -4}
    %2 = const : f32[2] {0.25, 0.5}
    %3 "y" = conv2d_affine(%0, %1, _, %2) {pad_top=1, output_zero_point=7}
    output "y" %3
  })"));
}

// As convolutions of volumes are written, which add up those with slices of their weights.
TEST(IntegerArithmetic, ConvolvesWithTheIntegersOfSlicedWeights) {
  const auto fold_then_compute = [](Graph& graph) -> Result<bool> {
    const auto folded = fold_constants(graph);
    return folded ? integer_arithmetic(graph) : folded;
  };
  EXPECT_EQ(after(fold_then_compute, R"(graph "g" {
    %0 "x" = input : i8[1,3,3,1]
    %1 = const : f32[] {0.5}
    %2 = dequantize(%0, %1)
    %3 = const : i8[2,2,1,1] {3, -4, 5, -6}
    %4 = const : f32[2] {0.25, 0.5}
    %5 = dequantize(%3, %4)
    %6 = slice(%5) {starts=[0, 1, 0, 0], steps=[1, 1, 1, 1], sizes=[2, 1, 1, 1]}
    %7 "y" = conv2d(%2, %6)
    output "y" %7
  })"),
            normalised(R"(graph "g" {
    %0 "x" = input : i8[1,3,3,1]
    %1 = const : i8[2,1,1,1] {-4, -6}
    %2 = const : f32[2] {0.125, 0.25}
    %3 "y" = conv2d_affine(%0, %1, _, %2) {to="f32"}
    output "y" %3
  })"));
}

TEST(IntegerArithmetic, QuantisesActivationsInTheConvolution) {
  EXPECT_EQ(after(integer_arithmetic, std::string(kQuantizedImage) + R"(
    %6 = const : f32[2] {1, -2}
    %7 = conv2d(%2, %5, %6) {pad_top=1}
    %8 = transpose(%7) {perm=[0, 3, 1, 2]}
    %9 = unary(%8) {function="hard_swish"}
    %10 = const : i8[] {7}
    %11 "y" = quantize(%9, %1, %10) {to="i8"}
    output "y" %11
  })"),
            normalised(R"(graph "g" {
    %0 "x" = input : i8[1,3,3,1]
    %1 = const : i8[2,1,1,1] {3, -4}
    %2 = const : f32[2] {1, -2}
    %3 = const : f32[2] {0.125, 0.25}
    %4 = conv2d_affine(%0, %1, %2, %3) {pad_top=1, output_zero_point=7, activation="hard_swish", output_scale=0.5}
    %5 "y" = transpose(%4) {perm=[0, 3, 1, 2]}
    output "y" %5
  })"));
}

TEST(IntegerArithmetic, ActivationsAreQuantisedOnlyWhereNobodyElseReadsThem) {
  const std::string two_readers = R"(graph "g" {
    %0 "x" = input : i8[1,2]
    %1 = const : f32[] {0.5}
    %2 = dequantize(%0, %1)
    %3 = const : i8[2,1] {3, -4}
    %4 = dequantize(%3, %1)
    %5 = matmul(%2, %4)
    %6 "real" = unary(%5) {function="silu"}
    %7 = const : i8[] {7}
    %8 "y" = quantize(%6, %1, %7) {to="i8"}
    output "y" %8
    output "real" %6
  })";
  EXPECT_NE(after(integer_arithmetic, two_readers).find("quantize("), std::string::npos);
}

TEST(IntegerArithmetic, ResultsThatStayRealAreScaledSums) {
  EXPECT_EQ(after(integer_arithmetic, R"(graph "g" {
    %0 "x" = input : i8[1,2]
    %1 = const : f32[] {0.5}
    %2 = dequantize(%0, %1)
    %3 = const : i8[2,1] {3, -4}
    %4 = const : f32[1] {0.25}
    %5 = dequantize(%3, %4)
    %6 "y" = matmul(%2, %5)
    output "y" %6
  })"),
            normalised(R"(graph "g" {
    %0 "x" = input : i8[1,2]
    %1 = const : i8[2,1] {3, -4}
    %2 = const : f32[1] {0.125}
    %3 "y" = matmul_affine(%0, %1, _, %2) {to="f32"}
    output "y" %3
  })"));
}

TEST(IntegerArithmetic, MovesIntegersInsteadOfTheirNumbers) {
  EXPECT_EQ(after(integer_arithmetic, R"(graph "g" {
    %0 "x" = input : u8[1,2,2,1]
    %1 = const : f32[] {0.5}
    %2 = const : u8[] {100}
    %3 = dequantize(%0, %1, %2)
    %4 = pool2d(%3) {kernel_h=2}
    %5 = pad(%4) {before=[0, 0, 1, 0], after=[0, 0, 0, 0]}
    %6 = reshape(%5) {shape=[3]}
    %7 "y" = quantize(%6, %1, %2) {to="u8"}
    output "y" %7
  })"),
            normalised(R"(graph "g" {
    %0 "x" = input : u8[1,2,2,1]
    %1 = pool2d(%0) {kernel_h=2, minimum=0, maximum=255}
    %2 = const : u8[] {100}
    %3 = pad(%1, %2) {before=[0, 0, 1, 0], after=[0, 0, 0, 0]}
    %4 "y" = reshape(%3) {shape=[3]}
    output "y" %4
  })"));
}

// x * relu(x - 1): all parts, quantised apart, are functions of the same integers. So one table gives the last.
TEST(IntegerArithmetic, LooksUpFunctionsOfTheSameIntegersOnce) {
  const std::string text = after(integer_arithmetic, R"(graph "g" {
    %0 "x" = input : i8[1,5]
    %1 = const : f32[] {0.5}
    %2 = dequantize(%0, %1)
    %3 = const : f32[] {1}
    %4 = binary(%2, %3) {function="sub"}
    %5 = quantize(%4, %1) {to="i8"}
    %6 = dequantize(%5, %1)
    %7 = unary(%6) {function="relu"}
    %8 = quantize(%7, %1) {to="i8"}
    %9 = dequantize(%8, %1)
    %10 = binary(%2, %9) {function="mul"}
    %11 "y" = quantize(%10, %1) {to="i8"}
    output "y" %11
  })");
  EXPECT_NE(text.find("%2 \"y\" = lookup8(%0, %1)"), std::string::npos) << text;
  EXPECT_EQ(text.find("quantize"), std::string::npos) << text;
}

/// GELU as exporters write it, where the division and the error function stay real.
constexpr const char* kWrittenOutGelu = R"(
    %1 = const : f32[] {0.5}
    %2 = dequantize(%0, %1)
    %3 = const : f32[] {1.41421}
    %4 = binary(%2, %3) {function="div"}
    %5 = unary(%4) {function="erf"}
    %6 = const : f32[1,1] {1}
    %7 = binary(%5, %6) {function="add"}
    %8 = const : f32[] {0.0157}
    %9 = quantize(%7, %8) {to="i8"}
    %10 = dequantize(%9, %8)
    %11 = binary(%2, %10) {function="mul"}
    %12 = binary(%11, %1) {function="mul"}
    %13 "y" = quantize(%12, %1) {to="i8"}
    output "y" %13
  })";

TEST(IntegerArithmetic, LooksUpWhatSeveralRealOperatorsMakeOfTheSameIntegers) {
  const std::string text = after(integer_arithmetic, std::string(R"(graph "g" {
    %0 "x" = input : i8[3,5])") + kWrittenOutGelu);
  EXPECT_NE(text.find("%2 \"y\" = lookup8(%0, %1)"), std::string::npos) << text;
}

TEST(IntegerArithmetic, ComputesFunctionsOfMoreThan8Bits) {
  const std::string text = after(integer_arithmetic, std::string(R"(graph "g" {
    %0 "x" = input : i16[3,5])") + kWrittenOutGelu);
  EXPECT_NE(text.find("erf"), std::string::npos) << text;
  EXPECT_EQ(text.find("lookup8"), std::string::npos) << text;
}

TEST(IntegerArithmetic, GivesUpTablesOfChainsWithoutEnd) {
  std::string text = R"(graph "g" {
    %0 "x" = input : i8[2]
    %1 = const : f32[] {0.5}
    %2 = dequantize(%0, %1))";
  for (int i = 3; i < 40; ++i)
    text += "\n%" + std::to_string(i) + " = unary(%" + std::to_string(i - 1) + ") {function=\"tanh\"}";
  text += "\n%40 \"y\" = quantize(%39, %1) {to=\"i8\"}\noutput \"y\" %40 }";
  EXPECT_EQ(after(integer_arithmetic, text).find("lookup8"), std::string::npos);
}

TEST(IntegerArithmetic, InterpolatesIntegersBetweenTheirGrids) {
  EXPECT_EQ(after(integer_arithmetic, R"(graph "g" {
    %0 "x" = input : u8[1,4,4,3]
    %1 = const : f32[] {0.5}
    %2 = const : u8[] {128}
    %3 = dequantize(%0, %1, %2)
    %4 = resize(%3) {mode="linear", sizes=[1, 8, 8, 3], scales=[1, 2, 2, 1, 1, 1, 1, 1]}
    %5 = unary(%4) {function="relu"}
    %6 = const : f32[] {0.25}
    %7 = const : i8[] {-10}
    %8 "y" = quantize(%5, %6, %7) {to="i8"}
    output "y" %8
  })"),
            normalised(R"(graph "g" {
    %0 "x" = input : u8[1,4,4,3]
    %1 "y" = resize_affine(%0) {mode="linear", sizes=[1, 8, 8, 3], scales=[1, 2, 2, 1, 1, 1, 1, 1], x_scale=0.5, x_zero_point=128, y_scale=0.25, y_zero_point=-10, minimum=-10}
    output "y" %1
  })"));
}

TEST(IntegerArithmetic, AddsIntegersAndRescalesTheirMeanOnce) {
  EXPECT_EQ(after(integer_arithmetic, R"(graph "g" {
    %0 "x" = input : u8[1,4,4,3]
    %1 = const : f32[] {0.5}
    %2 = const : u8[] {128}
    %3 = dequantize(%0, %1, %2)
    %4 = transpose(%3) {perm=[0, 3, 1, 2]}
    %5 = reduce(%4) {function="mean", axes=[2, 3], keep_dims=false}
    %6 = unary(%5) {function="relu"}
    %7 = reshape(%6) {shape=[3]}
    %8 = const : f32[] {0.25}
    %9 = const : i8[] {-10}
    %10 "y" = quantize(%7, %8, %9) {to="i8"}
    output "y" %10
  })"),
            normalised(R"(graph "g" {
    %0 "x" = input : u8[1,4,4,3]
    %1 = transpose(%0) {perm=[0, 3, 1, 2]}
    %2 = reduce_affine(%1) {axes=[2, 3], keep_dims=false, x_scale=0.5, x_zero_point=128, y_scale=0.25, y_zero_point=-10, minimum=-10}
    %3 "y" = reshape(%2) {shape=[3]}
    output "y" %3
  })"));
}

/// Averages over 2x2 windows of a dequantised image %2 with four channels.
std::string averages(const std::string& more) {
  return after(integer_arithmetic, R"(graph "g" {
    %0 "x" = input : i8[1,4,4,4]
    %1 = const : f32[] {0.5}
    %2 = dequantize(%0, %1)
    %3 = pool2d(%2) {kind="average", kernel_h=2, kernel_w=2)" +
                                       more + R"(}
    %4 = const : f32[] {0.25}
    %5 = const : i8[] {7}
    %6 "y" = quantize(%3, %4, %5) {to="i8"}
    output "y" %6
  })");
}

TEST(IntegerArithmetic, AveragesOfWholeWindowsAreConvolutionsWithOnes) {
  EXPECT_EQ(averages(", stride_h=2, stride_w=2"), normalised(R"(graph "g" {
    %0 "x" = input : i8[1,4,4,4]
    %1 = const : i8[4,2,2,1] splat(1)
    %2 = const : f32[] {0.5}
    %3 "y" = conv2d_affine(%0, %1, _, %2) {stride_h=2, stride_w=2, groups=4, output_zero_point=7}
    output "y" %3
  })"));
  EXPECT_NE(averages(", pad_top=1, count_include_pad=true").find("conv2d_affine"), std::string::npos);
  EXPECT_NE(averages(", pad_top=1").find("pool2d"), std::string::npos) << "windows at the top count fewer elements";
  EXPECT_NE(averages(", stride_h=3, ceil_mode=true").find("pool2d"), std::string::npos);
}

TEST(IntegerArithmetic, LeavesReductionsWithoutIntegerSumsAlone) {
  const std::string norm = R"(graph "g" {
    %0 "x" = input : i8[1,4]
    %1 = const : f32[] {0.5}
    %2 = dequantize(%0, %1)
    %3 = reduce(%2) {function="l2", axes=[1]}
    %4 "y" = quantize(%3, %1) {to="i8"}
    output "y" %4
  })";
  EXPECT_EQ(after(integer_arithmetic, norm), normalised(norm));
}

/// Bytes, and %5, which is made of their numbers %2, on another grid.
std::string quantized_result(const std::string& made) {
  return R"(graph "g" {
    %0 "x" = input : u8[2,4]
    %1 = const : f32[] {0.5}
    %2 = dequantize(%0, %1)
    )" + made +
         R"(
    %6 = const : u8[] {7}
    %7 "y" = quantize(%5, %1, %6) {to="u8"}
    output "y" %7
  })";
}

TEST(IntegerArithmetic, CombinesIntegersWithRealNumbersPerChannel) {
  const auto combined = [](const char* function) {
    return normalised(R"(graph "g" {
    %0 "x" = input : u8[2,4]
    %1 = const : f32[2,1] {0.25, -1}
    %2 "y" = binary_affine(%0, %1) {function=")" +
                      std::string(function) +
                      R"(", a_scale=0.5, y_scale=0.5, y_zero_point=7, minimum=0, maximum=255}
    output "y" %2
  })");
  };
  const std::string numbers = "%3 = const : f32[2,1] {0.25, -1}\n";
  EXPECT_EQ(after(integer_arithmetic, quantized_result(numbers + R"(%5 = binary(%2, %3) {function="prelu"})")),
            combined("prelu"));
  EXPECT_EQ(after(integer_arithmetic, quantized_result(numbers + R"(%5 = binary(%3, %2) {function="mul"})")),
            combined("mul"));
}

TEST(IntegerArithmetic, LeavesRealImagesAndMinimaOfRealNumbersAlone) {
  for (const char* made : {R"(%3 "a" = input : f32[2,4]
    %5 = binary(%2, %3) {function="mul"})",
                           R"(%3 = const : f32[2,1] {0.25, -1}
    %5 = binary(%2, %3) {function="min"})",
                           R"(%3 = const : f32[2,1] {0.25, -1}
    %5 = binary(%3, %2) {function="sub"})"}) {
    const std::string text = quantized_result(made);
    EXPECT_EQ(after(integer_arithmetic, text), normalised(text));
  }
}

TEST(IntegerArithmetic, LeavesFloatOperandsAndScalesOfRunTimeAlone) {
  const char* text = R"(graph "g" {
    %0 "x" = input : f32[1,2]
    %1 "s" = input : f32[]
    %2 = const : i8[2,1] {3, -4}
    %3 = dequantize(%2, %1)
    %4 = matmul(%0, %3)
    %5 "y" = quantize(%4, %1) {to="i8"}
    output "y" %5
  })";
  EXPECT_EQ(after(integer_arithmetic, text), normalised(text));
}

TEST(IntegerArithmetic, WeightsOfRealRowsStayPacked) {
  // 3 and -4 fit into 4 bits: 11 and 4 above -8.
  EXPECT_EQ(after(integer_arithmetic, R"(graph "g" {
    %0 "x" = input : f32[5,2]
    %1 = const : i8[2,1] {3, -4}
    %2 = const : f32[1] {0.25}
    %3 = dequantize(%1, %2) {axis=1}
    %4 "y" = matmul(%0, %3)
    output "y" %4
  })"),
            normalised(R"(graph "g" {
    %0 "x" = input : f32[5,2]
    %1 = const : u8[1,1,1] {75}
    %2 = const : f32[1,1] {0.25}
    %3 "y" = matmul_blocks(%0, %1, %2) {block_size=2}
    output "y" %3
  })"));
  EXPECT_EQ(after(integer_arithmetic, R"(graph "g" {
    %0 "x" = input : f32[5,2]
    %1 = const : i8[2,2] {3, -4, 100, 0}
    %2 = const : f32[2] {0.25, 0.5}
    %3 = const : i8[2] {0, 1}
    %4 = dequantize(%1, %2, %3)
    %5 "y" = matmul(%0, %4) {transpose_b=true}
    output "y" %5
  })"),
            normalised(R"(graph "g" {
    %0 "x" = input : f32[5,2]
    %1 = const : u8[2,1,2] {131, 124, 228, 128}
    %2 = const : f32[2,1] {0.25, 0.5}
    %3 = const : u8[2,1] {128, 129}
    %4 "y" = matmul_blocks(%0, %1, %2, %3) {bits=8, block_size=2}
    output "y" %4
  })"));
}

/// Random graphs of operators between dequantisation and quantisation.
class RandomQuantizedGraph {
 public:
  explicit RandomQuantizedGraph(unsigned seed) : random_(seed), builder_(graph_) {}

  Graph exact() {
    begin();
    for (int i = pick(1, 8); i > 0; --i) add_exact();
    return finish();
  }

  /// One operator with sums between one quantisation and the next.
  Graph with_sums() {
    begin();
    const ValueId x = values_[0];
    const int channels = builder_.desc(x).dims[3];
    const int outputs = pick(0, 1) == 0 ? pick(1, 20) : channels;
    ValueId y = graph::kNone;
    switch (pick(0, 5)) {
      case 0:
        y = emit(ops::kConv2d, ops::Conv2dParams{.pad_top = pick(0, 1), .pad_right = pick(0, 1)},
                 {real(x), weights({outputs, 1, pick(1, 1), channels}, 0), bias(outputs)});
        break;
      case 1:
        y = emit(ops::kDepthwiseConv2d, ops::Conv2dParams{.pad_left = pick(0, 1)},
                 {real(x), weights({1, 1, channels}, 2), bias(channels)});
        break;
      case 2:
        y = emit(ops::kMatmul, ops::MatmulParams{}, {real(x), weights({channels, outputs}, 1), bias(outputs)});
        break;
      case 3:
        y = emit(ops::kConvTranspose2d, ops::ConvTranspose2dParams{.stride_h = pick(1, 2), .pad_left = pick(0, 1)},
                 {real(x), weights({outputs, pick(1, 3), 3, channels}, 0), bias(outputs)});
        break;
      case 4: {
        const int pad = pick(0, 1);
        y = emit(ops::kPool2d,
                 ops::Pool2dParams{
                     .kind = ops::PoolKind::kAverage, .kernel_h = 1 + pad, .pad_top = pad, .count_include_pad = 1},
                 {real(x)});
        break;
      }
      default: {
        using enum ops::ReduceFunction;
        y = emit(ops::kReduce, ops::ReduceParams{pick(0, 1) == 0 ? kSum : kMean, {2, {1, 2}}, pick(0, 1)}, {real(x)});
      }
    }
    if (pick(0, 1) == 0) y = emit(ops::kUnary, ops::UnaryParams{ops::UnaryFunction::kRelu, 0, 0}, {y});
    values_.push_back(quantize(y));
    return finish();
  }

 private:
  int pick(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  float number(float low, float high) { return std::uniform_real_distribution<float>(low, high)(random_); }

  void begin() {
    TensorDesc desc;
    desc.type = type();
    desc.rank = 4;
    for (int d = 0; d < 4; ++d) desc.dims[d] = pick(1, 4);
    values_.push_back(builder_.input("x0", desc));
    desc.type = type();
    values_.push_back(builder_.input("x1", desc));
  }
  Graph finish() {
    builder_.output("last", values_.back());
    builder_.output("real", emit(ops::kUnary, ops::UnaryParams{ops::UnaryFunction::kExp, 0, 0}, {real(value())}));
    return std::move(graph_);
  }
  ElementType type() { return pick(0, 1) == 0 ? ElementType::kI8 : ElementType::kU8; }
  ValueId value() { return values_[static_cast<std::size_t>(pick(0, static_cast<int>(values_.size()) - 1))]; }

  template <typename P>
  ValueId emit(const ops::OpDef& op, const P& params, const std::vector<ValueId>& inputs) {
    auto result = builder_.emit1(op, graph::Params::of(params), inputs);
    EXPECT_TRUE(result) << result.error().message;
    return result ? *result : 0;
  }
  ValueId floats(const std::vector<std::int64_t>& dims, const std::vector<float>& values) {
    return builder_.constant<float>("", dims, std::span<const float>(values));
  }
  ValueId zero_point(ElementType type) {
    if (type == ElementType::kI8) {
      const auto z = static_cast<std::int8_t>(pick(-128, 127));
      return builder_.constant<std::int8_t>("", {}, std::span(&z, 1));
    }
    const auto z = static_cast<std::uint8_t>(pick(0, 255));
    return builder_.constant<std::uint8_t>("", {}, std::span(&z, 1));
  }
  /// Few scales, so that equal grids happen.
  ValueId scale() { return floats({}, {pick(0, 1) == 0 ? 0.05F : number(0.01F, 0.1F)}); }
  ValueId real(ValueId q) {
    const bool fresh = !grids_.contains(q);
    if (fresh) grids_[q] = {scale(), zero_point(builder_.desc(q).type)};
    return emit(ops::kDequantize, ops::DequantizeParams{}, {q, grids_[q].first, grids_[q].second});
  }
  ValueId quantize(ValueId x) {
    const ElementType to = type();
    const std::pair<ValueId, ValueId> grid{scale(), zero_point(to)};
    const ValueId q = emit(ops::kQuantize, ops::QuantizeParams{to, 0, 0}, {x, grid.first, grid.second});
    grids_[q] = grid;
    return q;
  }
  ValueId weights(const std::vector<std::int64_t>& dims, int axis) {
    std::int64_t n = 1;
    for (const auto d : dims) n *= d;
    std::vector<std::int8_t> elements(static_cast<std::size_t>(n));
    for (auto& e : elements) e = static_cast<std::int8_t>(pick(-128, 127));
    const auto scales = static_cast<std::size_t>(pick(0, 1) == 0 ? 1 : dims[static_cast<std::size_t>(axis)]);
    std::vector<float> s(scales);
    for (float& e : s) e = number(0.002F, 0.01F);
    const ValueId q = builder_.constant<std::int8_t>("", dims, std::span<const std::int8_t>(elements));
    return emit(ops::kDequantize, ops::DequantizeParams{axis}, {q, floats({static_cast<std::int64_t>(scales)}, s)});
  }
  ValueId bias(int n) {
    std::vector<float> values(static_cast<std::size_t>(n));
    for (float& v : values) v = number(-1.0F, 1.0F);
    return floats({n}, values);
  }

  void add_exact() {
    const ValueId q = value();
    const ValueId x = real(q);
    ValueId y = x;
    switch (pick(0, 9)) {
      case 0: {
        using enum ops::UnaryFunction;
        static constexpr ops::UnaryFunction kFunctions[] = {kRelu, kSigmoid, kTanh, kLeakyRelu, kClip, kHardSwish};
        y = emit(ops::kUnary, ops::UnaryParams{kFunctions[pick(0, 5)], 0.1F, 2.0F}, {x});
        break;
      }
      case 1:
      case 2: {
        using enum ops::BinaryFunction;
        static constexpr ops::BinaryFunction kFunctions[] = {kAdd, kSub, kMul, kMin, kMax, kDiv, kPrelu};
        ValueId other = x;
        for (const ValueId candidate : values_)
          if (same_shape(candidate, q) && pick(0, 1) == 0) other = real(candidate);
        if (pick(0, 4) == 0) other = floats({}, {number(-2.0F, 2.0F)});
        if (pick(0, 4) == 0) other = bias(builder_.desc(x).dims[3]);
        y = emit(ops::kBinary, ops::BinaryParams{kFunctions[pick(0, 6)], {}}, {x, other});
        if (pick(0, 2) == 0) y = emit(ops::kUnary, ops::UnaryParams{ops::UnaryFunction::kRelu, 0, 0}, {y});
        break;
      }
      case 3: y = *builder_.transpose(x, std::vector{0, 2, 3, 1}); break;
      case 4: y = emit(ops::kPool2d, ops::Pool2dParams{.kernel_w = 2, .pad_left = 1}, {x}); break;
      case 5: y = emit(ops::kConcat, ops::ConcatParams{pick(0, 3)}, {x, x}); break;
      case 6: y = emit(ops::kPad, ops::PadParams{{}, {4, {0, 1, 0, 0}}, {4, {0, 0, pick(0, 1), 0}}}, {x}); break;
      case 7: {
        const ValueId both = emit(ops::kConcat, ops::ConcatParams{3}, {x, real(q)});
        y = *builder_.reshape(both, std::vector<std::int64_t>{1, 1, 1, builder_.desc(both).elements()});
        break;
      }
      case 8: y = chain(x); break;
      default: break;  // another grid for the same numbers
    }
    if (builder_.desc(y).elements() > 4096) return;
    values_.push_back(quantize(y));
  }
  /// Some functions of x alone, one of the other, and products of two of these.
  ValueId chain(ValueId x) {
    using enum ops::UnaryFunction;
    static constexpr ops::UnaryFunction kFunctions[] = {kErf, kTanh, kSquare, kSoftplus};
    std::vector<ValueId> all{x};
    for (int length = pick(1, 5); length > 0; --length) {
      const ValueId last = all.back();
      const ValueId other = pick(0, 1) == 0 ? floats({}, {number(0.5F, 2.0F)}) : all[all.size() / 2];
      const auto function = pick(0, 1) == 0 ? ops::BinaryFunction::kMul : ops::BinaryFunction::kSub;
      all.push_back(pick(0, 1) == 0 ? emit(ops::kUnary, ops::UnaryParams{kFunctions[pick(0, 3)], 0, 0}, {last})
                                    : emit(ops::kBinary, ops::BinaryParams{function, {}}, {last, other}));
    }
    return all.back();
  }
  bool same_shape(ValueId a, ValueId b) {
    TensorDesc left = builder_.desc(a);
    left.type = builder_.desc(b).type;
    return same_shape_and_type(left, builder_.desc(b));
  }

  std::mt19937 random_;
  Graph graph_;
  graph::Builder builder_;
  std::vector<ValueId> values_;                           ///< integers
  std::map<ValueId, std::pair<ValueId, ValueId>> grids_;  ///< scale and zero point of each
};

std::map<std::string, HostTensor> random_bytes(const Graph& graph, unsigned seed) {
  std::mt19937 random(seed);
  std::map<std::string, HostTensor> inputs;
  for (const graph::Port& port : graph.inputs) {
    HostTensor tensor{graph.value(port.value).desc, {}};
    tensor.bytes.resize(static_cast<std::size_t>(tensor.desc.bytes()));
    for (auto& byte : tensor.bytes) byte = static_cast<std::byte>(random());
    inputs[port.name] = std::move(tensor);
  }
  return inputs;
}

bool has_float_sums(const Graph& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const graph::Node& node) {
    return node.is(ops::kConv2d) || node.is(ops::kDepthwiseConv2d) || node.is(ops::kConvTranspose2d) ||
           node.is(ops::kMatmul) || node.is(ops::kReduce);
  });
}

TEST(IntegerArithmetic, OperatorsWithoutSumsGiveTheSameBits) {
  for (unsigned seed = 1; seed <= 300; ++seed) {
    Graph graph = RandomQuantizedGraph(seed).exact();
    const auto inputs = random_bytes(graph, seed);
    const auto before = graph::testing::interpret(graph, inputs);
    ASSERT_TRUE(before) << before.error().message;
    const std::string text = graph::to_text(graph);
    ASSERT_TRUE(integer_arithmetic(graph)) << "seed " << seed;
    const auto sound = graph::verify(graph);
    ASSERT_TRUE(sound) << sound.error().message << ", seed " << seed;
    const auto now = graph::testing::interpret(graph, inputs);
    ASSERT_TRUE(now) << now.error().message;
    for (const auto& [name, tensor] : *before)
      ASSERT_EQ(now->at(name).bytes, tensor.bytes) << name << ", seed " << seed << "\n"
                                                   << text << "\n"
                                                   << graph::to_text(graph);
  }
}

TEST(IntegerArithmetic, SumsAreIntegersAndResultsWithinOneStep) {
  for (unsigned seed = 1; seed <= 300; ++seed) {
    Graph graph = RandomQuantizedGraph(seed).with_sums();
    const auto inputs = random_bytes(graph, seed);
    const auto before = graph::testing::interpret(graph, inputs);
    ASSERT_TRUE(before) << before.error().message;
    ASSERT_TRUE(integer_arithmetic(graph)) << "seed " << seed;
    EXPECT_FALSE(has_float_sums(graph)) << "seed " << seed << "\n" << graph::to_text(graph);
    const auto now = graph::testing::interpret(graph, inputs);
    ASSERT_TRUE(now) << now.error().message;
    const HostTensor& a = before->at("last");
    const HostTensor& b = now->at("last");
    ASSERT_EQ(a.desc.type, b.desc.type);
    std::size_t different = 0;
    for (std::size_t i = 0; i < a.bytes.size(); ++i) {
      const bool is_signed = a.desc.type == ElementType::kI8;
      const auto number = [&](std::byte x) { return is_signed ? static_cast<std::int8_t>(x) : static_cast<int>(x); };
      const int step = std::abs(number(a.bytes[i]) - number(b.bytes[i]));
      ASSERT_LE(step, 1) << "element " << i << ", seed " << seed << "\n" << graph::to_text(graph);
      different += step != 0 ? 1 : 0;
    }
    EXPECT_LE(different, 1 + a.bytes.size() / 50) << "seed " << seed;
  }
}

}  // namespace
}  // namespace bantam::passes
