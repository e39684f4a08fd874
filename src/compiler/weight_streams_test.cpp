// Weights that are copied before they are read: random small nets compute the same to the bit, in exactly the memory
// that is promised, and a package that forges what is copied is refused.
#include "compiler/weight_streams.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "base/testing/sanitizers.h"
#include "compiler/channel_parts.h"
#include "compiler/emit.h"
#include "compiler/memories.h"
#include "compiler/testing/compile_text.h"
#include "compiler/testing/placed_fleet.h"
#include "graph/builder.h"
#include "ops/elementwise/unary/unary.h"
#include "ops/nn/conv2d/conv2d.h"
#include "ops/nn/depthwise_conv2d/depthwise_conv2d.h"
#include "ops/nn/matmul/matmul.h"

namespace bantam::compiler {
namespace {

using graph::ValueId;
using Results = std::vector<std::vector<std::byte>>;

constexpr unsigned kNets = bantam::testing::kSanitized ? 8 : 40;
constexpr double kPackageCost = 24;

/// An image goes through convolutions and, pixel by pixel, matrix products.
class RandomNet {
 public:
  RandomNet(unsigned seed, ElementType type) : random_(seed), type_(type), builder_(graph_) {
    graph_.name = "net";
    TensorDesc desc;
    desc.type = type;
    desc.rank = 4;
    desc.dims[0] = 1;
    desc.dims[1] = pick(4, 12);
    desc.dims[2] = pick(4, 12);
    desc.dims[3] = pick(4, 20);
    last_ = builder_.input("x", desc);
  }

  graph::Graph make() {
    for (int layer = pick(2, 6); layer > 0; --layer) add();
    builder_.output("y", last_);
    return std::move(graph_);
  }

 private:
  int pick(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }

  template <typename T>
  ValueId constant(std::vector<std::int64_t> dims, int low, int high, double scale) {
    std::int64_t count = 1;
    for (const auto d : dims) count *= d;
    std::vector<T> elements(static_cast<std::size_t>(count));
    for (T& e : elements) e = static_cast<T>(scale * pick(low, high));
    return builder_.constant<T>("", dims, std::span<const T>(elements));
  }

  std::vector<ValueId> operands(std::vector<std::int64_t> dims, std::int64_t channels) {
    if (type_ == ElementType::kF32)
      return {last_, constant<float>(dims, -9, 9, 0.02), constant<float>({channels}, -9, 9, 0.1)};
    return {last_, constant<std::int8_t>(dims, -90, 90, 1), constant<std::int32_t>({channels}, -900, 900, 1),
            constant<std::int32_t>({channels}, 1 << 29, 1 << 30, 1), constant<std::int32_t>({channels}, -9, -6, 1)};
  }

  void add() {
    const std::int64_t channels = builder_.desc(last_).dims[3];
    const std::int64_t out = pick(4, 50);
    const int kernel = pick(1, 3);
    ops::Conv2dParams window;
    window.pad_top = window.pad_left = window.pad_bottom = window.pad_right = kernel / 2;
    ops::MatmulParams product;
    product.transpose_b = 1;
    const int kind = pick(0, 4);
    const auto result =
        kind < 2    ? builder_.emit1(ops::kConv2d, window, operands({out, kernel, kernel, channels}, out))
        : kind == 2 ? builder_.emit1(ops::kDepthwiseConv2d, window, operands({kernel, kernel, channels}, channels))
                    : builder_.emit1(ops::kMatmul, product, operands({out, channels}, out));
    ASSERT_TRUE(result) << result.error().message;
    last_ = *result;
  }

