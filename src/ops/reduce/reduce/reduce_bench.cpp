// Sums over the pixels of images in bytes, as squeezing and pooling take them, one thread; the counter is terms.
#include <benchmark/benchmark.h>

#include "ops/reduce/reduce/reduce.h"
#include "ops/testing/prepared_run.h"

namespace bantam::ops {
namespace {

struct Image {
  const char* name;
  std::int64_t side, channels;
};

constexpr Image kImages[] = {{"112x112x32", 112, 32}, {"56x56x72", 56, 72}, {"7x7x1280", 7, 1280}};

const int kRegistered = [] {
  for (const Image& image : kImages)
    benchmark::RegisterBenchmark((std::string("reduce/wide-sum/") + image.name).c_str(), [&image](
                                                                                             benchmark::State& state) {
      testing::Random random(1);
      const testing::PreparedRun prepared(testing::make_case(
          kReduce, ReduceParams{.axes = {2, {1, 2}}, .wide = 1},
          {testing::random_tensor(ElementType::kI8, {1, image.side, image.side, image.channels}, random, -128, 127)}));
      for (auto _ : state) prepared.run();
      state.SetLabel(std::string(prepared.variant()));
      state.counters["terms/s"] =
          benchmark::Counter(static_cast<double>(prepared.work()), benchmark::Counter::kIsIterationInvariantRate);
    })->Unit(benchmark::kMicrosecond);
  return 0;
}();

}  // namespace
}  // namespace bantam::ops
