#include "alternate.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>
#include <vector>

namespace bantam::bench {
namespace {

using Clock = std::chrono::steady_clock;

/// The value below which a fraction `q` of the samples lies; at least one sample.
double quantile(std::vector<double> samples, double q) {
  std::sort(samples.begin(), samples.end());
  return samples[static_cast<std::size_t>(std::llround(q * static_cast<double>(samples.size() - 1)))];
}

/// Appends the times of `calls` calls.
Result<void> time_block(const Side& side, std::int64_t calls, std::vector<double>& samples) {
  for (std::int64_t i = 0; i < calls; ++i) {
    side.prepare();
    const auto start = Clock::now();
    if (auto done = side.run(); !done) return done;
    samples.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count());
  }
  return {};
}

std::int64_t involuntary_switches() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nivcsw;
}

}  // namespace

Result<Alternation> alternate(const Side& first, const Side& second, const AlternateOptions& options) {
  constexpr std::int64_t kTrialCalls = 3;
  std::vector<double> all[2];
  for (const auto& [side, samples] : {std::pair(&first, &all[0]), std::pair(&second, &all[1])})
    if (auto done = time_block(*side, kTrialCalls, *samples); !done) return fail(done.error());
  const double slower_us = std::max(quantile(all[0], 0), quantile(all[1], 0));

  Alternation result;
  result.rounds = options.rounds;
  result.calls = std::clamp<std::int64_t>(std::llround(options.block_seconds * 1e6 / std::max(slower_us, 1e-3)), 1,
                                          options.max_calls);
  for (auto& samples : all) {
    samples.clear();
    samples.reserve(static_cast<std::size_t>(result.calls * result.rounds));
  }
  std::vector<double> ratios;
  const std::int64_t switches = involuntary_switches();
  for (std::int64_t round = 0; round < result.rounds; ++round) {
    std::vector<double> block[2];
    for (auto& samples : block) samples.reserve(static_cast<std::size_t>(result.calls));
    for (const int turn : {0, 1}) {
      const int side = (turn + static_cast<int>(round % 2)) % 2;
      if (auto done = time_block(side == 0 ? first : second, result.calls, block[side]); !done)
        return fail(done.error());
    }
    ratios.push_back(quantile(block[0], 0.5) / quantile(block[1], 0.5));
    for (const int side : {0, 1}) all[side].insert(all[side].end(), block[side].begin(), block[side].end());
  }
  result.preemptions = involuntary_switches() - switches;
  result.first_us = quantile(all[0], 0.5);
  result.second_us = quantile(all[1], 0.5);
  result.ratio = quantile(ratios, 0.5);
  result.ratio_low = quantile(ratios, 0.25);
  result.ratio_high = quantile(ratios, 0.75);
  return result;
}

}  // namespace bantam::bench
