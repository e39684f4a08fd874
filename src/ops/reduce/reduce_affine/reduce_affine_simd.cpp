#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/reduce/reduce_affine/reduce_affine_simd.cpp"
#include "hwy/foreach_target.h"
// Highway wants the headers below after foreach_target.h.
#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "hwy/highway.h"
#include "ops/common/affine_form.h"
#include "ops/common/affine_simd-inl.h"
#include "ops/common/dispatch.h"
#include "ops/nn/gemm/unroll-inl.h"
#include "ops/reduce/reduce_affine/kernels.h"
#include "ops/reduce/reduce_loops.h"

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

/// Results of columns side by side; `zero_sum` is what zero points add to each sum.
template <typename T>
class Columns {
 public:
  HWY_INLINE Columns(const StridedRows<1>& reduced, const AffineScaler& scaler, std::int32_t zero_sum)
      : reduced_(reduced), scale_(Words(), scaler, 0, kHalfColumns), zero_sum_(hn::Set(Words(), zero_sum)) {}

  HWY_INLINE void reduce(const T* x, std::uint8_t* y, std::int64_t n) const {
    std::int64_t i = 0;
    for (; i + kWide * kColumns <= n; i += kWide * kColumns) reduce_block<kWide>(x + i, y + i, kColumns);
    for (; i + kColumns <= n; i += kColumns) reduce_block<1>(x + i, y + i, kColumns);
    if (i == n) return;
    // Columns of the last vector may be computed twice.
    if (n >= kColumns) i = n - kColumns;
    reduce_block<1>(x + i, y + i, n - i);
  }

 private:
  static constexpr int kWide = 4;

  template <int kVectors>
  HWY_INLINE void reduce_block(const T* x, std::uint8_t* y, std::int64_t count) const {
    Sums sums[2 * kVectors];
    sum_columns<T, kVectors>(reduced_, x, count, sums);
    for (int v = 0; v < kVectors; ++v, y += kColumns) {
      store(sums[2 * v], std::min(count, kHalfColumns), y);
      if (count > kHalfColumns) store(sums[2 * v + 1], count - kHalfColumns, y + kHalfColumns);
    }
  }

  HWY_INLINE void store(Sums sum, std::int64_t lanes, std::uint8_t* y) const {
    scale_.store(scale_(hn::Sub(sum, zero_sum_)), lanes, y);
  }

  const StridedRows<1>& reduced_;
  AffineVector<Words> scale_;
  Sums zero_sum_;
};

/// The sum of n contiguous bytes.
template <typename T>
HWY_INLINE std::int64_t sum_row(const T* x, std::int64_t n) {
  const hn::ScalableTag<std::uint8_t> d8;
  const hn::Repartition<std::uint64_t, decltype(d8)> d64;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d8));
  constexpr bool kSigned = std::is_signed_v<T>;
  const auto flip = hn::Set(d8, kSigned ? 0x80 : 0);
  auto sums = hn::Zero(d64);
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto bytes = hn::LoadU(d8, reinterpret_cast<const std::uint8_t*>(x) + i);
    sums = hn::Add(sums, hn::SumsOf8(hn::Xor(bytes, flip)));
  }
  HWY_ALIGN std::uint64_t parts[HWY_MAX_BYTES / sizeof(std::uint64_t)];
  hn::Store(sums, d64, parts);
  std::int64_t total = kSigned ? -128 * i : 0;
  for (std::size_t k = 0; k < hn::Lanes(d64); ++k) total += static_cast<std::int64_t>(parts[k]);
  for (; i < n; ++i) total += x[i];
  return total;
}

template <typename T>
void reduce_bytes(const Invocation& invocation, const ReduceLoops& loops) {
  const auto& p = invocation.as<ReduceAffineParams>();
  const float factor = reduce_factor(p, loops.reduced.elements);
  AffineScaler scaler = make_byte_scaler(p.to, p.y_zero_point, p.minimum, p.maximum);
  scaler.scale = &factor;
  const auto zero_sum = static_cast<std::int32_t>(loops.reduced.elements * p.x_zero_point);
  if (!loops.by_columns()) {
    for_each_result<T, std::uint8_t>(invocation, loops, [&](const StridedRows<1>& elements, const T* x) HWY_ATTR {
      std::int64_t sum = -std::int64_t{zero_sum};
      for_each_row(elements, [&](const auto& offsets, std::int64_t n) HWY_ATTR { sum += sum_row(x + offsets[0], n); });
      return scaler.to_byte(static_cast<float>(sum) * factor);
    });
    return;
  }
  const auto* x = invocation.input<T>(0);
  auto* y = invocation.output<std::uint8_t>();
  parallel_ranges(*invocation.threads, loops.kept.elements, reduce_grain(loops),
                  [&](std::int64_t begin, std::int64_t end) HWY_ATTR {
                    const Columns<T> columns(loops.reduced, scaler, zero_sum);
                    for_each_segment(loops.kept, begin, end, [&](const auto& offsets, std::int64_t n) HWY_ATTR {
                      columns.reduce(x + offsets[1], y + offsets[0], n);
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
