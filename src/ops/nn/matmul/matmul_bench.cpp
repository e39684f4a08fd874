// Matrix products of real models, one thread: recurrent and fully connected layers (one row), attention and batches.
#include "ops/nn/matmul/matmul.h"
#include "ops/testing/register_benchmark.h"

namespace bantam::ops {
namespace {

using testing::constant;
using testing::random_tensor;
using testing::register_benchmark;

struct Product {
  const char* name;
  std::int64_t m, k, n;
  bool constant_b;
};

constexpr Product kProducts[] = {
    {"lstm-1x128x512", 1, 128, 512, true},  {"lstm-1x257x512", 1, 257, 512, true},
    {"dense-1x640x128", 1, 640, 128, true}, {"ffn-16x256x2048", 16, 256, 2048, true},
    {"scores-64x64x64", 64, 64, 64, false}, {"square-256x256x256", 256, 256, 256, true},
};

testing::OpCase float_product(const Product& p) {
  testing::Random random(1);
  testing::Operand b = random_tensor(ElementType::kF32, {p.n, p.k}, random);
  b.constant = p.constant_b;
  return testing::make_case(kMatmul, MatmulParams{.transpose_b = 1},
                            {random_tensor(ElementType::kF32, {p.m, p.k}, random), std::move(b)});
}

testing::OpCase int8_product(const Product& p) {
  testing::Random random(1);
  return testing::make_case(kMatmul, MatmulParams{.transpose_b = 1, .input_zero_point = 3},
                            {random_tensor(ElementType::kI8, {p.m, p.k}, random, -128, 127),
                             constant(random_tensor(ElementType::kI8, {p.n, p.k}, random, -127, 127)),
                             constant(random_tensor(ElementType::kI32, {p.n}, random, -1000, 1000)),
                             constant(random_tensor(ElementType::kI32, {p.n}, random, 1 << 30, 0x7fffffff)),
                             constant(random_tensor(ElementType::kI32, {p.n}, random, -10, -6))});
}

const int kRegistered = [] {
  for (const Product& product : kProducts) {
    register_benchmark(std::string("matmul/f32/") + product.name, [&product] { return float_product(product); });
    if (product.constant_b)
      register_benchmark(std::string("matmul/int8/") + product.name, [&product] { return int8_product(product); });
  }
  return 0;
}();

}  // namespace
}  // namespace bantam::ops
