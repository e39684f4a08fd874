#include "compiler/cost_model.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <utility>

#include "compiler/select.h"
#include "compiler/testing/compile_text.h"
#include "ops/narrowing.h"
#include "ops/nn/conv2d/conv2d.h"

namespace bantam::compiler {
namespace {

/// One 3x3 convolution of images of that many pixels a side; with `large`, after a larger step.
std::string convolution(int side, int inputs, int outputs, bool large = false, int items = 1) {
  const std::string more = large ? R"(
  %m "more" = input : f32[1,1024,1024,4]
  %r "large" = unary(%m) {function="relu"}
  output "r" %r)"
                                 : "";
  return fmt::format(R"(graph "one" {{
  %x "x" = input : f32[{4},{0},{0},{1}]
  %w = const : f32[{2},3,3,{1}] splat(0.1)
  %y "conv" = conv2d(%x, %w) {{pad_top=1, pad_left=1, pad_bottom=1, pad_right=1}}{3}
  output "y" %y
}})",
                     side, inputs, outputs, more, items);
}

/// The kernel that the graph's convolution gets on the target.
std::string kernel_of(const std::string& text, std::string_view target) {
  const graph::Graph graph = testing::parse(text);
  KernelPolicy policy;
  policy.target = *find_target(target);
  const auto selected = select_kernels(graph, policy);
  EXPECT_TRUE(selected) << selected.error().message;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n)
    if (graph.nodes[n].op == &ops::kConv2d) return std::string((*selected)[n].variant->name);
  return "";
}

/// What the graph's first node is predicted to take.
double predicted(const std::string& text, std::string_view kernel, const Machine& machine) {
  const graph::Graph graph = testing::parse(text);
  const graph::Node& node = graph.nodes.front();
  const graph::OperandTables tables = graph::operand_tables(graph, node);
  return predicted_ns(*node.op, *ops::find_variant(*node.op, kernel), tables.call(node), machine);
}

TEST(CostModel, EveryTargetIsAMachineAndTheHostIsOneOfThem) {
  for (const Target& target : all_targets()) {
    const Machine machine = machine_of(target);
    for (const double figure : {machine.f32_macs, machine.i8_macs, machine.i16_macs, machine.plain_macs,
                                machine.moved_bytes, machine.weight_bytes, machine.step_ns})
      EXPECT_GT(figure, 0) << target.name;
  }
}

#if BANTAM_SIMD
TEST(CostModel, TilesAreTransformedWhereThatSavesTime) {
  for (const char* target : {"x86-64-avx2", "x86-64-avx512", "cortex-a76"}) {
    EXPECT_EQ(kernel_of(convolution(56, 64, 64), target), "f32_winograd__simd") << target;
    EXPECT_EQ(kernel_of(convolution(28, 128, 128, true), target), "f32_winograd__simd") << target;
    EXPECT_EQ(kernel_of(convolution(8, 16, 32), target), "f32_gemm__simd") << target;
  }
}

TEST(CostModel, SlowMultiplicationsMakeTransformsWorthwhileEarlier) {
  EXPECT_EQ(kernel_of(convolution(13, 48, 192, true), "x86-64-avx512"), "f32_gemm__simd");
  EXPECT_EQ(kernel_of(convolution(13, 48, 192, true), "x86-64-zen4"), "f32_winograd__simd");
}

TEST(CostModel, WeightsOfASmallModelComeFasterThanThoseOfALargeOne) {
  const Target target = *find_target("x86-64-zen5");
  const Machine machine = machine_of(target);
  const auto cache = static_cast<std::int64_t>(machine.cache_bytes);
  EXPECT_GT(machine_of(target, cache).weight_bytes, machine.weight_bytes);
  EXPECT_EQ(machine_of(target, cache + 1).weight_bytes, machine.weight_bytes);
  EXPECT_EQ(kernel_of(convolution(13, 48, 192, true), "x86-64-zen5"), "f32_winograd__simd");
  for (const char* other : {"x86-64-zen4", "cortex-m4"}) {
    const Target same = *find_target(other);
    EXPECT_EQ(machine_of(same, 1).weight_bytes, machine_of(same).weight_bytes) << other;
  }
}

TEST(CostModel, WeightsOfWhichEachServesFewPixelsAreNotMultiplied) {
  EXPECT_EQ(kernel_of(convolution(7, 512, 512, true), "x86-64-avx512"), "f32_gemm__simd");
  EXPECT_EQ(kernel_of(convolution(28, 512, 512, true), "x86-64-avx512"), "f32_winograd__simd");
}

