// Compiled with dot products and products of matrices (src/CMakeLists.txt); called where the processor has them. What
// is here and in other sources too must be inlined: the linker keeps one copy of a function, which every processor
// runs.
#include "ops/nn/gemm/gemm_i8_arm.h"

#if defined(__ARM_FEATURE_DOTPROD) && defined(__ARM_FEATURE_MATMUL_INT8)

#include <arm_neon.h>

#include <cstring>

#include "ops/common/unrolled.h"

namespace bantam::ops::gemm {
namespace {

/// What inverts the bits of `flip` in all bytes: made anew for each group of quads, in place of a register that the
/// sums need.
[[gnu::always_inline]] inline uint8x16_t flips_of(std::uint8_t flip) noexcept {
  uint8x16_t flips;
  asm volatile("dup %0.16b, %w1" : "=w"(flips) : "r"(flip));
  return flips;
}

[[gnu::always_inline]] inline int8x16_t to_signed(uint8x16_t bytes, uint8x16_t flips) noexcept {
  return vreinterpretq_s8_u8(veorq_u8(bytes, flips));
}

/// Adds the products of one quad of each row, or of that which is part `kPart` of sixteen bytes of each row.
template <int kPart, int kRows, int kVectors>
[[gnu::always_inline]] inline void add_quad(const int8x16_t (&left)[kRows], const std::int8_t*& panel,
                                            int32x4_t (&sum)[kRows][kVectors]) noexcept {
  unrolled<kVectors>([&](auto v) {
    // One vector after the other: all at once do not fit the registers.
    asm volatile("" : "+r"(panel));
    const int8x16_t right = vld1q_s8(panel + kPart * 4 * kPanel + 16 * v);
    unrolled<kRows>([&](auto r) { sum[r][v] = vdotq_laneq_s32(sum[r][v], right, left[r], kPart); });
  });
}

template <int kRows, int kVectors>
void sum_dot(const ArmTile& tile) noexcept {
  int32x4_t sum[kRows][kVectors];
  unrolled<kVectors>([&](auto v) {
    const int32x4_t start = vld1q_s32(tile.start + 4 * v);
    unrolled<kRows>([&](auto r) { sum[r][v] = start; });
  });
  const std::uint8_t* a = tile.a;
  const std::int64_t stride = tile.row_stride;
  const std::uint8_t flip = tile.flip;
  const std::int8_t* panel = tile.panel;
  std::int64_t quads = tile.quads;
  for (; quads >= 4; quads -= 4, a += 16, panel += 4 * 4 * kPanel) {
    int8x16_t left[kRows];
    const uint8x16_t flips = flips_of(flip);
    unrolled<kRows>([&](auto r) { left[r] = to_signed(vld1q_u8(a + r * stride), flips); });
    unrolled<4>([&](auto part) { add_quad<part, kRows, kVectors>(left, panel, sum); });
  }
  for (; quads > 0; --quads, a += 4, panel += 4 * kPanel) {
    int8x16_t left[kRows];
    const uint8x16_t flips = flips_of(flip);
    unrolled<kRows>([&](auto r) {
      std::uint32_t bytes;
      std::memcpy(&bytes, a + r * stride, sizeof bytes);
      left[r] = to_signed(vreinterpretq_u8_u32(vdupq_n_u32(bytes)), flips);
    });
    add_quad<0, kRows, kVectors>(left, panel, sum);
  }
  unrolled<kRows>(
      [&](auto r) { unrolled<kVectors>([&](auto v) { vst1q_s32(tile.sums + r * kPanel + 4 * v, sum[r][v]); }); });
}

/// Adds the products of two quads, of which `first` and `second` are four columns, and pairs of rows.
template <int kPairs, int kVectors, int v>
[[gnu::always_inline]] inline void add_columns(const int8x16_t (&left)[kPairs], int8x16_t first, int8x16_t second,
                                               int32x4_t (&sum)[kPairs][2 * kVectors]) noexcept {
  const int32x4_t one = vreinterpretq_s32_s8(first);
  const int32x4_t two = vreinterpretq_s32_s8(second);
  const int8x16_t low = vreinterpretq_s8_s32(vzip1q_s32(one, two));
  const int8x16_t high = vreinterpretq_s8_s32(vzip2q_s32(one, two));
  unrolled<kPairs>([&](auto p) {
    sum[p][2 * v] = vmmlaq_s32(sum[p][2 * v], left[p], low);
    sum[p][2 * v + 1] = vmmlaq_s32(sum[p][2 * v + 1], left[p], high);
  });
}

/// Two columns of two rows are one vector of sums.
template <int kPairs, int kVectors>
void sum_matrices(const ArmTile& tile) noexcept {
  int32x4_t sum[kPairs][2 * kVectors];
  unrolled<2 * kVectors>([&](auto c) {
    const int32x2_t start = vld1_s32(tile.start + 2 * c);
    unrolled<kPairs>([&](auto p) { sum[p][c] = vcombine_s32(start, start); });
  });
  const std::uint8_t flip = tile.flip;
  const std::uint8_t* row[2 * kPairs];
  unrolled<2 * kPairs>([&](auto r) { row[r] = tile.a + (r < tile.rows ? r : 0) * tile.row_stride; });
  const std::int8_t* panel = tile.panel;
  std::int64_t at = 0;
  int8x16_t left[kPairs];
  for (; at + 8 <= 4 * tile.quads; at += 8, panel += 2 * 4 * kPanel) {
    const uint8x16_t flips = flips_of(flip);
    unrolled<kPairs>([&](auto p) {
      left[p] = to_signed(vcombine_u8(vld1_u8(row[2 * p] + at), vld1_u8(row[2 * p + 1] + at)), flips);
    });
    unrolled<kVectors>([&](auto v) {
      asm volatile("" : "+r"(panel));
      add_columns<kPairs, kVectors, v>(left, vld1q_s8(panel + 16 * v), vld1q_s8(panel + 4 * kPanel + 16 * v), sum);
    });
  }
  if (at < 4 * tile.quads) {
    const uint8x16_t flips = flips_of(flip);
    unrolled<kPairs>([&](auto p) {
      std::uint32_t bytes[4] = {};
      std::memcpy(&bytes[0], row[2 * p] + at, sizeof bytes[0]);
      std::memcpy(&bytes[2], row[2 * p + 1] + at, sizeof bytes[2]);
      left[p] = to_signed(vreinterpretq_u8_u32(vld1q_u32(bytes)), flips);
    });
    unrolled<kVectors>(
        [&](auto v) { add_columns<kPairs, kVectors, v>(left, vld1q_s8(panel + 16 * v), vdupq_n_s8(0), sum); });
  }
  unrolled<kPairs>([&](auto p) {
    unrolled<kVectors>([&](auto v) {
      const int64x2_t low = vreinterpretq_s64_s32(sum[p][2 * v]);
      const int64x2_t high = vreinterpretq_s64_s32(sum[p][2 * v + 1]);
      std::int32_t* to = tile.sums + 2 * p * kPanel + 4 * v;
      vst1q_s32(to, vreinterpretq_s32_s64(vzip1q_s64(low, high)));
      vst1q_s32(to + kPanel, vreinterpretq_s32_s64(vzip2q_s64(low, high)));
    });
  });
}

using Function = void (*)(const ArmTile&) noexcept;
template <int kVectors>
constexpr Function kDot[kArmTileRows] = {sum_dot<1, kVectors>, sum_dot<2, kVectors>, sum_dot<3, kVectors>,
                                         sum_dot<4, kVectors>, sum_dot<5, kVectors>, sum_dot<6, kVectors>};
template <int kVectors>
constexpr Function kMatrices[kArmTileRows / 2] = {sum_matrices<1, kVectors>, sum_matrices<2, kVectors>,
                                                  sum_matrices<3, kVectors>};

}  // namespace

void sum_bytes_dotprod(const ArmTile& tile) noexcept { (tile.narrow ? kDot<2> : kDot<4>)[tile.rows - 1](tile); }

void sum_bytes_i8mm(const ArmTile& tile) noexcept {
  // Half of what a pair of rows computes would be for nothing.
  if (tile.rows == 1) return sum_bytes_dotprod(tile);
  (tile.narrow ? kMatrices<2> : kMatrices<4>)[(tile.rows + 1) / 2 - 1](tile);
}

}  // namespace bantam::ops::gemm

#endif
