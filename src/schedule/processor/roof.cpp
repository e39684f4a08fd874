#include "schedule/processor/roof.h"

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "ops/nn/gemm/half_products.h"
#include "schedule/processor/roof_rounds.h"

namespace bantam::schedule {

#if BANTAM_SIMD
namespace {

using Clock = std::chrono::steady_clock;

/// The best of many short measurements: what disturbs one makes it slower, never faster.
template <typename Rounds, typename Number>
double best_rate(Rounds rounds, Number seed, Number sink) {
  constexpr std::int64_t kRounds = 20000;  // about 100 us
  constexpr int kMeasurements = 100;       // the first ones wake wide vector units
  double best = 0;
  for (int i = 0; i < kMeasurements; ++i) {
    const auto start = Clock::now();
    const std::int64_t done = rounds(kRounds, seed, &sink);
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    best = std::max(best, static_cast<double>(done) / std::max(seconds, 1e-9));
  }
  return best;
}

}  // namespace

Roof measure_roof() {
  return {.float_macs = best_rate(float_rounds, 1.0F, 0.0F),
          .half_macs = ops::gemm::half_products() ? best_rate(half_rounds, 1.0F, 0.0F) : 0,
          .integer_macs = best_rate(integer_rounds, 1, std::int32_t{0})};
}
#else
Roof measure_roof() { return {}; }
#endif

}  // namespace bantam::schedule
