// The last stage of a panel of gemm_i8.h on 64-bit Arm, where results are bytes: sixteen columns at once. Included by
// gemm_i8_ends-inl.h inside Highway's per-target compilation; nothing is allocated.
#if defined(BANTAM_OPS_GEMM_STORE_NEON_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BANTAM_OPS_GEMM_STORE_NEON_INL_H_
#undef BANTAM_OPS_GEMM_STORE_NEON_INL_H_
#else
#define BANTAM_OPS_GEMM_STORE_NEON_INL_H_
#endif

#include <cstdint>
#include <type_traits>

#include "hwy/highway.h"
#include "ops/common/activate_rows.h"
#include "ops/common/activation_steps_simd-inl.h"
#include "ops/common/affine_simd-inl.h"
#include "ops/common/byte_rows_neon.h"
#include "ops/common/fixed_point_neon.h"
#include "ops/nn/gemm/gemm_i8.h"
#include "ops/nn/gemm/unroll-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::gemm::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using ops::HWY_NAMESPACE::AffineVector;
using ops::HWY_NAMESPACE::unroll;
using ops::HWY_NAMESPACE::with_short_steps;

#if HWY_ARCH_ARM_A64

constexpr int kQuarters = 4;
static_assert(kPanel == 4 * kQuarters);
using DQuarter = hn::CappedTag<std::int32_t, 4>;

/// The scaling of a panel's sums that have their bias: AffineVector's or RequantizeVector's, but only what whole panels
/// need of them, since few rows do not pay for more.
template <class Scaler>
class PanelScale;

template <>
class PanelScale<AffineScaler> {
 public:
  HWY_INLINE PanelScale() {}
  HWY_INLINE PanelScale(const AffineScaler& s, std::int64_t first) {
    unroll<kQuarters>([&](auto v) HWY_ATTR { scale_[v] = Vector::limited_scales(s, first + 4 * v, 4).raw; });
  }

  template <int v>
  HWY_INLINE int32x4_t rounded(int32x4_t total) const {
    return vcvtnq_s32_f32(vmulq_f32(vcvtq_f32_s32(total), scale_[v]));
  }

 private:
  using Vector = AffineVector<DQuarter>;

  float32x4_t scale_[kQuarters];
};

template <>
class PanelScale<Requantizer> {
 public:
  HWY_INLINE PanelScale() {}
  HWY_INLINE PanelScale(const Requantizer& r, std::int64_t first) {
    unroll<kQuarters>([&](auto v) HWY_ATTR {
      const int32x4_t shift =
          vminq_s32(vmaxq_s32(vld1q_s32(r.shift + first + 4 * v), vdupq_n_s32(-31)), vdupq_n_s32(30));
      multiplier_[v] = vld1q_s32(r.multiplier + first + 4 * v);
      left_[v] = vmaxq_s32(shift, vdupq_n_s32(0));
      right_[v] = vminq_s32(shift, vdupq_n_s32(0));
    });
  }

  template <int v>
  HWY_INLINE int32x4_t rounded(int32x4_t total) const {
    return neon::divide_by_power(neon::high_mul(vshlq_s32(total, left_[v]), multiplier_[v]), right_[v]);
  }

 private:
  int32x4_t multiplier_[kQuarters];
  int32x4_t left_[kQuarters];
  int32x4_t right_[kQuarters];
};

/// What makes bytes of the sums of a whole panel's columns.
template <class Scaler>
class PanelStore {
 public:
  /// Of columns [first, first + kPanel), where `whole`; else not to be used.
  HWY_INLINE PanelStore(const Scaler& scaler, std::int64_t first, std::uint8_t flip, bool whole)
      : scaler_(scaler), first_(first), bytes_(scaler.zero_point, scaler.minimum, scaler.maximum, flip) {
    if (whole) scale_ = PanelScale<Scaler>(scaler, first);
  }

