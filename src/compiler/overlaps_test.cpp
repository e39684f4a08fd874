// Convolutions that overwrite their own operand, and scratch beyond what is needed: from graph to results.
#include "compiler/overlaps.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "compiler/emit.h"
#include "compiler/testing/compile_text.h"
#include "compiler/testing/placed_fleet.h"

namespace bantam::compiler {
namespace {

using testing::compile_text;

/// A large first image that only a sum reads again, so that the peak is between two convolutions.
constexpr const char* kChain = R"(graph "chain" {
  %x "x" = input : f32[1,24,24,2]
  %w = const : f32[8,1,1,2] splat(0.5)
  %v = const : f32[8,3,3,8] splat(0.125)
  %a = conv2d(%x, %w)
  %b = unary(%a) {function="relu"}
  %c = conv2d(%b, %v) {pad_top=1, pad_left=1, pad_bottom=1, pad_right=1}
  %y = pool2d(%c) {kernel_h=24, kernel_w=24, kind="average"}
  output "y" %y
})";

std::int64_t image_bytes() { return 24 * 24 * 8 * 4; }

TEST(Overlaps, AConvolutionAtThePeakOverwritesItsOperand) {
  const auto text = compile_text(kChain);
  ASSERT_TRUE(text) << text.error().message;
  EXPECT_LT(text->planned.activation_bytes, 2 * image_bytes());
}

TEST(Overlaps, SeveralThreadsKeepOperandAndResultApart) {
  const auto text = compile_text(kChain, {.threads = 2});
  ASSERT_TRUE(text) << text.error().message;
  EXPECT_GE(text->planned.activation_bytes, 2 * image_bytes());
}

/// Once a convolution overwrites its operand and the next layer this result, greedy places need more than before.
TEST(Overlaps, PlacesAreSearchedWhereGreedyOnesGainNothing) {
  const auto text = compile_text(R"(graph "separable" {
    %x "x" = input : f32[1,4,16,16]
    %w1 = const : f32[3,3,4] splat(0.125)
    %w2 = const : f32[8,1,1,4] splat(0.125)
    %w3 = const : f32[3,3,8] splat(0.125)
    %w4 = const : f32[16,1,1,8] splat(0.125)
    %w5 = const : f32[3,3,16] splat(0.125)
    %w6 = const : f32[16,1,1,16] splat(0.125)
    %t = transpose(%x) {perm=[0,2,3,1]}
    %a = depthwise_conv2d(%t, %w1) {pad_top=1, pad_left=1, pad_bottom=1, pad_right=1}
    %b = conv2d(%a, %w2)
    %c = depthwise_conv2d(%b, %w3) {stride_h=2, stride_w=2, pad_top=1, pad_left=1, pad_bottom=1, pad_right=1}
    %d = conv2d(%c, %w4)
    %e = depthwise_conv2d(%d, %w5) {pad_top=1, pad_left=1, pad_bottom=1, pad_right=1}
    %f = conv2d(%e, %w6)
    %y = pool2d(%f) {kernel_h=8, kernel_w=8, kind="average"}
    output "y" %y
  })");
  ASSERT_TRUE(text) << text.error().message;
  const std::int64_t largest = std::int64_t{16} * 16 * 8 * 4;
  EXPECT_LT(text->planned.activation_bytes, largest * 9 / 8);
}

std::string numbers(std::mt19937& random, int count) {
  std::string text;
  for (int i = 0; i < count; ++i)
    text += fmt::format("{}{}", i > 0 ? ", " : "", 0.125 * (static_cast<int>(random() % 17U) - 8));
  return text;
}

/// Convolutions after one another, with sums over earlier images of the same shape here and there.
std::string random_chain(std::mt19937& random) {
  std::string text = "graph \"chain\" {\n  %x \"x\" = input : f32[1,12,10,3]\n";
  int channels = 3;
  std::string last = "x";
  const auto up_to = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  for (int i = 0; i < 5; ++i) {
    const int out = 1 + up_to(9);
    const int kernel = 1 + 2 * up_to(2);
    const std::string name = fmt::format("c{}", i);
    text += fmt::format("  %w{} = const : f32[{},{},{},{}] {{{}}}\n", i, out, kernel, kernel, channels,
                        numbers(random, out * kernel * kernel * channels));
    text += fmt::format("  %{} = conv2d(%{}, %w{}) {{pad_top={}, pad_left={}, pad_bottom={}, pad_right={}}}\n", name,
                        last, i, kernel / 2, kernel / 2, kernel / 2, kernel / 2);
    if (out == channels && i > 0 && up_to(2) == 0) {
      text += fmt::format("  %s{} = binary(%{}, %{})\n", i, name, last);
      last = fmt::format("s{}", i);
    } else {
      last = name;
    }
    channels = out;
  }
  return text + fmt::format("  output \"y\" %{}\n}}", last);
}

using Outputs = std::vector<std::vector<std::byte>>;

Outputs results(const std::string& text, const PlanOptions& options, std::int64_t* activation_bytes) {
  const auto compiled = compile_text(text, options);
  if (!compiled) {
    ADD_FAILURE() << compiled.error().message << "\n" << text;
    return {};
  }
  *activation_bytes = compiled->planned.activation_bytes;
  auto placed = testing::place_package(compiled->package.bytes(), options.threads);
  if (!placed) return {};
  Outputs said = testing::run(*placed->fleet->session(0), 1);
  EXPECT_TRUE(placed->arena.intact());
  return said;
}

