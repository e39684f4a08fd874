#include "ops/data/update_slice/update_slice.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ops/testing/harness.h"

namespace bantam::ops {
namespace {

using namespace testing;  // NOLINT: the harness is this file's vocabulary

std::vector<std::int32_t> updated(std::int64_t row, std::int64_t column) {
  return run_reference(make_case(kUpdateSlice, {tensor_of<std::int32_t>({3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9}),
                                                tensor_of<std::int32_t>({2, 1}, {-1, -2}),
                                                tensor_of<std::int64_t>({2}, {row, column})}))
      .outputs[0]
      .values<std::int32_t>();
}

TEST(UpdateSlice, ReplacesAPartAndKeepsItInside) {
  using I = std::vector<std::int32_t>;
  EXPECT_EQ(updated(0, 1), (I{1, -1, 3, 4, -2, 6, 7, 8, 9}));
  EXPECT_EQ(updated(2, 9), (I{1, 2, 3, 4, 5, -1, 7, 8, -2}));
  EXPECT_EQ(updated(-7, -7), (I{-1, 2, 3, -2, 5, 6, 7, 8, 9}));
}

TEST(UpdateSlice, RefusesLargerUpdatesAndMissingStarts) {
  const auto code = [](std::vector<std::int64_t> update, std::int64_t starts) {
    std::vector<TensorDesc> outputs;
    return infer_case(make_case(kUpdateSlice, {TestTensor(dense_desc(ElementType::kI8, {3, 3})),
                                               TestTensor(dense_desc(ElementType::kI8, update)),
                                               TestTensor(dense_desc(ElementType::kI32, {starts}))}),
                      &outputs)
        .code;
  };
  EXPECT_EQ(code({3, 1}, 2), StatusCode::kOk);
  EXPECT_EQ(code({4, 1}, 2), StatusCode::kInvalidModel);
  EXPECT_EQ(code({3}, 2), StatusCode::kInvalidModel);
  EXPECT_EQ(code({3, 1}, 1), StatusCode::kInvalidModel);
}

TEST(UpdateSlice, RunsInPlaceForEveryType) {
  expect_variants_match_reference([](Random& random) {
    constexpr ElementType kTypes[] = {ElementType::kF32, ElementType::kI8, ElementType::kI16, ElementType::kI64};
    const ElementType type = kTypes[random() % 4];
    const auto dims = random_dims(random, 3, 0, 5);
    auto part = dims;
    for (auto& d : part) d = random_int(random, 0, d);
    return make_case(kUpdateSlice, {random_tensor(type, dims, random, -9, 9), random_tensor(type, part, random, -9, 9),
                                    random_tensor(ElementType::kI32, {3}, random, -2, 6)});
  });
}

}  // namespace
}  // namespace bantam::ops
