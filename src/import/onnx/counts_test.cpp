// Sizes that a graph computes from inputs that hold counts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/testing/interpret.h"
#include "import/testing/onnx_writer.h"

namespace bantam::import {
namespace {

using graph::testing::HostTensor;
using testing::attr;
using ::testing::ElementsAre;
using testing::GraphWriter;
using ::testing::HasSubstr;
using testing::source_of;
using testing::tensor;

/// mask[n, i] = i < lengths[n], with as many columns as the longest says.
std::string length_mask() {
  return GraphWriter()
      .input("lengths", {"N"}, ElementType::kI64)
      .input("tokens", {"N", "L"}, ElementType::kI64)
      .initializer(tensor<std::int64_t>("zero", {}, {0}))
      .initializer(tensor<std::int64_t>("one", {}, {1}))
      .initializer(tensor<std::int64_t>("axis", {1}, {1}))
      .node("ReduceMax", {"lengths"}, {"longest"}, {attr("keepdims", 0)})
      .node("Range", {"zero", "longest", "one"}, {"positions"})
      .node("Unsqueeze", {"lengths", "axis"}, {"column"})
      .node("Less", {"positions", "column"}, {"mask"})
      .output("mask", ElementType::kBool)
      .model();
}

using Counts = std::map<std::string, std::string>;

Result<graph::Graph> import_with(const Counts& counts) {
  Options options;
  options.dims = {{"N", 2}, {"L", 4}};
  options.counts = counts;
  return import_model(source_of(length_mask()), options);
}

std::string error_with(const Counts& counts) {
  const auto graph = import_with(counts);
  return graph ? "imported" : graph.error().message;
}

TEST(OnnxCounts, SizesAreThoseOfTheLargestCountAndTheInputStaysOne) {
  for (const char* largest : {"4", "L"}) {
    const auto graph = import_with({{"lengths", largest}});
    ASSERT_TRUE(graph) << graph.error().message;
    ASSERT_EQ(graph->inputs.size(), 2U);
    HostTensor lengths{graph->value(graph->inputs[0].value).desc, {}};
    const std::int64_t elements[] = {1, 3};
    const auto bytes = std::as_bytes(std::span(elements));
    lengths.bytes.assign(bytes.begin(), bytes.end());
    HostTensor tokens{graph->value(graph->inputs[1].value).desc, {}};
    tokens.bytes.resize(static_cast<std::size_t>(tokens.desc.bytes()));
    const auto results = graph::testing::interpret(*graph, {{"lengths", lengths}, {"tokens", tokens}});
    ASSERT_TRUE(results) << results.error().message;
    EXPECT_THAT(results->at("mask").as<std::uint8_t>(), ElementsAre(1, 0, 0, 0, 1, 1, 1, 0));
  }
}

TEST(OnnxCounts, WithoutThemTheMessageNamesTheOption) { EXPECT_THAT(error_with({}), HasSubstr("--count INPUT=")); }

TEST(OnnxCounts, WrongOnesAreRefused) {
  EXPECT_THAT(error_with({{"length", "4"}}), HasSubstr("--count length=4"));
  EXPECT_THAT(error_with({{"lengths", "M"}}), HasSubstr("--count lengths=M"));
  EXPECT_THAT(error_with({{"lengths", "4x"}}), HasSubstr("--count lengths=4x"));
  // A count of the wrong input leaves the size unknown.
  EXPECT_THAT(error_with({{"tokens", "4"}}), HasSubstr("--bound longest.size=N"));
}

}  // namespace
}  // namespace bantam::import
