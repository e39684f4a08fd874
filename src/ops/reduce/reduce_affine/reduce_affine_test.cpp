#include "ops/reduce/reduce_affine/reduce_affine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "ops/testing/harness.h"

namespace bantam::ops {
namespace {

using namespace testing;  // NOLINT: the harness is this file's vocabulary

constexpr ElementType kBytes[] = {ElementType::kI8, ElementType::kU8};

std::vector<std::int8_t> reduce(const ReduceAffineParams& p, const TestTensor& x) {
  return run_reference(make_case(kReduceAffine, p, {x})).outputs[0].values<std::int8_t>();
}

using Bytes = std::vector<std::int8_t>;

TEST(ReduceAffine, RescalesExactSumsOnce) {
  const TestTensor x = tensor_of<std::uint8_t>({2, 3}, {10, 20, 33, 0, 255, 128});
  ReduceAffineParams p{.axes = {1, {1}}, .x_scale = 0.5F, .x_zero_point = 20, .y_scale = 0.25F, .y_zero_point = -7};
  // (3 * 0.5) / 3 / 0.25 = 2 and (323 * 0.5) / 3 / 0.25 = 215.3
  EXPECT_EQ(reduce(p, x), (Bytes{-5, 127}));
  p.function = ReduceFunction::kSum;
  p.y_scale = 4.0F;
  // 1.5 / 4 = 0.4 and 161.5 / 4 = 40.4
  EXPECT_EQ(reduce(p, x), (Bytes{-7, 33}));
}

TEST(ReduceAffine, RoundsTiesToEven) {
  const TestTensor x = tensor_of<std::int8_t>({4, 2}, {1, 2, 3, 4, -1, -2, -3, 0});
  EXPECT_EQ(reduce({.axes = {1, {1}}}, x), (Bytes{2, 4, -2, -2}));
}

TEST(ReduceAffine, LimitsItsResults) {
  const TestTensor x = tensor_of<std::int8_t>({3, 1}, {-5, 2, 100});
  EXPECT_EQ(reduce({.axes = {1, {1}}, .minimum = 0, .maximum = 6}, x), (Bytes{0, 2, 6}));
}

TEST(ReduceAffine, GivesResultsOfTheOtherSignedness) {
  const TestTensor x = tensor_of<std::int8_t>({2, 2}, {-128, -128, 127, 125});
  const ReduceAffineParams p{
      .axes = {1, {1}}, .to = ElementType::kU8, .y_zero_point = 128, .minimum = 0, .maximum = 255};
  const Outcome y = run_reference(make_case(kReduceAffine, p, {x}));
  ASSERT_TRUE(y.status.ok());
  EXPECT_EQ(y.outputs[0].values<std::uint8_t>(), (std::vector<std::uint8_t>{0, 254}));
}

TEST(ReduceAffine, GivesTheZeroPointForNoElements) {
  const TestTensor x(dense_desc(ElementType::kI8, {2, 0}));
  for (const ReduceFunction function : {ReduceFunction::kSum, ReduceFunction::kMean})
    EXPECT_EQ(reduce({.function = function, .axes = {1, {1}}, .x_zero_point = 5, .y_zero_point = -3}, x),
              (Bytes{-3, -3}));
}

TEST(ReduceAffine, ReducesNothingWithoutAxes) {
  const TestTensor x = tensor_of<std::int8_t>({3}, {1, 2, -3});
  EXPECT_EQ(reduce({.x_scale = 2.0F, .y_scale = 0.5F}, x), (Bytes{4, 8, -12}));
}

TEST(ReduceAffine, AddsMoreBytesThanAnInt32HasRoomFor) {
  // The mean is the largest byte only if no sum wraps; at 2^23 elements those of 32 bits are nearly full.
  const ReduceAffineParams p{.axes = {1, {0}}, .to = ElementType::kU8, .minimum = 0, .maximum = 255};
  for (const auto& [n, columns] : {std::pair{1 << 23, 1}, {1 << 23, 2}, {(1 << 24) + 8, 1}}) {
    const std::vector<std::uint8_t> largest(static_cast<std::size_t>(n) * static_cast<std::size_t>(columns), 255);
    const OpCase op_case = make_case(kReduceAffine, p, {tensor_of<std::uint8_t>({n, columns}, largest)});
    for (const KernelVariant& variant : kReduceAffine.variants) {
      if (!variant_supports(op_case, variant)) continue;
      EXPECT_EQ(run_variant(op_case, variant).outputs[0].values<std::uint8_t>(),
                std::vector<std::uint8_t>(static_cast<std::size_t>(columns), 255))
          << variant.name << ", " << n << " elements";
    }
  }
}

TEST(ReduceAffine, RefusesParametersOutsideTheirTypes) {
  const TestTensor x = tensor_of<std::int8_t>({1}, {0});
  const auto code = [](const TestTensor& operand, auto change) {
    ReduceAffineParams p;
    change(p);
    return run_reference(make_case(kReduceAffine, p, {operand})).status.code;
  };
  EXPECT_EQ(code(x, [](ReduceAffineParams&) {}), StatusCode::kOk);
  EXPECT_EQ(code(x, [](ReduceAffineParams& p) { p.x_zero_point = 128; }), StatusCode::kInvalidModel);
  EXPECT_EQ(code(x, [](ReduceAffineParams& p) { p.to = ElementType::kU8; }), StatusCode::kInvalidModel);
  EXPECT_EQ(code(x, [](ReduceAffineParams& p) { p.maximum = 200; }), StatusCode::kInvalidModel);
  EXPECT_EQ(code(x, [](ReduceAffineParams& p) { p.minimum = 100, p.maximum = 50; }), StatusCode::kInvalidModel);
  EXPECT_EQ(code(x, [](ReduceAffineParams& p) { p.y_scale = 0.0F; }), StatusCode::kInvalidModel);
  EXPECT_EQ(code(x, [](ReduceAffineParams& p) { p.x_scale = NAN; }), StatusCode::kInvalidModel);
  EXPECT_EQ(code(x, [](ReduceAffineParams& p) { p.axes = {1, {1}}; }), StatusCode::kInvalidModel);
  EXPECT_EQ(code(x, [](ReduceAffineParams& p) { p.keep_dims = 2; }), StatusCode::kInvalidModel);
  EXPECT_EQ(code(x, [](ReduceAffineParams& p) { p.function = ReduceFunction::kL2; }), StatusCode::kUnsupported);
  EXPECT_EQ(code(x, [](ReduceAffineParams& p) { p.to = ElementType::kI16; }), StatusCode::kUnsupported);
  EXPECT_EQ(code(tensor_of<float>({1}, {0}), [](ReduceAffineParams&) {}), StatusCode::kUnsupported);
}

/// Dimensions with long rows, wide columns, or few of both; and rows of which several fill vectors.
std::vector<std::int64_t> random_shape(Random& random) {
  switch (random_int(random, 0, 11)) {
    case 0: return {3, 700, 37};
    case 1: return {2, 9, 9, random_int(random, 1, 300)};
    case 2: return {3, random_int(random, 1, 3000)};
    case 3: return {random_int(random, 300, 1500), random_int(random, 1, 200)};
    case 4: return {random_int(random, 1, 700), std::int64_t{1} << random_int(random, 0, 6)};
    case 5: return {2, random_int(random, 1, 300), std::int64_t{1} << random_int(random, 0, 6)};
    default: return random_dims(random, static_cast<int>(random_int(random, 0, 4)), 0, 17);
  }
}

OpCase random_reduce_affine_case(Random& random) {
  const auto lowest = [](ElementType type) { return type == ElementType::kI8 ? -128 : 0; };
  const auto byte = [&](ElementType type) {
    return static_cast<std::int32_t>(random_int(random, lowest(type), lowest(type) + 255));
  };
  std::uniform_real_distribution<float> scale(0.01F, 0.2F);
  const ElementType from = kBytes[random() % 2];
  const ElementType to = kBytes[random() % 2];
  ReduceAffineParams p;
  p.function = random() % 2 == 0 ? ReduceFunction::kMean : ReduceFunction::kSum;
  p.keep_dims = static_cast<std::int32_t>(random() % 2);
  p.x_zero_point = byte(from);
  p.to = to;
  // Equal scales give many ties.
  p.x_scale = scale(random);
  p.y_scale = random() % 3 == 0 ? p.x_scale : scale(random);
  p.y_zero_point = byte(to);
  p.minimum = random() % 2 == 0 ? lowest(to) : byte(to);
  p.maximum = static_cast<std::int32_t>(random_int(random, p.minimum, lowest(to) + 255));
  const auto dims = random_shape(random);
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(dims.size()); ++i)
    if (random() % 2 == 0) p.axes.v[p.axes.size++] = i;
  // Narrow ranges keep results within theirs.
  const double low = byte(from);
  const double high = random() % 2 == 0 ? lowest(from) + 255 : std::min(low + 9, lowest(from) + 255.0);
  return make_case(kReduceAffine, p, {random_tensor(from, dims, random, low, high)});
}

TEST(ReduceAffine, VariantsMatchReferenceToTheBit) {
  expect_variants_match_reference(random_reduce_affine_case,
                                  {.cases = 400, .must_cover = {kReduceAffine.variants[0].name}});
}

}  // namespace
}  // namespace bantam::ops