TEST(CostModel, SmallTilesSaveWeightsOrScratch) {
  // Four times the weights, or 1.8 times, of which each serves 4 tiles or 16.
  EXPECT_EQ(kernel_of(convolution(7, 512, 512, true), "x86-64-zen4"), "f32_winograd_2x2__simd");
  // 6 tiles of 36 pixels are more than the image and its result, 6 of 16 pixels are not.
  EXPECT_EQ(kernel_of(convolution(14, 256, 256), "x86-64-zen4"), "f32_winograd_2x2__simd");
  EXPECT_EQ(kernel_of(convolution(14, 256, 256, true), "x86-64-zen4"), "f32_winograd__simd");
}

TEST(CostModel, TilesOfStridedWindowsAreTransformedWhereThatSavesTime) {
  const auto strided = [](std::string text) {
    const std::string_view pad = "pad_top=1";
    return text.replace(text.find(pad), pad.size(), "stride_h=2, stride_w=2, pad_top=1");
  };
  EXPECT_EQ(kernel_of(strided(convolution(56, 128, 128, true)), "x86-64-zen4"), "f32_winograd__simd");
  EXPECT_EQ(kernel_of(strided(convolution(56, 128, 128, true)), "cortex-a76"), "f32_winograd_2x2__simd");
  for (const char* target : {"x86-64-zen4", "cortex-a76"})
    EXPECT_EQ(kernel_of(strided(convolution(16, 16, 32)), target), "f32_gemm__simd") << target;
}

TEST(CostModel, ScratchThatWouldEnlargeThePlanIsNotTaken) {
  // 6 tiles of 36 pixels against an image of 14x14.
  EXPECT_EQ(kernel_of(convolution(12, 256, 256), "x86-64-avx2"), "f32_gemm__simd");
  EXPECT_EQ(kernel_of(convolution(12, 256, 256, true), "x86-64-avx2"), "f32_winograd__simd");
}

TEST(CostModel, ManyWeightsAreNotFetchedAgainForEveryFewTiles) {
  // 9 MiB of weights for 16 tiles: with room for all of them they are read once, with room for 6 three times.
  EXPECT_EQ(kernel_of(convolution(16, 256, 256, true), "x86-64-avx512"), "f32_winograd__simd");
  EXPECT_EQ(kernel_of(convolution(16, 256, 256), "x86-64-avx512"), "f32_gemm__simd");
}

TEST(CostModel, WhereAllScratchEnlargesThePlanTheKernelThatNeedsLeastIsTaken) {
  // One window is more than image and result; four times the weights for a single tile would be no help.
  for (const char* target : {"x86-64-avx2", "x86-64-avx512", "x86-64-zen4"})
    EXPECT_EQ(kernel_of(convolution(2, 512, 512), target), "f32_gemm__simd") << target;
}

TEST(CostModel, BatchesOfAnySizeGetTheKernelOfOneItem) {
  for (const auto& [side, channels] : {std::pair{8, 32}, {12, 64}, {14, 64}, {14, 256}, {28, 64}}) {
    const std::string one = kernel_of(convolution(side, channels, channels, false, 1), "x86-64-avx2");
    for (const int items : {2, 8, 64})
      EXPECT_EQ(kernel_of(convolution(side, channels, channels, false, items), "x86-64-avx2"), one) << side;
  }
}

TEST(CostModel, ComputedWeightsArePackedBeforeTheProduct) {
  const auto computed = [](std::string text) {
    for (const auto& [from, to] :
         {std::pair<std::string_view, std::string_view>{"%w = const", "%w \"w\" = input"}, {" splat(0.1)", ""}})
      text.replace(text.find(from), from.size(), to);
    return text;
  };
  for (const char* target : {"x86-64-avx2", "x86-64-avx512", "cortex-a76"}) {
    EXPECT_EQ(kernel_of(computed(convolution(56, 64, 64)), target), "f32_gemm_dynamic__simd") << target;
    EXPECT_EQ(kernel_of(computed(convolution(56, 3, 64)), target), "f32_few_inputs_dynamic__simd") << target;
  }
}

TEST(CostModel, SmallCoresTakePlainKernels) { EXPECT_EQ(kernel_of(convolution(56, 64, 64), "cortex-m55"), "any__ref"); }