  std::mt19937 random_;
  ElementType type_;
  graph::Graph graph_;
  graph::Builder builder_;
  ValueId last_ = graph::kNone;
};

format::PackageData package_of(const PlannedModel& model, std::size_t tiers) {
  format::PackageData data;
  EXPECT_TRUE(emit_model(model, "net", data));
  data.fleet.emplace_back("net", std::uint16_t{0});
  for (std::size_t t = 0; tiers > 1 && t < tiers; ++t) data.tiers.push_back({"tier", 0, 1});
  return data;
}

Results results_of(const PlannedModel& model, std::size_t tiers, unsigned seed, std::byte fill) {
  const format::PackageBytes bytes = format::write_package(package_of(model, tiers));
  auto placed = testing::place_package(bytes.bytes(), 1, fill);
  if (!placed) return {};
  testing::run(*placed->fleet->session(0), seed + 1);
  Results said = testing::run(*placed->fleet->session(0), seed);  // nothing of the first run is left
  EXPECT_TRUE(placed->arena.intact());
  return said;
}

PlannedModel plan_of(const graph::Graph& graph, const PlanOptions& options) {
  auto model = plan_model(graph, options);
  EXPECT_TRUE(model) << model.error().message;
  return model ? std::move(*model) : PlannedModel{};
}

/// Bytes that an invoke reads of weights; `payload`: without the header that Winograd's 8-bit weights begin with, of
/// which a layer in parts has one per part.
std::int64_t bytes_of_reads(const PlannedModel& model, bool payload) {
  std::set<graph::NodeId> with_header;
  for (const PlannedStep& step : model.steps)
    if (step.variant != nullptr && step.stream < 0 && step.variant->name == "i8_winograd__simd")
      with_header.insert(step.node);
  std::int64_t bytes = 0;
  for (const PlannedStream& read : weight_reads(model)) {
    const bool header = payload && read.packed && with_header.contains(read.node);
    bytes += read.reads * (read.bytes - (header ? static_cast<std::int64_t>(ops::kAlignment) : 0));
  }
  return bytes;
}

class StreamedNets : public ::testing::TestWithParam<std::pair<ElementType, const char*>> {};

TEST_P(StreamedNets, ComputeTheSameToTheBit) {
  const auto [type, target] = GetParam();
  PlanOptions options;
  options.target = *find_target(target);
  options.whole_blocks = options.quick = true;
  const auto first = 1000 * static_cast<unsigned>(::testing::UnitTest::GetInstance()->random_seed());
  std::size_t streamed = 0;
  for (unsigned seed = first; seed < first + kNets; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    PlannedModel model = plan_of(RandomNet(seed, type).make(), options);
    const Results expected = results_of(model, 1, seed, std::byte{0x11});
    const auto peak = static_cast<std::uint64_t>(model.activation_bytes);
    const std::uint64_t fast = 1024 + peak / 2 + seed % 7 * (peak / 4);
    const std::vector<MemorySpec> memories = {{"fast", fast, 1}, {"slow", 1 << 20, 6}};
    const bool resident = seed % 3 == 0;
    const MemoryNeeds needs{{{&model, "net", 0, 1, options}}, 0, sizeof(void*), resident, kPackageCost};
    const std::int64_t payload = bytes_of_reads(model, true);
    const auto choice = place_in_memories(needs, memories);
    ASSERT_TRUE(choice) << choice.error().message;
    EXPECT_LE(choice->cost, choice->unstreamed);
    EXPECT_EQ(choice->weight_reads, static_cast<std::uint64_t>(bytes_of_reads(model, false)));
    EXPECT_EQ(bytes_of_reads(model, true), payload);
    EXPECT_TRUE(resident || model.residents.empty());
    if (!model.streams.empty()) {
      EXPECT_LT(choice->cost, choice->unstreamed);
      EXPECT_LT(choice->weight_bytes, choice->weight_reads);
    }
    streamed += model.streams.size();
    EXPECT_EQ(results_of(model, 2, seed, std::byte{0x11}), expected);
    EXPECT_EQ(results_of(model, 2, seed, std::byte{0xee}), expected);
  }
  EXPECT_GT(streamed, kNets / 2) << "the nets do not test what they shall";
}

TEST_P(StreamedNets, ComputeTheSameWithALayerInParts) {
  const auto [type, target] = GetParam();
  PlanOptions options;
  options.target = *find_target(target);
  options.quick = true;
  const auto first = 1000 * static_cast<unsigned>(::testing::UnitTest::GetInstance()->random_seed());
  int cut = 0;
  for (unsigned seed = first; seed < first + kNets / 2; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const PlannedModel whole = plan_of(RandomNet(seed, type).make(), options);
    const Results expected = results_of(whole, 1, seed, std::byte{0x11});
    const graph::Graph net = with_kernels(whole);
    for (graph::NodeId n = 0; n < static_cast<graph::NodeId>(net.nodes.size()); ++n) {
      const auto parts = in_channel_parts(net, n, 2 + static_cast<int>(seed % 2));
      if (!parts) continue;
      ++cut;
      ASSERT_TRUE(graph::verify(*parts));
      EXPECT_EQ(results_of(plan_of(*parts, options), 1, seed, std::byte{0x11}), expected) << "node " << n;
    }
  }
  EXPECT_GT(cut, 0);
}

INSTANTIATE_TEST_SUITE_P(All, StreamedNets,
                         ::testing::Values(std::pair{ElementType::kF32, "host"}, std::pair{ElementType::kI8, "host"},
                                           std::pair{ElementType::kI8, "cortex-m4"}),
                         [](const auto& param) {
                           return param.index == 0 ? "F32" : param.index == 1 ? "I8" : "I8OfSmallCores";
                         });

/// A product by one column has a kernel of its own, which is not that of the columns' part.
TEST(StreamedLayers, ComputeTheSameWhenAPartIsOneColumn) {
  const graph::Graph graph = testing::parse(R"(graph "one" {
  %x "x" = input : f32[20,301]
  %w = const : f32[301,17] splat(0.3)
  %y = matmul(%x, %w) {}
  output "y" %y
})");
  const PlannedModel whole = plan_of(graph, {});
  const auto parts = in_channel_parts(with_kernels(whole), 0, 2);
  ASSERT_TRUE(parts);
  EXPECT_EQ(results_of(plan_of(*parts, {}), 1, 7, std::byte{0x11}), results_of(whole, 1, 7, std::byte{0x11}));
}

/// Nodes of one name, as those of one ONNX node have, keep their kernels when one of them is cut into parts.
TEST(StreamedLayers, KeepTheirKernelsWhenOneIsCutIntoParts) {
  graph::Graph graph = testing::parse(R"(graph "two" {
  %x "x" = input : f32[1,6,6,8]
  %w = const : f32[8,1,1,8] splat(0.25)
  %v = const : f32[48,1,1,8] splat(0.25)
  %c = conv2d(%x, %w) {}
  %d = conv2d(%c, %v) {}
  output "y" %d
})");
  graph.nodes[0].kernel = ops::find_variant(ops::kConv2d, "any__ref");
  const PlannedModel whole = plan_of(graph, {});
  ASSERT_EQ(whole.steps.size(), 2U);
  ASSERT_EQ(whole.steps[0].variant->name, "any__ref");
  const auto cut = in_channel_parts(with_kernels(whole), 1, 2);
  ASSERT_TRUE(cut);
  const PlannedModel parts = plan_of(*cut, {});
  ASSERT_EQ(parts.steps.size(), 3U) << "two parts, and a concat that is a view";
  EXPECT_EQ(parts.steps[0].variant, whole.steps[0].variant);
  EXPECT_EQ(parts.steps[1].variant, whole.steps[1].variant);
  EXPECT_EQ(parts.steps[2].variant, whole.steps[1].variant);
}

