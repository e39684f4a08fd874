#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/reduce/reduce_affine/reduce_affine_simd.cpp"
#include "hwy/foreach_target.h"
// Highway wants the headers below after foreach_target.h.
#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "base/shape.h"
#include "hwy/highway.h"
#include "ops/common/affine_form.h"
#include "ops/common/affine_simd-inl.h"
#include "ops/common/dispatch.h"
#include "ops/nn/gemm/unroll-inl.h"
#include "ops/reduce/reduce_affine/kernels.h"
#include "ops/reduce/reduce_loops.h"

#ifndef BANTAM_REDUCE_AFFINE_SHARED_ROWS_
#define BANTAM_REDUCE_AFFINE_SHARED_ROWS_
namespace bantam::ops {
namespace {

/// Scratch of each thread where they share rows: sums of all columns, in whole vectors. 0 where they share columns.
std::int64_t shared_sums_bytes(const ReduceLoops& loops, int threads) {
  if (!shares_rows(loops, threads)) return 0;
  return align_up(loops.kept.elements, HWY_MAX_BYTES) * static_cast<std::int64_t>(sizeof(std::int32_t));
}

}  // namespace
}  // namespace bantam::ops
#endif

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using Halves = hn::ScalableTag<std::int16_t>;
using Words = hn::Repartition<std::int32_t, Halves>;
using Sums = hn::Vec<Words>;
constexpr auto kColumns = static_cast<std::int64_t>(hn::MaxLanes(Halves()));
constexpr std::int64_t kHalfColumns = kColumns / 2;

constexpr std::int64_t kBlock = 128;  // bytes of either type whose sum is an int16

/// The sums of kVectors * kColumns neighbouring columns, each vector's as two; of the first `count` columns if there is
/// only one vector.
template <typename T, int kVectors>
HWY_INLINE void sum_columns(const StridedRows<1>& reduced, const T* x, std::int64_t count, Sums (&sums)[2 * kVectors]) {
  const Halves d16;
  const hn::Rebind<T, Halves> d8;
  const Words d32;
  const hn::Half<Halves> half;
  const std::int64_t stride = reduced.row_strides[0];
  for (Sums& sum : sums) sum = hn::Zero(d32);
  for_each_row(reduced, [&](const auto& offsets, std::int64_t n) HWY_ATTR {
    for (std::int64_t begin = 0; begin < n; begin += kBlock) {
      const std::int64_t end = std::min(n, begin + kBlock);
      hn::Vec<Halves> block[kVectors];
      unroll<kVectors>([&](auto v) HWY_ATTR { block[v] = hn::Zero(d16); });
      for (std::int64_t i = begin; i < end; ++i) {
        const T* from = x + offsets[0] + i * stride;
        unroll<kVectors>([&](auto v) HWY_ATTR {
          const auto bytes = load_channels(d8, from + v * kColumns, kVectors > 1 ? kColumns : count);
          block[v] = hn::Add(block[v], hn::PromoteTo(d16, bytes));
        });
      }
      unroll<kVectors>([&](auto v) HWY_ATTR {
        sums[2 * v] = hn::Add(sums[2 * v], hn::PromoteTo(d32, hn::LowerHalf(half, block[v])));
        sums[2 * v + 1] = hn::Add(sums[2 * v + 1], hn::PromoteTo(d32, hn::UpperHalf(half, block[v])));
      });
    }
  });
}

/// Columns side by side; `zero_sum` is what zero points add to each sum.
template <typename T>
class Columns {
 public:
  HWY_INLINE Columns(const AffineScaler& scaler, std::int32_t zero_sum)
      : scale_(Words(), scaler, 0, kHalfColumns), zero_sum_(hn::Set(Words(), zero_sum)) {}

  HWY_INLINE void reduce(const StridedRows<1>& reduced, const T* x, std::uint8_t* y, std::int64_t n) const {
    if (fills_vectors(reduced, n)) return reduce_side_by_side(reduced, x, y, n);
    for_each_sums(reduced, x, n, [&](Sums sum, std::int64_t first, std::int64_t count) HWY_ATTR {
      scale_.store(scale_(hn::Sub(sum, zero_sum_)), count, y + first);
    });
  }