TEST(CostModel, TimeGrowsWithWorkAndShrinksWithTheMachine) {
  const Machine fast = machine_of(*find_target("x86-64-avx512"));
  const Machine slow = machine_of(*find_target("cortex-a53"));
  for (const char* kernel : {"f32_winograd__simd", "f32_gemm__simd"}) {
    const double one = predicted(convolution(28, 64, 64), kernel, fast);
    EXPECT_GT(predicted(convolution(56, 64, 64), kernel, fast), 2 * one);
    EXPECT_GT(predicted(convolution(28, 64, 64), kernel, slow), 4 * one);
  }
}

TEST(CostModel, IntegersPayWhereProductsAreManyAndNotWhereResultsAre) {
  const auto times = [](const char* shape, const char* weights, int channels, std::string_view target) {
    const graph::Graph graph = testing::parse(fmt::format(R"(graph "one" {{
  %x "x" = input : i8[{0}]
  %w = const : i8[{1}] splat(3)
  %b = const : i32[{2}] splat(0)
  %m = const : i32[{2}] splat(1073741824)
  %s = const : i32[{2}] splat(0)
  %y "conv" = conv2d(%x, %w, %b, %m, %s)
  output "y" %y
}})",
                                                          shape, weights, channels));
    const graph::Node& node = graph.nodes.front();
    const graph::OperandTables tables = graph::operand_tables(graph, node);
    return integer_times(*node.op, *ops::find_variant(*node.op, "i8_gemm__simd"), tables.call(node),
                         machine_of(*find_target(target)));
  };
  const IntegerTimes many = times("1,28,28,256", "256,1,1,256", 256, "x86-64-avx512");
  EXPECT_LT(2 * many.integer_ns, many.float_ns);
  const IntegerTimes few = times("1,96,96,4", "16,1,1,4", 16, "x86-64-avx2");
  EXPECT_GT(few.integer_ns, few.float_ns);
}

/// integer_times of the graph's first node, with AVX2.
IntegerTimes times_of(const std::string& text, std::string_view kernel) {
  const graph::Graph graph = testing::parse(text);
  const graph::Node& node = graph.nodes.front();
  const graph::OperandTables tables = graph::operand_tables(graph, node);
  return integer_times(*node.op, *ops::find_variant(*node.op, kernel), tables.call(node),
                       machine_of(*find_target("x86-64-avx2")));
}

TEST(CostModel, IntegersAreComparedWithTheFastestKernelOfFloats) {
  const auto times = [](int stride) {
    return times_of(fmt::format(R"(graph "one" {{
  %x "x" = input : u8[1,{0},{0},64]
  %w = const : i8[64,3,3,64] splat(3)
  %s = const : f32[1] splat(0.01)
  %y "conv" = conv2d_affine(%x, %w, _, %s) {{stride_h={1}, stride_w={1}, pad_top=1, pad_left=1, pad_bottom=1, pad_right=1}}
  output "y" %y
}})",
                                28 * stride, stride),
                    "i8_gemm__simd");
  };
  // As many products, but with stride 1 Winograd's method needs fewer of them.
  EXPECT_LT(1.5 * times(1).float_ns, times(2).float_ns);
  EXPECT_NEAR(times(1).integer_ns / times(2).integer_ns, 1, 0.2);
}

TEST(CostModel, StepsThatOnlyModelsOfBytesHaveCostFloatsNothing) {
  const IntegerTimes rounded = times_of(R"(graph "one" {
  %x "x" = input : f32[1,64,64,3]
  %s = const : f32[1] splat(0.01)
  %y "y" = quantize(%x, %s) {to="i8"}
  output "y" %y
})",
                                        "f32_i8__simd");
  const IntegerTimes scaled = times_of(R"(graph "one" {
  %x "x" = input : i8[1,64,64,3]
  %s = const : f32[1] splat(0.01)
  %y "y" = dequantize(%x, %s)
  output "y" %y
})",
                                       "i8_f32__simd");
  for (const IntegerTimes& times : {rounded, scaled}) {
    EXPECT_GT(times.integer_ns, 0);
    EXPECT_EQ(times.float_ns, 0);
  }
}

