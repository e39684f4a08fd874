#include "ops/nn/separable_conv2d_affine/separable_conv2d_affine.h"

#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <string>

#include "base/testing/sanitizers.h"
#include "ops/testing/harness.h"

namespace bantam::ops {
namespace {

using testing::absent;
using testing::constant;
using testing::make_case;
using testing::OpCase;
using testing::Operand;
using testing::Random;
using testing::random_int;
using testing::random_tensor;

/// A depthwise and a pointwise convolution with a result of any type.
OpCase random_separable_conv2d_affine_case(Random& random) {
  const auto small = [&](std::int64_t low, std::int64_t high) {
    return static_cast<std::int32_t>(random_int(random, low, high));
  };
  constexpr ElementType kResults[] = {ElementType::kI8, ElementType::kU8, ElementType::kI32, ElementType::kF32};
  const ElementType to = kResults[random() % 4];
  const ElementType type = random() % 2 == 0 ? ElementType::kI8 : ElementType::kU8;
  const auto form_to = [&](ElementType result) {
    AffineForm form{.to = result, .input_zero_point = small(0, 127), .weights_zero_point = small(0, 1) * small(0, 9)};
    if (result == ElementType::kI8 || result == ElementType::kU8) {
      form.output_zero_point = small(0, 127);
      form.minimum = result == ElementType::kU8 ? 0 : -128;
      form.maximum = result == ElementType::kU8 ? 255 : 127;
    }
    return form;
  };
  SeparableConv2dAffineParams p;
  p.depthwise.stride_h = small(1, 2);
  p.depthwise.stride_w = small(1, 2);
  p.depthwise.pad_top = small(0, 2);
  p.depthwise.pad_left = small(0, 2);
  p.depthwise.pad_bottom = small(0, 2);
  p.depthwise.groups = small(4, 40);
  p.depthwise.form = form_to(type);
  p.pointwise = form_to(to);
  const std::int64_t c = p.depthwise.groups;
  const std::int64_t out = small(1, 40);
  const std::int64_t kh = small(1, 4);
  std::vector<Operand> inputs;
  inputs.emplace_back(random_tensor(type, {small(1, 2), kh + small(0, 7), small(3, 30), c}, random, -128, 255));
  inputs.push_back(constant(random_tensor(ElementType::kI8, {c, kh, 3, 1}, random, -128, 127)));
  inputs.push_back(constant(random_tensor(ElementType::kI8, {out, 1, 1, c}, random, -128, 127)));
  const auto others = [&](std::int64_t channels, ElementType result) {
    const ElementType bias = result == ElementType::kF32 ? ElementType::kF32 : ElementType::kI32;
    inputs.push_back(small(0, 1) == 0 ? absent() : constant(random_tensor(bias, {channels}, random, -5000, 5000)));
    const std::int64_t scales = small(0, 1) == 0 ? 1 : channels;
    inputs.push_back(result == ElementType::kI32
                         ? absent()
                         : constant(random_tensor(ElementType::kF32, {scales}, random, 0.0001, 0.01)));
    inputs.push_back(small(0, 3) == 0 ? Operand(random_tensor(type, {1}, random, 0, 127)) : absent());
    inputs.push_back(absent());
  };
  others(c, type);
  others(out, to);
  return make_case(kSeparableConv2dAffine, p, std::move(inputs));
}

TEST(SeparableConv2dAffine, VariantsMatchReference) {
  testing::expect_variants_match_reference(random_separable_conv2d_affine_case,
                                           {.cases = 60, .must_cover = {"i8_rows__simd"}});
}

/// A kernel, and those of the two convolutions that it is made of.
struct JointKernels {
  std::string_view joint, depthwise, pointwise;
};
constexpr JointKernels kJointKernels[] = {{"i8_rows__simd", "i8_depthwise__simd", "i8_gemm__simd"},
                                          {"i8_rows__ref", "i8__ref", "i8__ref"}};

TEST(SeparableConv2dAffine, GivesTheBitsOfTwoOperatorsOneAfterTheOther) {
  for (std::uint64_t seed = 1; seed <= (bantam::testing::kSanitized ? 10 : 40); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const OpCase whole = random_separable_conv2d_affine_case(random);
    SeparableConv2dAffineParams p;
    std::memcpy(&p, whole.params.data(), sizeof p);
    const auto& in = whole.inputs;
    for (const JointKernels& names : kJointKernels) {
      const KernelVariant* kernel = find_variant(kSeparableConv2dAffine, names.joint);
      if (kernel == nullptr) continue;  // a build without vectors
      const KernelVariant& depthwise = *find_variant(kConv2dAffine, names.depthwise);
      const KernelVariant& pointwise = *find_variant(kConv2dAffine, names.pointwise);
      const OpCase first = make_case(kConv2dAffine, p.depthwise, {in[0], in[1], in[3], in[4], in[5], in[6]});
      const OpCase second =
          make_case(kConv2dAffine, Conv2dAffineParams{.form = p.pointwise},
                    {testing::run_variant(first, depthwise).outputs[0], in[2], in[7], in[8], in[9], in[10]});
      const testing::Outcome expected = testing::run_variant(second, pointwise);
      for (const bool useful : {false, true})
        EXPECT_EQ(testing::compare(testing::run_variant(whole, *kernel, {.useful_scratch = useful}).outputs[0],
                                   expected.outputs[0], Accuracy{}),
                  "")
            << kernel->name;
    }
  }
}

TEST(SeparableConv2dAffine, RefusesWhatDoesNotFit) {
  Random random(1);
  const auto ok = [&](std::int64_t kernel, std::int64_t middle, ElementType to) {
    SeparableConv2dAffineParams p;
    p.depthwise.groups = 4;
    p.depthwise.form.to = to;
    std::vector<TensorDesc> outputs;
    const auto i8 = [&](const std::vector<std::int64_t>& dims) {
      return random_tensor(ElementType::kI8, dims, random, -9, 9);
    };
    const auto scale = random_tensor(ElementType::kF32, {1}, random, 0.1, 0.2);
    return testing::infer_case(make_case(kSeparableConv2dAffine, p,
                                         {i8({1, 4, 4, 4}), i8({4, 3, 3, 1}), i8({2, 1, kernel, middle}), absent(),
                                          scale, absent(), absent(), absent(), scale}),
                               &outputs)
        .ok();
  };
  EXPECT_TRUE(ok(1, 4, ElementType::kI8));
  EXPECT_FALSE(ok(2, 4, ElementType::kI8)) << "not pointwise";
  EXPECT_FALSE(ok(1, 5, ElementType::kI8)) << "other channels";
  EXPECT_FALSE(ok(1, 4, ElementType::kF32)) << "no integers between the two";
}

}  // namespace
}  // namespace bantam::ops