  /// Sums alone; there is room for as many as fill whole vectors.
  HWY_INLINE void sum(const StridedRows<1>& reduced, const T* x, std::int32_t* sums, std::int64_t n) const {
    for_each_sums(reduced, x, n,
                  [&](Sums sum, std::int64_t first, std::int64_t) HWY_ATTR { hn::StoreU(sum, Words(), sums + first); });
  }

  /// The results of sums of sums, `stride` apart.
  HWY_INLINE void finish(const std::int32_t* sums, std::int64_t stride, std::int64_t parts, std::uint8_t* y,
                         std::int64_t n) const {
    for (std::int64_t i = 0; i < n; i += kHalfColumns) {
      Sums total = hn::Zero(Words());
      for (std::int64_t p = 0; p < parts; ++p) total = hn::Add(total, hn::LoadU(Words(), sums + p * stride + i));
      scale_.store(scale_(hn::Sub(total, zero_sum_)), std::min(kHalfColumns, n - i), y + i);
    }
  }

 private:
  static constexpr int kWide = 4;

  /// Are rows of n columns so short that several, which lie side by side, fill the vectors of a block?
  static bool fills_vectors(const StridedRows<1>& reduced, std::int64_t n) {
    return n < kWide * kColumns && kWide * kColumns % n == 0 && reduced.outer_rank == 0 && reduced.row_strides[0] == n;
  }

  HWY_INLINE void reduce_side_by_side(const StridedRows<1>& reduced, const T* x, std::uint8_t* y,
                                      std::int64_t n) const {
    const std::int64_t rows = kWide * kColumns / n;
    StridedRows<1> wide = reduced;
    wide.elements = wide.row_length = reduced.row_length / rows;
    wide.row_strides[0] = rows * n;
    Sums sums[2 * kWide];
    sum_columns<T, kWide>(wide, x, kColumns, sums);
    HWY_ALIGN std::int32_t all[kWide * kColumns];
    unroll<2 * kWide>([&](auto v) HWY_ATTR { hn::Store(sums[v], Words(), all + v * kHalfColumns); });
    for (std::int64_t row = 1; row < rows; ++row)
      for (std::int64_t c = 0; c < n; ++c) all[c] += all[row * n + c];
    for (std::int64_t row = wide.row_length * rows; row < reduced.row_length; ++row)
      for (std::int64_t c = 0; c < n; ++c) all[c] += x[row * n + c];
    finish(all, 0, 1, y, n);
  }

  /// Calls f(sums, first, count) for vectors of sums that cover n columns.
  template <class F>
  HWY_INLINE void for_each_sums(const StridedRows<1>& reduced, const T* x, std::int64_t n, F f) const {
    std::int64_t i = 0;
    for (; i + kWide * kColumns <= n; i += kWide * kColumns) sum_block<kWide>(reduced, x, i, kColumns, f);
    // Several vectors at once: sums of one wait for each other.
    const std::int64_t whole = (n - i) / kColumns;
    if (whole == 3) sum_block<3>(reduced, x, i, kColumns, f);
    if (whole == 2) sum_block<2>(reduced, x, i, kColumns, f);
    if (whole == 1) sum_block<1>(reduced, x, i, kColumns, f);
    i += whole * kColumns;
    if (i == n) return;
    // Columns of the last vector may be computed twice.
    if (n >= kColumns) i = n - kColumns;
    sum_block<1>(reduced, x, i, n - i, f);
  }

  template <int kVectors, class F>
  HWY_INLINE void sum_block(const StridedRows<1>& reduced, const T* x, std::int64_t first, std::int64_t count,
                            F f) const {
    Sums sums[2 * kVectors];
    sum_columns<T, kVectors>(reduced, x + first, count, sums);
    for (int v = 0; v < kVectors; ++v, first += kColumns) {
      f(sums[2 * v], first, std::min(count, kHalfColumns));
      if (count > kHalfColumns) f(sums[2 * v + 1], first + kHalfColumns, count - kHalfColumns);
    }
  }

