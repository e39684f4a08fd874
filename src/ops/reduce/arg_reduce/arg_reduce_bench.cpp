// The class of each pixel, as segmentation ends, one thread.
#include <benchmark/benchmark.h>

#include "ops/reduce/arg_reduce/arg_reduce.h"
#include "ops/testing/prepared_run.h"

namespace bantam::ops {
namespace {

const int kRegistered = [] {
  for (const auto& [name, type] : {std::pair{"f32", ElementType::kF32}, std::pair{"int8", ElementType::kI8}})
    benchmark::RegisterBenchmark(
        (std::string("arg_reduce/") + name + "/257x257x21").c_str(),
        [type = type](benchmark::State& state) {
          testing::Random random(1);
          const ArgReduceParams p{.axis = 3, .to = ElementType::kI32};
          const testing::PreparedRun prepared(
              testing::make_case(kArgReduce, p, {testing::random_tensor(type, {1, 257, 257, 21}, random, -99, 99)}));
          for (auto _ : state) prepared.run();
          state.SetLabel(std::string(prepared.variant()));
        })
        ->Unit(benchmark::kMicrosecond);
  return 0;
}();

}  // namespace
}  // namespace bantam::ops
