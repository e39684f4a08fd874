// The last stage of a panel of gemm_i8.h on 64-bit Arm, where results are bytes: sixteen columns at once. Included by
// gemm_i8_ends-inl.h inside Highway's per-target compilation; nothing is allocated.
#if defined(BANTAM_OPS_GEMM_STORE_NEON_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BANTAM_OPS_GEMM_STORE_NEON_INL_H_
#undef BANTAM_OPS_GEMM_STORE_NEON_INL_H_
#else
#define BANTAM_OPS_GEMM_STORE_NEON_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <type_traits>

#include "hwy/highway.h"
#include "ops/common/activate_rows.h"
#include "ops/common/activation_steps_simd-inl.h"
#include "ops/common/affine_simd-inl.h"
#include "ops/common/byte_rows_neon.h"
#include "ops/common/fixed_point_neon.h"
#include "ops/common/requantize_simd-inl.h"
#include "ops/common/short_copy.h"
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

/// Four numbers of type T.
template <typename T>
using Quarter = std::conditional_t<std::is_same_v<T, float>, float32x4_t, int32x4_t>;

/// Numbers of a panel's first columns, 0 in the others, or where `from` is null.
template <typename T>
HWY_INLINE void load_quarters(const T* from, std::int64_t columns, Quarter<T> (&to)[kQuarters]) {
  T numbers[kPanel];
  if (from == nullptr || columns < kPanel) {
    std::fill_n(numbers, kPanel, T{0});
    if (from != nullptr) std::copy_n(from, columns, numbers);
    from = numbers;
  }
  unroll<kQuarters>([&](auto v) HWY_ATTR { to[v] = hn::LoadU(hn::CappedTag<T, 4>(), from + 4 * v).raw; });
}

/// What all factors of a panel's scaling are known to be: the less, the shorter.
enum class Factors { kAny, kBelowOne, kBelowHalf };

/// The scaling of a panel's sums that have their bias: AffineVector's or RequantizeVector's, but only what panels need
/// of them, since few rows do not pay for more.
template <class Scaler>
class PanelScale;

template <>
class PanelScale<AffineScaler> {
 public:
  HWY_INLINE PanelScale(const AffineScaler& s, std::int64_t first, std::int64_t columns) {
    if (s.scale != nullptr && !s.per_channel) {
      unroll<kQuarters>([&](auto v) HWY_ATTR { scale_[v] = vdupq_n_f32(s.scale[0]); });
    } else {
      load_quarters(s.scale != nullptr ? s.scale + first : nullptr, columns, scale_);
    }
    if (s.has_activation()) {
      load_quarters(s.real_bias != nullptr ? s.real_bias + first : nullptr, columns, real_bias_);
    } else {
      unroll<kQuarters>([&](auto v) HWY_ATTR { scale_[v] = Vector::limited(Real(scale_[v])).raw; });
    }
  }

  /// It is the same whatever they are.
  static constexpr Factors factors() { return Factors::kBelowHalf; }

  template <int v, Factors kFactors>
  HWY_INLINE int32x4_t rounded(int32x4_t total) const {
    return vcvtnq_s32_f32(vmulq_f32(vcvtq_f32_s32(total), scale_[v]));
  }
  /// Steps: of with_short_steps.
  template <int v, class Steps>
  HWY_INLINE int32x4_t activated(const Steps& steps, int32x4_t total) const {
    const auto x = Vector::argument_for<Steps>(hn::Vec<DQuarter>(total), Real(scale_[v]), Real(real_bias_[v]));
    return ops::HWY_NAMESPACE::nearest_in_range(steps(DReal(), x)).raw;
  }
  template <int v>
  HWY_INLINE float32x4_t argument(int32x4_t total) const {
    return vaddq_f32(vmulq_f32(vcvtq_f32_s32(total), scale_[v]), real_bias_[v]);
  }

 private:
  using Vector = AffineVector<DQuarter>;
  using DReal = hn::CappedTag<float, 4>;
  using Real = hn::Vec<DReal>;

  float32x4_t scale_[kQuarters];
  float32x4_t real_bias_[kQuarters];
};

