#include "ops/data/transpose/transpose.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "ops/testing/harness.h"

namespace bantam::ops {
namespace {

using namespace testing;  // NOLINT: the harness is the vocabulary of operator tests

TransposeParams permutation(const std::vector<int>& perm) {
  TransposeParams params;
  for (const int axis : perm) params.perm.v[params.perm.size++] = axis;
  return params;
}

bool transpose_view(const TensorDesc& x, const std::vector<int>& perm, TensorDesc* view) {
  const TransposeParams params = permutation(perm);
  TensorDesc out;
  const Tensor input{nullptr, &x};
  EXPECT_TRUE(infer(kTranspose, &params, {&input, 1}, {&out, 1}).ok());
  const Tensor output{nullptr, &out};
  std::int64_t offset = -1;
  return kTranspose.output_view({&params, {&input, 1}, {&output, 1}}, view, &offset);
}

TEST(Transpose, ReordersAxes) {
  const Outcome y = run_reference(
      make_case(kTranspose, permutation({2, 0, 1}), {tensor_of<std::int32_t>({2, 1, 3}, {1, 2, 3, 4, 5, 6})}));
  EXPECT_EQ(y.outputs[0].desc().dims[0], 3);
  EXPECT_EQ(y.outputs[0].desc().dims[1], 2);
  EXPECT_EQ(y.outputs[0].values<std::int32_t>(), (std::vector<std::int32_t>{1, 4, 2, 5, 3, 6}));
}

/// Element by element, straight from the definition.
std::vector<double> expected_elements(const TestTensor& x, const std::vector<int>& perm) {
  const TensorDesc& d = x.desc();
  const std::vector<double> from = x.to_doubles();
  std::vector<double> result(from.size());
  TensorDesc dense = d;
  dense.set_dense_strides();
  std::vector<std::int32_t> index(perm.size(), 0);
  for (double& element : result) {
    std::int64_t offset = 0;
    for (std::size_t i = 0; i < perm.size(); ++i) offset += index[i] * dense.strides[perm[i]];
    element = from[static_cast<std::size_t>(offset)];
    for (std::size_t i = perm.size(); i-- > 0;) {
      if (++index[i] < d.dims[perm[i]]) break;
      index[i] = 0;
    }
  }
  return result;
}

TEST(Transpose, AgreesWithTheDefinitionForAllSizesAndStrides) {
  Random random(7);
  for (const ElementType type : {ElementType::kI8, ElementType::kI16, ElementType::kF32, ElementType::kI64}) {
    for (int round = 0; round < 60; ++round) {
      const int rank = static_cast<int>(random_int(random, 0, 5));
      std::vector<int> perm(static_cast<std::size_t>(rank));
      std::iota(perm.begin(), perm.end(), 0);
      std::shuffle(perm.begin(), perm.end(), random);
      const TestTensor dense =
          random_tensor(type, random_dims(random, rank, round % 10 == 0 ? 0 : 1, 6), random, -99, 99);
      const TestTensor x = dense.with_strides(random_strides(dense.desc(), random));
      const OpCase op_case = make_case(kTranspose, permutation(perm), {x});
      std::vector<TensorDesc> outputs;
      ASSERT_TRUE(infer_case(op_case, &outputs).ok());
      RunOptions options;
      options.outputs = {random_strides(outputs[0], random)};
      const Outcome y = run_variant(op_case, reference_variant(kTranspose), options);
      EXPECT_EQ(y.outputs[0].to_doubles(), expected_elements(dense, perm)) << describe(x.desc());
    }
  }
}

TEST(Transpose, TilesOfLargeMatricesFitTogether) {
  Random random(8);
  for (const ElementType type : {ElementType::kI8, ElementType::kF32}) {
    for (const auto& dims : {std::vector<std::int64_t>{2, 67, 35}, std::vector<std::int64_t>{1, 3, 129},
                             std::vector<std::int64_t>{1, 64, 64}}) {
      const TestTensor x = random_tensor(type, dims, random, -99, 99);
      const Outcome y = run_reference(make_case(kTranspose, permutation({0, 2, 1}), {x}));
      EXPECT_EQ(y.outputs[0].to_doubles(), expected_elements(x, {0, 2, 1}));
    }
  }
}

TEST(Transpose, NarrowMatricesAreRightInBothDirectionsForElementsOfAnySize) {
  Random random(9);
  for (const ElementType type : {ElementType::kI8, ElementType::kI16, ElementType::kF32, ElementType::kF64})
    for (const std::int64_t narrow : {2, 3, 4, 5})
      for (const std::int64_t wide : {5, 16, 131})
        for (const auto& dims :
             {std::vector<std::int64_t>{3, narrow, wide}, std::vector<std::int64_t>{3, wide, narrow}}) {
          const TestTensor x = random_tensor(type, dims, random, -99, 99);
          const Outcome y = run_reference(make_case(kTranspose, permutation({0, 2, 1}), {x}));
          EXPECT_EQ(y.outputs[0].to_doubles(), expected_elements(x, {0, 2, 1})) << narrow << ' ' << wide;
          const TestTensor strided = x.with_strides(random_strides(x.desc(), random));
          const Outcome z = run_reference(make_case(kTranspose, permutation({0, 2, 1}), {strided}));
          EXPECT_EQ(z.outputs[0].to_doubles(), y.outputs[0].to_doubles()) << narrow << ' ' << wide;
        }
}

TEST(Transpose, VariantsMatchReference) {
  expect_variants_match_reference(
      [](Random& random) {
        constexpr ElementType kTypes[] = {ElementType::kI8, ElementType::kI16, ElementType::kF32, ElementType::kF64};
        const int rank = static_cast<int>(random_int(random, 1, 4));
        std::vector<int> perm(static_cast<std::size_t>(rank));
        std::iota(perm.begin(), perm.end(), 0);
        std::shuffle(perm.begin(), perm.end(), random);
        std::vector<std::int64_t> dims = random_dims(random, rank, 1, 5);
        for (int i = 0; i < 2; ++i) dims[random() % dims.size()] = random_int(random, 1, 150);
        return make_case(kTranspose, permutation(perm),
                         {random_tensor(kTypes[random() % std::size(kTypes)], dims, random, -99, 99)});
      },
      {.cases = 200, .must_cover = {kTranspose.variants[0].name}});
}

// How tiles follow each other depends on which side's strides are multiples of 1 KiB.
TEST(Transpose, VariantsMatchReferenceWhateverTheDistanceOfRows) {
  expect_variants_match_reference(
      [](Random& random) {
        constexpr ElementType kTypes[] = {ElementType::kI8, ElementType::kI16, ElementType::kF32, ElementType::kF64};
        const ElementType type = kTypes[random() % std::size(kTypes)];
        const auto side = [&] {
          const bool is_round = random() % 2 == 0;
          return is_round ? 1024 / element_size(type) * random_int(random, 1, 2) : random_int(random, 9, 300);
        };
        return make_case(kTranspose, permutation({0, 2, 1}),
                         {random_tensor(type, {random_int(random, 1, 2), side(), side()}, random, -99, 99)});
      },
      {.cases = 40, .must_cover = {kTranspose.variants[0].name}});
}

TEST(Transpose, MovingOnlyUnitAxesIsAView) {
  TensorDesc view;
  ASSERT_TRUE(transpose_view(dense_desc(ElementType::kF32, {1, 4, 1, 5}), {1, 0, 3, 2}, &view));
  EXPECT_TRUE(view.is_dense());
  EXPECT_FALSE(transpose_view(dense_desc(ElementType::kF32, {2, 4}), {1, 0}, &view));
  TensorDesc column = dense_desc(ElementType::kF32, {4, 1});
  column.strides[0] = 8;
  EXPECT_FALSE(transpose_view(column, {1, 0}, &view)) << "the innermost dimension would not be contiguous";
}

TEST(Transpose, RefusesHostilePermutations) {
  std::vector<TensorDesc> outputs;
  const TestTensor x = random_tensor(ElementType::kF32, {2, 3}, *std::make_unique<Random>(1));
  for (const auto& perm : {std::vector<int>{0}, {0, 0}, {0, 2}, {-1, 0}, {0, 1, 2}})
    EXPECT_FALSE(infer_case(make_case(kTranspose, permutation(perm), {x}), &outputs).ok());
  TransposeParams params;
  params.perm.size = 1 << 30;
  EXPECT_FALSE(infer_case(make_case(kTranspose, params, {x}), &outputs).ok());
}

}  // namespace
}  // namespace bantam::ops
