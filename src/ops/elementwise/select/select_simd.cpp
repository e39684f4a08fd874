#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/elementwise/select/select_simd.cpp"
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
#include "ops/elementwise/select/kernels.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

/// Bytes to lanes of T.
template <class D, class V>
HWY_INLINE hn::Vec<D> widen_bytes(D d, V bytes) {
  if constexpr (sizeof(hn::TFromD<D>) == 1) {
    return bytes;
  } else if constexpr (sizeof(hn::TFromD<D>) == 8) {
    return hn::PromoteTo(d, hn::PromoteTo(hn::Rebind<std::uint32_t, D>(), bytes));
  } else {
    return hn::PromoteTo(d, bytes);
  }
}

template <typename T>
HWY_INLINE void select_vector(OperandRow<std::uint8_t> condition, OperandRow<T> a, OperandRow<T> b, std::size_t i,
                              T* y) {
  const hn::ScalableTag<T> d;
  const hn::Rebind<std::uint8_t, decltype(d)> bytes;
  const auto is_false = hn::Eq(widen_bytes(d, condition.load(bytes, i)), hn::Zero(d));
  hn::StoreU(hn::IfThenElse(is_false, b.load(d, i), a.load(d, i)), d, y);
}

/// y[i] = condition[i] ? a[i] : b[i]; y may be an operand.
template <typename T>
void select_row(std::size_t n, T* y, OperandRow<std::uint8_t> condition, OperandRow<T> a, OperandRow<T> b) {
  const std::size_t lanes = hn::Lanes(hn::ScalableTag<T>());
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) select_vector(condition, a, b, i, y + i);
  if (i == n) return;
  constexpr std::size_t kMaxLanes = HWY_MAX_BYTES / sizeof(T);
  std::uint8_t tail_condition[kMaxLanes] = {};
  T tail_a[kMaxLanes] = {};
  T tail_b[kMaxLanes] = {};
  T tail_y[kMaxLanes];
  select_vector(tail_of(condition, i, n - i, tail_condition), tail_of(a, i, n - i, tail_a),
                tail_of(b, i, n - i, tail_b), 0, tail_y);
  std::copy_n(tail_y, n - i, y + i);
}

template <typename T>
void select_all(const Invocation& invocation, const StridedRows<4>& rows) {
  auto* y = invocation.output<T>();
  const auto* condition = invocation.input<std::uint8_t>(0);
  const auto* a = invocation.input<T>(1);
  const auto* b = invocation.input<T>(2);
  parallel_ranges(*invocation.threads, rows.elements, kElementwiseGrain, [&](std::int64_t begin, std::int64_t end) {
    for_each_segment(rows, begin, end, [&](const auto& offsets, std::int64_t n) {
      select_row(static_cast<std::size_t>(n), y + offsets[0],
                 OperandRow<std::uint8_t>{condition + offsets[1], rows.contiguous(1)},
                 OperandRow<T>{a + offsets[2], rows.contiguous(2)}, OperandRow<T>{b + offsets[3], rows.contiguous(3)});
    });
  });
}

void run_select(const Invocation& invocation, const StridedRows<4>& rows) {
  dispatch_size(element_size(invocation.out().type),
                [&](auto tag) { select_all<typename decltype(tag)::type>(invocation, rows); });
}

}  // namespace
}  // namespace bantam::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bantam::ops {

HWY_EXPORT(run_select);

namespace {

/// Of a call or an invocation.
template <class Call>
StridedRows<4> rows_of(const Call& call) {
  return make_rows<4>(call.out(), {&call.out(), &call.in(0), &call.in(1), &call.in(2)});
}

}  // namespace

bool supports_select_simd(const OpCall& call) { return rows_of(call).contiguous_or_broadcast(); }

Status run_select_simd(const Invocation& invocation) {
  HWY_DYNAMIC_DISPATCH(run_select)(invocation, rows_of(invocation));
  return ok_status();
}

}  // namespace bantam::ops
#endif