/// A convolution of 36 pixels whose packed weights are streamed into the one arena.
class StreamedConvolution : public ::testing::Test {
 protected:
  void SetUp() override {
    model_ = plan_of(testing::parse(R"(graph "one" {
  %x "x" = input : f32[1,6,6,8]
  %w = const : f32[8,1,1,8] splat(0.25)
  %c = conv2d(%x, %w) {}
  output "y" %c
})"),
                     {});
    std::vector<PlannedStream> streams = find_streams(model_, kPackageCost, 1);
    if (ops::find_variant(*model_.graph.nodes[0].op, "f32_gemm__simd") == nullptr) GTEST_SKIP() << "nothing is packed";
    ASSERT_EQ(streams.size(), 1U);
    ASSERT_TRUE(streams[0].packed);
    EXPECT_EQ(streams[0].reads, 3);
    set_streams(model_, streams);
    model_.blocks.back().offset = (model_.activation_bytes + 63) / 64 * 64;
    model_.activation_bytes = model_.blocks.back().offset + model_.blocks.back().bytes;
    insert_copies(model_);
    ASSERT_EQ(model_.steps.size(), 2U);
    data_ = package_of(model_, 1);
    ASSERT_TRUE(open().ok());
  }

  Status open() {
    bytes_ = format::write_package(data_);
    Package package;
    return Package::open(bytes_.bytes(), &package);
  }

  format::ModelData& model() { return data_.models[0]; }
  std::uint32_t operand(std::size_t step, std::uint32_t i) {
    return model().operands[model().steps[step].first_operand() + i];
  }
  void change(std::uint32_t value, std::uint32_t slot, std::uint64_t offset, std::uint64_t bytes) {
    format::Value& v = model().values[value];
    v = format::make_value(*format::desc_of(v), slot, offset, bytes);
  }
  void refused(const char* what) {
    const Status status = open();
    EXPECT_EQ(status.code, StatusCode::kInvalidPackage) << status.message;
    EXPECT_STREQ(status.message, what);
  }

  PlannedModel model_;
  format::PackageData data_;
  format::PackageBytes bytes_;
};

