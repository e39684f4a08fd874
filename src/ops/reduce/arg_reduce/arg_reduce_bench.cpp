// The class of each pixel, as segmentation ends, one thread.
#include "ops/reduce/arg_reduce/arg_reduce.h"
#include "ops/testing/register_benchmark.h"

namespace bantam::ops {
namespace {

const int kRegistered = [] {
  for (const auto& [name, type] : {std::pair{"f32", ElementType::kF32}, std::pair{"int8", ElementType::kI8}})
    testing::register_benchmark(std::string("arg_reduce/") + name + "/257x257x21", [type = type] {
      testing::Random random(1);
      return testing::make_case(kArgReduce, ArgReduceParams{.axis = 3, .to = ElementType::kI32},
                                {testing::random_tensor(type, {1, 257, 257, 21}, random, -99, 99)});
    });
  return 0;
}();

}  // namespace
}  // namespace bantam::ops
