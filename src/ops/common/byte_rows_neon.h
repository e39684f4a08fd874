// The last steps of 8-bit results in 64-bit Arm's instructions: zero point, limits and the order of bytes for 8 or 16
// numbers at a time. Called by vector kernels where they are compiled for NEON; pure.
#pragma once

#if defined(__aarch64__)

#include <arm_neon.h>

#include <cstdint>

#include "ops/common/affine_form.h"

namespace bantam::ops::neon {

/// Numbers come without zero point and limits; those beyond 16 bits need only lie on their side. Limits are those of
/// int8 or within; the bits of `flip` are inverted in the end.
class ByteRows {
 public:
  [[gnu::always_inline]] ByteRows(std::int32_t zero_point, std::int32_t minimum, std::int32_t maximum,
                                  std::uint8_t flip) noexcept
      : is_plain_(minimum == -128 && maximum == 127),
        zero_point_(vdupq_n_s16(static_cast<std::int16_t>(zero_point))),
        minimum_(vdupq_n_s8(static_cast<std::int8_t>(minimum))),
        maximum_(vdupq_n_s8(static_cast<std::int8_t>(maximum))),
        flip_(vdupq_n_u8(flip)) {}

  /// Are all numbers of int8 within the limits? Then packing limits them.
  bool is_plain() const noexcept { return is_plain_; }

  /// kPlain, here and below: what is_plain() says, or false. kFlips: false only where `flip` is 0.
  template <bool kPlain = false, bool kFlips = true>
  [[gnu::always_inline]] void store(const int32x4_t (&v)[4], std::uint8_t* to) const noexcept {
    vst1q_u8(to, bytes_of<kPlain, kFlips>(v));
  }
  /// The bytes of v[2] and v[3] go `step` behind the others.
  template <bool kPlain = false, bool kFlips = true>
  [[gnu::always_inline]] void store_halves(const int32x4_t (&v)[4], std::uint8_t* to,
                                           std::int64_t step) const noexcept {
    const uint8x16_t bytes = bytes_of<kPlain, kFlips>(v);
    vst1_u8(to, vget_low_u8(bytes));
    vst1_u8(to + step, vget_high_u8(bytes));
  }
  /// Of numbers with the zero point.
  [[gnu::always_inline]] void store(int16x8_t low, int16x8_t high, std::uint8_t* to) const noexcept {
    vst1q_u8(to, limited(vqmovn_high_s16(vqmovn_s16(low), high)));
  }
  [[gnu::always_inline]] void store(const int32x4_t (&v)[2], std::uint8_t* to) const noexcept {
    const int8x8_t bytes = vqmovn_s16(with_zero_point(v[0], v[1]));
    vst1_u8(to, vget_low_u8(limited(vcombine_s8(bytes, bytes))));
  }

 private:
  template <bool kPlain, bool kFlips>
  [[gnu::always_inline]] uint8x16_t bytes_of(const int32x4_t (&v)[4]) const noexcept {
    const int8x16_t bytes = vqmovn_high_s16(vqmovn_s16(with_zero_point(v[0], v[1])), with_zero_point(v[2], v[3]));
    if constexpr (!kPlain) return limited(bytes);
    const uint8x16_t unsigned_bytes = vreinterpretq_u8_s8(bytes);
    return kFlips ? veorq_u8(unsigned_bytes, flip_) : unsigned_bytes;
  }
  [[gnu::always_inline]] int16x8_t with_zero_point(int32x4_t low, int32x4_t high) const noexcept {
    return vqaddq_s16(vqmovn_high_s32(vqmovn_s32(low), high), zero_point_);
  }
  [[gnu::always_inline]] uint8x16_t limited(int8x16_t bytes) const noexcept {
    return veorq_u8(vreinterpretq_u8_s8(vminq_s8(vmaxq_s8(bytes, minimum_), maximum_)), flip_);
  }

  bool is_plain_;
  int16x8_t zero_point_;
  int8x16_t minimum_;
  int8x16_t maximum_;
  uint8x16_t flip_;
};

}  // namespace bantam::ops::neon

#endif
