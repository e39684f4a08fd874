// Bytes are multiplied to 16 bits, whose neighbours are added to sums of 32: two sums per column until the end.
#include "ops/nn/gemm/gemm_i8_arm.h"

#if defined(__aarch64__)

#include <arm_neon.h>

#include <cstring>

#include "ops/common/unrolled.h"

namespace bantam::ops::gemm {
namespace {

/// Rows whose sums fit the registers.
constexpr int kRowsAtOnce = 3;

template <int kRows, int kVectors>
void sum_rows(const ArmTile& tile, const std::uint8_t* a, std::int32_t* sums) noexcept {
  int32x4_t low[kRows][kVectors];
  int32x4_t high[kRows][kVectors];
  unrolled<kRows>([&](auto r) { unrolled<kVectors>([&](auto v) { low[r][v] = high[r][v] = vdupq_n_s32(0); }); });
  const std::uint32_t flips = tile.flip * 0x01010101U;
  const std::int8_t* panel = tile.panel;
  for (std::int64_t quad = 0; quad < tile.quads; ++quad, a += 4, panel += 4 * kPanel) {
    int8x16_t left[kRows];
    unrolled<kRows>([&](auto r) {
      std::uint32_t bytes;
      std::memcpy(&bytes, a + r * tile.row_stride, sizeof bytes);
      left[r] = vreinterpretq_s8_u32(vdupq_n_u32(bytes ^ flips));
    });
    unrolled<kVectors>([&](auto v) {
      const int8x16_t right = vld1q_s8(panel + 16 * v);
      unrolled<kRows>([&](auto r) {
        int32x4_t one = vpadalq_s16(low[r][v], vmull_s8(vget_low_s8(left[r]), vget_low_s8(right)));
        int32x4_t two = vpadalq_s16(high[r][v], vmull_high_s8(left[r], right));
        // One after the other: all products at once do not fit the registers.
        asm volatile("" : "+w"(one), "+w"(two));
        low[r][v] = one;
        high[r][v] = two;
      });
    });
  }
  unrolled<kVectors>([&](auto v) {
    const int32x4_t start = vld1q_s32(tile.start + 4 * v);
    unrolled<kRows>(
        [&](auto r) { vst1q_s32(sums + r * kPanel + 4 * v, vaddq_s32(start, vpaddq_s32(low[r][v], high[r][v]))); });
  });
}

template <int kRows>
void sum_columns(const ArmTile& tile, std::int64_t row) noexcept {
  const std::uint8_t* a = tile.a + row * tile.row_stride;
  std::int32_t* sums = tile.sums + row * kPanel;
  tile.narrow ? sum_rows<kRows, 2>(tile, a, sums) : sum_rows<kRows, 4>(tile, a, sums);
}

}  // namespace

void sum_bytes_neon(const ArmTile& tile) noexcept {
  std::int64_t row = 0;
  for (; row + kRowsAtOnce <= tile.rows; row += kRowsAtOnce) sum_columns<kRowsAtOnce>(tile, row);
  for (; row + 2 <= tile.rows; row += 2) sum_columns<2>(tile, row);
  if (row < tile.rows) sum_columns<1>(tile, row);
}

}  // namespace bantam::ops::gemm

#endif
