// Softmax of bytes: of pixels over classes, of attention over positions and of a classifier, one thread.
#include "ops/nn/softmax_q/softmax_q.h"
#include "ops/testing/register_benchmark.h"

namespace bantam::ops {
namespace {

struct SoftmaxRows {
  const char* name;
  std::int64_t rows, size;
};

constexpr SoftmaxRows kSoftmaxRows[] = {
    {"66049x21", 257 * 257, 21}, {"65536x2", 256 * 256, 2}, {"1536x128", 12 * 128, 128}, {"1x1001", 1, 1001}};

testing::OpCase softmax_of(const SoftmaxRows& r) {
  testing::Random random(1);
  // As for a scale of 0.1: 0.1 * 2^26 = 0.8 * 2^23.
  const SoftmaxQParams p{
      .to = ElementType::kI8, .input_multiplier = 0x66666666, .input_left_shift = 23, .diff_min = -248};
  return testing::make_case(kSoftmaxQ, p,
                            {testing::random_tensor(ElementType::kI8, {r.rows, r.size}, random, -128, 127)});
}

const int kRegistered = [] {
  for (const SoftmaxRows& r : kSoftmaxRows)
    testing::register_benchmark(std::string("softmax_q/") + r.name, [&r] { return softmax_of(r); });
  return 0;
}();

}  // namespace
}  // namespace bantam::ops
