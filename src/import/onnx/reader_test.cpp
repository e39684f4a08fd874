// The reader against damaged, hostile and unusual files.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <protozero/pbf_writer.hpp>
#include <random>

#include "graph/testing/interpret.h"
#include "import/import.h"
#include "import/onnx/constant.h"
#include "import/onnx/fields.h"
#include "import/onnx/model.h"
#include "import/testing/onnx_writer.h"

namespace bantam::import::onnx {
namespace {

using import::testing::attr;
using import::testing::external_tensor;
using import::testing::graph_attr;
using import::testing::GraphWriter;
using import::testing::source_of;
using import::testing::tensor;
using import::testing::tensor_attr;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A model that uses most kinds of fields.
std::string busy_model() {
  const std::string branch = GraphWriter().node("Neg", {"x"}, {"r"}).output("r").graph();
  return GraphWriter()
      .input("x", {1, 2, 4, 4})
      .initializer(tensor<float>("w", {2, 2, 3, 3}, std::vector<float>(36, 0.25F)))
      .initializer(tensor<std::int64_t>("shape", {2}, {1, -1}))
      .node("Constant", {}, {"yes"}, {tensor_attr("value", tensor<std::int64_t>("", {}, {1}))})
      .node("Cast", {"yes"}, {"condition"}, {attr("to", 9)})
      .node("If", {"condition"}, {"y"}, {graph_attr("then_branch", branch), graph_attr("else_branch", branch)})
      .node("Conv", {"y", "w"}, {"z"},
            {attr("pads", std::vector<std::int64_t>{1, 1, 1, 1}), attr("auto_pad", "NOTSET")})
      .node("LeakyRelu", {"z"}, {"a"}, {attr("alpha", 0.5F)})
      .node("Reshape", {"a", "shape"}, {"b"})
      .node("Concat", {"b", "b"}, {"c"}, {attr("axis", 1)})
      .output("c")
      .model();
}

TEST(OnnxReader, TheBusyModelItselfIsValid) {
  auto graph = import_model(source_of(busy_model()), {});
  ASSERT_TRUE(graph) << graph.error().message;
  EXPECT_TRUE(graph::verify(*graph));
}

TEST(OnnxReader, EveryTruncationIsAnError) {
  const std::string whole = busy_model();
  int imported = 0;
  for (std::size_t length = 0; length < whole.size(); ++length) {
    auto graph = import_model(source_of(whole.substr(0, length)), {});
    imported += graph ? 1 : 0;
    EXPECT_TRUE(graph || !graph.error().message.empty()) << length;
  }
  EXPECT_LE(imported, 1) << "only the cut just before the metadata leaves a whole model";
}

TEST(OnnxReader, FlippedBytesNeverDoMoreThanFail) {
  const std::string whole = busy_model();
  constexpr std::uint32_t kSeed = 20240721;
  SCOPED_TRACE(fmt::format("seed {}", kSeed));
  std::mt19937 random(kSeed);
  int imported = 0;
  for (int round = 0; round < 4000; ++round) {
    std::string damaged = whole;
    const int flips = 1 + static_cast<int>(random() % 4);
    for (int i = 0; i < flips; ++i) damaged[random() % damaged.size()] = static_cast<char>(random());
    auto graph = import_model(source_of(damaged), {});
    if (!graph) {
      EXPECT_FALSE(graph.error().message.empty());
      continue;
    }
    ++imported;
    EXPECT_TRUE(graph::verify(*graph)) << "round " << round;
  }
  EXPECT_GT(imported, 0) << "some flips hit weights or names only";
}

TEST(OnnxReader, NestingHasALimit) {
  std::string graph = GraphWriter().node("Neg", {"x"}, {"r"}).output("r").graph();
  for (int depth = 0; depth < 200; ++depth)
    graph = GraphWriter().node("If", {"c"}, {"r"}, {graph_attr("then_branch", graph)}).output("r").graph();
  GraphWriter writer;
  writer.node("If", {"c"}, {"r"}, {graph_attr("then_branch", graph)}).output("r");
  EXPECT_THAT(import_model(source_of(writer.model()), {}).error().message, HasSubstr("nested too deeply"));
}

TEST(OnnxReader, ObjectCountsHaveALimit) {
  // Empty nodes take two bytes each in the file and much more in memory.
  std::string graph;
  for (std::int64_t i = 0; i <= kMaxObjects; ++i) graph += std::string("\x0a\x00", 2);
  std::string bytes;
  protozero::pbf_writer writer(bytes);
  writer.add_int64(field::model::kIrVersion, 8);
  writer.add_message(field::model::kGraph, graph);
  EXPECT_THAT(import_model(source_of(bytes), {}).error().message, HasSubstr("more nodes and tensors"));
}

TEST(OnnxReader, DeclaredElementsMustMatchTheData) {
  const auto message = [](const std::string& initializer) {
    return import_model(source_of(GraphWriter()
                                      .input("x", {1})
                                      .initializer(initializer)
                                      .node("Add", {"x", "w"}, {"y"})
                                      .output("y")
                                      .model()),
                        {})
        .error()
        .message;
  };
  using import::testing::raw_tensor;
  EXPECT_THAT(message(raw_tensor("w", ElementType::kF32, {1000000000}, "1234")),
              HasSubstr("tensor 'w' is declared as f32[1000000000], 4000000000 bytes, but has 4 bytes of data"));
  EXPECT_THAT(message(raw_tensor("w", ElementType::kF32, {1LL << 62, 1LL << 62}, "1234")), HasSubstr("too large"));
  EXPECT_THAT(message(raw_tensor("w", ElementType::kF32, {-1}, "1234")), HasSubstr("negative dimension"));
  EXPECT_THAT(message(raw_tensor("w", ElementType::kF32, std::vector<std::int64_t>(9, 1), "1234")),
              HasSubstr("rank is too large"));
}

/// A TensorProto with typed data that `write` adds.
template <typename Write>
TensorConstant typed(ElementType type, std::vector<std::int64_t> dims, Write&& write) {
  std::string bytes;
  protozero::pbf_writer w(bytes);
  w.add_packed_int64(field::tensor::kDims, dims.begin(), dims.end());
  w.add_int32(field::tensor::kDataType, import::testing::onnx_code(type));
  write(w);
  const Source source = source_of(bytes);
  auto proto = read_tensor(source.bytes);
  EXPECT_TRUE(proto);
  auto constant = ConstantReader(source).read(*proto);
  EXPECT_TRUE(constant) << constant.error().message;
  return constant ? *constant : TensorConstant{};
}

template <typename T>
std::vector<T> elements_of(const TensorConstant& constant) {
  std::vector<T> elements(constant.data.bytes.size() / sizeof(T));
  std::memcpy(elements.data(), constant.data.bytes.data(), constant.data.bytes.size());
  return elements;
}

TEST(OnnxReader, TypedDataFieldsAreConverted) {
  const std::vector<float> f = {1.5F, -2.0F};
  EXPECT_THAT(
      elements_of<float>(typed(ElementType::kF32, {2},
                               [&](auto& w) { w.add_packed_float(field::tensor::kFloatData, f.begin(), f.end()); })),
      ElementsAre(1.5F, -2.0F));
  EXPECT_THAT(elements_of<float>(typed(ElementType::kF32, {2},
                                       [&](auto& w) {
                                         w.add_float(field::tensor::kFloatData, 3.0F);
                                         w.add_float(field::tensor::kFloatData, 4.0F);
                                       })),
              ElementsAre(3.0F, 4.0F));
  const std::vector<std::int32_t> i = {-1, 200, -128};
  EXPECT_THAT(
      elements_of<std::int8_t>(typed(
          ElementType::kI8, {3}, [&](auto& w) { w.add_packed_int32(field::tensor::kInt32Data, i.begin(), i.end()); })),
      ElementsAre(-1, -56, -128));
  EXPECT_THAT(
      elements_of<std::int32_t>(typed(
          ElementType::kI32, {3}, [&](auto& w) { w.add_packed_int32(field::tensor::kInt32Data, i.begin(), i.end()); })),
      ElementsAre(-1, 200, -128));
  const std::vector<std::int64_t> l = {-5, std::int64_t{1} << 40};
  EXPECT_THAT(
      elements_of<std::int64_t>(typed(
          ElementType::kI64, {2}, [&](auto& w) { w.add_packed_int64(field::tensor::kInt64Data, l.begin(), l.end()); })),
      ElementsAre(-5, std::int64_t{1} << 40));
  const std::vector<double> d = {0.1};
  EXPECT_THAT(
      elements_of<double>(typed(ElementType::kF64, {1},
                                [&](auto& w) { w.add_packed_double(field::tensor::kDoubleData, d.begin(), d.end()); })),
      ElementsAre(0.1));
}

TEST(OnnxReader, BoolsBecomeZeroOrOne) {
  const Source source =
      source_of(import::testing::raw_tensor("b", ElementType::kBool, {3}, std::string_view("\0\1\7", 3)));
  auto proto = read_tensor(source.bytes);
  ASSERT_TRUE(proto);
  auto constant = ConstantReader(source).read(*proto);
  ASSERT_TRUE(constant);
  EXPECT_THAT(elements_of<std::uint8_t>(*constant), ElementsAre(0, 1, 1));
}

class ExternalData : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / fmt::format("bantam-onnx-{}", ::getpid());
    std::filesystem::create_directories(folder_ / "model");
    write(folder_ / "model/weights.bin", {9, 9, 1, 2, 3, 4});
    write(folder_ / "secret.bin", {1, 2});
    std::filesystem::create_symlink(folder_ / "secret.bin", folder_ / "model/link.bin");
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  static void write(const std::filesystem::path& path, const std::vector<float>& elements) {
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(elements.data()),
               static_cast<std::streamsize>(elements.size() * sizeof(float)));
  }

