// Damaged and forged files: an import gives a graph that passes graph::verify, or an error with a message. Run under
// AddressSanitizer and UndefinedBehaviorSanitizer to see reads outside the file.
#include <gtest/gtest.h>

#include <random>

#include "import/import.h"
#include "import/tflite/testing/model_builder.h"
#include "import/tflite/testing/peer_cases.h"

namespace bantam::import::tflite {
namespace {

using testing::Activation;
using testing::BuiltinOperator;
using testing::BuiltinOptions;
using testing::ModelBuilder;
using testing::Padding;
using testing::source_of;
using testing::TensorType;

/// A file with every kind of table: convolution, slicing, variables, an initialisation subgraph.
std::vector<std::uint8_t> varied_model() {
  ModelBuilder m;
  const int x =
      m.tensor({.name = "x", .type = TensorType::INT8, .shape = {1, 4, 4, 2}, .scale = {0.5F}, .zero_point = {-1}});
  const int w = m.constant<std::int8_t>({2, 1, 1, 2}, {1, 2, -3, 4}, {.scale = {0.5F, 0.25F}, .zero_point = {0, 0}});
  const int b = m.constant<std::int32_t>({2}, {6, -2});
  const int c =
      m.tensor({.name = "c", .type = TensorType::INT8, .shape = {1, 4, 4, 2}, .scale = {0.5F}, .zero_point = {4}});
  const int begin = m.constant<std::int32_t>({4}, {0, 1, 0, 0});
  const int end = m.constant<std::int32_t>({4}, {1, 3, 4, 2});
  const int strides = m.constant<std::int32_t>({4}, {1, 1, 2, 1});
  const int s =
      m.tensor({.name = "s", .type = TensorType::INT8, .shape = {1, 2, 2, 2}, .scale = {0.5F}, .zero_point = {4}});
  const int f = m.tensor({.name = "f", .shape = {1, 2, 2, 2}});
  const int v = m.tensor({.name = "v", .type = TensorType::RESOURCE});
  const int old = m.tensor({.name = "old", .shape = {1, 2, 2, 2}});
  const int y = m.tensor({.name = "y", .shape = {1, 2, 2, 2}});
  const auto handle = [&](int tensor) {
    m.op(BuiltinOperator::VAR_HANDLE, {}, {tensor}, BuiltinOptions::VarHandleOptions,
         schema::CreateVarHandleOptions(m.fbb(), 0, m.fbb().CreateString("v")).Union());
  };
  m.op(BuiltinOperator::CALL_ONCE, {}, {}, BuiltinOptions::CallOnceOptions,
       schema::CreateCallOnceOptions(m.fbb(), 1).Union());
  m.op(BuiltinOperator::CONV_2D, {x, w, b}, {c}, BuiltinOptions::Conv2DOptions,
       schema::CreateConv2DOptions(m.fbb(), Padding::SAME, 1, 1, Activation::RELU6).Union());
  m.op(BuiltinOperator::STRIDED_SLICE, {c, begin, end, strides}, {s}, BuiltinOptions::StridedSliceOptions,
       schema::CreateStridedSliceOptions(m.fbb(), 1).Union());
  m.op(BuiltinOperator::DEQUANTIZE, {s}, {f});
  handle(v);
  m.op(BuiltinOperator::READ_VARIABLE, {v}, {old});
  m.op(BuiltinOperator::ADD, {old, f}, {y});
  m.op(BuiltinOperator::ASSIGN_VARIABLE, {v, y}, {});
  m.end_subgraph({x}, {y});
  const int init = m.tensor({.name = "v", .type = TensorType::RESOURCE});
  const int shape = m.constant<std::int32_t>({4}, {1, 2, 2, 2});
  const int zero = m.constant<float>({}, {0.0F});
  const int zeros = m.tensor({.name = "zeros", .shape = {1, 2, 2, 2}});
  m.op(BuiltinOperator::FILL, {shape, zero}, {zeros});
  handle(init);
  m.op(BuiltinOperator::ASSIGN_VARIABLE, {init, zeros}, {});
  return m.finish({}, {});
}

/// Whatever the bytes: no crash, and an error says something.
void expect_graph_or_message(const std::vector<std::uint8_t>& file) {
  const Source source = source_of(file);
  if (const auto graph = import_tflite(source, {}); !graph) {
    EXPECT_FALSE(graph.error().message.empty());
  }
  if (const auto declaration = declare_tflite(source); !declaration) {
    EXPECT_FALSE(declaration.error().message.empty());
  }
}

TEST(TfliteHostile, ASplitIntoNothingIsAnError) {
  ModelBuilder m;
  const int axis = m.constant<std::int32_t>({}, {0});
  const int x = m.tensor({.name = "x", .shape = {4}});
  m.op(BuiltinOperator::SPLIT, {axis, x}, {}, BuiltinOptions::SplitOptions,
       schema::CreateSplitOptions(m.fbb(), 0).Union());
  const auto graph = import_tflite(source_of(m.finish({x}, {x})), {});
  ASSERT_FALSE(graph);
  EXPECT_NE(graph.error().message.find("0 results"), std::string::npos) << graph.error().message;
}

TEST(TfliteHostile, TheIntactModelImports) {
  const auto graph = import_tflite(source_of(varied_model()), {});
  EXPECT_TRUE(graph) << graph.error().message;
}

TEST(TfliteHostile, EveryTruncationIsAnError) {
  const auto file = varied_model();
  for (std::size_t size = 0; size < file.size(); ++size) {
    SCOPED_TRACE(size);
    const std::vector<std::uint8_t> cut(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(size));
    expect_graph_or_message(cut);
    if (size < 8) {
      EXPECT_FALSE(import_tflite(source_of(cut), {}));
    }
  }
}

TEST(TfliteHostile, FlippedBytesNeverCrash) {
  const auto file = varied_model();
  constexpr std::uint32_t kSeed = 20240607;
  SCOPED_TRACE(::testing::Message() << "seed " << kSeed);
  std::mt19937 random(kSeed);
  for (int round = 0; round < 4000; ++round) {
    auto damaged = file;
    for (std::uint32_t flips = 1 + random() % 4; flips > 0; --flips)
      damaged[random() % damaged.size()] = static_cast<std::uint8_t>(random());
    SCOPED_TRACE(round);
    expect_graph_or_message(damaged);
  }
}

TEST(TfliteHostile, ForgedWordsNeverCrash) {
  const auto file = varied_model();
  constexpr std::uint32_t kForged[] = {0, 1, 0x7fffffff, 0x80000000, 0xffffffff, 0xfffffffc, 0x10000};
  for (std::size_t at = 0; at + 4 <= file.size(); at += 4) {
    for (const std::uint32_t word : kForged) {
      auto forged = file;
      std::memcpy(forged.data() + at, &word, sizeof word);
      SCOPED_TRACE(::testing::Message() << "word " << word << " at " << at);
      expect_graph_or_message(forged);
    }
  }
}

/// One file per operator, options of custom operators among them.
TEST(TfliteHostile, DamagedFilesOfEveryOperatorNeverCrash) {
  constexpr std::uint32_t kSeed = 20260411;
  SCOPED_TRACE(::testing::Message() << "seed " << kSeed);
  std::mt19937 random(kSeed);
  for (const testing::PeerCase& peer_case : testing::peer_cases()) {
    SCOPED_TRACE(peer_case.name);
    for (int round = 0; round < 25; ++round) {
      auto damaged = peer_case.file;
      for (auto flips = 1 + random() % 3; flips > 0; --flips)
        damaged[random() % damaged.size()] = static_cast<std::uint8_t>(random() % 3 == 0 ? random() : random() % 8);
      SCOPED_TRACE(round);
      expect_graph_or_message(damaged);
    }
  }
}

TEST(TfliteHostile, MisalignedMemoryIsCopied) {
  const auto file = varied_model();
  auto owner = std::make_shared<std::vector<std::byte>>(file.size() + 1);
  std::memcpy(owner->data() + 1, file.data(), file.size());
  Source source{"shifted.tflite", std::span<const std::byte>(*owner).subspan(1), owner, {}};
  const auto graph = import_tflite(source, {});
  EXPECT_TRUE(graph) << graph.error().message;
}

TEST(TfliteHostile, OtherFormatsAndVersionsAreNamed) {
  const std::string text = "This is not a model at all.";
  const auto not_a_model = import_tflite(source_of({text.begin(), text.end()}), {});
  ASSERT_FALSE(not_a_model);
  EXPECT_NE(not_a_model.error().message.find("TFL3"), std::string::npos);
  ModelBuilder m;
  const int x = m.tensor({.name = "x", .shape = {1}});
  const auto old = import_tflite(source_of(m.finish({x}, {x}, 2)), {});
  ASSERT_FALSE(old);
  EXPECT_NE(old.error().message.find("schema version 2"), std::string::npos);
}

TEST(TfliteHostile, ReadingBeforeWritingIsAnError) {
  ModelBuilder m;
  const int x = m.tensor({.name = "x", .shape = {1}});
  const int y = m.tensor({.name = "y", .shape = {1}});
  m.op(BuiltinOperator::NEG, {y}, {x});
  m.op(BuiltinOperator::NEG, {x}, {y});
  const auto graph = import_tflite(source_of(m.finish({}, {y})), {});
  ASSERT_FALSE(graph);
  EXPECT_EQ(graph.error().code, StatusCode::kInvalidModel);
  EXPECT_NE(graph.error().message.find("before any operator writes it"), std::string::npos);
}

TEST(TfliteHostile, OperandsOutsideTheSubgraphAreErrors) {
  ModelBuilder m;
  const int x = m.tensor({.name = "x", .shape = {1}});
  const int y = m.tensor({.name = "y", .shape = {1}});
  m.op(BuiltinOperator::ADD, {x, 77}, {y});
  const auto graph = import_tflite(source_of(m.finish({x}, {y})), {});
  ASSERT_FALSE(graph);
  EXPECT_NE(graph.error().message.find("does not exist"), std::string::npos);
}

}  // namespace
}  // namespace bantam::import::tflite
