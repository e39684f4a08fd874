#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/elementwise/binary/binary_simd.cpp"
#include "hwy/foreach_target.h"
// Highway wants the headers below after foreach_target.h.
#include <array>
#include <limits>
#include <utility>

#include "hwy/highway.h"
#include "ops/common/elementwise.h"
#include "ops/common/float_row_simd-inl.h"
#include "ops/common/parallel.h"
#include "ops/common/rows_simd-inl.h"
#include "ops/common/shared_row.h"
#include "ops/common/strides.h"
#include "ops/elementwise/binary/binary.h"
#include "ops/elementwise/binary/kernels.h"
#include "ops/elementwise/binary/power_simd-inl.h"
#include "ops/elementwise/unary/activation_simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::HWY_NAMESPACE {
namespace {

/// The part of an activation that costs next to nothing and is applied to every result: limits. Without one they are
/// infinite.
struct Limits {
  float low;
  float high;
};

/// y[i] = clip(f(a[i], b[i])); y may be a or b.
template <class A, class B, class F>
HWY_INLINE void combine_row(std::size_t n, float* y, A a, B b, Limits limits, F f) {
  const hn::ScalableTag<float> d;
  const std::size_t lanes = hn::Lanes(d);
  const auto low = hn::Set(d, limits.low);
  const auto high = hn::Set(d, limits.high);
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(clip_f32(d, f(d, a.load(d, i), b.load(d, i)), low, high), d, y + i);
  if (i == n) return;
  with_few_lanes(d, n - i, [&](auto few) HWY_ATTR {
    const auto tail = f(few, a.load_tail(few, i, n - i), b.load_tail(few, i, n - i));
    store_few(clip_f32(few, tail, hn::Set(few, limits.low), hn::Set(few, limits.high)), few, y + i, n - i);
  });
}

/// The same, one element at a time, of operands with any strides.
template <class F>
HWY_INLINE void combine_strided(std::int64_t n, float* y, const float* a, const float* b,
                                const std::array<std::int64_t, 3>& strides, Limits limits, F f) {
  const hn::CappedTag<float, 1> d;
  const auto low = hn::Set(d, limits.low);
  const auto high = hn::Set(d, limits.high);
  for (std::int64_t i = 0; i < n; ++i, y += strides[0], a += strides[1], b += strides[2])
    hn::StoreU(clip_f32(d, f(d, hn::LoadU(d, a), hn::LoadU(d, b)), low, high), d, y);
}

/// Calls run(f), f being the vector form of the function.
template <class Run>
HWY_INLINE void with_function(BinaryFunction function, Run run) {
  switch (function) {
    case BinaryFunction::kAdd: run([](auto, auto a, auto b) HWY_ATTR { return hn::Add(a, b); }); break;
    case BinaryFunction::kSub: run([](auto, auto a, auto b) HWY_ATTR { return hn::Sub(a, b); }); break;
    case BinaryFunction::kMul: run([](auto, auto a, auto b) HWY_ATTR { return hn::Mul(a, b); }); break;
    case BinaryFunction::kDiv: run([](auto, auto a, auto b) HWY_ATTR { return hn::Div(a, b); }); break;
    case BinaryFunction::kMin:
      run([](auto, auto a, auto b) HWY_ATTR { return hn::IfThenElse(hn::Or(hn::Lt(a, b), hn::IsNaN(a)), a, b); });
      break;
    case BinaryFunction::kMax:
      run([](auto, auto a, auto b) HWY_ATTR { return hn::IfThenElse(hn::Or(hn::Gt(a, b), hn::IsNaN(a)), a, b); });
      break;
    case BinaryFunction::kSquaredDifference:
      run([](auto, auto a, auto b) HWY_ATTR {
        const auto difference = hn::Sub(a, b);
        return hn::Mul(difference, difference);
      });
      break;
    case BinaryFunction::kPrelu: run([](auto d, auto a, auto b) HWY_ATTR { return leaky_relu_f32(d, a, b); }); break;
    case BinaryFunction::kPow: run([](auto d, auto a, auto b) HWY_ATTR { return power_f32(d, a, b); }); break;
    default: break;
  }
}

/// Where rows lie, and how far apart in each operand: the result first.
struct RowRun {
  float* y;
  const float* a;
  const float* b;
  std::array<std::int64_t, 3> strides;
  std::int64_t count;
  std::int64_t length;

