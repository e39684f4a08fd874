// Registers the benchmarks of operators: one application each, by the fastest kernel, on one thread. Included by
// *_bench.cpp files only, which link Google Benchmark.
#pragma once

#include <benchmark/benchmark.h>

#include <string>
#include <utility>

#include "ops/testing/prepared_run.h"

namespace bantam::ops::testing {

/// `make_case()` is called when the benchmark runs. The label is the kernel's name, the counter multiply-accumulates
/// twice per second, of operators that say how many they are.
template <typename MakeCase>
void register_benchmark(const std::string& name, MakeCase make_case) {
  const auto run = [make_case = std::move(make_case)](benchmark::State& state) {
    const PreparedRun prepared(make_case());
    for (auto _ : state) prepared.run();
    state.SetLabel(std::string(prepared.variant()));
    state.counters["GFLOP/s"] =
        benchmark::Counter(2e-9 * static_cast<double>(prepared.work()), benchmark::Counter::kIsIterationInvariantRate);
  };
  benchmark::RegisterBenchmark(name.c_str(), run)->Unit(benchmark::kMicrosecond);
}

}  // namespace bantam::ops::testing