  AffineVector<Words> scale_;
  Sums zero_sum_;
};

/// Adds the sums of whole vectors of D of x[i, n) to `total`, and goes on; bytes count with the bits of `flip`
/// inverted.
template <class D>
HWY_INLINE void sum_vectors(D d8, const std::uint8_t* x, std::int64_t n, std::uint8_t flip, std::int64_t& i,
                            std::int64_t& total) {
  const hn::Repartition<std::uint64_t, D> d64;
  constexpr auto kLanes = static_cast<std::int64_t>(hn::MaxLanes(D()));
  if (i + kLanes > n) return;
  auto sums = hn::Zero(d64);
  for (; i + kLanes <= n; i += kLanes)
    sums = hn::Add(sums, hn::SumsOf8(hn::Xor(hn::LoadU(d8, x + i), hn::Set(d8, flip))));
  total += static_cast<std::int64_t>(hn::GetLane(hn::SumOfLanes(d64, sums)));
}

/// The sum of n contiguous bytes.
template <typename T>
HWY_INLINE std::int64_t sum_row(const T* x, std::int64_t n) {
  constexpr bool kSigned = std::is_signed_v<T>;
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(x);
  std::int64_t i = 0;
  std::int64_t total = 0;
  sum_vectors(hn::ScalableTag<std::uint8_t>(), bytes, n, kSigned ? 0x80 : 0, i, total);
  sum_vectors(hn::Full128<std::uint8_t>(), bytes, n, kSigned ? 0x80 : 0, i, total);
  if (kSigned) total -= 128 * i;
  for (; i < n; ++i) total += x[i];
  return total;
}

/// The sum of all such rows.
template <typename T>
HWY_INLINE std::int64_t sum_rows(const StridedRows<1>& rows, const T* x) {
  if (rows.outer_rank == 0) return sum_row(x, rows.row_length);
  std::int64_t sum = 0;
  for_each_row(rows, [&](const auto& offsets, std::int64_t n) HWY_ATTR { sum += sum_row(x + offsets[0], n); });
  return sum;
}

/// Results along rows of contiguous bytes: sums one by one, the last stage of some together.
template <typename T>
void reduce_rows(const Invocation& invocation, const ReduceLoops& loops, const AffineScaler& scaler,
                 std::int32_t zero_sum) {
  constexpr std::int64_t kAtOnce = 64;
  const auto* x = invocation.input<T>(0);
  auto* y = invocation.output<std::uint8_t>();
  parallel_ranges(*invocation.threads, loops.kept.elements, reduce_grain(loops),
                  [&](std::int64_t begin, std::int64_t end) HWY_ATTR {
                    const Columns<T> columns(scaler, zero_sum);
                    HWY_ALIGN std::int32_t sums[kAtOnce] = {};
                    std::uint8_t results[kAtOnce];
                    for_each_segment(loops.kept, begin, end, [&](const auto& offsets, std::int64_t n) HWY_ATTR {
                      for (std::int64_t first = 0; first < n; first += kAtOnce) {
                        const std::int64_t count = std::min(kAtOnce, n - first);
                        for (std::int64_t i = 0; i < count; ++i) {
                          const T* from = x + offsets[1] + (first + i) * loops.kept.row_strides[1];
                          sums[i] = static_cast<std::int32_t>(sum_rows(loops.reduced, from));
                        }
                        columns.finish(sums, 0, 1, results, count);
                        for (std::int64_t i = 0; i < count; ++i)
                          y[offsets[0] + (first + i) * loops.kept.row_strides[0]] = results[i];
                      }
                    });
                  });
}

