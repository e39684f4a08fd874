#include "ops/nn/separable_conv2d/separable_conv2d.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <string>

#include "base/testing/sanitizers.h"
#include "ops/nn/depthwise_conv2d/depthwise_conv2d.h"
#include "ops/testing/harness.h"

namespace bantam::ops {
namespace {

using testing::absent;
using ::testing::ElementsAre;
using testing::make_case;
using testing::OpCase;
using testing::Operand;
using testing::Outcome;
using testing::Random;
using testing::random_int;
using testing::random_tensor;
using testing::RunOptions;
using testing::tensor_of;
using testing::TestTensor;

TEST(SeparableConv2d, FiltersChannelsThenMixesThem) {
  // Two channels, 1x2 kernel, padding 1 on the left; then the channels' sum, without what is negative.
  const Outcome y = testing::run_reference(make_case(
      kSeparableConv2d, SeparableConv2dParams{.depthwise = {.pad_left = 1}, .activation = {UnaryFunction::kRelu, 0, 0}},
      {tensor_of<float>({1, 1, 2, 2}, {1, 2, 3, -4}), tensor_of<float>({1, 2, 2}, {1, 10, 100, 1000}),
       tensor_of<float>({1, 1, 1, 2}, {1, 1}), tensor_of<float>({2}, {0.5F, 0}), absent(), absent(),
       tensor_of<float>({1}, {-0.5F})}));
  ASSERT_TRUE(y.status.ok()) << y.status.message;
  EXPECT_THAT(y.outputs[0].values<float>(), ElementsAre(2100, 0));
}

TEST(SeparableConv2d, RefusesWhatDoesNotFit) {
  const auto infer = [](const SeparableConv2dParams& p, const std::vector<std::int64_t>& w,
                        const std::vector<std::int64_t>& pointwise, ElementType pointwise_type = ElementType::kF32) {
    std::vector<TensorDesc> outputs;
    return testing::infer_case(make_case(kSeparableConv2d, p,
                                         {TestTensor(testing::dense_desc(ElementType::kF32, {1, 4, 4, 3})),
                                          TestTensor(testing::dense_desc(ElementType::kF32, w)),
                                          TestTensor(testing::dense_desc(pointwise_type, pointwise))}),
                               &outputs);
  };
  EXPECT_TRUE(infer({}, {3, 3, 6}, {5, 1, 1, 6}).ok());
  EXPECT_EQ(infer({}, {3, 3, 4}, {5, 1, 1, 4}).index, 1);
  EXPECT_EQ(infer({}, {3, 3, 3}, {5, 1, 1, 6}).index, 2);
  EXPECT_EQ(infer({}, {3, 3, 3}, {5, 1, 2, 3}).index, 2);
  EXPECT_EQ(infer({}, {3, 3, 3}, {5, 1, 1, 3}, ElementType::kI8).ok(), false);
  EXPECT_FALSE(infer({.depthwise = {.stride_h = 0}}, {3, 3, 3}, {5, 1, 1, 3}).ok());
  EXPECT_FALSE(infer({.depthwise = {.stride_h = 0x7fffffff, .pad_bottom = 0x7fffffff}}, {3, 3, 3}, {5, 1, 1, 3}).ok());
}

struct SeparableSizes {
  Conv2dParams window;
  std::int64_t n, kh, kw, h, w, c, multiplier, out;

