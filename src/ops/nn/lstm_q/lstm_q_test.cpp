#include "ops/nn/lstm_q/lstm_q.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "ops/testing/sequence.h"

namespace bantam::ops {
namespace {

using namespace testing;  // NOLINT: the harness is the vocabulary of operator tests

/// The scales that the expectations were computed with; those of the int16 case are smaller, for larger sums.
LstmQParams golden_params(bool wide) {
  return {.input_zero_point = wide ? 0 : -5,
          .hidden_zero_point = wide ? 0 : 3,
          .input_multiplier = {1518500250, 1717986918, 1288490188, 1073741824},
          .input_shift = {wide ? -10 : -3, wide ? -11 : -4, wide ? -10 : -3, wide ? -9 : -2},
          .recurrent_multiplier = {1288490188, 1518500250, 1073741824, 1717986918},
          .recurrent_shift = {wide ? -11 : -3, wide ? -10 : -3, wide ? -9 : -2, wide ? -11 : -4},
          .forget_multiplier = 1073741824,
          .forget_shift = -14,
          .cell_multiplier = 1717986918,
          .cell_shift = -14,
          .hidden_multiplier = 1503238553,
          .hidden_shift = wide ? -14 : -22,
          .tanh_multiplier = 6,
          .cell_clip = 20000};
}

template <typename T>
void expect_everywhere(const OpCase& op_case, const std::vector<T>& y, const std::vector<std::int16_t>& y_c) {
  for (const KernelVariant& variant : kLstmQ.variants) {
    if (!variant_supports(op_case, variant)) continue;
    SCOPED_TRACE(variant.name);
    const Outcome outcome = run_variant(op_case, variant);
    ASSERT_TRUE(outcome.status.ok()) << outcome.status.message;
    EXPECT_EQ(outcome.outputs[0].values<T>(), y);
    EXPECT_EQ(outcome.outputs[1].values<T>(), (std::vector<T>{y.end() - 4, y.end()}));
    EXPECT_EQ(outcome.outputs[2].values<std::int16_t>(), y_c);
  }
}

TEST(LstmQ, SequenceOfInt8AgreesWithTensorFlowLiteMicro) {
  // Computed with TensorFlow Lite's reference kernels in the order of TensorFlow Lite Micro's LSTM.
  expect_everywhere<std::int8_t>(
      make_case(
          kLstmQ, golden_params(false),
          {sequence_of<std::int8_t>({3, 2, 3}, 37, 5, 256, 128), constant(sequence_weights({8, 3})),
           constant(sequence_of<std::int8_t>({8, 2}, 71, 3, 255, 127)),
           sequence_of<std::int32_t>({8}, 4099, 100, 20000, 10000), sequence_of<std::int8_t>({2, 2}, 91, 17, 256, 128),
           sequence_of<std::int16_t>({2, 2}, 15013, 7, 65536, 32768)}),
      {-99, -79, -84, 82, -92, -88, -94, 80, 96, -74, -95, -87}, {5621, -15426, -17287, -4266});
}

TEST(LstmQ, SequenceOfInt16AgreesWithTensorFlowLiteMicro) {
  expect_everywhere<std::int16_t>(
      make_case(kLstmQ, golden_params(true),
                {sequence_i16({3, 2, 3}), constant(sequence_weights({8, 3})),
                 constant(sequence_of<std::int8_t>({8, 2}, 71, 3, 255, 127)),
                 sequence_of<std::int64_t>({8}, 4099, 100, 20000, 10000),
                 sequence_of<std::int16_t>({2, 2}, 12345, 17, 65536, 32768),
                 sequence_of<std::int16_t>({2, 2}, 15013, 7, 65536, 32768)}),
      {-30519, -15225, -25123, 21896, -29741, 12794, -27393, -25044, -27425, -13616, 26221, -15754},
      {-3954, -1510, 9799, -20000});
}

OpCase random_lstm_q_case(Random& random) {
  const bool wide = random_int(random, 0, 2) == 0;
  const std::int64_t t = random_int(random, 0, 4);
  const std::int64_t b = random_int(random, 1, 3);
  const std::int64_t i = random_int(random, 0, 19);
  const std::int64_t h = random_int(random, 1, 21);
  LstmQParams p = golden_params(wide);
  const double reach = wide ? 32768 : 128;
  p.input_zero_point = static_cast<std::int32_t>(random_int(random, -128, 127));
  p.hidden_zero_point = static_cast<std::int32_t>(random_int(random, -128, 127));
  for (int g = 0; g < 4; ++g) p.input_shift[g] = static_cast<std::int32_t>(random_int(random, -31, 30));
  p.cell_clip = static_cast<std::int32_t>(std::max<std::int64_t>(0, random_int(random, -32767, 32767)));
  p.tanh_right_shift = static_cast<std::int32_t>(random_int(random, 0, 31));
  const ElementType type = wide ? ElementType::kI16 : ElementType::kI8;
  const auto draw = [&](ElementType of, const std::vector<std::int64_t>& dims, double size) {
    return random_tensor(of, dims, random, -size, size - 1);
  };
  return make_case(kLstmQ, p,
                   {draw(type, {t, b, i}, reach), constant(draw(ElementType::kI8, {4 * h, i}, 128)),
                    constant(draw(ElementType::kI8, {4 * h, h}, 128)),
                    draw(wide ? ElementType::kI64 : ElementType::kI32, {4 * h}, 1e6), draw(type, {b, h}, reach),
                    draw(ElementType::kI16, {b, h}, 32768)});
}

TEST(LstmQ, VariantsMatchReference) {
  expect_variants_match_reference(random_lstm_q_case,
                                  {.cases = 60, .must_cover = {kLstmQ.variants[0].name, "i8__portable"}});
}

TEST(LstmQ, RefusesHostileShapesAndParameters) {
  std::vector<TensorDesc> outputs;
  const auto operands = [](ElementType type) {
    const ElementType bias = type == ElementType::kI8 ? ElementType::kI32 : ElementType::kI64;
    std::vector<Operand> list;
    list.emplace_back(TestTensor(dense_desc(type, {1, 1, 3})));
    list.emplace_back(TestTensor(dense_desc(ElementType::kI8, {8, 3})));
    list.emplace_back(TestTensor(dense_desc(ElementType::kI8, {8, 2})));
    list.emplace_back(TestTensor(dense_desc(bias, {8})));
    list.emplace_back(TestTensor(dense_desc(type, {1, 2})));
    list.emplace_back(TestTensor(dense_desc(ElementType::kI16, {1, 2})));
    return list;
  };
  const auto accepted = [&](const LstmQParams& p, std::vector<Operand> list) {
    return infer_case(make_case(kLstmQ, p, std::move(list)), &outputs).ok();
  };
  const auto accepted_params = [&](void (*change)(LstmQParams&)) {
    LstmQParams p;
    change(p);
    return accepted(p, operands(ElementType::kI8));
  };
  EXPECT_TRUE(accepted({}, operands(ElementType::kI8)));
  EXPECT_TRUE(accepted({}, operands(ElementType::kI16)));
  EXPECT_FALSE(accepted({}, operands(ElementType::kF32)));
  for (std::size_t i = 0; i < 6; ++i) {
    auto list = operands(ElementType::kI8);
    list[i] = TestTensor(dense_desc(list[i].tensor.desc().type, {7, 5}));
    EXPECT_FALSE(accepted({}, list)) << "shape of operand " << i;
    list = operands(ElementType::kI8);
    list[i] = TestTensor(dense_desc(ElementType::kU8, {1, 1, 3}));
    EXPECT_FALSE(accepted({}, list)) << "type of operand " << i;
  }
  EXPECT_FALSE(accepted_params([](LstmQParams& p) { p.input_zero_point = 128; }));
  EXPECT_FALSE(accepted_params([](LstmQParams& p) { p.hidden_zero_point = -129; }));
  EXPECT_FALSE(accepted_params([](LstmQParams& p) { p.input_multiplier[3] = -1; }));
  EXPECT_FALSE(accepted_params([](LstmQParams& p) { p.recurrent_shift[0] = 31; }));
  EXPECT_FALSE(accepted_params([](LstmQParams& p) { p.forget_shift = -32; }));
  EXPECT_FALSE(accepted_params([](LstmQParams& p) { p.cell_multiplier = -1; }));
  EXPECT_FALSE(accepted_params([](LstmQParams& p) { p.hidden_shift = 31; }));
  EXPECT_FALSE(accepted_params([](LstmQParams& p) { p.tanh_right_shift = 32; }));
  EXPECT_FALSE(accepted_params([](LstmQParams& p) { p.cell_clip = 32768; }));
  EXPECT_FALSE(accepted_params([](LstmQParams& p) { p.cell_clip = -1; }));
}

}  // namespace
}  // namespace bantam::ops
