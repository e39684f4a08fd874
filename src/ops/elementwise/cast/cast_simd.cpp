#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/elementwise/cast/cast_simd.cpp"
#include "hwy/foreach_target.h"
// Highway wants the headers below after foreach_target.h.
#include <cstdint>

#include "hwy/highway.h"
#include "ops/common/dispatch.h"
#include "ops/common/elementwise.h"
#include "ops/common/half.h"
#include "ops/common/parallel.h"
#include "ops/common/rows_simd-inl.h"
#include "ops/common/strides.h"
#include "ops/elementwise/cast/kernels.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::HWY_NAMESPACE {
namespace {

/// Vectors of float from and to storage of each type, as many lanes as d has. Storage types are those of dispatch.h.
template <typename T>
struct Lanes {
  /// 8-bit integers.
  template <class D>
  static HWY_INLINE hn::Vec<D> load(D d, const T* from) {
    const hn::RebindToSigned<D> di;
    return hn::ConvertTo(d, hn::PromoteTo(di, hn::LoadU(hn::Rebind<T, D>(), from)));
  }
  /// Truncated toward zero and saturated; NaN gives 0.
  template <class D>
  static HWY_INLINE void store(D d, hn::Vec<D> v, T* to) {
    const hn::RebindToSigned<D> di;
    const hn::Rebind<T, D> narrow;
    const auto number = hn::IfThenElseZero(hn::Eq(v, v), v);
    const auto bounded = hn::Min(hn::Max(number, hn::Set(d, -1e6F)), hn::Set(d, 1e6F));
    hn::StoreU(hn::DemoteTo(narrow, hn::ConvertTo(di, bounded)), narrow, to);
  }
};

template <>
struct Lanes<float> {
  template <class D>
  static HWY_INLINE hn::Vec<D> load(D d, const float* from) {
    return hn::LoadU(d, from);
  }
  template <class D>
  static HWY_INLINE void store(D d, hn::Vec<D> v, float* to) {
    hn::StoreU(v, d, to);
  }
};

template <>
struct Lanes<std::int32_t> {
  template <class D>
  static HWY_INLINE hn::Vec<D> load(D d, const std::int32_t* from) {
    return hn::ConvertTo(d, hn::LoadU(hn::RebindToSigned<D>(), from));
  }
  template <class D>
  static HWY_INLINE void store(D d, hn::Vec<D> v, std::int32_t* to) {
    const hn::RebindToSigned<D> di;
    const auto number = hn::IfThenElseZero(hn::Eq(v, v), v);
    // 2^31 is the first float that int32 does not hold; below the range, -2^31 is exact.
    const auto beyond = hn::RebindMask(di, hn::Ge(number, hn::Set(d, 0x1p31F)));
    const auto whole = hn::ConvertTo(di, hn::Max(number, hn::Set(d, -0x1p31F)));
    hn::StoreU(hn::IfThenElse(beyond, hn::Set(di, 0x7fffffff), whole), di, to);
  }
};

template <>
struct Lanes<BFloat16> {
  template <class D>
  static HWY_INLINE hn::Vec<D> load(D d, const BFloat16* from) {
    const hn::RebindToSigned<D> di;
    const hn::Rebind<std::uint16_t, D> narrow;
    const auto bits = hn::PromoteTo(di, hn::LoadU(narrow, reinterpret_cast<const std::uint16_t*>(from)));
    return hn::BitCast(d, hn::ShiftLeft<16>(bits));
  }
};

/// By the arithmetic of to_f32 and to_half, unless the target is known to have an instruction of the same results.
template <>
struct Lanes<Half> {
  template <class D>
  static HWY_INLINE hn::Vec<D> load(D d, const Half* from) {
    const hn::RebindToSigned<D> di;
    const hn::Rebind<std::uint16_t, D> narrow;
    const auto bits = hn::PromoteTo(di, hn::LoadU(narrow, reinterpret_cast<const std::uint16_t*>(from)));
    const auto rest = hn::And(bits, hn::Set(di, 0x7fff));
    const auto shifted = hn::ShiftLeft<13>(rest);
    const auto normal = hn::Add(shifted, hn::Set(di, 112 << 23));
    const auto subnormal = hn::BitCast(di, hn::Mul(hn::ConvertTo(d, rest), hn::Set(d, 0x1p-24F)));
    const auto special = hn::Or(shifted, hn::Set(di, 0x7f800000));
    const auto finite = hn::IfThenElse(hn::Lt(rest, hn::Set(di, 0x400)), subnormal, normal);
    const auto magnitude = hn::IfThenElse(hn::Gt(rest, hn::Set(di, 0x7bff)), special, finite);
    return hn::BitCast(d, hn::Or(magnitude, hn::ShiftLeft<16>(hn::And(bits, hn::Set(di, 0x8000)))));
  }
  template <class D>
  static HWY_INLINE void store([[maybe_unused]] D d, hn::Vec<D> v, Half* to) {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
    const hn::Rebind<hwy::float16_t, D> halves;
    hn::StoreU(hn::DemoteTo(halves, v), halves, reinterpret_cast<hwy::float16_t*>(to));
#else
    const hn::RebindToSigned<D> di;
    const auto bits = hn::BitCast(di, v);
    const auto magnitude = hn::And(bits, hn::Set(di, 0x7fffffff));
    const auto shifted = hn::ShiftRight<13>(magnitude);
    const auto rounded = hn::Add(hn::Sub(magnitude, hn::Set(di, 0x38000000 - 0xfff)), hn::And(shifted, hn::Set(di, 1)));
    const auto subnormal = hn::BitCast(di, hn::Add(hn::BitCast(d, magnitude), hn::Set(d, 0.5F)));
    const auto nan = hn::Or(hn::Set(di, 0x7e00), hn::And(shifted, hn::Set(di, 0x3ff)));
    auto half = hn::IfThenElse(hn::Lt(magnitude, hn::Set(di, 0x38800000)), hn::Sub(subnormal, hn::Set(di, 0x3f000000)),
                               hn::ShiftRight<13>(rounded));
    half = hn::IfThenElse(hn::Gt(magnitude, hn::Set(di, 0x477fffff)), hn::Set(di, 0x7c00), half);
    half = hn::IfThenElse(hn::Gt(magnitude, hn::Set(di, 0x7f800000)), nan, half);
    half = hn::Or(half, hn::And(hn::ShiftRight<16>(bits), hn::Set(di, 0x8000)));
    const hn::Rebind<std::uint16_t, D> narrow;
    hn::StoreU(hn::DemoteTo(narrow, half), narrow, reinterpret_cast<std::uint16_t*>(to));
#endif
  }
};

/// Zero or one.
template <>
struct Lanes<Bool8> {
  template <class D>
  static HWY_INLINE hn::Vec<D> load(D d, const Bool8* from) {
    const auto value = Lanes<std::uint8_t>::load(d, reinterpret_cast<const std::uint8_t*>(from));
    return hn::IfThenElseZero(hn::Ne(value, hn::Zero(d)), hn::Set(d, 1.0F));
  }
  template <class D>
  static HWY_INLINE void store(D d, hn::Vec<D> v, Bool8* to) {
    const hn::RebindToSigned<D> di;
    const hn::Rebind<std::uint8_t, D> narrow;
    const auto truth = hn::IfThenElseZero(hn::RebindMask(di, hn::Ne(v, hn::Zero(d))), hn::Set(di, 1));
    hn::StoreU(hn::DemoteTo(narrow, truth), narrow, reinterpret_cast<std::uint8_t*>(to));
  }
};

template <typename From, typename To>
HWY_INLINE void cast_row(std::size_t n, const From* x, To* y) {
  const hn::ScalableTag<float> d;
  const std::size_t lanes = hn::Lanes(d);
  constexpr std::size_t kMaxLanes = HWY_MAX_BYTES / sizeof(float);
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) Lanes<To>::store(d, Lanes<From>::load(d, x + i), y + i);
  if (i == n) return;
  From tail[kMaxLanes] = {};
  To result[kMaxLanes] = {};
  load_end(x + i, n - i, tail);
  Lanes<To>::store(d, Lanes<From>::load(d, tail), result);
  store_end(result, n - i, y + i);
}

