#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/elementwise/multiply_add/multiply_add_simd.cpp"
#include "hwy/foreach_target.h"
// Highway wants the headers below after foreach_target.h.
#include "hwy/highway.h"
#include "ops/common/activate_rows.h"
#include "ops/common/clamped_store_simd-inl.h"
#include "ops/common/elementwise.h"
#include "ops/common/float_row_simd-inl.h"
#include "ops/common/parallel.h"
#include "ops/common/rows_simd-inl.h"
#include "ops/common/shared_row.h"
#include "ops/common/strides.h"
#include "ops/elementwise/multiply_add/kernels.h"
#include "ops/elementwise/multiply_add/multiply_add.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::HWY_NAMESPACE {
namespace {

/// y[i] = x[i] * a[i] + b[i], within the store's limits; y may be x.
template <bool kBroadcastA, bool kBroadcastB>
HWY_INLINE void multiply_add_row(std::size_t n, float* y, const float* x, FloatRow<kBroadcastA> a,
                                 FloatRow<kBroadcastB> b, const ClampedStore& store) {
  const hn::ScalableTag<float> d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) store(d, hn::Add(hn::Mul(hn::LoadU(d, x + i), a.load(d, i)), b.load(d, i)), y + i);
  if (i == n) return;
  with_few_lanes(d, n - i, [&](auto few) HWY_ATTR {
    const auto product = hn::Mul(load_partial(few, x + i, n - i), a.load_tail(few, i, n - i));
    store_few(store.limited(few, hn::Add(product, b.load_tail(few, i, n - i))), few, y + i, n - i);
  });
}

/// One invocation: its operands, and what follows the sum.
struct Operands {
  float* y;
  const float* x;
  const float* a;
  const float* b;
  Activation activation;
};

/// What limits alone do not do of the activation, of n results, which are still in the cache.
void complete(const Operands& o, const ClampedStore& store, std::int64_t n, float* y) {
  if (!store.complete()) activate_rows(o.activation, y, 1, n, n);
}

/// Do all rows, which lie one behind the other, share one row of factors and one of addends?
bool share_rows(const StridedRows<4>& rows) {
  const auto& steps = rows.outer_strides[0];
  return rows.outer_rank == 1 && rows.all_contiguous() && steps[0] == rows.row_length && steps[1] == rows.row_length &&
         steps[2] == 0 && steps[3] == 0;
}

HWY_NOINLINE void multiply_add_shared(const Operands& o, const StridedRows<4>& rows, std::int64_t begin,
                                      std::int64_t end) {
  const ClampedStore store(o.activation);
  const SharedRow<float> factors(o.a, rows.row_length, begin, end);
  const SharedRow<float> addends(o.b, rows.row_length, begin, end);
  factors.for_each_run(begin, end, [&](std::int64_t first, std::int64_t n, const float* a) HWY_ATTR {
    multiply_add_row(static_cast<std::size_t>(n), o.y + first, o.x + first, FloatRow<false>{a},
                     FloatRow<false>{addends.from(first)}, store);
    complete(o, store, n, o.y + first);
  });
}

template <bool kBroadcastA, bool kBroadcastB>
HWY_NOINLINE void multiply_add_rows(const Operands& o, const StridedRows<4>& rows, std::int64_t begin,
                                    std::int64_t end) {
  const ClampedStore store(o.activation);
  for_each_segment(rows, begin, end, [&](const auto& offsets, std::int64_t n) HWY_ATTR {
    multiply_add_row(static_cast<std::size_t>(n), o.y + offsets[0], o.x + offsets[1],
                     FloatRow<kBroadcastA>{o.a + offsets[2]}, FloatRow<kBroadcastB>{o.b + offsets[3]}, store);
    complete(o, store, n, o.y + offsets[0]);
  });
}

void run_multiply_add(const Invocation& invocation, const StridedRows<4>& rows) {
  const Operands operands{invocation.output<float>(), invocation.input<float>(0), invocation.input<float>(1),
                          invocation.input<float>(2), invocation.as<MultiplyAddParams>().activation};
  const bool shared = share_rows(rows);
  const auto by_rows = rows.contiguous(2)
                           ? rows.contiguous(3) ? multiply_add_rows<false, false> : multiply_add_rows<false, true>
                       : rows.contiguous(3) ? multiply_add_rows<true, false>
                                            : multiply_add_rows<true, true>;
  parallel_ranges(*invocation.threads, rows.elements, kElementwiseGrain, [&](std::int64_t begin, std::int64_t end) {
    const bool copies = shared && SharedRow<float>::saves_time(rows.row_length, begin, end);
    copies ? multiply_add_shared(operands, rows, begin, end) : by_rows(operands, rows, begin, end);
  });
}

}  // namespace
}  // namespace bantam::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bantam::ops {

HWY_EXPORT(run_multiply_add);

namespace {

/// Of a call or an invocation.
template <class Call>
StridedRows<4> multiply_add_rows_of(const Call& call) {
  return make_rows<4>(call.out(), {&call.out(), &call.in(0), &call.in(1), &call.in(2)});
}

}  // namespace

bool supports_multiply_add_simd(const OpCall& call) {
  const auto rows = multiply_add_rows_of(call);
  return rows.contiguous_or_broadcast() && rows.contiguous(0) && rows.contiguous(1);
}

Status run_multiply_add_simd(const Invocation& invocation) {
  HWY_DYNAMIC_DISPATCH(run_multiply_add)(invocation, multiply_add_rows_of(invocation));
  return ok_status();
}

}  // namespace bantam::ops
#endif