TEST_F(StreamedConvolution, ItsReaderSeesAConstant) {
  auto placed = testing::place_package(bytes_.bytes());
  ASSERT_TRUE(placed);
  const Session& session = *placed->fleet->session(0);
  EXPECT_EQ(session.step_operator(0), "copy");
  EXPECT_TRUE(session.step_operand_is_constant(0, 0));
  EXPECT_FALSE(session.step_operand_is_constant(0, 1));
  EXPECT_FALSE(session.step_operand_is_constant(1, 0));
  EXPECT_TRUE(session.step_operand_is_constant(1, 1));
}

TEST_F(StreamedConvolution, ACopyFromBeyondTheWeightsIsRefused) {
  const format::Value from = model().values[operand(0, 0)];
  change(operand(0, 0), from.slot(), std::uint64_t{1} << 40U, from.bytes());
  refused("a value is out of bounds");
}

TEST_F(StreamedConvolution, ACopyBeyondTheArenaIsRefused) {
  const format::Value to = model().values[operand(0, 1)];
  change(operand(0, 1), to.slot(), to.offset() + 64, to.bytes());
  refused("a value is out of bounds");
}

TEST_F(StreamedConvolution, ACopyIntoTheWeightsIsRefused) {
  const format::Value from = model().values[operand(0, 0)];
  change(operand(0, 1), from.slot(), from.offset(), from.bytes());
  refused("a step writes to read-only memory");
}

TEST_F(StreamedConvolution, AReaderOfFewerBytesThanItsKernelReadsIsRefused) {
  // Both ends agree on a size that the kernel would read beyond.
  const format::StreamedConstant streamed = model().streamed[0];
  for (const std::uint32_t value : {streamed.value(), streamed.source()}) {
    const format::Value v = model().values[value];
    change(value, v.slot(), v.offset(), static_cast<std::uint64_t>(format::desc_of(v)->bytes()));
  }
  refused("a constant has the wrong size");
}

TEST_F(StreamedConvolution, AMisalignedPlaceIsRefused) {
  const std::uint32_t copy = model().streamed[0].value();
  const format::Value v = model().values[copy];
  change(copy, v.slot(), v.offset() - 16, v.bytes());
  refused("a streamed constant is misaligned");
}

