#include <gtest/gtest.h>

#include <random>
#include <string>

#include "graph/builder.h"
#include "graph/testing/interpret.h"
#include "graph/text.h"
#include "ops/nn/conv2d_affine/conv2d_affine.h"
#include "ops/nn/conv_transpose2d_affine/conv_transpose2d_affine.h"
#include "ops/nn/matmul_affine/matmul_affine.h"
#include "passes/list.h"
#include "passes/testing/text_to_text.h"

namespace bantam::passes {
namespace {

using graph::Graph;
using graph::ValueId;
using graph::testing::HostTensor;
using testing::after;
using testing::normalised;

/// Two rows by a 2x3 matrix of weights, what they are included.
std::string product(const std::string& weights, const std::string& zeros, const std::string& params) {
  return R"(graph "g" {
    %0 "x" = input : i8[2,2]
    %1 = const : )" +
         weights + R"(
    )" + zeros +
         R"(%3 = matmul_affine(%0, %1, _, _, _, )" + (zeros.empty() ? "_" : "%2") + R"() {to="i32")" + params + R"(}
    output "y" %3
  })";
}

TEST(CentreWeights, NumbersOf8BitsNeedNoZeroPoint) {
  EXPECT_EQ(after(centre_weights, product("u8[2,3] {0, 100, 227, 99, 101, 5}", "", ", weights_zero_point=100")),
            normalised(R"(graph "g" {
    %0 "x" = input : i8[2,2]
    %1 = const : i8[2,3] {-100, 0, 127, -1, 1, -95}
    %2 = matmul_affine(%0, %1) {to="i32"}
    output "y" %2
  })"));
}

TEST(CentreWeights, ChannelsOfMoreKeepTheLeastZeroPoint) {
  EXPECT_EQ(after(centre_weights, product("u8[2,3] {0, 100, 255, 99, 101, 100}", "", ", weights_zero_point=100")),
            normalised(R"(graph "g" {
    %0 "x" = input : i8[2,2]
    %1 = const : i8[2,3] {-100, 0, 127, -1, 1, -28}
    %2 = const : i8[3] {0, 0, -28}
    %3 = matmul_affine(%0, %1, _, _, _, %2) {to="i32"}
    output "y" %3
  })"));
}

TEST(CentreWeights, ZeroPointsOfChannelsAreMovedToo) {
  EXPECT_EQ(after(centre_weights, product("i8[2,3] {-128, 1, 2, 3, 4, 5}", "%2 = const : i8[3] {-1, 1, -2}\n    ", "")),
            normalised(R"(graph "g" {
    %0 "x" = input : i8[2,2]
    %1 = const : i8[2,3] {-127, 0, 4, 4, 3, 7}
    %2 = matmul_affine(%0, %1) {to="i32"}
    output "y" %2
  })"));
}

TEST(CentreWeights, WeightsOfWhichMostNeedThemKeepTheirs) {
  const std::string kept = product("u8[2,3] {0, 255, 255, 99, 101, 100}", "", ", weights_zero_point=100");
  EXPECT_EQ(after(centre_weights, kept), normalised(kept));
}

TEST(CentreWeights, BytesAroundTheirMiddleStay) {
  const std::string kept = product("u8[2,3] {0, 255, 255, 99, 101, 100}", "", ", weights_zero_point=128");
  EXPECT_EQ(after(centre_weights, kept), normalised(kept));
}

/// One product or convolution of random bytes, of which few are far from the zero point.
class RandomProduct {
 public:
  explicit RandomProduct(unsigned seed) : random_(seed), builder_(graph_) {}

  Graph build() {
    form_ = {.to = ElementType::kI32, .input_zero_point = pick(-128, 127), .weights_zero_point = pick(90, 160)};
    const int channels = pick(1, 6);
    const int inputs = pick(1, 4);
    ValueId y = graph::kNone;
    switch (pick(0, 2)) {
      case 0: {
        const bool turned = pick(0, 1) == 0;
        const ValueId w =
            weights(turned ? std::vector<std::int64_t>{channels, inputs} : std::vector<std::int64_t>{inputs, channels});
        y = emit(ops::kMatmulAffine, ops::MatmulAffineParams{turned ? 1 : 0, form_}, {input({3, inputs}), w});
        break;
      }
      case 1:
        y = emit(ops::kConv2dAffine, ops::Conv2dAffineParams{.form = form_},
                 {input({1, 4, 4, inputs}), weights({channels, 2, 3, inputs})});
        break;
      default:
        y = emit(ops::kConvTranspose2dAffine, ops::ConvTranspose2dAffineParams{.form = form_},
                 {input({1, 4, 4, inputs}), weights({channels, 2, 3, inputs})});
        break;
    }
    builder_.output("y", y);
    return std::move(graph_);
  }

 private:
  int pick(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  ValueId input(const std::vector<std::int64_t>& dims) {
    TensorDesc desc;
    desc.type = ElementType::kI8;
    for (const std::int64_t d : dims) desc.dims[desc.rank++] = static_cast<std::int32_t>(d);
    return builder_.input("x", desc);
  }
  ValueId weights(const std::vector<std::int64_t>& dims) {
    std::int64_t n = 1;
    for (const auto d : dims) n *= d;
    std::vector<std::uint8_t> bytes(static_cast<std::size_t>(n));
    for (auto& byte : bytes) byte = static_cast<std::uint8_t>(pick(0, 9) == 0 ? pick(0, 255) : pick(60, 200));
    return builder_.constant<std::uint8_t>("", dims, std::span<const std::uint8_t>(bytes));
  }
  template <typename P>
  ValueId emit(const ops::OpDef& op, const P& params, std::vector<ValueId> inputs) {
    return builder_.emit(op, graph::Params::of(params), std::move(inputs))->front();
  }

  std::mt19937 random_;
  Graph graph_;
  graph::Builder builder_;
  ops::AffineForm form_;
};

TEST(CentreWeights, SumsStayTheSame) {
  int changed = 0;
  for (unsigned seed = 1; seed <= 200; ++seed) {
    Graph graph = RandomProduct(seed).build();
    std::mt19937 random(seed);
    HostTensor x{graph.value(graph.inputs[0].value).desc, {}};
    x.bytes.resize(static_cast<std::size_t>(x.desc.bytes()));
    for (auto& byte : x.bytes) byte = static_cast<std::byte>(random());
    const auto before = graph::testing::interpret(graph, {{"x", x}});
    ASSERT_TRUE(before) << before.error().message;
    const auto done = centre_weights(graph);
    ASSERT_TRUE(done) << done.error().message << ", seed " << seed;
    changed += *done ? 1 : 0;
    const auto now = graph::testing::interpret(graph, {{"x", x}});
    ASSERT_TRUE(now) << now.error().message;
    ASSERT_EQ(now->at("y").bytes, before->at("y").bytes) << "seed " << seed << "\n" << graph::to_text(graph);
  }
  EXPECT_GT(changed, 50);
}

}  // namespace
}  // namespace bantam::passes
