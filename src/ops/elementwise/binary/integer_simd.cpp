// Arithmetic of 32 and 64-bit integers.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/elementwise/binary/integer_simd.cpp"
#include "hwy/foreach_target.h"
// Highway wants the headers below after foreach_target.h.
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

/// y[i] = f(a[i], b[i]); y may be an operand that moves.
template <typename T, class F>
HWY_INLINE void combine_integers(std::size_t n, T* y, OperandRow<T> a, OperandRow<T> b, F f) {
  const hn::ScalableTag<T> d;
  constexpr std::size_t kLanes = hn::MaxLanes(d);
  std::size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) hn::StoreU(f(a.load(d, i), b.load(d, i)), d, y + i);
  if (i == n) return;
  T tail_a[kLanes] = {};
  T tail_b[kLanes] = {};
  T tail_y[kLanes];
  hn::StoreU(f(tail_of(a, i, n - i, tail_a).load(d, 0), tail_of(b, i, n - i, tail_b).load(d, 0)), d, tail_y);
  store_end(tail_y, n - i, y + i);
}

/// Calls run(f), f being the vector form of the function.
template <class Run>
HWY_INLINE void with_integer_function(BinaryFunction function, Run run) {
  switch (function) {
    case BinaryFunction::kAdd: run([](auto a, auto b) HWY_ATTR { return hn::Add(a, b); }); break;
    case BinaryFunction::kSub: run([](auto a, auto b) HWY_ATTR { return hn::Sub(a, b); }); break;
    case BinaryFunction::kMul: run([](auto a, auto b) HWY_ATTR { return hn::Mul(a, b); }); break;
    case BinaryFunction::kMin: run([](auto a, auto b) HWY_ATTR { return hn::Min(a, b); }); break;
    case BinaryFunction::kMax: run([](auto a, auto b) HWY_ATTR { return hn::Max(a, b); }); break;
    case BinaryFunction::kBitAnd: run([](auto a, auto b) HWY_ATTR { return hn::And(a, b); }); break;
    case BinaryFunction::kBitOr: run([](auto a, auto b) HWY_ATTR { return hn::Or(a, b); }); break;
    case BinaryFunction::kBitXor: run([](auto a, auto b) HWY_ATTR { return hn::Xor(a, b); }); break;
    default: break;
  }
}

template <typename T, class F>
void combine_all_integers(const Invocation& invocation, const StridedRows<3>& rows, F f) {
  auto* y = invocation.output<T>();
  parallel_ranges(*invocation.threads, rows.elements, kElementwiseGrain, [&](std::int64_t begin, std::int64_t end) {
    for_each_pair_of_rows<T, T>(invocation, rows, begin, end,
                                [&](std::int64_t first, std::size_t n, auto a, auto b)
                                    HWY_ATTR { combine_integers(n, y + first, a, b, f); });
  });
}

void run_binary_integer(const Invocation& invocation, const StridedRows<3>& rows) {
  dispatch_type<std::int32_t, std::int64_t>(invocation.out().type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    with_integer_function(invocation.as<BinaryParams>().function,
                          [&](auto f) { combine_all_integers<T>(invocation, rows, f); });
  });
}

}  // namespace
}  // namespace bantam::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bantam::ops {

HWY_EXPORT(run_binary_integer);

bool supports_binary_integer_simd(const OpCall& call) {
  if (!is_one_of<std::int32_t, std::int64_t>(call.out().type) || call.in(0).type != call.in(1).type) return false;
  switch (call.as<BinaryParams>().function) {
    case BinaryFunction::kAdd:
    case BinaryFunction::kSub:
    case BinaryFunction::kMul:
    case BinaryFunction::kMin:
    case BinaryFunction::kMax:
    case BinaryFunction::kBitAnd:
    case BinaryFunction::kBitOr:
    case BinaryFunction::kBitXor:
      return make_rows<3>(call.out(), {&call.out(), &call.in(0), &call.in(1)}).contiguous_or_broadcast();
    default: return false;
  }
}

Status run_binary_integer_simd(const Invocation& invocation) {
  const auto rows = make_rows<3>(invocation.out(), {&invocation.out(), &invocation.in(0), &invocation.in(1)});
  HWY_DYNAMIC_DISPATCH(run_binary_integer)(invocation, rows);
  return ok_status();
}

}  // namespace bantam::ops
#endif
