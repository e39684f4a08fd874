#include "schedule/processor/roof.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <vector>

#include "ops/common/byte_products.h"
#include "ops/nn/gemm/gemm_i8_amx.h"
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

#if defined(__x86_64__)
/// integer_rounds of products of matrices that lie in the first-level cache.
std::int64_t matrix_rounds(std::int64_t rounds, int seed, std::int32_t* sink) {
  constexpr std::int64_t kQuads = 512;
  constexpr std::int64_t kRoundsPerProduct = 200;  // about as long as one
  using ops::gemm::kAmxPanels;
  using ops::gemm::kAmxRows;
  struct alignas(64) Line {
    std::int8_t bytes[64];
  };
  const std::vector<Line> panel(kQuads * 4 * ops::gemm::kPanel / sizeof(Line), Line{{static_cast<std::int8_t>(seed)}});
  alignas(64) static constexpr std::int32_t kStart[kAmxPanels * ops::gemm::kPanel] = {};
  alignas(64) std::int32_t sums[kAmxRows * ops::gemm::kAmxSumsStride];
  ops::gemm::AmxTiles tiles;
  // All rows are one, and both panels.
  tiles.set_rows({.data = reinterpret_cast<const std::uint8_t*>(panel.data()), .rows = kAmxRows, .quads = kQuads});
  tiles.set_panels({.data = panel.data()->bytes, .count = kAmxPanels, .start = kStart});
  const std::int64_t products = std::max<std::int64_t>(rounds / kRoundsPerProduct, 1);
  for (std::int64_t i = 0; i < products; ++i) tiles.sum(0, sums);
  *sink = sums[0];
  return products * kAmxRows * 4 * kQuads * kAmxPanels * ops::gemm::kPanel;
}
#endif

double best_integer_rate() {
#if defined(__x86_64__)
  if (ops::byte_products() == ops::ByteProducts::kMatrices) return best_rate(matrix_rounds, 1, std::int32_t{0});
#endif
  return best_rate(integer_rounds, 1, std::int32_t{0});
}

}  // namespace

Roof measure_roof() {
  return {.float_macs = best_rate(float_rounds, 1.0F, 0.0F),
          .half_macs = ops::gemm::half_products() ? best_rate(half_rounds, 1.0F, 0.0F) : 0,
          .integer_macs = best_integer_rate()};
}
#else
Roof measure_roof() { return {}; }
#endif

}  // namespace bantam::schedule
