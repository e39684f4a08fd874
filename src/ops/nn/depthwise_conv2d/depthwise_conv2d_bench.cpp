// Depthwise layers of real detectors, and of networks for sounds, whose windows are long or dilated, one thread; the
// counter is multiply-accumulates twice.
#include "ops/nn/depthwise_conv2d/depthwise_conv2d.h"
#include "ops/testing/register_benchmark.h"

namespace bantam::ops {
namespace {

using testing::constant;
using testing::random_tensor;
using testing::register_benchmark;

struct Layer {
  const char* name;
  std::int64_t h, w, c, kernel_h, kernel_w;
  std::int32_t stride = 1;
  std::int32_t dilation = 1;  ///< along sides of the window that have several taps
};

constexpr Layer kLayers[] = {
    {"3x3-16", 120, 160, 16, 3, 3},
    {"3x3-s2-32", 60, 80, 32, 3, 3, 2},
    {"3x3-64", 30, 40, 64, 3, 3},
    {"3x3-24", 44, 44, 24, 3, 3},
    {"5x5-96", 22, 22, 96, 5, 5},
    {"3x3-256", 8, 10, 256, 3, 3},
    {"3x3-d2-96", 30, 40, 96, 3, 3, 1, 2},
    {"3x3-d6-96", 30, 40, 96, 3, 3, 1, 6},
    {"9x9-64", 30, 40, 64, 9, 9},
    {"1x3-d8-128", 1, 1000, 128, 1, 3, 1, 8},
    {"1x5-64", 1, 400, 64, 1, 5},
    {"1x9-64", 1, 400, 64, 1, 9},
    {"1x15-64", 1, 400, 64, 1, 15},
    {"1x33-256", 1, 200, 256, 1, 33},
    {"1x87-d2-512", 1, 200, 512, 1, 87, 1, 2},
    {"31x1-144", 100, 1, 144, 31, 1},
};

testing::OpCase make_layer(const Layer& l, bool quantized) {
  testing::Random random(1);
  const std::int32_t dilation_h = l.kernel_h > 1 ? l.dilation : 1;
  const std::int32_t dilation_w = l.kernel_w > 1 ? l.dilation : 1;
  const auto pad_h = static_cast<std::int32_t>(l.kernel_h / 2 * dilation_h);
  const auto pad_w = static_cast<std::int32_t>(l.kernel_w / 2 * dilation_w);
  const Conv2dParams p{.stride_h = l.stride,
                       .stride_w = l.stride,
                       .dilation_h = dilation_h,
                       .dilation_w = dilation_w,
                       .pad_top = pad_h,
                       .pad_left = pad_w,
                       .pad_bottom = pad_h,
                       .pad_right = pad_w,
                       .activation = {UnaryFunction::kRelu, 0, 0},
                       .input_zero_point = -5};
  if (!quantized)
    return testing::make_case(kDepthwiseConv2d, p,
                              {random_tensor(ElementType::kF32, {1, l.h, l.w, l.c}, random),
                               constant(random_tensor(ElementType::kF32, {l.kernel_h, l.kernel_w, l.c}, random)),
                               constant(random_tensor(ElementType::kF32, {l.c}, random))});
  return testing::make_case(
      kDepthwiseConv2d, p,
      {random_tensor(ElementType::kI8, {1, l.h, l.w, l.c}, random, -128, 127),
       constant(random_tensor(ElementType::kI8, {l.kernel_h, l.kernel_w, l.c}, random, -127, 127)),
       constant(random_tensor(ElementType::kI32, {l.c}, random, -1000, 1000)),
       constant(random_tensor(ElementType::kI32, {l.c}, random, 1 << 30, 0x7fffffff)),
       constant(random_tensor(ElementType::kI32, {l.c}, random, -10, -6))});
}

const int kRegistered = [] {
  for (const Layer& layer : kLayers)
    for (const bool quantized : {false, true})
      register_benchmark(std::string("depthwise_conv2d/") + (quantized ? "int8/" : "f32/") + layer.name,
                         [&layer, quantized] { return make_layer(layer, quantized); });
  return 0;
}();

}  // namespace
}  // namespace bantam::ops