TEST(CostModel, DepthwiseWindowsOfBytesPayWhereTheyAreLargeAndNotWhereResultsAre) {
  const auto times = [](int size) {
    return times_of(fmt::format(R"(graph "one" {{
  %x "x" = input : u8[1,28,28,64]
  %w = const : i8[64,{0},{0},1] splat(3)
  %s = const : f32[1] splat(0.01)
  %y "y" = conv2d_affine(%x, %w, _, %s) {{groups=64}}
  output "y" %y
}})",
                                size),
                    "i8_depthwise__simd");
  };
  EXPECT_GT(times(2).integer_ns, times(2).float_ns);
  EXPECT_LT(times(7).integer_ns / times(7).float_ns, 0.9 * times(2).integer_ns / times(2).float_ns);
}

TEST(CostModel, FloatsTakeTimeForFunctionsThatBytesAreLookedUpForButForLines) {
  const auto float_ns = [](auto function) {
    std::string table;
    for (int x = 0; x < 256; ++x) table += fmt::format("{} ", static_cast<int>(function(x)));
    return times_of(fmt::format(R"(graph "one" {{
  %x "x" = input : u8[1,28,28,64]
  %t = const : u8[256] {{ {} }}
  %y "y" = lookup8(%x, %t)
  output "y" %y
}})",
                                table),
                    "any__simd")
        .float_ns;
  };
  const double step = machine_of(*find_target("x86-64-avx2")).step_ns;
  EXPECT_EQ(float_ns([](int x) { return x / 2; }), 0) << "the step before gives its result so";
  EXPECT_GT(float_ns([](int x) { return x * x / 256; }), 10 * step);
}

TEST(CostModel, FewOutputsOfBytesAreDotProductsUnlessAMatrixProductIsFaster) {
  const auto kernel = [](int window, int inputs, int outputs, std::string_view target) {
    return kernel_of(fmt::format(R"(graph "head" {{
  %x "x" = input : i8[1,64,64,{1}]
  %w = const : i8[{2},{0},{0},{1}] splat(3)
  %m = const : i32[{2}] splat(1073741824)
  %s = const : i32[{2}] splat(0)
  %y "conv" = conv2d(%x, %w, _, %m, %s)
  output "y" %y
}})",
                                 window, inputs, outputs),
                     target);
  };
  EXPECT_EQ(kernel(1, 16, 2, "x86-64-zen4"), "i8_gemm__simd");
  EXPECT_EQ(kernel(1, 128, 8, "x86-64-zen4"), "i8_gemm__simd");
  EXPECT_EQ(kernel(1, 256, 1, "x86-64-zen4"), "i8_few_outputs__simd");
  EXPECT_EQ(kernel(3, 64, 4, "x86-64-zen4"), "i8_few_outputs__simd") << "windows would be gathered";
  EXPECT_EQ(kernel(1, 64, 1, "x86-64-avx2"), "i8_few_outputs__simd") << "products of bytes are slower there";
  EXPECT_EQ(kernel(3, 64, 4, "cortex-a76"), "i8_few_outputs__simd") << "it has dot products";
  EXPECT_EQ(kernel(3, 64, 8, "cortex-a72"), "i8_gemm__simd") << "products of 16 bits are slower there";
}

TEST(CostModel, TilesOfBytesAreTransformedWhereManyWeightsMeetFewOfThemButNotForFewChannels) {
  const auto kernel = [](int side, int inputs, int outputs) {
    return kernel_of(fmt::format(R"(graph "one" {{
  %x "x" = input : i8[1,{0},{0},{1}]
  %w = const : i8[{2},3,3,{1}] splat(3)
  %m = const : i32[{2}] splat(1073741824)
  %s = const : i32[{2}] splat(0)
  %y "conv" = conv2d(%x, %w, _, %m, %s) {{pad_top=1, pad_left=1, pad_bottom=1, pad_right=1}}
  output "y" %y
  %l "l" = input : f32[1,512,512,16]
  %r "large" = unary(%l) {{function="relu"}}
  output "r" %r
}})",
                                 side, inputs, outputs),
                     "x86-64-avx2");
  };
  EXPECT_EQ(kernel(7, 192, 384), "i8_winograd__simd") << "weights arrive while others are multiplied";
  EXPECT_EQ(kernel(14, 16, 48), "i8_gemm__simd") << "sums are transformed, however few products they have";
}