template <>
class PanelScale<Requantizer> {
 public:
  HWY_INLINE PanelScale(const Requantizer& r, std::int64_t first, std::int64_t columns) {
    load_quarters(r.multiplier + first, columns, multiplier_);
    int32x4_t shifts[kQuarters];
    load_quarters(r.shift + first, columns, shifts);
    int32x4_t largest = shifts[0];
    unroll<kQuarters - 1>([&](auto v) HWY_ATTR { largest = vmaxq_s32(largest, shifts[v + 1]); });
    largest_shift_ = vmaxvq_s32(largest);
    unroll<kQuarters>([&](auto v) HWY_ATTR {
      const int32x4_t shift = vminq_s32(vmaxq_s32(shifts[v], vdupq_n_s32(-31)), vdupq_n_s32(30));
      left_[v] = vmaxq_s32(shift, vdupq_n_s32(0));
      right_[v] = vminq_s32(shift, vdupq_n_s32(0));
    });
  }

  Factors factors() const {
    return largest_shift_ < 0 ? Factors::kBelowHalf : largest_shift_ == 0 ? Factors::kBelowOne : Factors::kAny;
  }

  /// kFactors: what factors() says, or more.
  template <int v, Factors kFactors>
  HWY_INLINE int32x4_t rounded(int32x4_t total) const {
    if constexpr (kFactors == Factors::kBelowHalf)
      return neon::divide_by_real_power(neon::high_mul(total, multiplier_[v]), right_[v]);
    if constexpr (kFactors == Factors::kBelowOne)
      return neon::divide_by_power(neon::high_mul(total, multiplier_[v]), right_[v]);
    return neon::divide_by_power(neon::high_mul(vshlq_s32(total, left_[v]), multiplier_[v]), right_[v]);
  }

 private:
  std::int32_t largest_shift_;
  int32x4_t multiplier_[kQuarters];
  int32x4_t left_[kQuarters];
  int32x4_t right_[kQuarters];
};

/// What makes bytes of the sums of a panel's first columns: chosen once for all rows.
template <class Scaler>
class PanelStore {
 public:
  HWY_INLINE PanelStore(const Scaler& scaler, std::int64_t first, std::int64_t columns, std::uint8_t flip)
      : scaler_(scaler),
        first_(first),
        columns_(columns),
        scale_(scaler, first, columns),
        bytes_(scaler.zero_point, scaler.minimum, scaler.maximum, flip) {
    constexpr bool kHasFactors = std::is_same_v<Scaler, Requantizer>;
    const Factors factors = bytes_.is_plain() ? scale_.factors() : Factors::kAny;
    if (factors == Factors::kBelowHalf) {
      choose_store<Factors::kBelowHalf>();
    } else if (kHasFactors && factors == Factors::kBelowOne) {
      choose_store<kHasFactors ? Factors::kBelowOne : Factors::kAny>();
    } else {
      choose_store<Factors::kAny>();
    }
  }
  PanelStore(const PanelStore&) = delete;
  PanelStore& operator=(const PanelStore&) = delete;

  /// Adds what sums have to begin with besides, one number for each column of the panel.
  HWY_INLINE void add_bias(std::int32_t* start) const {
    if (scaler_.bias == nullptr) return;
    int32x4_t bias[kQuarters];
    load_quarters(scaler_.bias + first_, columns_, bias);
    unroll<kQuarters>([&](auto v) HWY_ATTR { vst1q_s32(start + 4 * v, vaddq_s32(vld1q_s32(start + 4 * v), bias[v])); });
  }

  /// Rows of kPanel sums, which follow one another and may be overwritten.
  HWY_INLINE void store(std::int32_t* sums, std::int64_t rows, std::uint8_t* y, std::int64_t row_stride) const {
    store_(*this, sums, rows, y, row_stride);
  }

 private:
  using Store = void (*)(const PanelStore&, std::int32_t*, std::int64_t, std::uint8_t*, std::int64_t);

