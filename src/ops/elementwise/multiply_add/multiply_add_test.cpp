#include "ops/elementwise/multiply_add/multiply_add.h"

#include <gtest/gtest.h>

#include "ops/elementwise/binary/binary.h"
#include "ops/testing/harness.h"

namespace bantam::ops {
namespace {

using namespace testing;  // NOLINT: the harness is this file's vocabulary

TEST(MultiplyAdd, BroadcastsAllOperands) {
  const Outcome y =
      run_reference(make_case(kMultiplyAdd, {tensor_of<float>({2, 1}, {1, 2}), tensor_of<float>({3}, {1, 10, 100}),
                                             tensor_of<float>({}, {0.5F})}));
  ASSERT_TRUE(y.status.ok());
  EXPECT_EQ(y.outputs[0].values<float>(), (std::vector<float>{1.5F, 10.5F, 100.5F, 2.5F, 20.5F, 200.5F}));
}

TEST(MultiplyAdd, RefusesOtherTypesAndShapes) {
  const TestTensor f = tensor_of<float>({2}, {1, 2});
  EXPECT_EQ(run_reference(make_case(kMultiplyAdd, {f, tensor_of<std::int32_t>({2}, {1, 2}), f})).status.code,
            StatusCode::kUnsupported);
  EXPECT_EQ(run_reference(make_case(kMultiplyAdd, {f, f, tensor_of<float>({3}, {1, 2, 3})})).status.code,
            StatusCode::kInvalidModel);
}

/// Images of up to some rows and channels, channels first or last; factors and addends per channel, one, or one for
/// each element.
OpCase random_case(Random& random, const Activation& activation) {
  const std::vector<std::int64_t> dims = {random_int(random, 1, 3), random_int(random, 1, 40),
                                          random_int(random, 1, 40)};
  const bool last = random() % 2 == 0;
  const auto other = [&]() -> std::vector<std::int64_t> {
    switch (random_int(random, 0, 3)) {
      case 0: return {};
      case 1: return dims;
      default: return last ? std::vector<std::int64_t>{dims[2]} : std::vector<std::int64_t>{dims[1], 1};
    }
  };
  return make_case(kMultiplyAdd, MultiplyAddParams{activation},
                   {random_tensor(ElementType::kF32, dims, random), random_tensor(ElementType::kF32, other(), random),
                    random_tensor(ElementType::kF32, other(), random)});
}

TEST(MultiplyAdd, VariantsMatchReference) {
  expect_variants_match_reference(
      [](Random& random) {
        constexpr UnaryFunction kFunctions[] = {UnaryFunction::kIdentity, UnaryFunction::kRelu, UnaryFunction::kClip,
                                                UnaryFunction::kSilu};
        return random_case(random, {kFunctions[random() % 4], -0.5F, 0.5F});
      },
      {.cases = 200, .must_cover = {kMultiplyAdd.variants[0].name}});
}

TEST(MultiplyAdd, GivesTheBitsOfAProductAndASum) {
  Random random(3);
  for (int round = 0; round < 50; ++round) {
    const OpCase both = random_case(random, {});
    const BinaryParams product{BinaryFunction::kMul};
    const TestTensor scaled = run_reference(make_case(kBinary, product, {both.inputs[0], both.inputs[1]})).outputs[0];
    const auto expected = run_reference(make_case(kBinary, {scaled, both.inputs[2]})).outputs[0].values<float>();
    for (const KernelVariant& variant : kMultiplyAdd.variants) {
      if (!variant_supports(both, variant)) continue;
      EXPECT_EQ(run_variant(both, variant).outputs[0].values<float>(), expected) << variant.name << " round " << round;
    }
  }
}

}  // namespace
}  // namespace bantam::ops
