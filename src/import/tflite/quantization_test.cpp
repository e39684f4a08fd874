#include "import/tflite/quantization.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace bantam::import::tflite {
namespace {

std::int8_t at(const Table8& table, int x) { return static_cast<std::int8_t>(table[static_cast<std::uint8_t>(x)]); }

TEST(QuantizeMultiplier, SplitsIntoMantissaAndExponent) {
  const FixedMultiplier half = quantize_multiplier(0.5);
  EXPECT_EQ(half.multiplier, 1 << 30);
  EXPECT_EQ(half.shift, 0);
  const FixedMultiplier three = quantize_multiplier(3.0);  // 0.75 * 2^2
  EXPECT_EQ(three.multiplier, 3 << 29);
  EXPECT_EQ(three.shift, 2);
  const FixedMultiplier tenth = quantize_multiplier(0.1);  // 0.8 * 2^-3; 0.8 * 2^31 = 1717986918.4
  EXPECT_EQ(tenth.multiplier, 1717986918);
  EXPECT_EQ(tenth.shift, -3);
}

TEST(QuantizeMultiplier, RoundsUpIntoTheNextPowerOfTwo) {
  const FixedMultiplier m = quantize_multiplier(std::nextafter(1.0, 0.0));
  EXPECT_EQ(m.multiplier, 1 << 30);
  EXPECT_EQ(m.shift, 1);
}

TEST(QuantizeMultiplier, FlushesWhatWouldShiftOutEntirely) {
  EXPECT_EQ(quantize_multiplier(std::ldexp(1.0, -32)).shift, -31);  // 0.5 * 2^-31
  EXPECT_EQ(quantize_multiplier(std::ldexp(1.0, -33)).multiplier, 0);
  EXPECT_EQ(quantize_multiplier(0.0).multiplier, 0);
}

TEST(QuantizeMultiplier, TellsWhatTheKernelsCannotApply) {
  EXPECT_TRUE(quantize_multiplier(std::ldexp(0.99, 30)).is_applicable());
  EXPECT_FALSE(quantize_multiplier(std::ldexp(1.0, 30)).is_applicable());
}

TEST(FullyConnectedScale, MultipliesInSinglePrecision) {
  const float input = 0.1F;
  const float weights = 0.3F;
  EXPECT_EQ(fully_connected_scale(input, weights, 1.0F), static_cast<double>(0.1F * 0.3F));
  EXPECT_NE(fully_connected_scale(input, weights, 1.0F), convolution_scale(input, weights, 1.0F));
}

TEST(ClampRange, StoresTheBoundsOfTheActivation) {
  const Affine output{0.05F, -10};
  const IntegerRange relu6 = clamp_range({-128, 127}, output, 0.0F, 6.0F);
  EXPECT_EQ(relu6.minimum, -10);
  EXPECT_EQ(relu6.maximum, 110);
  const IntegerRange coarse = clamp_range({-128, 127}, {0.01F, 0}, -1.0F, std::nullopt);
  EXPECT_EQ(coarse.minimum, -100);
  EXPECT_EQ(coarse.maximum, 127);
}

TEST(ClampRange, SurvivesScalesThatOverflow) {
  const IntegerRange range = clamp_range({-128, 127}, {std::numeric_limits<float>::denorm_min(), 5}, -1.0F, 1.0F);
  EXPECT_EQ(range.minimum, -128);
  EXPECT_EQ(range.maximum, 127);
}

TEST(SoftmaxScaling, MatchesTheHandComputedParameters) {
  // 0.0625 * 2^26 = 2^22 = 0.5 * 2^23; radius = 31 * 2^26 / 2^23 = 248.
  const auto scaling = softmax_scaling(1.0F, 0.0625F);
  ASSERT_TRUE(scaling);
  EXPECT_EQ(scaling->input.multiplier, 1 << 30);
  EXPECT_EQ(scaling->input.shift, 23);
  EXPECT_EQ(scaling->diff_min, -248);
  EXPECT_FALSE(softmax_scaling(1.0F, 1e-9F));
  EXPECT_FALSE(softmax_scaling(std::numeric_limits<float>::quiet_NaN(), 1.0F));
}

TEST(AddScaling, BringsBothSidesToTwiceTheLargerScale) {
  const AddScaling s = add_scaling(0.5F, 0.25F, 1.0F, 20);
  EXPECT_EQ(s.a.multiplier, 1 << 30);  // 0.5
  EXPECT_EQ(s.a.shift, 0);
  EXPECT_EQ(s.b.multiplier, 1 << 30);  // 0.25
  EXPECT_EQ(s.b.shift, -1);
  EXPECT_EQ(s.output.multiplier, 1 << 30);  // 2^-20
  EXPECT_EQ(s.output.shift, -19);
}

TEST(DivideMultiplier, KeepsTheTruncatedQuotientOfTheIntegerMean) {
  // 1.0 = 2^30 * 2^(1-31); count 6: shift floor(log2 6) = 2, multiplier 2^32 / 6 = 715827882.67.
  const FixedMultiplier m = divide_multiplier({1 << 30, 1}, 6);
  EXPECT_EQ(m.multiplier, 715827882);
  EXPECT_EQ(m.shift, -1);
  const FixedMultiplier tiny = divide_multiplier({1 << 30, -30}, 1 << 20);
  EXPECT_EQ(tiny.shift, -31);
  EXPECT_TRUE(tiny.is_applicable());
}

TEST(AxisPadding, PutsTheOddElementBehind) {
  const auto p = axis_padding(true, 10, 4, 1, 1);  // 3 elements
  ASSERT_TRUE(p);
  EXPECT_EQ(p->before, 1);
  EXPECT_EQ(p->after, 2);
  EXPECT_EQ(p->out, 10);
}

TEST(AxisPadding, DependsOnStrideParity) {
  const auto p = axis_padding(true, 96, 3, 2, 1);  // out 48: 47*2+3-96 = 1
  ASSERT_TRUE(p);
  EXPECT_EQ(p->before, 0);
  EXPECT_EQ(p->after, 1);
  EXPECT_EQ(p->out, 48);
}

TEST(AxisPadding, ValidPadsNothingAndRefusesWhatDoesNotFit) {
  const auto p = axis_padding(false, 10, 3, 2, 2);  // extent 5
  ASSERT_TRUE(p);
  EXPECT_EQ(p->before + p->after, 0);
  EXPECT_EQ(p->out, 3);
  EXPECT_FALSE(axis_padding(false, 4, 5, 1, 1));
  EXPECT_FALSE(axis_padding(true, 4, 1, 0, 1));
  EXPECT_FALSE(axis_padding(true, 4, 2147483647, 1, 2147483647));
}

TEST(FloatTable, RoundsHalfAwayFromZeroAndSaturates) {
  const auto identity = [](float x) { return x; };
  const Table8 table = float_table(ElementType::kI8, {1.0F, 0}, {2.0F, 1}, identity);
  EXPECT_EQ(at(table, 3), 3);    // 1.5 -> 2, + 1
  EXPECT_EQ(at(table, -3), -1);  // -1.5 -> -2, + 1
  const Table8 steep = float_table(ElementType::kI8, {1.0F, 0}, {0.001F, 0}, identity);
  EXPECT_EQ(at(steep, 100), 127);
  EXPECT_EQ(at(steep, -100), -128);
}

TEST(FloatTable, IsDefinedForInfinityAndNan) {
  const auto log = [](float x) { return std::log(x); };
  const Table8 table = float_table(ElementType::kI8, {1.0F, 0}, {1.0F, 7}, log);
  EXPECT_EQ(at(table, 0), -128);  // log 0 = -inf
  EXPECT_EQ(at(table, -1), 7);    // NaN counts as zero
}

TEST(LogisticTable, HasTheSymmetryAndLimitsOfTheFunction) {
  const Table8 table = logistic_table({0.1F, 0});
  EXPECT_EQ(at(table, 0), 0);  // 0.5 * 256 - 128
  EXPECT_EQ(at(table, 127), 127);
  EXPECT_EQ(at(table, -128), -128);
  for (int x = -128; x < 128; ++x) {
    const double exact = 256.0 / (1.0 + std::exp(-0.1 * x)) - 128.0;
    EXPECT_NEAR(at(table, x), std::min(exact, 127.0), 0.51) << x;
  }
}

TEST(TanhTable, FollowsTheFunction) {
  const Table8 table = tanh_table({0.03F, 5});
  EXPECT_EQ(at(table, 5), 0);
  for (int x = -128; x < 128; ++x)
    EXPECT_NEAR(at(table, x), std::min(128.0 * std::tanh(0.03 * (x - 5)), 127.0), 0.51) << x;
}

TEST(LeakyReluTable, ScalesEachSideByItsOwnMultiplier) {
  const auto table = leaky_relu_table(ElementType::kI8, {0.5F, 0}, {0.25F, 10}, 0.25F);
  ASSERT_TRUE(table);
  EXPECT_EQ(at(*table, 20), 50);  // 20 * 2 + 10
  EXPECT_EQ(at(*table, -20), 0);  // -20 * 0.5 + 10
  EXPECT_EQ(at(*table, 127), 127);
  const auto negative = leaky_relu_table(ElementType::kI8, {0.5F, 0}, {0.5F, 0}, -0.5F);
  ASSERT_TRUE(negative);
  EXPECT_EQ(at(*negative, -20), 10);
}

TEST(HardSwishTable, StaysWithinTheFixedPointErrorOfTheFunction) {
  const Affine input{8.0F / 255, -3};
  const Affine output{5.0F / 255, -100};
  const auto table = hard_swish_table(input, output);
  ASSERT_TRUE(table);
  for (int q = -128; q < 128; ++q) {
    const double x = static_cast<double>(input.scale) * (q - input.zero_point);
    const double y = x * std::clamp(x / 6.0 + 0.5, 0.0, 1.0);
    const double stored = std::clamp(y / static_cast<double>(output.scale) + output.zero_point, -128.0, 127.0);
    EXPECT_NEAR(at(*table, q), stored, 1.0) << q;
  }
  EXPECT_FALSE(hard_swish_table({1.0F, 0}, {1e-6F, 0})) << "the output multiplier must not shift left";
}

TEST(ReluTable, ClampsTheRescaledValue) {
  const auto table = relu_table(ElementType::kI8, {0.1F, -20}, {0.05F, -128}, 0.0F, 6.0F);
  ASSERT_TRUE(table);
  EXPECT_EQ(at(*table, -20), -128);
  EXPECT_EQ(at(*table, -50), -128);
  EXPECT_EQ(at(*table, 0), -88);   // 2.0 / 0.05 - 128
  EXPECT_EQ(at(*table, 127), -8);  // 6.0 / 0.05 - 128
}

TEST(AbsTable, MirrorsAtTheZeroPoint) {
  const auto table = abs_table({0.1F, 4}, {0.1F, -128});
  ASSERT_TRUE(table);
  EXPECT_EQ(at(*table, 4), -128);
  EXPECT_EQ(at(*table, 14), -118);
  EXPECT_EQ(at(*table, -6), -118);
}

TEST(FloatTable16, IsThatOfTheFormatsInt16Softmax) {
  // Polynomial hashes of the tables that TensorFlow Lite's softmax computes for itself.
  const auto hash = [](const Table16& table) {
    std::uint32_t sum = 0;
    for (const std::int16_t entry : table) sum = sum * 31 + static_cast<std::uint32_t>(entry + 40000);
    return sum;
  };
  EXPECT_EQ(hash(float_table16({10.0F / 65535, 32767}, 2.0F / 65535, [](float x) { return std::exp(x); })),
            3628268190U);
  EXPECT_EQ(hash(float_table16({1.0F / 65535, -32768}, 2.0F / 65535, [](float x) { return 1.0F / (1.0F + x); })),
            573828299U);
}

TEST(ActivationScaling, TakesPowersOfTwoWithoutRounding) {
  const auto exact = activation_scaling(1.0F / 4096, 0);
  ASSERT_TRUE(exact);
  EXPECT_EQ(exact->multiplier, 3);
  EXPECT_EQ(exact->right_shift, 0);
  const auto twice = activation_scaling(1.0F / 2048, 1);
  ASSERT_TRUE(twice);
  EXPECT_EQ(twice->multiplier, 6);
  EXPECT_EQ(twice->right_shift, 0);
  const auto other = activation_scaling(1.0F / 2048, 0);
  ASSERT_TRUE(other);
  EXPECT_EQ(other->multiplier, 6 << 12);
  EXPECT_EQ(other->right_shift, 12);
  EXPECT_FALSE(activation_scaling(1e9F, 1));
  const auto tiny = activation_scaling(1e-30F, 1);
  ASSERT_TRUE(tiny);
  EXPECT_EQ(tiny->right_shift, 31);
}

TEST(ConcatenationTable, RescalesInFloat) {
  const Table8 table = concatenation_table({0.5F, 128}, {0.25F, 100});
  EXPECT_EQ(table[128], 100);
  EXPECT_EQ(table[138], 120);
  EXPECT_EQ(table[0], 0);
  EXPECT_EQ(table[255], 255);
}

}  // namespace
}  // namespace bantam::import::tflite
