// Softmax of bytes: of pixels over classes, of attention over positions and of a classifier, one thread; the counter is
// results.
#include <benchmark/benchmark.h>

#include "ops/nn/softmax_q/softmax_q.h"
#include "ops/testing/prepared_run.h"

namespace bantam::ops {
namespace {

struct SoftmaxRows {
  const char* name;
  std::int64_t rows, size;
};

constexpr SoftmaxRows kSoftmaxRows[] = {
    {"66049x21", 257 * 257, 21}, {"65536x2", 256 * 256, 2}, {"1536x128", 12 * 128, 128}, {"1x1001", 1, 1001}};

void normalize_rows_of(benchmark::State& state, const SoftmaxRows& r) {
  testing::Random random(1);
  // As for a scale of 0.1: 0.1 * 2^26 = 0.8 * 2^23.
  const SoftmaxQParams p{
      .to = ElementType::kI8, .input_multiplier = 0x66666666, .input_left_shift = 23, .diff_min = -248};
  const testing::PreparedRun prepared(testing::make_case(
      kSoftmaxQ, p, {testing::random_tensor(ElementType::kI8, {r.rows, r.size}, random, -128, 127)}));
  for (auto _ : state) prepared.run();
  state.SetLabel(std::string(prepared.variant()));
  state.counters["G/s"] =
      benchmark::Counter(1e-9 * static_cast<double>(r.rows * r.size), benchmark::Counter::kIsIterationInvariantRate);
}

const int kSoftmaxRowsRegistered = [] {
  for (const SoftmaxRows& r : kSoftmaxRows)
    benchmark::RegisterBenchmark((std::string("softmax_q/") + r.name).c_str(), [&r](benchmark::State& state) {
      normalize_rows_of(state, r);
    })->Unit(benchmark::kMicrosecond);
  return 0;
}();

}  // namespace
}  // namespace bantam::ops