template <typename From, typename To>
void cast_rows(const Invocation& invocation, const StridedRows<2>& rows) {
  auto* y = invocation.output<To>();
  const auto* x = invocation.input<From>(0);
  parallel_ranges(*invocation.threads, rows.elements, kElementwiseGrain,
                  [&](std::int64_t begin, std::int64_t end) HWY_ATTR {
                    for_each_segment(rows, begin, end, [&](const auto& offsets, std::int64_t n) HWY_ATTR {
                      cast_row(static_cast<std::size_t>(n), x + offsets[1], y + offsets[0]);
                    });
                  });
}

void run_cast(const Invocation& invocation, const StridedRows<2>& rows) {
  if (invocation.in(0).type == ElementType::kF32) {
    dispatch_type<std::int8_t, std::uint8_t, std::int32_t, Half, Bool8>(
        invocation.out().type, [&](auto to) { cast_rows<float, typename decltype(to)::type>(invocation, rows); });
  } else {
    dispatch_type<std::int8_t, std::uint8_t, std::int32_t, Half, BFloat16, Bool8>(
        invocation.in(0).type, [&](auto from) { cast_rows<typename decltype(from)::type, float>(invocation, rows); });
  }
}

}  // namespace
}  // namespace bantam::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bantam::ops {

HWY_EXPORT(run_cast);

bool supports_cast_simd(const OpCall& call) {
  const ElementType from = call.in(0).type;
  const ElementType to = call.out().type;
  const bool covered =
      (from == ElementType::kF32 && is_one_of<std::int8_t, std::uint8_t, std::int32_t, Half, Bool8>(to)) ||
      (to == ElementType::kF32 && is_one_of<std::int8_t, std::uint8_t, std::int32_t, Half, BFloat16, Bool8>(from));
  return covered && make_rows<2>(call.out(), {&call.out(), &call.in(0)}).all_contiguous();
}

Status run_cast_simd(const Invocation& invocation) {
  const auto rows = make_rows<2>(invocation.out(), {&invocation.out(), &invocation.in(0)});
  HWY_DYNAMIC_DISPATCH(run_cast)(invocation, rows);
  return ok_status();
}

}  // namespace bantam::ops
#endif