  HWY_INLINE void advance(std::int64_t rows) {
    y += rows * strides[0];
    a += rows * strides[1];
    b += rows * strides[2];
  }
};

/// combine_row of the rows of a run.
template <bool kBroadcastA, bool kBroadcastB, class F>
HWY_INLINE void combine_rows(RowRun run, Limits limits, F f) {
  for (; run.count > 0; --run.count) {
    combine_row(static_cast<std::size_t>(run.length), run.y, FloatRow<kBroadcastA>{run.a}, FloatRow<kBroadcastB>{run.b},
                limits, f);
    run.advance(1);
  }
}

/// A run of rows; f is the vector form of the function.
template <class F>
HWY_INLINE void combine_run(const StridedRows<3>& rows, RowRun run, Limits limits, F f) {
  if (!rows.contiguous(0)) {
    for (; run.count > 0; --run.count, run.advance(1))
      combine_strided(run.length, run.y, run.a, run.b, rows.row_strides, limits, f);
  } else if (rows.contiguous(1) && rows.contiguous(2)) {
    combine_rows<false, false>(run, limits, f);
  } else if (rows.contiguous(1)) {
    combine_rows<false, true>(run, limits, f);
  } else if (rows.contiguous(2)) {
    combine_rows<true, false>(run, limits, f);
  } else {
    combine_rows<true, true>(run, limits, f);
  }
}

/// y = clip(a ^ 3).
void cube_run(const RowRun& run, Limits limits) {
  combine_rows<false, false>(
      {run.y, run.a, run.a, {run.strides[0], run.strides[1], run.strides[1]}, run.count, run.length}, limits,
      [](auto, auto x, auto) HWY_ATTR { return hn::Mul(hn::Mul(x, x), x); });
}

HWY_NOINLINE void activate_segment(const Activation& activation, std::int64_t n, float* y) {
  map_row(
      static_cast<std::size_t>(n), y, [&](auto d, auto v) HWY_ATTR { return apply_activation(d, v, activation); }, y);
}

/// Many rows that are much shorter than a vector, as columns.
StridedRows<3> turned_if_short(StridedRows<3> rows) {
  constexpr std::int64_t kShort = kHasMaskedLanes<float> ? 2 : 3;
  if (rows.outer_rank == 0 || rows.row_length > kShort) return rows;
  std::int32_t& length = rows.outer_dims[rows.outer_rank - 1];
  if (length <= kShort) return rows;
  const auto row_length = static_cast<std::int32_t>(rows.row_length);
  rows.row_length = std::exchange(length, row_length);
  std::swap(rows.row_strides, rows.outer_strides[rows.outer_rank - 1]);
  return rows;
}

/// The elements [begin, end) where rows share the one of operand `shared`.
HWY_NOINLINE void combine_shared(const Invocation& invocation, const StridedRows<3>& rows, int shared, Limits limits,
                                 std::int64_t begin, std::int64_t end) {
  const auto* a = invocation.input<float>(0);
  const auto* b = invocation.input<float>(1);
  auto* y = invocation.output<float>();
  const SharedRow<float> copies(shared == 1 ? a : b, rows.row_length, begin, end);
  with_function(invocation.as<BinaryParams>().function, [&](auto f) HWY_ATTR {
    copies.for_each_run(begin, end, [&](std::int64_t first, std::int64_t n, const float* row) HWY_ATTR {
      combine_row(static_cast<std::size_t>(n), y + first, FloatRow<false>{shared == 1 ? row : a + first},
                  FloatRow<false>{shared == 2 ? row : b + first}, limits, f);
    });
  });
}

/// The elements [begin, end). `second_pass`: the activation follows.
HWY_NOINLINE void combine_range(const Invocation& invocation, const StridedRows<3>& rows, Limits limits,
                                bool second_pass, std::int64_t begin, std::int64_t end) {
  const auto& p = invocation.as<BinaryParams>();
  auto* y = invocation.output<float>();
  const auto* a = invocation.input<float>(0);
  const auto* b = invocation.input<float>(1);
  const bool may_cube =
      p.function == BinaryFunction::kPow && rows.row_strides[2] == 0 && rows.contiguous(0) && rows.contiguous(1);
  // What the function needs stays in registers from row to row: rows may be short.
  with_function(p.function, [&](auto f) HWY_ATTR {
    for_each_run(rows, begin, end,
                 [&](const auto& offsets, const auto& strides, std::int64_t count, std::int64_t n) HWY_ATTR {
                   RowRun run{y + offsets[0], a + offsets[1], b + offsets[2], strides, second_pass ? 1 : count, n};
                   for (std::int64_t left = count; left > 0; left -= run.count) {
                     if (may_cube && strides[2] == 0 && *run.b == 3.0F) {
                       cube_run(run, limits);
                     } else {
                       combine_run(rows, run, limits, f);
                     }
                     if (second_pass) activate_segment(p.activation, n, run.y);  // it is still in the cache
                     run.advance(run.count);
                   }
                 });
  });
}

void run_binary(const Invocation& invocation, const StridedRows<3>& rows) {
  const auto& p = invocation.as<BinaryParams>();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  Limits limits{-kInfinity, kInfinity};
  if (p.activation.function == UnaryFunction::kRelu) limits.low = 0.0F;
  if (p.activation.function == UnaryFunction::kClip) limits = {p.activation.a, p.activation.b};
  const bool second_pass = p.activation.function != UnaryFunction::kIdentity &&
                           p.activation.function != UnaryFunction::kRelu &&
                           p.activation.function != UnaryFunction::kClip;
  const int shared = second_pass ? 0 : shared_operand(rows);
  const StridedRows<3> turned = second_pass || shared != 0 ? rows : turned_if_short(rows);
  parallel_ranges(*invocation.threads, rows.elements, kElementwiseGrain, [&](std::int64_t begin, std::int64_t end) {
    if (shared != 0 && SharedRow<float>::saves_time(rows.row_length, begin, end)) {
      combine_shared(invocation, rows, shared, limits, begin, end);
    } else {
      combine_range(invocation, turned, limits, second_pass, begin, end);
    }
  });
}

}  // namespace
}  // namespace bantam::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bantam::ops {

HWY_EXPORT(run_binary);

bool supports_binary_f32_simd(const OpCall& call) {
  if (call.in(0).type != ElementType::kF32 || call.in(1).type != ElementType::kF32) return false;
  switch (call.as<BinaryParams>().function) {
    case BinaryFunction::kAdd:
    case BinaryFunction::kSub:
    case BinaryFunction::kMul:
    case BinaryFunction::kDiv:
    case BinaryFunction::kMin:
    case BinaryFunction::kMax:
    case BinaryFunction::kSquaredDifference:
    case BinaryFunction::kPrelu:
    case BinaryFunction::kPow:
      return make_rows<3>(call.out(), {&call.out(), &call.in(0), &call.in(1)}).contiguous_or_broadcast();
    default: return false;
  }
}

Status run_binary_f32_simd(const Invocation& invocation) {
  const auto rows = make_rows<3>(invocation.out(), {&invocation.out(), &invocation.in(0), &invocation.in(1)});
  HWY_DYNAMIC_DISPATCH(run_binary)(invocation, rows);
  return ok_status();
}

}  // namespace bantam::ops
#endif
