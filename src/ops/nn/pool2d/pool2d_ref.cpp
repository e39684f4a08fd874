// The plain definition of pool2d: one output at a time.
#include <algorithm>

#include "ops/nn/pool2d/geometry.h"
#include "ops/nn/pool2d/kernels.h"

namespace bantam::ops::pool {
namespace {

/// Calls visit(x) for every element of channel c inside the window.
template <typename T, typename Visit>
void for_each_tap(const PoolGeometry& g, const T* image, const PoolTaps& rows, const PoolTaps& columns, std::int32_t c,
                  Visit visit) {
  for (std::int32_t ky = rows.inside.first; ky < rows.inside.last; ++ky) {
    const T* row = image + (rows.origin + static_cast<std::int64_t>(ky) * g.vertical.dilation) * g.x.h_stride + c;
    for (std::int32_t kx = columns.inside.first; kx < columns.inside.last; ++kx)
      visit(row[(columns.origin + static_cast<std::int64_t>(kx) * g.horizontal.dilation) * g.x.w_stride]);
  }
}

template <typename T>
T maximum(const PoolGeometry& g, const T* image, const PoolTaps& rows, const PoolTaps& columns, std::int32_t c) {
  T result = kPoolLowest<T>;
  // NaNs do not count.
  for_each_tap(g, image, rows, columns, c, [&](T x) { result = x > result ? x : result; });
  return result;
}

float average(const PoolGeometry& g, const float* image, const PoolTaps& rows, const PoolTaps& columns,
              std::int32_t c) {
  const std::int64_t count = rows.counted * columns.counted;
  float sum = 0.0F;
  for_each_tap(g, image, rows, columns, c, [&](float x) { sum += x; });
  return count > 0 ? sum / static_cast<float>(count) : 0.0F;
}

/// The average of integers, rounded half away from zero. At most 2^31 elements: the sum fits.
template <typename T>
std::int64_t average(const PoolGeometry& g, const T* image, const PoolTaps& rows, const PoolTaps& columns,
                     std::int32_t c) {
  const std::int64_t count = rows.counted * columns.counted;
  std::int64_t sum = 0;
  for_each_tap(g, image, rows, columns, c, [&](T x) { sum += x; });
  if (count <= 0) return 0;
  return (sum > 0 ? sum + count / 2 : sum - count / 2) / count;
}

template <typename T, typename Finish>
void run(const Invocation& call, Finish finish) {
  const auto& p = call.as<Pool2dParams>();
  const PoolGeometry g = pool_geometry(p, call.in(0), call.out());
  for (std::int32_t n = 0; n < g.y.n; ++n)
    for (std::int32_t oy = 0; oy < g.y.h; ++oy) {
      const PoolTaps rows = pool_taps(g.vertical, oy, g.x.h, p.count_include_pad != 0);
      for (std::int32_t ox = 0; ox < g.y.w; ++ox) {
        const PoolTaps columns = pool_taps(g.horizontal, ox, g.x.w, p.count_include_pad != 0);
        const T* image = call.input<T>(0) + n * g.x.n_stride;
        T* y = call.output<T>() + g.y.offset(n, oy, ox);
        for (std::int32_t c = 0; c < g.y.c; ++c)
          y[c] = p.kind == PoolKind::kMax ? finish(maximum(g, image, rows, columns, c))
                                          : finish(average(g, image, rows, columns, c));
      }
    }
}

template <typename T>
void run_integer(const Invocation& call) {
  const auto& p = call.as<Pool2dParams>();
  run<T>(call,
         [&](std::int64_t value) { return static_cast<T>(std::clamp<std::int64_t>(value, p.minimum, p.maximum)); });
}

}  // namespace

Status run_reference(const Invocation& call) {
  const auto& p = call.as<Pool2dParams>();
  switch (call.in(0).type) {
    case ElementType::kF32: run<float>(call, [&](float value) { return apply_activation(value, p.activation); }); break;
    case ElementType::kI8: run_integer<std::int8_t>(call); break;
    case ElementType::kI16: run_integer<std::int16_t>(call); break;
    default: run_integer<std::uint8_t>(call); break;
  }
  return ok_status();
}

}  // namespace bantam::ops::pool
