// Times a placed session: what `bantam bench` does. Steady clock, the calling thread plus the session's own threads.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bantam/error.h"
#include "bantam/runtime.h"

namespace bantam::diagnose {

struct BenchmarkOptions {
  std::int64_t warmup = 3;  ///< invokes that are not counted
  std::int64_t runs = 50;   ///< counted invokes, at most ...
  double seconds = 2.0;     ///< ... and about this long
  bool by_operator = true;  ///< time every kernel in further invokes of their own
  OutputSet outputs = OutputSet::all();
};

struct OperatorTime {
  std::string op;
  std::string variant;
  std::int64_t calls = 0;   ///< per invoke
  double microseconds = 0;  ///< per invoke, mean
};

struct BenchmarkResult {
  std::int64_t runs = 0;
  double median_us = 0;
  double min_us = 0;
  double p99_us = 0;
  std::vector<OperatorTime> operators;  ///< slowest first
};

/// Inputs keep whatever they hold; `before_invoke`, when given, refills them (it is not timed).
Result<BenchmarkResult> benchmark(Session& session, const BenchmarkOptions& options,
                                  const std::function<void(Session&)>& before_invoke = {});

}  // namespace bantam::diagnose