TEST_F(StreamedConvolution, SourcesThatAreNoConstantsOrOthersAreRefused) {
  const format::StreamedConstant good = model().streamed[0];
  model().streamed[0] = format::StreamedConstant(good.value(), operand(1, 0));
  refused("a streamed constant leads not from the weights to the arena");
  model().streamed[0] = format::StreamedConstant(good.value(), operand(0, 0));
  refused("a streamed constant differs from its source");
  model().streamed[0] = format::StreamedConstant(good.source(), good.source());
  refused("a streamed constant leads not from the weights to the arena");
  model().streamed[0] = format::StreamedConstant(good.value(), 1U << 30U);
  refused("a streamed constant names no value");
  model().streamed = {good, good};
  refused("streamed constants are out of order");
}

TEST_F(StreamedConvolution, OnlyWhatKernelsPackMayBeStreamed) {
  // The image as a constant: its contents would be believed before they are there.
  const format::Value image = model().values[operand(1, 0)];
  const format::Value source = model().values[model().streamed[0].source()];
  model().values.push_back(format::make_value(*format::desc_of(image), source.slot(), source.offset(), image.bytes()));
  model().values.push_back(format::make_value(*format::desc_of(image), format::kActivations, 0, image.bytes()));
  const auto count = static_cast<std::uint32_t>(model().values.size());
  data_.weights.add(std::vector<std::byte>(static_cast<std::size_t>(image.bytes()) + 64, std::byte{1}));
  model().activation_bytes = std::max<std::uint64_t>(model().activation_bytes, image.bytes());
  model().operands[model().steps[1].first_operand()] = count - 1;
  model().streamed.emplace_back(count - 1, count - 2);
  refused("a streamed constant is not packed for its kernel");
}

TEST(WeightStreams, WhatHasNoRoomAsAWholeIsStreamedInParts) {
  PlannedModel model = plan_of(testing::parse(R"(graph "wide" {
  %x "x" = input : f32[1,10,10,4]
  %w = const : f32[64,3,3,4] splat(0.01)
  %c = conv2d(%x, %w) {}
  output "y" %c
})"),
                               {.whole_blocks = true});
  // The result, 16 KiB, and the image leave less than the 9 KiB of all weights.
  const std::vector<MemorySpec> memories = {{"fast", 23 * 1024, 1}, {"slow", 1 << 20, 20}};
  const MemoryNeeds needs{{{&model, "wide", 0, 1, {.whole_blocks = true}}}, 0, sizeof(void*), false, 20};
  const Results expected = results_of(model, 1, 1, std::byte{0x11});
  const auto choice = place_in_memories(needs, memories);
  ASSERT_TRUE(choice) << choice.error().message;
  EXPECT_GT(model.streams.size(), 1U);
  for (const PlannedStream& stream : model.streams)
    EXPECT_EQ(model.blocks[static_cast<std::size_t>(stream.block)].tier, 0U);
  EXPECT_LT(choice->cost, choice->unstreamed);
  EXPECT_EQ(results_of(model, 2, 1, std::byte{0x11}), expected);
}

TEST(WeightStreams, ReadsFollowFromTheMultiplications) {
  const PlannedModel model = plan_of(testing::parse(R"(graph "lstm" {
  %x "x" = input : f32[120,1,16]
  %w = const : f32[1,64,16] splat(0.01)
  %r = const : f32[1,64,16] splat(0.01)
  %b = const : f32[1,128] splat(0.5)
  %y, %h, %c = lstm(%x, %w, %r, %b) {}
  output "y" %y
})"),
                                     {});
  const std::vector<PlannedStream> reads = weight_reads(model);
  ASSERT_EQ(reads.size(), 3U);
  const bool packs = reads[0].packed;
  // 120 steps in time, of which a vector kernel takes 12 at once and a plain one 2.
  EXPECT_EQ(reads[0].reads, packs ? 10 : 60);
  EXPECT_EQ(reads[1].reads, reads[0].reads);
  EXPECT_EQ(weight_bytes_read(model),
            reads[0].reads * (reads[0].bytes + reads[1].bytes) + reads[2].bytes * reads[2].reads);
  EXPECT_TRUE(find_streams(model, 1, 1).empty()) << "nothing is saved where all memories cost the same";
  EXPECT_FALSE(find_streams(model, 24, 1).empty());
}

}  // namespace
}  // namespace bantam::compiler
