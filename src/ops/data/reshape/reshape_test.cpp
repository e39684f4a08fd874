#include "ops/data/reshape/reshape.h"

#include <gtest/gtest.h>

#include "base/shape.h"
#include "ops/testing/harness.h"

namespace bantam::ops {
namespace {

using namespace testing;  // NOLINT: the harness is the vocabulary of operator tests

ReshapeParams reshape_to(std::initializer_list<std::int32_t> dims) {
  ReshapeParams params;
  for (const std::int32_t d : dims) params.shape.v[params.shape.size++] = d;
  return params;
}

/// The view of `x` reshaped, or nothing.
bool reshape_view(const TensorDesc& x, const ReshapeParams& params, TensorDesc* view) {
  TensorDesc out;
  const Tensor input{nullptr, &x};
  if (!infer(kReshape, &params, {&input, 1}, {&out, 1}).ok()) return false;
  const Tensor output{nullptr, &out};
  std::int64_t offset = -1;
  const bool is_view = kReshape.output_view({&params, {&input, 1}, {&output, 1}}, view, &offset);
  EXPECT_TRUE(!is_view || offset == 0);
  return is_view;
}

TEST(Reshape, DenseOperandIsAlwaysAView) {
  TensorDesc view;
  ASSERT_TRUE(reshape_view(dense_desc(ElementType::kF32, {2, 3, 4}), reshape_to({6, 1, 2, 2}), &view));
  EXPECT_TRUE(view.is_dense());
  ASSERT_TRUE(reshape_view(dense_desc(ElementType::kI4, {2, 3}), reshape_to({6}), &view));
  ASSERT_TRUE(reshape_view(dense_desc(ElementType::kF32, {}), reshape_to({1, 1}), &view));
  ASSERT_TRUE(reshape_view(dense_desc(ElementType::kF32, {0, 3}), reshape_to({5, 0}), &view));
}

TEST(Reshape, GapsBetweenRowsMaySplitButNotMergeThem) {
  TensorDesc x = dense_desc(ElementType::kF32, {4, 6});
  x.strides[0] = 10;
  TensorDesc view;
  ASSERT_TRUE(reshape_view(x, reshape_to({2, 2, 1, 3, 2}), &view));
  EXPECT_EQ(view.strides[0], 20);
  EXPECT_EQ(view.strides[1], 10);
  EXPECT_EQ(view.strides[3], 2);
  EXPECT_EQ(view.strides[4], 1);
  EXPECT_TRUE(check_strides(view, 36).ok());
  EXPECT_FALSE(reshape_view(x, reshape_to({24}), &view));
  EXPECT_FALSE(reshape_view(x, reshape_to({2, 12}), &view));
  EXPECT_FALSE(reshape_view(x, reshape_to({3, 8}), &view));
}

TEST(Reshape, ColumnCannotBecomeTheInnermostDimension) {
  TensorDesc x = dense_desc(ElementType::kF32, {4, 1});
  x.strides[0] = 8;
  TensorDesc view;
  EXPECT_FALSE(reshape_view(x, reshape_to({4}), &view));
  EXPECT_TRUE(reshape_view(x, reshape_to({2, 2, 1}), &view));
}

TEST(Reshape, ViewsReadTheSameElementsAsTheKernel) {
  Random random(3);
  for (int round = 0; round < 300; ++round) {
    const std::int32_t factors[] = {static_cast<std::int32_t>(random_int(random, 1, 3)),
                                    static_cast<std::int32_t>(random_int(random, 1, 3)),
                                    static_cast<std::int32_t>(random_int(random, 1, 3))};
    const TestTensor dense =
        random_tensor(ElementType::kI32, {factors[0] * factors[1], factors[2]}, random, -1000, 1000);
    const TestTensor x = dense.with_strides(random_strides(dense.desc(), random));
    const ReshapeParams params = reshape_to({factors[0], factors[1] * factors[2]});
    const Outcome y = run_reference(make_case(kReshape, params, {x}));
    ASSERT_TRUE(y.status.ok());
    EXPECT_EQ(y.outputs[0].packed(), dense.packed());
    TensorDesc view;
    if (!reshape_view(x.desc(), params, &view)) continue;
    ASSERT_TRUE(check_strides(view, storage_span(x.desc())).ok());
    const auto* elements = static_cast<const std::int32_t*>(x.data());
    std::vector<std::int32_t> seen;
    for (int i = 0; i < view.dims[0]; ++i)
      for (int k = 0; k < view.dims[1]; ++k) seen.push_back(elements[i * view.strides[0] + k * view.strides[1]]);
    EXPECT_EQ(seen, dense.values<std::int32_t>());
  }
}

TEST(Reshape, WritesThroughOutputStrides) {
  const TestTensor x = tensor_of<float>({6}, {1, 2, 3, 4, 5, 6});
  RunOptions options;
  TensorDesc out = dense_desc(ElementType::kF32, {2, 3});
  out.strides[0] = 5;
  options.outputs = {out};
  const Outcome y = run_variant(make_case(kReshape, reshape_to({2, 3}), {x}), reference_variant(kReshape), options);
  EXPECT_EQ(y.outputs[0].packed(), x.packed());
}

TEST(Reshape, WalksGapsOnBothSidesUnlessDimensionsCutAcross) {
  const TestTensor x = tensor_of<std::int32_t>({2, 6}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  TensorDesc gaps = x.desc();
  gaps.strides[0] = 9;
  const auto copied = [&](const std::vector<std::int32_t>& shape) {
    RunOptions options;
    options.outputs = {dense_desc(ElementType::kI32, {shape.begin(), shape.end()})};
    options.outputs[0].strides[0] += 3;
    return run_variant(make_case(kReshape, ReshapeParams{int_list(shape)}, {x.with_strides(gaps)}),
                       reference_variant(kReshape), options)
        .outputs[0]
        .packed();
  };
  EXPECT_EQ(copied({4, 3}), x.packed());
  EXPECT_EQ(copied({2, 2, 1, 3}), x.packed());
  TensorDesc across = dense_desc(ElementType::kI32, {3, 4});
  across.strides[0] = 5;
  const ReshapeParams params = reshape_to({3, 4});
  const Tensor input{nullptr, &gaps};
  const Tensor output{nullptr, &across};
  EXPECT_FALSE(supports(reference_variant(kReshape), {&params, {&input, 1}, {&output, 1}}));
}

TEST(Reshape, VariantsMatchReference) {
  expect_variants_match_reference([](Random& random) {
    const auto dims = random_dims(random, 3, 0, 4);
    const auto d = [&](std::size_t i) { return static_cast<std::int32_t>(dims[i]); };
    const ReshapeParams shapes[] = {reshape_to({d(0) * d(1) * d(2)}), reshape_to({d(0) * d(1), d(2)}),
                                    reshape_to({d(2), d(0), d(1)}), reshape_to({d(0), 1, d(1), d(2)})};
    return make_case(kReshape, shapes[random_int(random, 0, 3)], {random_tensor(ElementType::kF32, dims, random)});
  });
}

TEST(Reshape, RefusesHostileShapes) {
  std::vector<TensorDesc> outputs;
  const TestTensor x = tensor_of<float>({2}, {1, 2});
  EXPECT_FALSE(infer_case(make_case(kReshape, reshape_to({3}), {x}), &outputs).ok());
  EXPECT_FALSE(infer_case(make_case(kReshape, reshape_to({-1}), {x}), &outputs).ok());
  EXPECT_FALSE(infer_case(make_case(kReshape, reshape_to({0x7fffffff, 0x7fffffff}), {x}), &outputs).ok());
  ReshapeParams params;
  params.shape.size = 9;
  EXPECT_FALSE(infer_case(make_case(kReshape, params, {x}), &outputs).ok());
  params.shape.size = -1;
  EXPECT_FALSE(infer_case(make_case(kReshape, params, {x}), &outputs).ok());
}

}  // namespace
}  // namespace bantam::ops