  /// Adds what sums have to begin with besides, one number for each column.
  HWY_INLINE void add_bias(std::int32_t* start) const {
    if (scaler_.bias == nullptr) return;
    const std::int32_t* bias = scaler_.bias + first_;
    unroll<kQuarters>([&](auto v) HWY_ATTR {
      vst1q_s32(start + 4 * v, vaddq_s32(vld1q_s32(start + 4 * v), vld1q_s32(bias + 4 * v)));
    });
  }

  /// Rows of kPanel sums, which follow one another and may be overwritten.
  HWY_NOINLINE void store(std::int32_t* sums, std::int64_t rows, std::uint8_t* y, std::int64_t row_stride) const {
    if constexpr (std::is_same_v<Scaler, AffineScaler>) {
      if (scaler_.has_activation()) return store_activated(sums, rows, y, row_stride);
    }
    const PanelScale<Scaler> scale = scale_;
    store_rows(sums, rows, y, row_stride,
               [&](auto v, int32x4_t sum) HWY_ATTR { return scale.template rounded<v>(sum); });
  }

 private:
  /// number(v, sums): what bytes are made of instead of the sums of quarter v.
  template <class F>
  HWY_INLINE void store_rows(const std::int32_t* sums, std::int64_t rows, std::uint8_t* y, std::int64_t row_stride,
                             F number) const {
    const neon::ByteRows bytes = bytes_;
    for (; rows > 0; --rows, sums += kPanel, y += row_stride) {
      int32x4_t numbers[kQuarters];
      unroll<kQuarters>([&](auto v) HWY_ATTR { numbers[v] = number(v, vld1q_s32(sums + 4 * v)); });
      bytes.store(numbers, y);
    }
  }

  using Vector = AffineVector<DQuarter>;
  using V = hn::Vec<DQuarter>;

  /// Of the panel's columns, with what an activation needs.
  struct Scales {
    Vector quarters[kQuarters];

    HWY_INLINE Scales(const AffineScaler& s, std::int64_t first)
        : quarters{{DQuarter(), s, first, 4},
                   {DQuarter(), s, first + 4, 4},
                   {DQuarter(), s, first + 8, 4},
                   {DQuarter(), s, first + 12, 4}} {}
  };

  HWY_INLINE void store_activated(std::int32_t* sums, std::int64_t rows, std::uint8_t* y,
                                  std::int64_t row_stride) const {
    const bool is_short =
        with_short_steps(scaler_, [&](const auto& steps) HWY_ATTR { store_short(steps, sums, rows, y, row_stride); });
    if (!is_short) store_long(sums, rows, y, row_stride);
  }

  /// Steps: of with_short_steps; a copy, which nobody else has.
  template <class Steps>
  HWY_NOINLINE void store_short(const Steps steps, const std::int32_t* sums, std::int64_t rows, std::uint8_t* y,
                                std::int64_t row_stride) const {
    const Scales scales(scaler_, first_);
    store_rows(sums, rows, y, row_stride,
               [&](auto v, int32x4_t sum) HWY_ATTR { return scales.quarters[v].activated(steps, V(sum)).raw; });
  }

  HWY_INLINE void store_long(std::int32_t* sums, std::int64_t rows, std::uint8_t* y, std::int64_t row_stride) const {
    const Scales scales(scaler_, first_);
    for (std::int64_t r = 0; r < rows; ++r)
      unroll<kQuarters>([&](auto v) HWY_ATTR {
        std::int32_t* at = sums + r * kPanel + 4 * v;
        vst1q_s32(at, hn::BitCast(DQuarter(), scales.quarters[v].argument(V(vld1q_s32(at)))).raw);
      });
    round_activated(scaler_, sums, rows * kPanel);
    store_rows(sums, rows, y, row_stride, [](auto /*v*/, int32x4_t number) { return number; });
  }

  const Scaler& scaler_;
  std::int64_t first_;
  PanelScale<Scaler> scale_;
  neon::ByteRows bytes_;
};

#endif

}  // namespace bantam::ops::gemm::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
