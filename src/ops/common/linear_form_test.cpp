// The int16 form of every operator that has it, and the int8 form of conv_transpose2d, against TensorFlow Lite's
// reference kernels, with which the expectations were computed.
#include "ops/common/linear_form.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/nn/conv2d/conv2d.h"
#include "ops/nn/conv_transpose2d/conv_transpose2d.h"
#include "ops/nn/depthwise_conv2d/depthwise_conv2d.h"
#include "ops/nn/matmul/matmul.h"
#include "ops/testing/sequence.h"

namespace bantam::ops {
namespace {

using namespace testing;  // NOLINT: the harness is the vocabulary of operator tests
using ::testing::ElementsAre;

TestTensor integers(const std::vector<std::int32_t>& values) {
  return tensor_of<std::int32_t>({static_cast<std::int64_t>(values.size())}, values);
}
TestTensor wide_integers(const std::vector<std::int64_t>& values) {
  return tensor_of<std::int64_t>({static_cast<std::int64_t>(values.size())}, values);
}

template <typename Y, typename Params>
std::vector<Y> run(const OpDef& op, const Params& params, std::vector<Operand> operands) {
  const Outcome y = run_reference(make_case(op, params, std::move(operands)));
  EXPECT_TRUE(y.status.ok()) << y.status.message;
  return y.outputs.empty() ? std::vector<Y>{} : y.outputs[0].values<Y>();
}

TEST(Int16Form, ConvolutionSumsIn64BitsOrWithANarrowBiasIn32) {
  const Conv2dParams params{.pad_left = 1, .pad_right = 1, .minimum = -30000, .maximum = 30000};
  const TestTensor multiplier = integers({1518500250, 2147419112});
  const TestTensor shift = integers({-7, -6});
  const auto with_bias = [&](const TestTensor& bias) {
    return run<std::int16_t>(kConv2d, params,
                             {sequence_i16({1, 2, 3, 2}), sequence_weights({2, 1, 3, 2}), bias, multiplier, shift});
  };
  EXPECT_THAT(with_bias(wide_integers({5000000000, -7})),
              ElementsAre(30000, -30000, 30000, -4760, 30000, 24430, 30000, 22038, 30000, 4532, 30000, -30000));
  EXPECT_THAT(with_bias(integers({100000, -7})),
              ElementsAre(-7241, -30000, 24412, -4760, 16216, 24431, 30000, 22038, -28482, 4532, -11245, -30000));
}

TEST(Int16Form, DepthwiseConvolution) {
  EXPECT_THAT(
      run<std::int16_t>(
          kDepthwiseConv2d, Conv2dParams{.pad_left = 1, .pad_right = 1, .minimum = -32768, .maximum = 32767},
          {sequence_i16({1, 1, 3, 2}), sequence_weights({1, 3, 4}), wide_integers({5000000, -7, 123456, -9999999}),
           integers({1518500250, 2147483000, 1073741824, 1717986918}), integers({-7, -6, -8, -5})}),
      ElementsAre(5291, 26231, 4501, -32768, 32767, 32767, 378, -32768, 32767, 18460, -290, -32768));
}

TEST(Int16Form, MatrixProduct) {
  const auto with_bias = [](const TestTensor& bias) {
    return run<std::int16_t>(kMatmul, MatmulParams{.transpose_b = 1, .minimum = -32768, .maximum = 32767},
                             {sequence_i16({2, 4}), sequence_weights({3, 4}), bias,
                              integers({1518500250, 1518500250, 1518500250}), integers({-8, -8, -8})});
  };
  EXPECT_THAT(with_bias(wide_integers({1000000, -7, 5000000})), ElementsAre(16980, 1064, 7298, 4207, -4448, 9048));
  EXPECT_THAT(with_bias(integers({1000000, -7, 5000000})), ElementsAre(16981, 1064, 7298, 4207, -4448, 9048));
}

TEST(Int16Form, TransposedConvolutionAlsoInInt8) {
  ConvTranspose2dParams params{.stride_w = 2, .pad_left = 1, .input_zero_point = -7, .output_zero_point = -3};
  params.minimum = -100;
  const TestTensor weights = sequence_weights({2, 1, 3, 2});
  const TestTensor multiplier = integers({1518500250, 2147418112});
  const TestTensor shift = integers({-7, -6});
  EXPECT_THAT(run<std::int8_t>(kConvTranspose2d, params,
                               {sequence_of<std::int8_t>({1, 1, 3, 2}, 37, 5, 256, 128), weights,
                                integers({1000, -700}), multiplier, shift}),
              ElementsAre(-10, -100, 16, 127, 4, -57, -61, 26, 17, 127, -21, -100));
  params.input_zero_point = params.output_zero_point = 0;
  params.minimum = -32768;
  params.maximum = 32767;
  EXPECT_THAT(
      run<std::int16_t>(kConvTranspose2d, params,
                        {sequence_i16({1, 1, 3, 2}), weights, wide_integers({100000, -70000}), multiplier, shift}),
      ElementsAre(-3539, -32768, 11705, 32767, -652, -30025, -4831, 31244, 2235, 9321, -4025, -4053));
}

TEST(Int16Form, ExtremeMultipliersAndShiftsAreDefined) {
  for (const std::int32_t multiplier : {INT32_MIN, -1, 0, INT32_MAX})
    for (const std::int32_t shift : {INT32_MIN, -32, 0, 15, INT32_MAX}) {
      const auto y =
          run<std::int16_t>(kMatmul, MatmulParams{.transpose_b = 1, .minimum = -1000, .maximum = 1000},
                            {tensor_of<std::int16_t>({1, 1}, {-32768}), tensor_of<std::int8_t>({1, 1}, {-128}),
                             wide_integers({INT64_MAX}), integers({multiplier}), integers({shift})});
      ASSERT_EQ(y.size(), 1U);
      EXPECT_LE(std::abs(y[0]), 1000);
    }
}

TEST(Int16Form, RefusesZeroPointsAndWrongTypes) {
  std::vector<TensorDesc> outputs;
  const auto accepted = [&](const MatmulParams& params, const TestTensor& weights, const Operand& bias) {
    return infer_case(make_case(kMatmul, params, {sequence_i16({2, 4}), weights, bias, integers({1}), integers({1})}),
                      &outputs)
        .ok();
  };
  const TestTensor weights = sequence_weights({1, 4});
  EXPECT_TRUE(accepted({.transpose_b = 1}, weights, absent()));
  EXPECT_FALSE(accepted({.transpose_b = 1, .input_zero_point = 1}, weights, absent()));
  EXPECT_FALSE(accepted({.transpose_b = 1, .weights_zero_point = 1}, weights, absent()));
  EXPECT_FALSE(accepted({.transpose_b = 1, .output_zero_point = 1}, weights, absent()));
  EXPECT_FALSE(accepted({.transpose_b = 1, .minimum = -32769}, weights, absent()));
  EXPECT_FALSE(accepted({.transpose_b = 1, .minimum = 1, .maximum = 0}, weights, absent()));
  EXPECT_FALSE(accepted({.transpose_b = 1}, sequence_i16({1, 4}), absent()));
  EXPECT_FALSE(accepted({.transpose_b = 1}, weights, tensor_of<float>({1}, {1})));
  EXPECT_FALSE(accepted({.transpose_b = 1}, weights, tensor_of<std::int16_t>({1}, {1})));
}

}  // namespace
}  // namespace bantam::ops
