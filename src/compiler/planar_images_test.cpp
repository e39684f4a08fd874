#include "compiler/planar_images.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "compiler/row_rules.h"
#include "compiler/testing/compile_text.h"
#include "compiler/testing/placed_fleet.h"
#include "ops/nn/planar_conv2d/planar_conv2d.h"

namespace bantam::compiler {
namespace {

using graph::Graph;

/// An image, channels first, that a convolution reads channels last.
Graph graph_of_picture(const std::string& convolution, const std::string& more = "", int channels = 3) {
  return testing::parse(fmt::format(R"(graph "g" {{
    %0 "x" = input : f32[1,{0},40,48]
    %1 = const : f32[16,3,3,{0}] splat(0.25)
    %2 = transpose(%0) {{perm=[0,2,3,1]}}
    %3 "seen" = {1}
    {2}
    output "y" %3
  }})",
                                    channels, convolution, more));
}

constexpr const char* kConvolution =
    "conv2d(%2, %1) {stride_h=2, stride_w=2, pad_top=1, pad_left=1, pad_bottom=1, pad_right=1}";

bool reads_planes(const Graph& graph, const PlanOptions& options = {}) {
  const auto planes = read_planes(graph, options);
  EXPECT_TRUE(planes);
  return planes && planes->has_value();
}

TEST(PlanarImages, AreConvolvedAsTheyLie) {
  const Graph graph = graph_of_picture(kConvolution);
  const auto planes = read_planes(graph, {});
  ASSERT_TRUE(planes && *planes);
  ASSERT_TRUE(graph::verify(**planes));
  ASSERT_EQ((*planes)->nodes.size(), 1U);
  EXPECT_TRUE((*planes)->node(0).is(ops::kPlanarConv2d));

  const auto before = testing::compile_graph(graph);
  const auto after = testing::compile_graph(**planes);
  ASSERT_TRUE(before && after);
  auto placed = testing::place_package(before->package.bytes());
  auto placed_after = testing::place_package(after->package.bytes());
  ASSERT_TRUE(placed && placed_after);
  EXPECT_EQ(testing::run(*placed->fleet->session(0), 1), testing::run(*placed_after->fleet->session(0), 1))
      << "equal to the bit";
}

TEST(PlanarImages, StayTransposedWhereNothingIsGained) {
  EXPECT_TRUE(reads_planes(graph_of_picture(kConvolution)));
  EXPECT_FALSE(reads_planes(graph_of_picture(kConvolution, "output \"z\" %2"))) << "somebody else reads it";
  EXPECT_FALSE(reads_planes(graph_of_picture(kConvolution, "", 8))) << "more channels than the kernel takes";
  EXPECT_FALSE(reads_planes(graph_of_picture("conv2d(%2, %1) {dilation_w=2}")));
  EXPECT_FALSE(reads_planes(graph_of_picture(kConvolution), {.backend = Backend::kReference}));
  EXPECT_FALSE(reads_planes(graph_of_picture(kConvolution), {.backends = {{"*", Backend::kFast}}}))
      << "patterns name nodes";
  EXPECT_FALSE(reads_planes(graph_of_picture("unary(%2) {function=\"relu\"}")));
}

TEST(PlanarImages, AreSplitIntoBandsOfTheirRows) {
  const auto planes = read_planes(graph_of_picture(kConvolution), {});
  ASSERT_TRUE(planes && *planes);
  const auto top = row_band(**planes, (*planes)->node(0), 1, {0, 4});
  const auto inner = row_band(**planes, (*planes)->node(0), 2, {5, 8});
  ASSERT_TRUE(top && inner);
  EXPECT_EQ(top->operands[0].axis, 2);
  EXPECT_EQ(top->operands[0].rows.first, 0);
  EXPECT_EQ(top->operands[0].rows.last, 8);
  EXPECT_EQ(inner->operands[0].axis, 3);
  EXPECT_EQ(inner->operands[0].rows.first, 9);
  EXPECT_EQ(inner->operands[0].rows.last, 16);
}

}  // namespace
}  // namespace bantam::compiler
