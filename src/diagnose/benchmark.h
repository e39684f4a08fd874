// Times a placed session: what `bantam bench` does. Steady clock, the calling thread plus the session's own threads.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "bantam/error.h"
#include "bantam/runtime.h"
#include "schedule/processor/roof.h"

namespace bantam::diagnose {

struct BenchmarkOptions {
  std::int64_t warmup = 3;  ///< invokes that are not counted
  std::int64_t runs = 0;  ///< counted invokes, at most, or 0: 50, and more as long as they take under a quarter second
  double seconds = 2.0;   ///< about the longest that they take
  bool by_operator = true;  ///< time every kernel in further invokes of their own
  OutputSet outputs = OutputSet::all();
};

/// What a step multiplies: the roof that it is set against.
enum class Factors { kFloats, kHalves, kBytes };

/// One step of the plan, or all steps of one kernel.
struct OperatorTime {
  std::string op{};
  std::string variant{};
  std::string layer{};      ///< the model's node; empty for all steps of a kernel
  std::int64_t calls = 0;   ///< per invoke
  double microseconds = 0;  ///< per invoke, mean
  std::int64_t work = 0;    ///< multiply-accumulates per invoke
  Factors factors = Factors::kFloats;
};

/// The steps that `outputs` need, in the order of the plan, with no times; a step of a loop counts once.
std::vector<OperatorTime> layers_of(const Session& session, OutputSet outputs);

/// How much of what one thread could multiply in that time (schedule/processor/roof.h) they did, 0 to 1; 0 where
/// the roof is not known.
double share_of_roof(const schedule::Roof& roof, std::span<const OperatorTime> times, double microseconds);

struct BenchmarkResult {
  std::int64_t runs = 0;
  double median_us = 0;
  double min_us = 0;
  double p99_us = 0;
  std::vector<OperatorTime> layers;     ///< those that ran, in the order of the plan
  std::vector<OperatorTime> operators;  ///< the same by kernel, slowest first
};

/// Every invoke gets the inputs as they are now: activations may lie in their place, and numbers decide how fast some
/// kernels are. Giving them is not timed.
Result<BenchmarkResult> benchmark(Session& session, const BenchmarkOptions& options);

}  // namespace bantam::diagnose
