// Comparisons and logic: vectors of masks, narrowed to bytes.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/elementwise/binary/compare_simd.cpp"
#include "hwy/foreach_target.h"
// Highway wants the headers below after foreach_target.h.
#include <algorithm>
#include <cstdint>

#include "hwy/highway.h"
#include "ops/common/dispatch.h"
#include "ops/common/elementwise.h"
#include "ops/common/operand_row_simd-inl.h"
#include "ops/common/parallel.h"
#include "ops/common/strides.h"
#include "ops/elementwise/binary/binary.h"
#include "ops/elementwise/binary/kernels.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

/// All bits of lane k of the result, a vector of U, tell f(a[i + k], b[i + k]).
template <typename U, typename T, class F>
HWY_INLINE hn::Vec<hn::ScalableTag<U>> compare(OperandRow<T> a, OperandRow<T> b, std::size_t i, F f) {
  const hn::ScalableTag<U> to;
  if constexpr (sizeof(U) == sizeof(T)) {
    const hn::ScalableTag<T> d;
    return hn::BitCast(to, hn::VecFromMask(d, f(a.load(d, i), b.load(d, i))));
  } else {
    using Wide = hwy::MakeWide<U>;
    const auto low = compare<Wide>(a, b, i, f);
    const auto high = compare<Wide>(a, b, i + hn::Lanes(hn::ScalableTag<Wide>()), f);
    return hn::ConcatEven(to, hn::BitCast(to, high), hn::BitCast(to, low));
  }
}

/// y[i] = f(a[i], b[i]) ? 1 : 0; y may be a or b.
template <typename T, class F>
HWY_INLINE void compare_row(std::size_t n, std::uint8_t* y, OperandRow<T> a, OperandRow<T> b, F f) {
  const hn::ScalableTag<std::uint8_t> d;
  const auto one = hn::Set(d, std::uint8_t{1});
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(hn::And(compare<std::uint8_t>(a, b, i, f), one), d, y + i);
  if (i == n) return;
  T tail_a[HWY_MAX_BYTES] = {};
  T tail_b[HWY_MAX_BYTES] = {};
  std::uint8_t tail_y[HWY_MAX_BYTES];
  const auto tail = compare<std::uint8_t>(tail_of(a, i, n - i, tail_a), tail_of(b, i, n - i, tail_b), 0, f);
  hn::StoreU(hn::And(tail, one), d, tail_y);
  std::copy_n(tail_y, n - i, y + i);
}

/// Highway has it for floats only, where NaN is neither less nor not.
template <class V>
HWY_INLINE auto less_equal(V a, V b) {
  if constexpr (hwy::IsFloat<hn::TFromV<V>>()) {
    return hn::Le(a, b);
  } else {
    return hn::Not(hn::Lt(b, a));
  }
}

/// Calls run(f), f being the vector form of the comparison.
template <class Run>
HWY_INLINE void with_comparison(BinaryFunction function, Run run) {
  switch (function) {
    case BinaryFunction::kEqual: run([](auto a, auto b) HWY_ATTR { return hn::Eq(a, b); }); break;
    case BinaryFunction::kNotEqual: run([](auto a, auto b) HWY_ATTR { return hn::Not(hn::Eq(a, b)); }); break;
    case BinaryFunction::kLess: run([](auto a, auto b) HWY_ATTR { return hn::Lt(a, b); }); break;
    case BinaryFunction::kLessEqual: run([](auto a, auto b) HWY_ATTR { return less_equal(a, b); }); break;
    case BinaryFunction::kGreater: run([](auto a, auto b) HWY_ATTR { return hn::Lt(b, a); }); break;
    case BinaryFunction::kGreaterEqual: run([](auto a, auto b) HWY_ATTR { return less_equal(b, a); }); break;
    default: break;
  }
}

/// The same for what is defined on truth values, of which every byte but 0 is one.
template <class Run>
HWY_INLINE void with_logic(BinaryFunction function, Run run) {
  const auto truth = [](auto x) HWY_ATTR { return hn::Ne(x, hn::Zero(hn::DFromV<decltype(x)>())); };
  switch (function) {
    case BinaryFunction::kAnd: run([truth](auto a, auto b) HWY_ATTR { return hn::And(truth(a), truth(b)); }); break;
    case BinaryFunction::kOr: run([truth](auto a, auto b) HWY_ATTR { return truth(hn::Or(a, b)); }); break;
    case BinaryFunction::kXor:
    case BinaryFunction::kNotEqual:
      run([truth](auto a, auto b) HWY_ATTR { return hn::Xor(truth(a), truth(b)); });
      break;
    case BinaryFunction::kEqual:
      run([truth](auto a, auto b) HWY_ATTR { return hn::Not(hn::Xor(truth(a), truth(b))); });
      break;
    default: break;
  }
}

template <typename T, class F>
void compare_all(const Invocation& invocation, const StridedRows<3>& rows, F f) {
  auto* y = invocation.output<std::uint8_t>();
  parallel_ranges(*invocation.threads, rows.elements, kElementwiseGrain, [&](std::int64_t begin, std::int64_t end) {
    for_each_pair_of_rows<T, T>(invocation, rows, begin, end,
                                [&](std::int64_t first, std::size_t n, auto a, auto b)
                                    HWY_ATTR { compare_row(n, y + first, a, b, f); });
  });
}

void run_compare(const Invocation& invocation, const StridedRows<3>& rows) {
  const BinaryFunction function = invocation.as<BinaryParams>().function;
  if (invocation.in(0).type == ElementType::kBool) {
    with_logic(function, [&](auto f) { compare_all<std::uint8_t>(invocation, rows, f); });
    return;
  }
  dispatch_type<float, std::int8_t, std::uint8_t, std::int32_t, std::int64_t>(invocation.in(0).type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    with_comparison(function, [&](auto f) { compare_all<T>(invocation, rows, f); });
  });
}

}  // namespace
}  // namespace bantam::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bantam::ops {

HWY_EXPORT(run_compare);

bool supports_compare_simd(const OpCall& call) {
  return gives_bool(call.as<BinaryParams>().function) &&
         is_one_of<float, std::int8_t, std::uint8_t, std::int32_t, std::int64_t, Bool8>(call.in(0).type) &&
         make_rows<3>(call.out(), {&call.out(), &call.in(0), &call.in(1)}).contiguous_or_broadcast();
}

Status run_compare_simd(const Invocation& invocation) {
  const auto rows = make_rows<3>(invocation.out(), {&invocation.out(), &invocation.in(0), &invocation.in(1)});
  HWY_DYNAMIC_DISPATCH(run_compare)(invocation, rows);
  return ok_status();
}

}  // namespace bantam::ops
#endif