  /// kFactors, here and below: what scale_ says, or more; and kAny unless bytes_ are plain.
  template <Factors kFactors>
  HWY_INLINE void choose_store() {
    store_ = &store_plain<kFactors>;
    if constexpr (std::is_same_v<Scaler, AffineScaler>) {
      if (!scaler_.has_activation()) return;
      const bool has_steps = with_short_steps(scaler_, [&](const auto& steps) HWY_ATTR {
        using Steps = std::remove_cvref_t<decltype(steps)>;
        static_assert(sizeof(Steps) <= sizeof(steps_) && std::is_trivially_destructible_v<Steps>);
        new (steps_) Steps(steps);
        store_ = &store_steps<Steps, kFactors>;
      });
      if (!has_steps) store_ = &store_long;
    }
  }

  template <Factors kFactors>
  static HWY_NOINLINE void store_plain(const PanelStore& panel, std::int32_t* sums, std::int64_t rows, std::uint8_t* y,
                                       std::int64_t row_stride) {
    const PanelScale<Scaler> scale = panel.scale_;
    panel.template store_rows<kFactors>(
        sums, rows, y, row_stride, [&](auto v, int32x4_t sum) __attribute__((always_inline)) HWY_ATTR {
          return scale.template rounded<v, kFactors>(sum);
        });
  }

  /// Steps: of with_short_steps; here a copy, which nobody else has.
  template <class Steps, Factors kFactors>
  static HWY_NOINLINE void store_steps(const PanelStore& panel, std::int32_t* sums, std::int64_t rows, std::uint8_t* y,
                                       std::int64_t row_stride) {
    const PanelScale<Scaler> scale = panel.scale_;
    const Steps steps = *std::launder(reinterpret_cast<const Steps*>(panel.steps_));
    panel.template store_rows<kFactors>(
        sums, rows, y, row_stride, [&](auto v, int32x4_t sum) __attribute__((always_inline)) HWY_ATTR {
          return scale.template activated<v>(steps, sum);
        });
  }

  static HWY_NOINLINE void store_long(const PanelStore& panel, std::int32_t* sums, std::int64_t rows, std::uint8_t* y,
                                      std::int64_t row_stride) {
    for (std::int64_t r = 0; r < rows; ++r)
      unroll<kQuarters>([&](auto v) HWY_ATTR {
        std::int32_t* at = sums + r * kPanel + 4 * v;
        vst1q_s32(at, vreinterpretq_s32_f32(panel.scale_.template argument<v>(vld1q_s32(at))));
      });
    round_activated(panel.scaler_, sums, rows * kPanel);
    panel.template store_rows<Factors::kAny>(sums, rows, y, row_stride,
                                             [](auto /*v*/, int32x4_t number) { return number; });
  }

  /// number(v, sums): what bytes are made of instead of the sums of quarter v.
  template <Factors kFactors, class F>
  HWY_INLINE void store_rows(const std::int32_t* sums, std::int64_t rows, std::uint8_t* y, std::int64_t row_stride,
                             F number) const {
    const neon::ByteRows bytes = bytes_;
    const std::int64_t columns = columns_;
    const auto row = [&](std::uint8_t * to) __attribute__((always_inline)) HWY_ATTR {
      int32x4_t numbers[kQuarters];
      unroll<kQuarters>([&](auto v) __attribute__((always_inline))
                        HWY_ATTR { numbers[v] = number(v, vld1q_s32(sums + 4 * v)); });
      bytes.template store<kFactors != Factors::kAny, std::is_same_v<Scaler, AffineScaler>>(numbers, to);
      sums += kPanel;
    };
    if (columns == kPanel) {
      for (; rows > 0; --rows, y += row_stride) row(y);
      return;
    }
    for (; rows > 0; --rows, y += row_stride) {
      std::uint8_t all[kPanel];
      row(all);
      copy_short(all, columns, y);
    }
  }

  const Scaler& scaler_;
  std::int64_t first_;
  std::int64_t columns_;
  PanelScale<Scaler> scale_;
  neon::ByteRows bytes_;
  Store store_;
  alignas(64) std::byte steps_[256];
};

#endif

}  // namespace bantam::ops::gemm::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
