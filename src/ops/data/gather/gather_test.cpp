#include "ops/data/gather/gather.h"

#include <gtest/gtest.h>

#include "base/shape.h"
#include "ops/testing/harness.h"

namespace bantam::ops {
namespace {

using namespace testing;  // NOLINT: the harness is the vocabulary of operator tests

TEST(Gather, PicksSlicesAlongAnAxis) {
  const TestTensor x = tensor_of<float>({3, 2}, {1.0F, 1.2F, 2.3F, 3.4F, 4.5F, 5.7F});
  const TestTensor indices = tensor_of<std::int64_t>({2, 2}, {0, 1, 1, -1});
  const Outcome y = run_reference(make_case(kGather, GatherParams{}, {x, indices}));
  EXPECT_EQ(y.outputs[0].values<float>(), (std::vector<float>{1.0F, 1.2F, 2.3F, 3.4F, 2.3F, 3.4F, 4.5F, 5.7F}));
  EXPECT_EQ(y.outputs[0].desc().rank, 3);
  const Outcome columns =
      run_reference(make_case(kGather, GatherParams{.axis = 1}, {x, tensor_of<std::int32_t>({}, {1})}));
  EXPECT_EQ(columns.outputs[0].values<float>(), (std::vector<float>{1.2F, 3.4F, 5.7F}));
}

TEST(Gather, BatchDimensionsPairOperandAndIndices) {
  const TestTensor x = tensor_of<std::int32_t>({2, 3}, {1, 2, 3, 4, 5, 6});
  const TestTensor indices = tensor_of<std::int32_t>({2, 2}, {2, 0, 1, 1});
  const Outcome y = run_reference(make_case(kGather, GatherParams{.axis = 1, .batch_dims = 1}, {x, indices}));
  EXPECT_EQ(y.outputs[0].values<std::int32_t>(), (std::vector<std::int32_t>{3, 1, 5, 5}));
}

TEST(Gather, ThreadsGiveTheSameForSlicesOfAllSizes) {
  expect_variants_match_reference([](Random& random) {
    constexpr ElementType kTypes[] = {ElementType::kI8, ElementType::kF16, ElementType::kF32, ElementType::kI64};
    const std::int64_t batches = random_int(random, 1, 3), size = random_int(random, 1, 70);
    const std::int64_t inner = random_int(random, 0, 1) == 0 ? 1 : random_int(random, 0, 9);
    const TestTensor x =
        random_tensor(kTypes[random() % std::size(kTypes)], {batches, random_int(random, 0, 90), size, inner}, random);
    const ElementType type = random_int(random, 0, 1) == 0 ? ElementType::kI32 : ElementType::kI64;
    const GatherParams p{.axis = 2, .batch_dims = static_cast<std::int32_t>(random_int(random, 0, 1))};
    const TestTensor indices = random_tensor(type, {batches, random_int(random, 0, 80)}, random,
                                             -static_cast<double>(size), static_cast<double>(size) - 1);
    return make_case(kGather, p, {x, indices});
  });
}

TEST(Gather, IndexOutsideIsAFault) {
  const TestTensor x = tensor_of<std::int32_t>({3}, {1, 2, 3});
  for (const std::int64_t index : {std::int64_t{3}, std::int64_t{-4}, std::int64_t{1} << 62})
    EXPECT_EQ(run_reference(make_case(kGather, GatherParams{}, {x, tensor_of<std::int64_t>({1}, {index})})).status.code,
              StatusCode::kOutOfRange);
}

TEST(Gather, SingleConstantIndexIsAView) {
  const TestTensor x = tensor_of<std::int32_t>({2, 3, 2}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  const auto view_of = [&](const GatherParams& p, const TestTensor& index, TensorDesc* view, std::int64_t* offset) {
    const Tensor inputs[] = {x.shape_only(), index.tensor()};
    TensorDesc out;
    EXPECT_TRUE(infer(kGather, &p, inputs, {&out, 1}).ok());
    const Tensor output{nullptr, &out};
    return kGather.output_view({&p, inputs, {&output, 1}}, view, offset);
  };
  TensorDesc view;
  std::int64_t offset = 0;
  ASSERT_TRUE(view_of({.axis = 1}, tensor_of<std::int64_t>({1}, {-1}), &view, &offset));
  EXPECT_EQ(view.rank, 3);
  EXPECT_EQ(offset, 4);
  EXPECT_EQ(view.strides[0], 6);
  EXPECT_TRUE(check_strides(view, 12 - offset).ok());
  ASSERT_TRUE(view_of({.axis = 1}, tensor_of<std::int32_t>({}, {1}), &view, &offset));
  EXPECT_EQ(view.rank, 2);
  EXPECT_EQ(offset, 2);
  EXPECT_FALSE(view_of({.axis = 2}, tensor_of<std::int32_t>({}, {1}), &view, &offset)) << "columns are not contiguous";
  EXPECT_TRUE(view_of({.axis = 2}, tensor_of<std::int32_t>({1}, {1}), &view, &offset));
  EXPECT_FALSE(view_of({.axis = 1}, tensor_of<std::int32_t>({}, {3}), &view, &offset)) << "left to run to report";
}

TEST(Gather, RefusesHostileParameters) {
  std::vector<TensorDesc> outputs;
  const TestTensor x = tensor_of<float>({2, 1}, {1, 2});
  const TestTensor index = tensor_of<std::int32_t>({1}, {0});
  for (const GatherParams& p : {GatherParams{.axis = 2}, GatherParams{.axis = -1}, GatherParams{.batch_dims = 1},
                                GatherParams{.axis = 1, .batch_dims = 2}, GatherParams{.axis = 1, .batch_dims = -1},
                                GatherParams{.axis = 1, .batch_dims = 1}})
    EXPECT_FALSE(infer_case(make_case(kGather, p, {x, index}), &outputs).ok());
  EXPECT_FALSE(infer_case(make_case(kGather, GatherParams{}, {x, x}), &outputs).ok()) << "float indices";
}

}  // namespace
}  // namespace bantam::ops
