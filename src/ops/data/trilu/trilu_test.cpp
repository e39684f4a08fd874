#include "ops/data/trilu/trilu.h"

#include <gtest/gtest.h>

#include "ops/testing/harness.h"

namespace bantam::ops {
namespace {

using namespace testing;  // NOLINT: the harness is the vocabulary of operator tests

TEST(Trilu, KeepsTheTriangle) {
  const TestTensor x = tensor_of<std::int64_t>({2, 3}, {1, 2, 3, 4, 5, 6});
  const auto triangle = [&](std::int32_t upper, std::int32_t diagonal) {
    return run_reference(make_case(kTrilu, TriluParams{.upper = upper, .diagonal = diagonal}, {x}))
        .outputs[0]
        .values<std::int64_t>();
  };
  using V = std::vector<std::int64_t>;
  EXPECT_EQ(triangle(1, 0), (V{1, 2, 3, 0, 5, 6}));
  EXPECT_EQ(triangle(1, 1), (V{0, 2, 3, 0, 0, 6}));
  EXPECT_EQ(triangle(1, -1), (V{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(triangle(0, 0), (V{1, 0, 0, 4, 5, 0}));
  EXPECT_EQ(triangle(0, 0x7fffffff), (V{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(triangle(0, -0x7fffffff - 1), (V{0, 0, 0, 0, 0, 0}));
}

TEST(Trilu, MayOverwriteItsOperand) {
  expect_variants_match_reference([](Random& random) {
    const TriluParams params{.upper = static_cast<std::int32_t>(random_int(random, 0, 1)),
                             .diagonal = static_cast<std::int32_t>(random_int(random, -4, 4))};
    return make_case(kTrilu, params, {random_tensor(ElementType::kF32, random_dims(random, 3, 0, 5), random)});
  });
}

TEST(Trilu, RefusesVectorsAndBadFlags) {
  std::vector<TensorDesc> outputs;
  EXPECT_FALSE(infer_case(make_case(kTrilu, TriluParams{}, {tensor_of<float>({2}, {1, 2})}), &outputs).ok());
  EXPECT_FALSE(infer_case(make_case(kTrilu, TriluParams{.upper = 2}, {tensor_of<float>({1, 1}, {1})}), &outputs).ok());
}

}  // namespace
}  // namespace bantam::ops
