#include "ops/elementwise/select/select.h"

#include <gtest/gtest.h>

#include "ops/testing/harness.h"

namespace bantam::ops {
namespace {

using namespace testing;  // NOLINT: the harness is this file's vocabulary

TEST(Select, ChoosesElementByElementWithBroadcasting) {
  const Outcome y =
      run_reference(make_case(kSelect, {tensor_of<Bool8>({2, 1}, {{1}, {0}}), tensor_of<std::int32_t>({3}, {1, 2, 3}),
                                        tensor_of<std::int32_t>({}, {-1})}));
  ASSERT_TRUE(y.status.ok());
  EXPECT_EQ(y.outputs[0].values<std::int32_t>(), (std::vector<std::int32_t>{1, 2, 3, -1, -1, -1}));
}

TEST(Select, RefusesOtherConditionsAndMixedTypes) {
  const TestTensor f = tensor_of<float>({1}, {1});
  const TestTensor i = tensor_of<std::int32_t>({1}, {1});
  const TestTensor c = tensor_of<Bool8>({1}, {{1}});
  EXPECT_EQ(run_reference(make_case(kSelect, {f, f, f})).status.code, StatusCode::kInvalidModel);
  EXPECT_EQ(run_reference(make_case(kSelect, {c, f, i})).status.code, StatusCode::kInvalidModel);
}

TEST(Select, WorksForEveryTypeInPlaceAndStrided) {
  expect_variants_match_reference([](Random& random) {
    const auto type = static_cast<ElementType>(random_int(random, 1, static_cast<int>(ElementType::kBool)));
    const auto dims = random_dims(random, static_cast<int>(random_int(random, 0, 4)), 0, 6);
    const auto broadcast_dims = random() % 2 == 0 ? dims : std::vector<std::int64_t>{};
    return make_case(
        kSelect, {random_tensor(ElementType::kBool, dims, random), random_tensor(type, broadcast_dims, random, -9, 9),
                  random_tensor(type, dims, random, -9, 9)});
  });
}

}  // namespace
}  // namespace bantam::ops
