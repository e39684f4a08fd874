// Sums over the pixels of images in bytes, as squeezing and pooling take them, one thread.
#include "ops/reduce/reduce/reduce.h"
#include "ops/testing/register_benchmark.h"

namespace bantam::ops {
namespace {

struct Image {
  const char* name;
  std::int64_t side, channels;
};

constexpr Image kImages[] = {{"112x112x32", 112, 32}, {"56x56x72", 56, 72}, {"7x7x1280", 7, 1280}};

const int kRegistered = [] {
  for (const Image& image : kImages)
    testing::register_benchmark(std::string("reduce/wide-sum/") + image.name, [&image] {
      testing::Random random(1);
      const std::vector<std::int64_t> dims = {1, image.side, image.side, image.channels};
      return testing::make_case(kReduce, ReduceParams{.axes = {2, {1, 2}}, .wide = 1},
                                {testing::random_tensor(ElementType::kI8, dims, random, -128, 127)});
    });
  return 0;
}();

}  // namespace
}  // namespace bantam::ops
