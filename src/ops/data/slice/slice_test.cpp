#include "ops/data/slice/slice.h"

#include <gtest/gtest.h>

#include "base/shape.h"
#include "ops/testing/harness.h"

namespace bantam::ops {
namespace {

using namespace testing;  // NOLINT: the harness is the vocabulary of operator tests

struct Axis {
  std::int32_t start, step, size;
};

SliceParams slice_of(const std::vector<Axis>& axes) {
  SliceParams p;
  p.starts.size = p.steps.size = p.sizes.size = static_cast<std::int32_t>(axes.size());
  for (std::size_t i = 0; i < axes.size(); ++i) {
    p.starts.v[i] = axes[i].start;
    p.steps.v[i] = axes[i].step;
    p.sizes.v[i] = axes[i].size;
  }
  return p;
}

std::vector<std::int32_t> slice(const TestTensor& x, const std::vector<Axis>& axes) {
  const Outcome y = run_reference(make_case(kSlice, slice_of(axes), {x}));
  EXPECT_TRUE(y.status.ok()) << y.status.message;
  return y.outputs.empty() ? std::vector<std::int32_t>{} : y.outputs[0].values<std::int32_t>();
}

TEST(Slice, TakesPositiveAndNegativeSteps) {
  const TestTensor x = tensor_of<std::int32_t>({3, 4}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  EXPECT_EQ(slice(x, {{1, 1, 2}, {0, 2, 2}}), (std::vector<std::int32_t>{4, 6, 8, 10}));
  EXPECT_EQ(slice(x, {{2, -2, 2}, {3, -1, 3}}), (std::vector<std::int32_t>{11, 10, 9, 3, 2, 1}));
  EXPECT_EQ(slice(x, {{0, 1, 0}, {0, 1, 4}}), std::vector<std::int32_t>{});
  EXPECT_EQ(slice(tensor_of<std::int32_t>({}, {5}), {}), std::vector<std::int32_t>{5});
}

TEST(Slice, UnitStepsAreAViewOfTheSameElements) {
  const TestTensor x = tensor_of<std::int32_t>({3, 4}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  const SliceParams p = slice_of({{1, 1, 2}, {1, 1, 3}});
  TensorDesc out;
  const Tensor input = x.shape_only();
  ASSERT_TRUE(infer(kSlice, &p, {&input, 1}, {&out, 1}).ok());
  const Tensor output{nullptr, &out};
  TensorDesc view;
  std::int64_t offset = 0;
  ASSERT_TRUE(kSlice.output_view({&p, {&input, 1}, {&output, 1}}, &view, &offset));
  EXPECT_EQ(offset, 5);
  EXPECT_EQ(view.strides[0], 4);
  EXPECT_TRUE(check_strides(view, 12 - offset).ok());
  const SliceParams every_second = slice_of({{0, 2, 2}, {0, 1, 4}});
  ASSERT_TRUE(infer(kSlice, &every_second, {&input, 1}, {&out, 1}).ok());
  EXPECT_FALSE(kSlice.output_view({&every_second, {&input, 1}, {&output, 1}}, &view, &offset));
}

TEST(Slice, StridesOfOperandAndResultDoNotMatter) {
  Random random(5);
  for (int round = 0; round < 200; ++round) {
    const auto dims = random_dims(random, 3, 1, 6);
    const TestTensor dense = random_tensor(ElementType::kI32, dims, random, -999, 999);
    std::vector<Axis> axes;
    for (const std::int64_t dim : dims) {
      const auto start = static_cast<std::int32_t>(random_int(random, 0, dim - 1));
      auto step = static_cast<std::int32_t>(random_int(random, 1, 3));
      if (random_int(random, 0, 1) == 0) step = -step;
      const std::int64_t room = step > 0 ? (dim - 1 - start) / step : start / -step;
      axes.push_back({start, step, static_cast<std::int32_t>(random_int(random, 0, room + 1))});
    }
    const TestTensor x = dense.with_strides(random_strides(dense.desc(), random));
    const OpCase op_case = make_case(kSlice, slice_of(axes), {x});
    std::vector<TensorDesc> outputs;
    ASSERT_TRUE(infer_case(op_case, &outputs).ok());
    RunOptions options;
    options.outputs = {random_strides(outputs[0], random)};
    std::vector<std::int32_t> expected;
    const auto elements = dense.values<std::int32_t>();
    for (int i = 0; i < axes[0].size; ++i)
      for (int j = 0; j < axes[1].size; ++j)
        for (int k = 0; k < axes[2].size; ++k)
          expected.push_back(elements[static_cast<std::size_t>(
              ((axes[0].start + i * axes[0].step) * dims[1] + axes[1].start + j * axes[1].step) * dims[2] +
              axes[2].start + k * axes[2].step)]);
    EXPECT_EQ(run_variant(op_case, reference_variant(kSlice), options).outputs[0].values<std::int32_t>(), expected);
  }
}

TEST(Slice, VariantsMatchReferenceInPlaceToo) {
  expect_variants_match_reference([](Random& random) {
    const auto dims = random_dims(random, 3, 1, 7);
    std::vector<Axis> axes;
    for (const std::int64_t dim : dims) {
      const auto start = static_cast<std::int32_t>(random_int(random, 0, dim - 1));
      const auto step = static_cast<std::int32_t>(random_int(random, 1, 2));
      axes.push_back({start, step, static_cast<std::int32_t>(random_int(random, 0, (dim - 1 - start) / step + 1))});
    }
    return make_case(kSlice, slice_of(axes), {random_tensor(ElementType::kI16, dims, random, -999, 999)});
  });
}

TEST(Slice, RefusesHostileRanges) {
  std::vector<TensorDesc> outputs;
  const TestTensor x = tensor_of<std::int32_t>({4}, {0, 1, 2, 3});
  for (const Axis& axis : {Axis{0, 1, 5}, Axis{4, 1, 1}, Axis{-1, 1, 1}, Axis{0, 0, 1}, Axis{0, -1, 2}, Axis{0, 1, -1},
                           Axis{1, 0x7fffffff, 2}, Axis{3, -0x7fffffff - 1, 4}})
    EXPECT_FALSE(infer_case(make_case(kSlice, slice_of({axis}), {x}), &outputs).ok())
        << axis.start << " " << axis.step << " " << axis.size;
  EXPECT_FALSE(infer_case(make_case(kSlice, slice_of({}), {x}), &outputs).ok());
}

}  // namespace
}  // namespace bantam::ops
