// Transposed convolutions as decoders of images and sound have them, one thread; the counter is multiply-accumulates
// twice.
#include "ops/nn/conv_transpose2d/conv_transpose2d.h"
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
    {"2x2-s2-64-32", 40, 40, 64, 32, 2, 2, 0},   {"3x3-s2-64-64", 20, 20, 64, 64, 3, 2, 1},
    {"4x4-s2-128-64", 20, 20, 128, 64, 4, 2, 1}, {"4x4-s2-256-128", 10, 10, 256, 128, 4, 2, 1},
    {"2x2-s2-16-1", 128, 128, 16, 1, 2, 2, 0},   {"3x3-s1-32-32", 40, 40, 32, 32, 3, 1, 1},
};

testing::OpCase layer(const Layer& l, ElementType type) {
  testing::Random random(1);
  const ConvTranspose2dParams p{.stride_h = l.stride,
                                .stride_w = l.stride,
                                .pad_top = l.pad,
                                .pad_left = l.pad,
                                .pad_bottom = l.pad,
                                .pad_right = l.pad,
                                .input_zero_point = type == ElementType::kI8 ? -5 : 0};
  std::vector<testing::Operand> operands{
      random_tensor(type, {1, l.h, l.w, l.c}, random, -128, 127),
      constant(random_tensor(type, {l.oc, l.kernel, l.kernel, l.c}, random, -127, 127))};
  if (type == ElementType::kI8)
    operands.insert(operands.end(), {constant(random_tensor(ElementType::kI32, {l.oc}, random, -1000, 1000)),
                                     constant(random_tensor(ElementType::kI32, {l.oc}, random, 1 << 30, 0x7fffffff)),
                                     constant(random_tensor(ElementType::kI32, {l.oc}, random, -10, -6))});
  return testing::make_case(kConvTranspose2d, p, std::move(operands));
}

const int kRegistered = [] {
  for (const Layer& l : kLayers)
    for (const auto& [name, type] : {std::pair{"f32/", ElementType::kF32}, std::pair{"int8/", ElementType::kI8}})
      register_benchmark(std::string("conv_transpose2d/") + name + l.name,
                         [&l, type = type] { return layer(l, type); });
  return 0;
}();

}  // namespace
}  // namespace bantam::ops
