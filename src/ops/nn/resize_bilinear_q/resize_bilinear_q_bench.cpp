// Bilinear enlargements as segmentation networks and decoders have them, one thread; the counter is results.
#include <benchmark/benchmark.h>

#include "ops/nn/resize_bilinear_q/resize_bilinear_q.h"
#include "ops/testing/prepared_run.h"

namespace bantam::ops {
namespace {

struct Enlargement {
  const char* name;
  std::int32_t from, to;  ///< rows, and as many columns
  std::int64_t channels;
  bool half_pixel;
};

constexpr Enlargement kEnlargements[] = {
    {"65-257x21", 65, 257, 21, false}, {"32-64x64", 32, 64, 64, true}, {"14-28x256", 14, 28, 256, true},
    {"64-128x8", 64, 128, 8, true},    {"64-256x4", 64, 256, 4, true}, {"128-256x1", 128, 256, 1, true},
};

void enlarge(benchmark::State& state, const Enlargement& e) {
  testing::Random random(1);
  const std::int32_t scale = (1024 * e.from + e.to / 2) / e.to;
  const ResizeBilinearQParams p{e.to, e.to, scale, scale, e.half_pixel ? 1 : 0};
  const testing::PreparedRun prepared(testing::make_case(
      kResizeBilinearQ, p,
      {testing::random_tensor(ElementType::kI8, {1, e.from, e.from, e.channels}, random, -128, 127)}));
  for (auto _ : state) prepared.run();
  state.SetLabel(std::string(prepared.variant()));
  state.counters["G/s"] = benchmark::Counter(1e-9 * static_cast<double>(e.to * e.to * e.channels),
                                             benchmark::Counter::kIsIterationInvariantRate);
}

const int kEnlargementsRegistered = [] {
  for (const Enlargement& e : kEnlargements)
    benchmark::RegisterBenchmark((std::string("resize_bilinear_q/") + e.name).c_str(), [&e](benchmark::State& state) {
      enlarge(state, e);
    })->Unit(benchmark::kMicrosecond);
  return 0;
}();

}  // namespace
}  // namespace bantam::ops
