// Convolution layers of real detectors and keyword spotters, one thread; the counter is multiply-accumulates twice.
#include "ops/nn/conv2d/conv2d.h"
#include "ops/testing/register_benchmark.h"

namespace bantam::ops {
namespace {

using testing::constant;
using testing::random_tensor;
using testing::register_benchmark;

struct Layer {
  const char* name;
  std::int64_t h, w, c, oc, kernel;
  std::int32_t stride, pad;
};

constexpr Layer kLayers[] = {
    {"rgb-3x3-s2", 240, 320, 3, 16, 3, 2, 1},     {"pointwise-16-32", 60, 80, 16, 32, 1, 1, 0},
    {"pointwise-32-32", 60, 80, 32, 32, 1, 1, 0}, {"pointwise-64-64", 30, 40, 64, 64, 1, 1, 0},
    {"pointwise-24-24", 44, 44, 24, 24, 1, 1, 0}, {"pointwise-48-48", 22, 22, 48, 48, 1, 1, 0},
    {"pointwise-96-96", 22, 22, 96, 96, 1, 1, 0}, {"pointwise-256-256", 8, 10, 256, 256, 1, 1, 0},
    {"3x3-64-64", 30, 40, 64, 64, 3, 1, 1},       {"3x3-16-16", 30, 40, 16, 16, 3, 1, 1},
    {"3x3-128-128", 8, 10, 128, 128, 3, 1, 1},
};

testing::OpCase float_layer(const Layer& l) {
  testing::Random random(1);
  const Conv2dParams p{.stride_h = l.stride,
                       .stride_w = l.stride,
                       .pad_top = l.pad,
                       .pad_left = l.pad,
                       .pad_bottom = l.pad,
                       .pad_right = l.pad,
                       .activation = {UnaryFunction::kRelu, 0, 0}};
  return testing::make_case(kConv2d, p,
                            {random_tensor(ElementType::kF32, {1, l.h, l.w, l.c}, random),
                             constant(random_tensor(ElementType::kF32, {l.oc, l.kernel, l.kernel, l.c}, random)),
                             constant(random_tensor(ElementType::kF32, {l.oc}, random))});
}

testing::OpCase int8_layer(const Layer& l) {
  testing::Random random(1);
  const Conv2dParams p{.stride_h = l.stride,
                       .stride_w = l.stride,
                       .pad_top = l.pad,
                       .pad_left = l.pad,
                       .pad_bottom = l.pad,
                       .pad_right = l.pad,
                       .input_zero_point = -5};
  return testing::make_case(
      kConv2d, p,
      {random_tensor(ElementType::kI8, {1, l.h, l.w, l.c}, random, -128, 127),
       constant(random_tensor(ElementType::kI8, {l.oc, l.kernel, l.kernel, l.c}, random, -127, 127)),
       constant(random_tensor(ElementType::kI32, {l.oc}, random, -1000, 1000)),
       constant(random_tensor(ElementType::kI32, {l.oc}, random, 1 << 30, 0x7fffffff)),
       constant(random_tensor(ElementType::kI32, {l.oc}, random, -10, -6))});
}

const int kRegistered = [] {
  for (const Layer& layer : kLayers) {
    register_benchmark(std::string("conv2d/f32/") + layer.name, [&layer] { return float_layer(layer); });
    register_benchmark(std::string("conv2d/int8/") + layer.name, [&layer] { return int8_layer(layer); });
  }
  return 0;
}();

}  // namespace
}  // namespace bantam::ops
