// The last stage of a tile of gemm_i8.h on 64-bit Arm, where results are bytes: sixteen columns at once. Included by
// gemm_i8_simd.cpp inside Highway's per-target compilation; nothing is allocated.
#if defined(BANTAM_OPS_GEMM_STORE_NEON_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BANTAM_OPS_GEMM_STORE_NEON_INL_H_
#undef BANTAM_OPS_GEMM_STORE_NEON_INL_H_
#else
#define BANTAM_OPS_GEMM_STORE_NEON_INL_H_
#endif

#include <cstdint>

#include "hwy/highway.h"
#include "ops/common/fixed_point_neon.h"
#include "ops/nn/gemm/gemm_i8.h"
#include "ops/nn/gemm/unroll-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::gemm::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

#if HWY_ARCH_ARM_A64

/// Stores `rows` rows of kPanel sums, which follow one another, as bytes with the bits of `flip` inverted. Scale: the
/// last stage of four channels, made of a Scaler, that gives numbers in the range of int8; `first` is the first
/// channel.
template <class Scale, class Scaler>
HWY_NOINLINE void store_panel(const Scaler& scaler, std::int64_t first, const std::int32_t* sums, std::int64_t rows,
                              std::uint8_t flip, std::uint8_t* y, std::int64_t row_stride) {
  using ops::HWY_NAMESPACE::unroll;
  using V = hn::Vec<hn::CappedTag<std::int32_t, 4>>;
  constexpr int kQuarters = 4;
  static_assert(kPanel == 4 * kQuarters);
  const Scale scale[kQuarters] = {
      {{}, scaler, first, 4}, {{}, scaler, first + 4, 4}, {{}, scaler, first + 8, 4}, {{}, scaler, first + 12, 4}};
  const uint8x16_t flips = vdupq_n_u8(flip);
  for (; rows > 0; --rows, sums += kPanel, y += row_stride) {
    int32x4_t results[kQuarters];
    unroll<kQuarters>([&](auto v) HWY_ATTR { results[v] = scale[v](V(vld1q_s32(sums + 4 * v))).raw; });
    vst1q_u8(y, veorq_u8(neon::low_bytes(results), flips));
  }
}

#endif

}  // namespace bantam::ops::gemm::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
