#include "ops/nn/matmul_blocks/matmul_blocks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/testing/harness.h"

namespace bantam::ops {
namespace {

using namespace testing;  // NOLINT: the harness is this file's vocabulary
using ::testing::ElementsAre;

TEST(MatmulBlocks, UnpacksLowHalvesFirstAndIgnoresWhatLiesBeyondK) {
  // K = 3 in two blocks of two: weights (1 - 8) * 0.5, (15 - 8) * 0.5, then (9 - 8) * 2; the last number is unused.
  const Outcome y =
      run_reference(make_case(kMatmulBlocks, MatmulBlocksParams{4, 2},
                              {tensor_of<float>({1, 3}, {1, 10, 100}), tensor_of<std::uint8_t>({1, 2, 1}, {0xF1, 0xA9}),
                               tensor_of<float>({1, 2}, {0.5F, 2.0F}), absent(), tensor_of<float>({1}, {0.25F})}));
  ASSERT_TRUE(y.status.ok()) << y.status.message;
  EXPECT_THAT(y.outputs[0].values<float>(), ElementsAre(-3.5F + 35.0F + 200.0F + 0.25F));
}

TEST(MatmulBlocks, TakesBytesAndZeroPointsOfBothKinds) {
  for (const bool real : {false, true}) {
    const Operand zero =
        real ? Operand(tensor_of<float>({2, 1}, {1, 200})) : Operand(tensor_of<std::uint8_t>({2, 1}, {1, 200}));
    const Outcome y = run_reference(
        make_case(kMatmulBlocks, MatmulBlocksParams{8, 2},
                  {tensor_of<float>({1, 2}, {1, 10}), tensor_of<std::uint8_t>({2, 1, 2}, {1, 2, 200, 255}),
                   tensor_of<float>({2, 1}, {1.0F, 0.5F}), zero}));
    ASSERT_TRUE(y.status.ok()) << y.status.message;
    EXPECT_THAT(y.outputs[0].values<float>(), ElementsAre(10.0F, 275.0F));
  }
}

TEST(MatmulBlocks, RefusesWhatDoesNotFit) {
  const auto ok = [](MatmulBlocksParams p, std::vector<std::int64_t> a, std::vector<std::int64_t> w,
                     std::vector<std::int64_t> scales) {
    std::vector<TensorDesc> outputs;
    return testing::infer_case(make_case(kMatmulBlocks, p,
                                         {testing::TestTensor(testing::dense_desc(ElementType::kF32, a)),
                                          testing::TestTensor(testing::dense_desc(ElementType::kU8, w)),
                                          testing::TestTensor(testing::dense_desc(ElementType::kF32, scales))}),
                               &outputs)
        .ok();
  };
  EXPECT_TRUE(ok({4, 16}, {2, 40}, {5, 3, 8}, {5, 3}));
  EXPECT_FALSE(ok({4, 16}, {2, 49}, {5, 3, 8}, {5, 3}));
  EXPECT_FALSE(ok({4, 16}, {2, 40}, {5, 3, 16}, {5, 3}));
  EXPECT_FALSE(ok({4, 16}, {2, 40}, {5, 3, 8}, {5, 2}));
  EXPECT_FALSE(ok({2, 16}, {2, 40}, {5, 3, 4}, {5, 3}));
  EXPECT_FALSE(ok({4, 0}, {2, 40}, {5, 3, 0}, {5, 3}));
  EXPECT_FALSE(ok({8, 3}, {2, 3}, {5, 1, 3}, {5, 1}));
  EXPECT_FALSE(ok({4, 16}, {40}, {5, 3, 8}, {5, 3}));
}

OpCase random_matmul_blocks_case(Random& random) {
  MatmulBlocksParams p;
  p.bits = random() % 2 == 0 ? 4 : 8;
  p.block_size = static_cast<std::int32_t>(random_int(random, 1, 20) * 2);
  const std::int64_t k = random_int(random, 1, 90);
  const std::int64_t n = random_int(random, 1, 20);
  const std::int64_t blocks = (k + p.block_size - 1) / p.block_size;
  std::vector<std::int64_t> a{random_int(random, 1, 9), k};
  if (random() % 2 == 0) a.insert(a.begin(), random_int(random, 1, 3));
  std::vector<Operand> inputs;
  inputs.emplace_back(random_tensor(ElementType::kF32, a, random));
  inputs.push_back(constant(random_tensor(ElementType::kU8, {n, blocks, p.block_size * p.bits / 8}, random, 0, 255)));
  inputs.push_back(constant(
      random_tensor(random() % 2 == 0 ? ElementType::kF32 : ElementType::kF16, {n, blocks}, random, 0.01, 0.1)));
  const ElementType zero = random() % 2 == 0 ? ElementType::kF32 : ElementType::kU8;
  inputs.push_back(random() % 2 == 0 ? absent() : constant(random_tensor(zero, {n, blocks}, random, 0, 15)));
  if (random() % 2 == 0) inputs.push_back(constant(random_tensor(ElementType::kF32, {n}, random)));
  return make_case(kMatmulBlocks, p, std::move(inputs));
}

TEST(MatmulBlocks, VariantsMatchReference) {
  testing::expect_variants_match_reference(random_matmul_blocks_case,
                                           {.cases = 150, .must_cover = {kMatmulBlocks.variants[0].name}});
}

}  // namespace
}  // namespace bantam::ops
