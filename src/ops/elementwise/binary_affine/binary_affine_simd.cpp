#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/elementwise/binary_affine/binary_affine_simd.cpp"
#include "hwy/foreach_target.h"
// Highway wants the headers below after foreach_target.h.
#include "hwy/highway.h"
#include "ops/common/dispatch.h"
#include "ops/common/elementwise.h"
#include "ops/common/fixed_point_simd-inl.h"
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

/// n elements; an operand that does not move is one element for all. y may be an operand that moves.
template <BinaryFunction kFunction, typename T>
HWY_NOINLINE void combine_affine_row(const BinaryAffineParams& p, std::size_t n, T* y, const T* a, bool a_moves,
                                     const T* b, bool b_moves) {
  const hn::ScalableTag<std::int32_t> d;
  const std::size_t lanes = hn::Lanes(d);
  constexpr std::size_t kMaxLanes = HWY_MAX_BYTES / sizeof(std::int32_t);
  const auto load = [&](const T* x, bool moves, std::size_t i)
                        HWY_ATTR { return moves ? load_wide(d, x + i) : hn::Set(d, static_cast<std::int32_t>(*x)); };
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes)
    store_narrow<T>(d, combine<kFunction>(d, p, load(a, a_moves, i), load(b, b_moves, i)), y + i);
  if (i == n) return;
  T tail_a[kMaxLanes] = {};
  T tail_b[kMaxLanes] = {};
  T result[kMaxLanes] = {};
  for (std::size_t k = 0; k < n - i; ++k) {
    tail_a[k] = a[a_moves ? i + k : 0];
    tail_b[k] = b[b_moves ? i + k : 0];
  }
  store_narrow<T>(d, combine<kFunction>(d, p, load_wide(d, tail_a), load_wide(d, tail_b)), result);
  for (std::size_t k = 0; k < n - i; ++k) y[i + k] = result[k];
}

template <BinaryFunction kFunction, typename T>
void combine_affine_rows(const Invocation& invocation, const StridedRows<3>& rows) {
  auto* y = invocation.output<T>();
  const auto* a = invocation.input<T>(0);
  const auto* b = invocation.input<T>(1);
  parallel_ranges(*invocation.threads, rows.elements, kElementwiseGrain, [&](std::int64_t begin, std::int64_t end) {
    for_each_segment(rows, begin, end, [&](const auto& offsets, std::int64_t n) {
      combine_affine_row<kFunction>(invocation.as<BinaryAffineParams>(), static_cast<std::size_t>(n), y + offsets[0],
                                    a + offsets[1], rows.contiguous(1), b + offsets[2], rows.contiguous(2));
    });
  });
}

void run_binary_affine(const Invocation& invocation, const StridedRows<3>& rows) {
  dispatch_type<std::int8_t, std::uint8_t>(invocation.out().type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    switch (invocation.as<BinaryAffineParams>().function) {
      case BinaryFunction::kSub: combine_affine_rows<BinaryFunction::kSub, T>(invocation, rows); break;
      case BinaryFunction::kMul: combine_affine_rows<BinaryFunction::kMul, T>(invocation, rows); break;
      case BinaryFunction::kDiv: combine_affine_rows<BinaryFunction::kDiv, T>(invocation, rows); break;
      case BinaryFunction::kMin: combine_affine_rows<BinaryFunction::kMin, T>(invocation, rows); break;
      case BinaryFunction::kMax: combine_affine_rows<BinaryFunction::kMax, T>(invocation, rows); break;
      default: combine_affine_rows<BinaryFunction::kAdd, T>(invocation, rows); break;
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
