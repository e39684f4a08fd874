#include "ops/nn/resize_bilinear_q/resize_bilinear_q.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ops/testing/harness.h"

namespace bantam::ops {
namespace {

using namespace testing;  // NOLINT: the harness is this file's vocabulary

std::vector<std::int8_t> row_of(ResizeBilinearQParams params, std::vector<std::int8_t> x) {
  const auto width = static_cast<std::int64_t>(x.size());
  return run_reference(make_case(kResizeBilinearQ, params, {tensor_of({1, 1, width, 1}, x)}))
      .outputs[0]
      .values<std::int8_t>();
}

TEST(ResizeBilinearQ, MixesNeighbours) {
  using I = std::vector<std::int8_t>;
  EXPECT_EQ(row_of({1, 4, 1024, 512, 0}, {0, 10}), (I{0, 5, 10, 10}));
  EXPECT_EQ(row_of({1, 4, 1024, 512, 1}, {0, 10}), (I{0, 3, 8, 10}));
  EXPECT_EQ(row_of({1, 3, 1024, 512, 0}, {-10, -1}), (I{-10, -6, -1})) << "halves are rounded away from zero";
}

TEST(ResizeBilinearQ, RefusesScalesThatLeadOutside) {
  const auto code = [](ResizeBilinearQParams params) {
    std::vector<TensorDesc> outputs;
    return infer_case(make_case(kResizeBilinearQ, params, {TestTensor(dense_desc(ElementType::kI8, {1, 4, 4, 1}))}),
                      &outputs)
        .code;
  };
  EXPECT_EQ(code({4, 4, 1024, 1024, 0}), StatusCode::kOk);
  EXPECT_EQ(code({4, 4, 1400, 1024, 0}), StatusCode::kInvalidModel);
  EXPECT_EQ(code({4, 4, 1024, 0x7fffffff, 1}), StatusCode::kInvalidModel);
  EXPECT_EQ(code({4, 4, -1, 1024, 0}), StatusCode::kInvalidModel);
  EXPECT_EQ(code({-1, 4, 1024, 1024, 0}), StatusCode::kInvalidModel);
  EXPECT_EQ(code({4, 4, 1024, 1024, 2}), StatusCode::kInvalidModel);
}

}  // namespace
}  // namespace bantam::ops