TEST(Overlaps, ChangeNoResult) {
  int smaller = 0;
  for (std::uint32_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    std::mt19937 random(seed);
    const std::string text = random_chain(random);
    std::int64_t bytes = 0;
    std::int64_t bytes_apart = 0;
    const Outputs together = results(text, {}, &bytes);
    const Outputs apart = results(text, {.choice = PlanChoice{.in_place = false}}, &bytes_apart);
    ASSERT_EQ(together, apart) << text;
    ASSERT_LE(bytes, bytes_apart);
    smaller += bytes < bytes_apart ? 1 : 0;
  }
  EXPECT_GT(smaller, 20);
}

#if BANTAM_SIMD
/// Blocks of tiles read all that they see of the image before they write.
TEST(Overlaps, TilesThatAreTransformedChangeNoResult) {
  int smaller = 0;
  for (const char* kernel : {"f32_winograd__simd", "f32_winograd_2x2__simd"}) {
    for (const int stride : {1, 2}) {
      for (const int side : {24, 37}) {
        SCOPED_TRACE(fmt::format("{}, stride {}, {} pixels", kernel, stride, side));
        std::mt19937 random(1);
        // Between an image that comes of the input and a product that leaves little of it.
        const std::string text = fmt::format(
            R"(graph "chain" {{
              %x "x" = input : f32[1,{0},{0},2]
              %u = const : f32[32,1,1,2] {{{2}}}
              %v = const : f32[32,3,3,32] {{{3}}}
              %w = const : f32[1,1,1,32] {{{4}}}
              %a = conv2d(%x, %u)
              %b = unary(%a) {{function="relu"}}
              %c "c" = conv2d(%b, %v) {{stride_h={1}, stride_w={1}, pad_top=1, pad_left=1, pad_bottom=1, pad_right=1}}
              %y = conv2d(%c, %w)
              output "y" %y
            }})",
            side, stride, numbers(random, 32 * 2), numbers(random, 32 * 9 * 32), numbers(random, 32));
        PlanOptions options;
        options.kernels = {{"c", kernel}};
        PlanOptions apart = options;
        apart.choice = PlanChoice{.in_place = false};
        std::int64_t bytes = 0;
        std::int64_t bytes_apart = 0;
        ASSERT_EQ(results(text, options, &bytes), results(text, apart, &bytes_apart));
        smaller += bytes < bytes_apart ? 1 : 0;
      }
    }
  }
  EXPECT_GE(smaller, 4);
}
#endif

TEST(Overlaps, TheReaderRefusesALeadThatIsTooSmall) {
  auto planned = plan_model(testing::parse(kChain), {});
  ASSERT_TRUE(planned) << planned.error().message;
  format::PackageData data;
  ASSERT_TRUE(emit_model(*planned, "chain", data));
  data.fleet.emplace_back("chain", std::uint16_t{0});
  format::ModelData& model = data.models.front();
  const format::Step& step = model.steps.at(2);
  const std::uint32_t operand = model.operands.at(step.first_operand());
  const std::uint32_t result = model.operands.at(step.first_operand() + step.inputs());
  ASSERT_LT(model.values[operand].offset(), model.values[result].offset() + model.values[result].bytes())
      << "the plan does not overlap them";
  Package package;
  const format::PackageBytes good = format::write_package(data);
  ASSERT_TRUE(Package::open(good.bytes(), &package).ok());
  bool refused = false;
  for (std::uint64_t at = model.values[operand].offset(); at > 0 && !refused;) {
    at -= 4;
    const format::Value& v = model.values[operand];
    model.values[operand] = format::Value(v.desc(), v.slot(), at, v.bytes());
    const format::PackageBytes forged = format::write_package(data);
    const Status status = Package::open(forged.bytes(), &package);
    if (status.ok()) continue;  // the plan rounds the lead up
    refused = true;
    EXPECT_STREQ(status.message, "a result overlaps an operand that it must not overwrite");
  }
  EXPECT_TRUE(refused);
}

TEST(Scratch, StepsGetWhatIsFreeAndNoMore) {
  // The second convolution sets the peak; the third has room for a whole tile of gathered windows.
  const auto text = compile_text(R"(graph "chain" {
    %x "x" = input : f32[1,24,24,2]
    %w = const : f32[32,1,1,2] splat(0.5)
    %v = const : f32[32,3,3,32] splat(0.125)
    %a = conv2d(%x, %w)
    %b = conv2d(%a, %v) {stride_h=3, stride_w=3, pad_top=1, pad_left=1}
    %y = conv2d(%b, %v) {pad_top=1, pad_left=1, pad_bottom=1, pad_right=1}
    output "y" %y
  })");
  ASSERT_TRUE(text) << text.error().message;
  const PlannedModel& model = text->planned;
  int grown = 0;
  for (const PlannedStep& step : model.steps) {
    const graph::Node& node = model.graph.node(step.node);
    const graph::OperandTables tables = graph::operand_tables(model.graph, node);
    const ops::Footprint needs = ops::footprint(*step.variant, tables.call(node), 1);
    EXPECT_GE(step.scratch_bytes, needs.scratch_bytes);
    EXPECT_LE(step.scratch_bytes, std::max(needs.scratch_bytes, needs.useful_scratch_bytes));
    EXPECT_LE(step.scratch_offset + step.scratch_bytes, model.activation_bytes);
    grown += step.scratch_bytes > needs.scratch_bytes ? 1 : 0;
    for (const PlanBlock& block : model.blocks) {
      if (block.kind == PlanBlock::Kind::kScratch || block.lower > step.node || block.upper <= step.node) continue;
      EXPECT_TRUE(step.scratch_bytes == 0 || block.offset + block.bytes <= step.scratch_offset ||
                  step.scratch_offset + step.scratch_bytes <= block.offset)
          << block.name;
    }
  }
  EXPECT_GT(grown, 0);
}

}  // namespace
}  // namespace bantam::compiler