  explicit SeparableSizes(Random& random) {
    const auto small = [&](std::int64_t low, std::int64_t high) {
      return static_cast<std::int32_t>(random_int(random, low, high));
    };
    window.stride_h = small(1, 3);
    window.stride_w = small(1, 2);
    window.dilation_h = small(0, 3) == 0 ? 2 : 1;
    window.pad_top = small(0, 3);
    window.pad_left = small(0, 2);
    window.pad_bottom = small(0, 3);
    window.pad_right = small(0, 2);
    n = small(1, 2);
    kh = small(1, 4);
    kw = small(0, 1) == 0 ? 3 : small(1, 4);
    h = (kh - 1) * window.dilation_h + small(1, 9);
    w = kw - 1 + small(1, small(0, 2) == 0 ? 40 : 6);
    c = small(1, 40);
    multiplier = small(0, 5) == 0 ? 2 : 1;
    out = small(1, 40);
  }
};

OpCase random_float_separable_conv2d_case(Random& random) {
  SeparableSizes s(random);
  constexpr UnaryFunction kFunctions[] = {UnaryFunction::kIdentity, UnaryFunction::kRelu, UnaryFunction::kSilu};
  const auto activation = [&] { return Activation{kFunctions[random_int(random, 0, 2)], 0, 0}; };
  s.window.activation = activation();
  const std::int64_t middle = s.c * s.multiplier;
  const auto f32 = [&](const std::vector<std::int64_t>& dims) {
    return random_tensor(ElementType::kF32, dims, random);
  };
  std::vector<Operand> inputs{f32({s.n, s.h, s.w, s.c}), testing::constant(f32({s.kh, s.kw, middle})),
                              testing::constant(f32({s.out, 1, 1, middle}))};
  inputs.push_back(random_int(random, 0, 1) == 0 ? absent() : testing::constant(f32({middle})));
  inputs.push_back(absent());
  inputs.push_back(absent());
  if (random_int(random, 0, 1) == 0) inputs.push_back(testing::constant(f32({s.out})));
  return make_case(kSeparableConv2d, SeparableConv2dParams{.depthwise = s.window, .activation = activation()},
                   std::move(inputs));
}

OpCase random_int8_separable_conv2d_case(Random& random) {
  SeparableSizes s(random);
  const std::int64_t middle = s.c * s.multiplier;
  const auto zero_point = [&] { return static_cast<std::int32_t>(random_int(random, -128, 127)); };
  s.window.input_zero_point = zero_point();
  s.window.output_zero_point = zero_point();
  s.window.minimum = static_cast<std::int32_t>(random_int(random, -128, 0));
  const auto i8 = [&](const std::vector<std::int64_t>& dims) {
    return random_tensor(ElementType::kI8, dims, random, -128, 127);
  };
  std::vector<Operand> inputs{i8({s.n, s.h, s.w, s.c}), testing::constant(i8({s.kh, s.kw, middle})),
                              testing::constant(i8({s.out, 1, 1, middle}))};
  for (const std::int64_t channels : {middle, s.out}) {
    const auto i32 = [&](double low, double high) {
      return testing::constant(random_tensor(ElementType::kI32, {channels}, random, low, high));
    };
    inputs.push_back(random_int(random, 0, 3) == 0 ? absent() : i32(-9000, 9000));
    inputs.push_back(i32(0x40000000, 0x7fffffff));
    inputs.push_back(i32(-9, -4));
  }
  return make_case(kSeparableConv2d,
                   SeparableConv2dParams{.depthwise = s.window, .output_zero_point = zero_point(), .minimum = -100},
                   std::move(inputs));
}

TEST(SeparableConv2d, FloatVariantsMatchReference) {
  testing::expect_variants_match_reference(random_float_separable_conv2d_case,
                                           {.cases = 80, .must_cover = {"f32_rows__simd"}});
}

TEST(SeparableConv2d, Int8VariantsMatchReferenceExactly) {
  testing::expect_variants_match_reference(random_int8_separable_conv2d_case,
                                           {.cases = 80, .must_cover = {"i8_rows__simd", "i8_rows__portable"}});
}

/// The first variant of `op` of that backend that supports the case.
const KernelVariant* serving_variant(const OpCase& op_case, std::string_view backend) {
  for (const KernelVariant& variant : op_case.op->variants)
    if (variant.name.ends_with(backend) && testing::variant_supports(op_case, variant)) return &variant;
  return nullptr;
}

/// The two convolutions one after the other, by kernels of that backend; nothing when it lacks one.
std::optional<TestTensor> one_after_the_other(const OpCase& whole, std::string_view backend) {
  SeparableConv2dParams p;
  std::memcpy(&p, whole.params.data(), sizeof p);
  const auto operand = [&](std::size_t i) { return i < whole.inputs.size() ? whole.inputs[i] : absent(); };
  const OpCase first =
      make_case(kDepthwiseConv2d, p.depthwise, {operand(0), operand(1), operand(3), operand(4), operand(5)});
  const KernelVariant* first_kernel = serving_variant(first, backend);
  // The joint kernels read the weights of their first half as they lie.
  if (first_kernel == nullptr || first_kernel->packed_bytes != nullptr) return std::nullopt;
  const Conv2dParams pointwise{.activation = p.activation,
                               .input_zero_point = p.depthwise.output_zero_point,
                               .output_zero_point = p.output_zero_point,
                               .minimum = p.minimum,
                               .maximum = p.maximum};
  const OpCase second = make_case(
      kConv2d, pointwise,
      {testing::run_variant(first, *first_kernel).outputs[0], operand(2), operand(6), operand(7), operand(8)});
  const KernelVariant* second_kernel = serving_variant(second, backend);
  if (second_kernel == nullptr) return std::nullopt;
  return testing::run_variant(second, *second_kernel).outputs[0];
}

TEST(SeparableConv2d, GivesTheBitsOfTwoOperatorsOneAfterTheOther) {
  int compared = 0;
  for (std::uint64_t seed = 1; seed <= (bantam::testing::kSanitized ? 20 : 60); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const OpCase whole =
        seed % 2 == 0 ? random_float_separable_conv2d_case(random) : random_int8_separable_conv2d_case(random);
    for (const std::string_view backend : {"__simd", "__portable", "__ref"}) {
      const auto expected = one_after_the_other(whole, backend);
      const KernelVariant* kernel = serving_variant(whole, backend);
      ASSERT_EQ(expected.has_value(), kernel != nullptr) << backend;
      if (kernel == nullptr) continue;
      for (const RunOptions& options : {RunOptions{}, RunOptions{.useful_scratch = true},
                                        RunOptions{.threading = testing::Threading::kPermuted, .seed = seed}}) {
        const Outcome y = testing::run_variant(whole, *kernel, options);
        ASSERT_TRUE(y.status.ok()) << y.status.message;
        EXPECT_EQ(testing::compare(y.outputs[0], *expected, Accuracy{}), "") << kernel->name;
      }
      ++compared;
    }
  }
  EXPECT_GT(compared, 20);
}

TEST(SeparableConv2d, NeedsScratchForOneRowAndOverwritesItsOperandARowBehind) {
  const OpCase op_case =
      make_case(kSeparableConv2d,
                SeparableConv2dParams{.depthwise = {.pad_top = 1, .pad_left = 1, .pad_bottom = 1, .pad_right = 1}},
                {TestTensor(testing::dense_desc(ElementType::kF32, {1, 20, 20, 16})),
                 TestTensor(testing::dense_desc(ElementType::kF32, {3, 3, 16})),
                 TestTensor(testing::dense_desc(ElementType::kF32, {16, 1, 1, 16}))});
  TensorDesc y = testing::dense_desc(ElementType::kF32, {1, 20, 20, 16});
  std::vector<Tensor> inputs;
  for (const Operand& operand : op_case.inputs) inputs.push_back({nullptr, &operand.tensor.desc()});
  const Tensor output{nullptr, &y};
  const Footprint f = footprint(reference_variant(kSeparableConv2d), {op_case.params.data(), inputs, {&output, 1}}, 1);
  EXPECT_EQ(f.scratch_bytes, 20 * 16 * 4);
  EXPECT_EQ(f.lead_bytes, 20 * 16 * 4);
}

}  // namespace
}  // namespace bantam::ops
