#include <algorithm>
#include <cmath>

#include "ops/common/dispatch.h"
#include "ops/common/elementwise.h"
#include "ops/elementwise/binary_affine/binary_affine.h"
#include "ops/elementwise/binary_affine/kernels.h"

namespace bantam::ops {
namespace {

float combine(BinaryFunction function, float a, float b) {
  switch (function) {
    case BinaryFunction::kSub: return a - b;
    case BinaryFunction::kMul: return a * b;
    case BinaryFunction::kDiv: return a / b;
    case BinaryFunction::kMin: return std::min(a, b);
    case BinaryFunction::kMax: return std::max(a, b);
    case BinaryFunction::kPrelu: return a < 0.0F ? a * b : a;
    default: return a + b;
  }
}

}  // namespace

Status run_binary_affine_ref(const Invocation& invocation) {
  const auto& p = invocation.as<BinaryAffineParams>();
  const auto low = static_cast<float>(p.minimum - p.y_zero_point);
  const auto high = static_cast<float>(p.maximum - p.y_zero_point);
  dispatch_type<std::int8_t, std::uint8_t, std::int16_t, std::uint16_t>(invocation.out().type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto result = [&](T qa, float b) {
      const float a = static_cast<float>(qa - p.a_zero_point) * p.a_scale;
      const float real = combine(p.function, a, b) / p.y_scale;
      const float limited = std::clamp(std::isnan(real) ? 0.0F : real, low, high);
      const float whole = apply_unary(limited, UnaryFunction::kRound, 0.0F, 0.0F);
      return static_cast<T>(static_cast<std::int32_t>(whole) + p.y_zero_point);
    };
    if (invocation.in(1).type == ElementType::kF32) {
      map_elements2<T, T, float>(invocation, result);
    } else {
      map_elements2<T, T, T>(
          invocation, [&](T qa, T qb) { return result(qa, static_cast<float>(qb - p.b_zero_point) * p.b_scale); });
    }
  });
  return ok_status();
}

}  // namespace bantam::ops
