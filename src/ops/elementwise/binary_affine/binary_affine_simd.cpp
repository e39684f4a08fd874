#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/elementwise/binary_affine/binary_affine_simd.cpp"
#include "hwy/foreach_target.h"
// Highway wants the headers below after foreach_target.h.
#include "hwy/highway.h"
#include "ops/common/binary_rows_simd-inl.h"
#include "ops/common/dispatch.h"
#include "ops/elementwise/binary_affine/binary_affine.h"
#include "ops/elementwise/binary_affine/kernels.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

template <BinaryFunction kFunction, class V>
HWY_INLINE V combine_real(V a, V b) {
  if constexpr (kFunction == BinaryFunction::kSub) return hn::Sub(a, b);
  if constexpr (kFunction == BinaryFunction::kMul) return hn::Mul(a, b);
  if constexpr (kFunction == BinaryFunction::kDiv) return hn::Div(a, b);
  if constexpr (kFunction == BinaryFunction::kMin) return hn::Min(a, b);
  if constexpr (kFunction == BinaryFunction::kMax) return hn::Max(a, b);
  return hn::Add(a, b);
}

/// The reference's arithmetic on vectors of int32.
template <BinaryFunction kFunction, class D, class V = hn::Vec<D>>
HWY_INLINE V combine(D d, const BinaryAffineParams& p, V qa, V qb) {
  const hn::Rebind<float, D> df;
  const auto real = [&](V q, std::int32_t zero_point, float scale) HWY_ATTR {
    return hn::Mul(hn::ConvertTo(df, hn::Sub(q, hn::Set(d, zero_point))), hn::Set(df, scale));
  };
  const auto y =
      hn::Div(combine_real<kFunction>(real(qa, p.a_zero_point, p.a_scale), real(qb, p.b_zero_point, p.b_scale)),
              hn::Set(df, p.y_scale));
  const auto number = hn::IfThenElseZero(hn::Eq(y, y), y);
  const auto low = hn::Set(df, static_cast<float>(p.minimum - p.y_zero_point));
  const auto high = hn::Set(df, static_cast<float>(p.maximum - p.y_zero_point));
  return hn::Add(hn::NearestInt(hn::Min(hn::Max(number, low), high)), hn::Set(d, p.y_zero_point));
}

template <BinaryFunction kFunction, typename T>
void combine_affine(const Invocation& invocation, const StridedRows<3>& rows) {
  const auto& p = invocation.as<BinaryAffineParams>();
  combine_rows<T>(invocation, rows, [&p](auto d, auto a, auto b) HWY_ATTR { return combine<kFunction>(d, p, a, b); });
}

void run_binary_affine(const Invocation& invocation, const StridedRows<3>& rows) {
  dispatch_type<std::int8_t, std::uint8_t>(invocation.out().type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    switch (invocation.as<BinaryAffineParams>().function) {
      case BinaryFunction::kSub: combine_affine<BinaryFunction::kSub, T>(invocation, rows); break;
      case BinaryFunction::kMul: combine_affine<BinaryFunction::kMul, T>(invocation, rows); break;
      case BinaryFunction::kDiv: combine_affine<BinaryFunction::kDiv, T>(invocation, rows); break;
      case BinaryFunction::kMin: combine_affine<BinaryFunction::kMin, T>(invocation, rows); break;
      case BinaryFunction::kMax: combine_affine<BinaryFunction::kMax, T>(invocation, rows); break;
      default: combine_affine<BinaryFunction::kAdd, T>(invocation, rows); break;
    }
  });
}

}  // namespace
}  // namespace bantam::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bantam::ops {

HWY_EXPORT(run_binary_affine);

bool supports_binary_affine_i8_simd(const OpCall& call) {
  if (!is_one_of<std::int8_t, std::uint8_t>(call.out().type)) return false;
  return make_rows<3>(call.out(), {&call.out(), &call.in(0), &call.in(1)}).contiguous_or_broadcast();
}

Status run_binary_affine_i8_simd(const Invocation& invocation) {
  const auto rows = make_rows<3>(invocation.out(), {&invocation.out(), &invocation.in(0), &invocation.in(1)});
  HWY_DYNAMIC_DISPATCH(run_binary_affine)(invocation, rows);
  return ok_status();
}

}  // namespace bantam::ops
#endif