  Result<TensorConstant> read(const std::vector<std::pair<std::string, std::string>>& entries,
                              bool from_folder = true) {
    source_ = source_of(external_tensor("w", ElementType::kF32, {2}, entries),
                        from_folder ? folder_ / "model" : std::filesystem::path());
    auto proto = read_tensor(source_.bytes);
    EXPECT_TRUE(proto);
    return ConstantReader(source_).read(*proto);
  }

  std::filesystem::path folder_;
  Source source_;
};

TEST_F(ExternalData, IsMappedAtItsOffset) {
  auto constant = read({{"location", "weights.bin"}, {"offset", "8"}, {"length", "8"}});
  ASSERT_TRUE(constant) << constant.error().message;
  EXPECT_THAT(elements_of<float>(*constant), ElementsAre(1, 2));
  constant = read({{"location", "weights.bin"}});
  ASSERT_TRUE(constant) << constant.error().message;
  EXPECT_THAT(elements_of<float>(*constant), ElementsAre(9, 9));
}

TEST_F(ExternalData, OutsideTheFileIsRefused) {
  EXPECT_THAT(read({{"location", "weights.bin"}, {"offset", "20"}}).error().message,
              HasSubstr("lie outside 'weights.bin', which has 24"));
  EXPECT_THAT(read({{"location", "weights.bin"}, {"offset", "9223372036854775807"}}).error().message,
              HasSubstr("lie outside"));
  EXPECT_THAT(read({{"location", "weights.bin"}, {"length", "4"}}).error().message, HasSubstr("but has 4 bytes"));
  EXPECT_FALSE(read({{"location", "weights.bin"}, {"offset", "-4"}}));
  EXPECT_FALSE(read({{"location", "absent.bin"}}));
}

TEST_F(ExternalData, OutsideTheFolderIsRefused) {
  EXPECT_THAT(read({{"location", "../secret.bin"}}).error().message, HasSubstr("refused"));
  EXPECT_THAT(read({{"location", (folder_ / "secret.bin").string()}}).error().message, HasSubstr("refused"));
  EXPECT_THAT(read({{"location", "link.bin"}}).error().message, HasSubstr("symbolic link"));
  EXPECT_THAT(read({{"location", ""}}).error().message, HasSubstr("refused"));
  EXPECT_THAT(read({{"location", "weights.bin"}}, false).error().message, HasSubstr("was not opened from a folder"));
}

}  // namespace
}  // namespace bantam::import::onnx
