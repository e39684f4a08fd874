// Products of quantised attention, one thread; the counter is multiply-accumulates twice.
#include "ops/nn/batch_matmul_q/batch_matmul_q.h"
#include "ops/testing/register_benchmark.h"

namespace bantam::ops {
namespace {

struct Product {
  const char* name;
  std::int64_t items, m, k, n;
  std::int32_t transpose_b;
};

constexpr Product kProducts[] = {
    {"scores-12x128x64", 12, 128, 64, 128, 1},
    {"values-12x128x64", 12, 128, 128, 64, 0},
    {"scores-4x50x16", 4, 50, 16, 50, 1},
};

testing::OpCase make_product(const Product& product) {
  testing::Random random(1);
  const auto [name, items, m, k, n, transpose_b] = product;
  const BatchMatmulQParams p{.transpose_b = transpose_b, .b_zero_point = 7, .multiplier = 1 << 30, .shift = -8};
  const std::vector<std::int64_t> b = {items, transpose_b != 0 ? n : k, transpose_b != 0 ? k : n};
  return testing::make_case(kBatchMatmulQ, p,
                            {testing::random_tensor(ElementType::kI8, {items, m, k}, random, -128, 127),
                             testing::random_tensor(ElementType::kI8, b, random, -128, 127)});
}

const int kRegistered = [] {
  for (const Product& product : kProducts)
    testing::register_benchmark(std::string("batch_matmul_q/") + product.name,
                                [&product] { return make_product(product); });
  return 0;
}();

}  // namespace
}  // namespace bantam::ops