TEST(CostModel, ActivationsOfExponentialsTakeTimeAndLimitsDoNot) {
  const auto time = [](std::string_view function) {
    return predicted(fmt::format(R"(graph "one" {{
  %x "x" = input : f32[1,56,56,16]
  %w = const : f32[64,1,1,16] splat(0.1)
  %y "conv" = conv2d(%x, %w) {{activation="{}"}}
  output "y" %y
}})",
                                 function),
                     "f32_gemm__simd", machine_of(*find_target("x86-64-avx2")));
  };
  EXPECT_GT(time("silu"), 1.2 * time("relu"));
  EXPECT_EQ(time("relu"), time("identity"));
}

TEST(CostModel, DepthwiseKernelOfIntegersIsTakenWhereItServes) {
  const graph::Graph graph = testing::parse(R"(graph "depthwise" {
  %x "x" = input : u8[1,28,28,64]
  %w = const : i8[64,3,3,1] splat(3)
  %s = const : f32[1] splat(0.01)
  %y "conv" = conv2d_affine(%x, %w, _, %s) {groups=64}
  output "y" %y
})");
  const auto selected = select_kernels(graph);
  ASSERT_TRUE(selected) << selected.error().message;
  EXPECT_EQ(selected->front().variant->name, "i8_depthwise__simd");
}

TEST(CostModel, KernelsThatNarrowWeightsSaveTheTimeToFetchThem) {
  const Machine machine = machine_of(*find_target("x86-64-avx2"));
  const std::string product = R"(graph "one" {
  %x "x" = input : f32[4,64]
  %w = const : f32[64,64] splat(0.1)
  %y "product" = matmul(%x, %w)
  output "y" %y
})";
  for (const auto& [text, plain] :
       {std::pair{convolution(8, 64, 64), "f32_gemm__simd"}, {product, "f32_packed__simd"}}) {
    const graph::Graph graph = testing::parse(text);
    const graph::Node& node = graph.nodes.front();
    const graph::OperandTables tables = graph::operand_tables(graph, node);
    const ops::OpCall call = tables.call(node);
    const ops::KernelVariant& wide = *ops::find_variant(*node.op, plain);
    int narrow = 0;
    for (const ops::KernelVariant& variant : node.op->variants) {
      const ops::Narrowing* narrowing = ops::find_narrowing(*node.op, variant);
      if (narrowing == nullptr || narrowing->form.half_arithmetic) continue;
      ++narrow;
      const auto saved = static_cast<double>(ops::packed_bytes(wide, call, 1) - ops::packed_bytes(variant, call, 1));
      EXPECT_GT(saved, 0) << variant.name;
      EXPECT_DOUBLE_EQ(predicted(text, variant.name, machine),
                       predicted(text, plain, machine) - saved / machine.weight_bytes)
          << variant.name;
    }
    EXPECT_GT(narrow, 0) << node.op->name;
  }
}

TEST(CostModel, SixteenBitArithmeticIsForProductsThatAreWorthTheRounding) {
  const Target target = *find_target("cortex-a76");
  const auto kernel = [&](int size, int inputs, int outputs, const StoreTypes& stores) {
    KernelPolicy policy;
    policy.target = target;
    policy.stores = stores;
    const auto selected = select_kernels(testing::parse(convolution(size, inputs, outputs)), policy);
    return selected ? std::string(selected->front().variant->name) : selected.error().message;
  };
  const StoreTypes halves = {{"*", ElementType::kF16, true}};
  EXPECT_EQ(kernel(28, 128, 128, halves), "f16_gemm__simd");
  EXPECT_EQ(kernel(28, 4, 4, halves), "f32_gemm_f16__simd");
  EXPECT_EQ(kernel(28, 128, 128, {{"*", ElementType::kF16}}), "f32_gemm_f16__simd") << "nobody asked for it";
}

TEST(CostModel, KernelThatTheModelDoesNotKnowIsTakenWhereItIsListedFirst) {
  const graph::Graph graph = testing::parse(R"(graph "sum" {
  %x "x" = input : f32[1,64]
  %y "y" = unary(%x) {function="relu"}
  output "y" %y
})");
  const graph::Node& node = graph.nodes.front();
  const graph::OperandTables tables = graph::operand_tables(graph, node);
  const ops::OpCall call = tables.call(node);
  const ops::KernelVariant* const both[] = {&node.op->variants[1], &node.op->variants[0]};
  EXPECT_EQ(cheapest(*node.op, both, {&call, 1}, {machine_of({})}), both[0]);
}
#endif

}  // namespace
}  // namespace bantam::compiler
