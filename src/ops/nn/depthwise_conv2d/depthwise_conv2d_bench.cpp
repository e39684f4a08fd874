// Depthwise layers of real detectors, one thread; the counter is multiply-accumulates twice.
#include "ops/nn/depthwise_conv2d/depthwise_conv2d.h"
#include "ops/testing/register_benchmark.h"

namespace bantam::ops {
namespace {

using testing::constant;
using testing::random_tensor;
using testing::register_benchmark;

struct Layer {
  const char* name;
  std::int64_t h, w, c, kernel;
  std::int32_t stride;
};

constexpr Layer kLayers[] = {
    {"3x3-16", 120, 160, 16, 3, 1}, {"3x3-s2-32", 60, 80, 32, 3, 2}, {"3x3-64", 30, 40, 64, 3, 1},
    {"3x3-24", 44, 44, 24, 3, 1},   {"5x5-96", 22, 22, 96, 5, 1},    {"3x3-256", 8, 10, 256, 3, 1},
};

testing::OpCase make_layer(const Layer& l, bool quantized) {
  testing::Random random(1);
  const auto pad = static_cast<std::int32_t>(l.kernel / 2);
  const Conv2dParams p{.stride_h = l.stride,
                       .stride_w = l.stride,
                       .pad_top = pad,
                       .pad_left = pad,
                       .pad_bottom = pad,
                       .pad_right = pad,
                       .activation = {UnaryFunction::kRelu, 0, 0},
                       .input_zero_point = -5};
  if (!quantized)
    return testing::make_case(kDepthwiseConv2d, p,
                              {random_tensor(ElementType::kF32, {1, l.h, l.w, l.c}, random),
                               constant(random_tensor(ElementType::kF32, {l.kernel, l.kernel, l.c}, random)),
                               constant(random_tensor(ElementType::kF32, {l.c}, random))});
  return testing::make_case(kDepthwiseConv2d, p,
                            {random_tensor(ElementType::kI8, {1, l.h, l.w, l.c}, random, -128, 127),
                             constant(random_tensor(ElementType::kI8, {l.kernel, l.kernel, l.c}, random, -127, 127)),
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
