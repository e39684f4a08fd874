#include <cmath>
#include <limits>

#include "ops/nn/softmax/kernels.h"

namespace bantam::ops::softmax {
namespace {

/// One column of `size` elements, `stride` apart.
void normalize(const float* x, float* y, std::int64_t size, std::int64_t stride, bool log) {
  float maximum = -std::numeric_limits<float>::infinity();
  for (std::int64_t i = 0; i < size; ++i)
    if (x[i * stride] > maximum) maximum = x[i * stride];
  double sum = 0;
  for (std::int64_t i = 0; i < size; ++i) {
    const float shifted = x[i * stride] - maximum;
    const float term = std::exp(shifted);
    sum += term;
    y[i * stride] = log ? shifted : term;
  }
  const auto log_sum = static_cast<float>(std::log(sum));
  const auto reciprocal = static_cast<float>(1 / sum);
  for (std::int64_t i = 0; i < size; ++i) y[i * stride] = log ? y[i * stride] - log_sum : y[i * stride] * reciprocal;
}

}  // namespace

Status run_reference(const Invocation& call) {
  const Extents e = extents_of(call);
  const bool log = call.as<SoftmaxParams>().log != 0;
  for (std::int64_t o = 0; o < e.outer; ++o)
    for (std::int64_t i = 0; i < e.inner; ++i) {
      const std::int64_t first = o * e.size * e.inner + i;
      normalize(call.input<float>(0) + first, call.output<float>() + first, e.size, e.inner, log);
    }
  return ok_status();
}

}  // namespace bantam::ops::softmax
