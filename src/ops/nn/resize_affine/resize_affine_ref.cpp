#include "ops/common/dispatch.h"
#include "ops/common/operands.h"
#include "ops/common/parallel.h"
#include "ops/nn/resize/rows.h"
#include "ops/nn/resize_affine/kernels.h"

namespace bantam::ops::resize_affine {
namespace {

using resize::Samples;
using resize::Taps;

/// The samples that the axes before `last` blend, from the first element of the operand on.
Samples samples_at(const resize::Cursor& cursor, const TensorDesc& x, int last) {
  Samples samples{.count = 1, .from = {0}, .weight = {1.0F}};
  for (int axis = 0; axis < last; ++axis) {
    const Taps& taps = cursor.taps(axis);
    samples.split(
        taps.count, [&](int t) { return std::int64_t{taps.index[t]} * x.strides[axis]; },
        [&](int t) { return taps.weight[t]; });
  }
  return samples;
}

template <typename T>
float blend(const Samples& samples, const T* x, std::int32_t zero_point) {
  const auto number = [&](int s) { return static_cast<float>(std::int32_t{x[samples.from[s]]} - zero_point); };
  float sum = samples.weight[0] * number(0);
  for (int s = 1; s < samples.count; ++s) sum += samples.weight[s] * number(s);
  return sum;
}

template <typename T>
void sample_runs(const Invocation& call, int last) {
  const auto& p = call.as<ResizeAffineParams>();
  const TensorDesc& x = call.in(0);
  const TensorDesc& out = call.out();
  const std::int64_t run = elements_between(out, last + 1, out.rank);
  const float factor = factor_of(p);
  const AffineScaler scaler = scaler_of(p);
  parallel_ranges(*call.threads, out.elements() / run, std::max<std::int64_t>(4096 / run, 1),
                  [&](std::int64_t begin, std::int64_t end) {
                    resize::Cursor cursor(p.resize, x, last, begin);
                    auto* y = call.output<std::uint8_t>() + begin * run;
                    for (std::int64_t i = begin; i < end; ++i, cursor.next()) {
                      const Samples samples = samples_at(cursor, x, last);
                      const Taps& taps = cursor.taps(last);
                      for (std::int64_t c = 0; c < run; ++c) {
                        const auto blended = [&](int t) {
                          const std::int64_t from = std::int64_t{taps.index[t]} * x.strides[last];
                          return blend(samples, call.input<T>(0) + from + c, p.x_zero_point);
                        };
                        float sum = taps.weight[0] * blended(0);
                        for (int t = 1; t < taps.count; ++t) sum += taps.weight[t] * blended(t);
                        *y++ = scaler.to_byte(sum * factor);
                      }
                    }
                  });
}

}  // namespace

Status run_reference(const Invocation& call) {
  if (call.out().elements() == 0) return ok_status();
  const int last = std::max(resize::last_resampled(call.as<ResizeAffineParams>().resize, call.in(0)), 0);
  dispatch_type<std::int8_t, std::uint8_t>(call.in(0).type,
                                           [&](auto tag) { sample_runs<typename decltype(tag)::type>(call, last); });
  return ok_status();
}

}  // namespace bantam::ops::resize_affine