/// Threads share the rows of a matrix; each has `part_bytes` of scratch for its sums.
template <typename T>
void reduce_shared_rows(const Invocation& invocation, const ReduceLoops& loops, const Columns<T>& columns,
                        std::int64_t part_bytes) {
  const std::int64_t n = loops.kept.elements;
  const std::int64_t threads = invocation.threads->count;
  const std::int64_t stride = part_bytes / static_cast<std::int64_t>(sizeof(std::int32_t));
  auto* sums = reinterpret_cast<std::int32_t*>(invocation.scratch);
  std::fill_n(sums, threads * stride, 0);  // there may be fewer tasks
  parallel_slots(*invocation.threads, loops.reduced.row_length, row_grain(loops),
                 [&](std::int64_t slot, std::int64_t begin, std::int64_t end) HWY_ATTR {
                   StridedRows<1> rows = loops.reduced;
                   rows.row_length = rows.elements = end - begin;
                   columns.sum(rows, invocation.input<T>(0) + begin * rows.row_strides[0], sums + slot * stride, n);
                 });
  columns.finish(sums, stride, threads, invocation.output<std::uint8_t>(), n);
}

template <typename T>
void reduce_bytes(const Invocation& invocation, const ReduceLoops& loops) {
  const auto& p = invocation.as<ReduceAffineParams>();
  const float factor = reduce_factor(p, loops.reduced.elements);
  AffineScaler scaler = make_byte_scaler(p.to, p.y_zero_point, p.minimum, p.maximum);
  scaler.scale = &factor;
  const auto zero_sum = static_cast<std::int32_t>(loops.reduced.elements * p.x_zero_point);
  if (!loops.by_columns()) return reduce_rows<T>(invocation, loops, scaler, zero_sum);
  const auto* x = invocation.input<T>(0);
  auto* y = invocation.output<std::uint8_t>();
  const std::int64_t part_bytes = shared_sums_bytes(loops, invocation.threads->count);
  if (part_bytes != 0 && invocation.scratch_bytes >= part_bytes * invocation.threads->count)
    return reduce_shared_rows(invocation, loops, Columns<T>(scaler, zero_sum), part_bytes);
  parallel_ranges(*invocation.threads, loops.kept.elements, reduce_grain(loops),
                  [&](std::int64_t begin, std::int64_t end) HWY_ATTR {
                    const Columns<T> columns(scaler, zero_sum);
                    for_each_segment(loops.kept, begin, end, [&](const auto& offsets, std::int64_t n) HWY_ATTR {
                      columns.reduce(loops.reduced, x + offsets[1], y + offsets[0], n);
                    });
                  });
}

void run_reduce_affine(const Invocation& invocation, const ReduceLoops& loops) {
  dispatch_type<std::int8_t, std::uint8_t>(
      invocation.in(0).type, [&](auto tag) { reduce_bytes<typename decltype(tag)::type>(invocation, loops); });
}

}  // namespace
}  // namespace bantam::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bantam::ops {

HWY_EXPORT(run_reduce_affine);

Footprint reduce_affine_footprint(const OpCall& call, int threads) {
  const auto& p = call.as<ReduceAffineParams>();
  const ReduceLoops loops = make_reduce_loops(p.axes, p.keep_dims, call.in(0), call.out());
  return {.useful_scratch_bytes = shared_sums_bytes(loops, threads) * threads};
}

bool supports_reduce_affine_simd(const OpCall& call) {
  constexpr std::int64_t kMostElements = std::int64_t{1} << 23;  // times 255 is an int32
  const auto& p = call.as<ReduceAffineParams>();
  const ReduceLoops loops = make_reduce_loops(p.axes, p.keep_dims, call.in(0), call.out());
  return loops.suit_vectors() && loops.reduced.elements <= kMostElements;
}

Status run_reduce_affine_simd(const Invocation& invocation) {
  const auto& p = invocation.as<ReduceAffineParams>();
  const ReduceLoops loops = make_reduce_loops(p.axes, p.keep_dims, invocation.in(0), invocation.out());
  HWY_DYNAMIC_DISPATCH(run_reduce_affine)(invocation, loops);
  return ok_status();
}

}  // namespace bantam::ops
#endif
