#include "ops/data/pad/pad.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "ops/testing/harness.h"

namespace bantam::ops {
namespace {

using namespace testing;  // NOLINT: the harness is the vocabulary of operator tests

PadParams padding(PadMode mode, const std::vector<std::int32_t>& before, const std::vector<std::int32_t>& after) {
  PadParams p{.mode = mode};
  for (const std::int32_t n : before) p.before.v[p.before.size++] = n;
  for (const std::int32_t n : after) p.after.v[p.after.size++] = n;
  return p;
}

std::vector<std::int32_t> pad_row(PadMode mode, std::int32_t before, std::int32_t after) {
  const TestTensor x = tensor_of<std::int32_t>({4}, {1, 2, 3, 4});
  return run_reference(make_case(kPad, padding(mode, {before}, {after}), {x})).outputs[0].values<std::int32_t>();
}

TEST(Pad, AnOperandThatLiesWithinTheResultStaysThere) {
  expect_variants_match_reference([](Random& random) {
    const auto dims = random_dims(random, 3, 1, 4);
    const auto pads = [&] {
      std::vector<std::int32_t> values;
      for (int i = 0; i < 3; ++i) values.push_back(static_cast<std::int32_t>(random_int(random, -1, 5)));
      return values;
    };
    PadParams params = padding(static_cast<PadMode>(random_int(random, 0, 4)), pads(), pads());
    for (std::size_t i = 0; i < dims.size(); ++i)
      if (dims[i] + params.before.v[i] + params.after.v[i] < 0) params.before.v[i] = 1;
    return make_case(kPad, params, {random_tensor(ElementType::kI16, dims, random, -999, 999)});
  });
}

TEST(Pad, ModesExtendARow) {
  using Row = std::vector<std::int32_t>;
  EXPECT_EQ(pad_row(PadMode::kConstant, 2, 1), (Row{0, 0, 1, 2, 3, 4, 0}));
  EXPECT_EQ(pad_row(PadMode::kReflect, 2, 3), (Row{3, 2, 1, 2, 3, 4, 3, 2, 1}));
  EXPECT_EQ(pad_row(PadMode::kSymmetric, 2, 3), (Row{2, 1, 1, 2, 3, 4, 4, 3, 2}));
  EXPECT_EQ(pad_row(PadMode::kEdge, 2, 1), (Row{1, 1, 1, 2, 3, 4, 4}));
  EXPECT_EQ(pad_row(PadMode::kWrap, 2, 3), (Row{3, 4, 1, 2, 3, 4, 1, 2, 3}));
}

TEST(Pad, LongPaddingsRepeatThePattern) {
  EXPECT_EQ(pad_row(PadMode::kReflect, 0, 8), (std::vector<std::int32_t>{1, 2, 3, 4, 3, 2, 1, 2, 3, 4, 3, 2}));
  EXPECT_EQ(pad_row(PadMode::kSymmetric, 9, 0), (std::vector<std::int32_t>{1, 1, 2, 3, 4, 4, 3, 2, 1, 1, 2, 3, 4}));
}

TEST(Pad, NegativePaddingsCrop) {
  using Row = std::vector<std::int32_t>;
  EXPECT_EQ(pad_row(PadMode::kConstant, -1, 2), (Row{2, 3, 4, 0, 0}));
  EXPECT_EQ(pad_row(PadMode::kReflect, -1, 2), (Row{2, 3, 4, 3, 2}));
  EXPECT_EQ(pad_row(PadMode::kEdge, 2, -3), (Row{1, 1, 1}));
  EXPECT_EQ(pad_row(PadMode::kConstant, -6, 4), (Row{0, 0}));
  EXPECT_EQ(pad_row(PadMode::kConstant, -2, -2), Row{});
}

TEST(Pad, ConstantValueFillsAllSides) {
  const TestTensor x = tensor_of<std::int8_t>({1, 2, 1}, {5, 6});
  const TestTensor value = tensor_of<std::int8_t>({}, {-7});
  const Outcome y = run_reference(make_case(kPad, padding(PadMode::kConstant, {0, 1, 1}, {1, 0, 0}), {x, value}));
  EXPECT_EQ(y.outputs[0].values<std::int8_t>(),
            (std::vector<std::int8_t>{-7, -7, -7, 5, -7, 6, -7, -7, -7, -7, -7, -7}));
}

TEST(Pad, ScalarsAndEmptyOperandsArePadded) {
  const Outcome scalar = run_reference(make_case(kPad, padding(PadMode::kEdge, {}, {}), {tensor_of<float>({}, {3})}));
  EXPECT_EQ(scalar.outputs[0].values<float>(), (std::vector<float>{3}));
  const Outcome empty = run_reference(make_case(kPad, padding(PadMode::kConstant, {1, 0}, {1, 0}),
                                                {tensor_of<float>({0, 2}, {}), tensor_of<float>({1}, {2})}));
  EXPECT_EQ(empty.outputs[0].values<float>(), (std::vector<float>{2, 2, 2, 2}));
}

/// The operand coordinate that a coordinate of the padded axis shows, found by walking, or -1 for the constant.
int walk(PadMode mode, int i, int size) {
  if (mode == PadMode::kConstant) return i < 0 || i >= size ? -1 : i;
  while (i < 0 || i >= size) {
    switch (mode) {
      case PadMode::kEdge: i = i < 0 ? 0 : size - 1; break;
      case PadMode::kWrap: i += i < 0 ? size : -size; break;
      case PadMode::kSymmetric: i = i < 0 ? -1 - i : 2 * size - 1 - i; break;
      default: i = size == 1 ? 0 : i < 0 ? -i : 2 * (size - 1) - i; break;
    }
  }
  return i;
}

TEST(Pad, AgreesWithTheDefinitionInThreeDimensions) {
  Random random(11);
  for (int round = 0; round < 300; ++round) {
    const auto mode = static_cast<PadMode>(random_int(random, 0, 4));
    const auto dims = random_dims(random, 3, 1, 4);
    std::vector<std::int32_t> before, after;
    std::vector<std::int64_t> out_dims;
    for (const std::int64_t dim : dims) {
      before.push_back(static_cast<std::int32_t>(random_int(random, -2, 5)));
      after.push_back(
          static_cast<std::int32_t>(random_int(random, std::max<std::int64_t>(-2, -dim - before.back()), 5)));
      out_dims.push_back(dim + before.back() + after.back());
    }
    if (*std::min_element(out_dims.begin(), out_dims.end()) < 0) continue;
    const TestTensor dense = random_tensor(ElementType::kI16, dims, random, -999, 999);
    const TestTensor x = dense.with_strides(random_strides(dense.desc(), random));
    const OpCase op_case = make_case(kPad, padding(mode, before, after), {x, tensor_of<std::int16_t>({}, {77})});
    RunOptions options;
    options.outputs = {random_strides(dense_desc(ElementType::kI16, out_dims), random)};
    const auto elements = dense.values<std::int16_t>();
    std::vector<std::int16_t> expected;
    for (int i = 0; i < out_dims[0]; ++i)
      for (int j = 0; j < out_dims[1]; ++j)
        for (int k = 0; k < out_dims[2]; ++k) {
          const int a = walk(mode, i - before[0], static_cast<int>(dims[0]));
          const int b = walk(mode, j - before[1], static_cast<int>(dims[1]));
          const int c = walk(mode, k - before[2], static_cast<int>(dims[2]));
          const bool inside = a >= 0 && b >= 0 && c >= 0;
          expected.push_back(inside ? elements[static_cast<std::size_t>((a * dims[1] + b) * dims[2] + c)]
                                    : std::int16_t{77});
        }
    EXPECT_EQ(run_variant(op_case, reference_variant(kPad), options).outputs[0].values<std::int16_t>(), expected)
        << "round " << round;
  }
}

TEST(Pad, RefusesHostileParameters) {
  std::vector<TensorDesc> outputs;
  const TestTensor x = tensor_of<float>({2}, {1, 2});
  const TestTensor empty = tensor_of<float>({0}, {});
  const auto refused = [&](const PadParams& p, std::vector<Operand> operands) {
    return !infer_case(make_case(kPad, p, std::move(operands)), &outputs).ok();
  };
  EXPECT_TRUE(refused(padding(PadMode::kConstant, {-2}, {-1}), {x}));
  EXPECT_TRUE(refused(padding(PadMode::kConstant, {0x7fffffff}, {0x7fffffff}), {x}));
  EXPECT_TRUE(refused(padding(PadMode::kConstant, {1, 1}, {1}), {x}));
  EXPECT_TRUE(refused(padding(static_cast<PadMode>(9), {1}, {1}), {x}));
  EXPECT_TRUE(refused(padding(static_cast<PadMode>(-1), {1}, {1}), {x}));
  EXPECT_TRUE(refused(padding(PadMode::kReflect, {1}, {1}), {empty}));
  EXPECT_TRUE(refused(padding(PadMode::kConstant, {1}, {1}), {x, x}));
  EXPECT_TRUE(refused(padding(PadMode::kConstant, {1}, {1}), {x, tensor_of<std::int8_t>({}, {1})}));
}

}  // namespace
}  // namespace bantam::ops
