// Matrix products of real models, one thread: recurrent and fully connected layers (one row), attention and batches.
#include <benchmark/benchmark.h>

#include "ops/nn/matmul/matmul.h"
#include "ops/testing/prepared_run.h"

namespace bantam::ops {
namespace {

using testing::constant;
using testing::random_tensor;

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

void run(benchmark::State& state, const testing::OpCase& op_case) {
  const testing::PreparedRun prepared(op_case);
  for (auto _ : state) prepared.run();
  state.SetLabel(std::string(prepared.variant()));
  state.counters["GFLOP/s"] =
      benchmark::Counter(2e-9 * static_cast<double>(prepared.work()), benchmark::Counter::kIsIterationInvariantRate);
}

const int kRegistered = [] {
  for (const Product& product : kProducts) {
    benchmark::RegisterBenchmark((std::string("matmul/f32/") + product.name).c_str(), [&product](
                                                                                          benchmark::State& state) {
      run(state, float_product(product));
    })->Unit(benchmark::kMicrosecond);
    if (product.constant_b)
      benchmark::RegisterBenchmark((std::string("matmul/int8/") + product.name).c_str(), [&product](
                                                                                             benchmark::State& state) {
        run(state, int8_product(product));
      })->Unit(benchmark::kMicrosecond);
  }
  return 0;
}();

}  // namespace
}  // namespace bantam::ops
