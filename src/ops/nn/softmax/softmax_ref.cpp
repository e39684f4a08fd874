#include <cmath>
#include <limits>

#include "ops/nn/softmax/kernels.h"

namespace bantam::ops::softmax {
namespace {

/// One column of `size` elements, `stride` apart.
template <typename T>
void normalize(const T* x, T* y, std::int64_t size, std::int64_t stride, bool log) {
  T maximum = -std::numeric_limits<T>::infinity();
  for (std::int64_t i = 0; i < size; ++i)
    if (x[i * stride] > maximum) maximum = x[i * stride];
  double sum = 0;
  for (std::int64_t i = 0; i < size; ++i) {
    const T shifted = x[i * stride] - maximum;
    const T term = std::exp(shifted);
    sum += term;
    y[i * stride] = log ? shifted : term;
  }
  const auto log_sum = static_cast<T>(std::log(sum));
  const auto reciprocal = static_cast<T>(1 / sum);
  for (std::int64_t i = 0; i < size; ++i) y[i * stride] = log ? y[i * stride] - log_sum : y[i * stride] * reciprocal;
}

template <typename T>
void run(const Invocation& call) {
  const Extents e = extents_of(call);
  const bool log = call.as<SoftmaxParams>().log != 0;
  for (std::int64_t o = 0; o < e.outer; ++o)
    for (std::int64_t i = 0; i < e.inner; ++i) {
      const std::int64_t first = o * e.size * e.inner + i;
      normalize(call.input<T>(0) + first, call.output<T>() + first, e.size, e.inner, log);
    }
}

}  // namespace

Status run_reference(const Invocation& call) {
  if (call.in(0).type == ElementType::kF64) {
    run<double>(call);
  } else {
    run<float>(call);
  }
  return ok_status();
}

}  // namespace bantam::ops::softmax
