#include "ops/elementwise/activation_i16/activation_i16.h"

#include <gtest/gtest.h>

#include "ops/testing/harness.h"

namespace bantam::ops {
namespace {

using namespace testing;  // NOLINT: the harness is the vocabulary of operator tests

std::vector<std::int16_t> run(const ActivationI16Params& params) {
  const std::vector<std::int16_t> x = {0,     1,     -1,     100,   -100,   1000,  -1000, 5000,
                                       -5000, 12345, -12345, 20000, -20000, 32767, -32768};
  const Outcome y = run_reference(make_case(kActivationI16, params, {tensor_of<std::int16_t>({15}, x)}));
  EXPECT_TRUE(y.status.ok()) << y.status.message;
  return y.outputs[0].values<std::int16_t>();
}

TEST(ActivationI16, AgreesWithTensorFlowLite) {
  // Results of TensorFlow Lite's reference kernels for these multipliers and shifts.
  EXPECT_EQ(run({.function = ActivationI16Function::kLogistic, .multiplier = 3}),
            (std::vector<std::int16_t>{16384, 16386, 16382, 16584, 16184, 18374, 14394, 25303, 7465, 31234, 1534, 32521,
                                       247, 32757, 11}));
  EXPECT_EQ(
      run({.function = ActivationI16Function::kLogistic, .multiplier = 25000, .right_shift = 7}),
      (std::vector<std::int16_t>{16384, 16514, 16254, 27215, 5553, 32767, 1, 32767, 1, 32767, 1, 32767, 1, 32767, 1}));
  EXPECT_EQ(run({.function = ActivationI16Function::kTanh, .multiplier = 6}),
            (std::vector<std::int16_t>{0, 16, -16, 1599, -1599, 14838, -14838, 32275, -32275, 32767, -32767, 32767,
                                       -32767, 32767, -32767}));
  EXPECT_EQ(run({.function = ActivationI16Function::kTanh, .multiplier = 17000, .right_shift = 13}),
            (std::vector<std::int16_t>{0, 5, -5, 555, -555, 5482, -5482, 22548, -22548, 31771, -31771, 32691, -32691,
                                       32767, -32767}));
}

TEST(ActivationI16, VariantsMatchReference) {
  expect_variants_match_reference([](Random& random) {
    const ActivationI16Params params{.function = static_cast<ActivationI16Function>(random_int(random, 0, 1)),
                                     .multiplier = static_cast<std::int32_t>(random_int(random, -40000, 40000)),
                                     .right_shift = static_cast<std::int32_t>(random_int(random, 0, 31))};
    return make_case(kActivationI16, params,
                     {random_tensor(ElementType::kI16, random_dims(random, 3, 0, 9), random, -32768, 32767)});
  });
}

TEST(ActivationI16, RefusesWhatItCannotCompute) {
  std::vector<TensorDesc> outputs;
  const auto accepted = [&](const ActivationI16Params& params, ElementType type) {
    return infer_case(make_case(kActivationI16, params, {TestTensor(dense_desc(type, {3}))}), &outputs).ok();
  };
  EXPECT_TRUE(accepted({}, ElementType::kI16));
  EXPECT_FALSE(accepted({}, ElementType::kI8));
  EXPECT_FALSE(accepted({.function = ActivationI16Function::kCount}, ElementType::kI16));
  EXPECT_FALSE(accepted({.right_shift = 32}, ElementType::kI16));
  EXPECT_FALSE(accepted({.right_shift = -1}, ElementType::kI16));
}

}  // namespace
}  // namespace bantam::ops
