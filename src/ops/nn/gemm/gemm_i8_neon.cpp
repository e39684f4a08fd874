// Bytes are multiplied to 16 bits, one product or the sum of two, whose neighbours are added to sums of 32: two sums
// per column until the end.
#include "ops/nn/gemm/gemm_i8_arm.h"

#if defined(__aarch64__)

#include <arm_neon.h>

#include <cstdint>
#include <cstring>

#include "ops/common/unrolled.h"

namespace bantam::ops::gemm {
namespace {

/// Rows whose sums fit the registers, and besides the quads of two products.
constexpr int kRowsAtOnce = 3;
constexpr int kRowsOfTwo = 2;

/// Of the two halves of each quad.
template <int kRows, int kVectors>
struct HalfSums {
  int32x4_t low[kRows][kVectors];
  int32x4_t high[kRows][kVectors];

  [[gnu::always_inline]] HalfSums() noexcept {
    unrolled<kRows>([&](auto r) { unrolled<kVectors>([&](auto v) { low[r][v] = high[r][v] = vdupq_n_s32(0); }); });
  }

  /// Adds the products of `lower`, of the first two columns of a vector, and of `upper`.
  template <int r, int v>
  [[gnu::always_inline]] void add(int16x8_t lower, int16x8_t upper) noexcept {
    int32x4_t one = vpadalq_s16(low[r][v], lower);
    int32x4_t two = vpadalq_s16(high[r][v], upper);
    // One after the other: all products at once do not fit the registers.
    asm volatile("" : "+w"(one), "+w"(two));
    low[r][v] = one;
    high[r][v] = two;
  }

  /// Adds those of the quads that begin the rows from `a` on and the panel.
  [[gnu::always_inline]] void add_quad(const ArmTile& tile, const std::uint8_t* a, const std::int8_t* panel) noexcept {
    const std::uint32_t flips = tile.flip * 0x01010101U;
    int8x16_t left[kRows];
    unrolled<kRows>([&](auto r) {
      std::uint32_t bytes;
      std::memcpy(&bytes, a + r * tile.row_stride, sizeof bytes);
      left[r] = vreinterpretq_s8_u32(vdupq_n_u32(bytes ^ flips));
    });
    unrolled<kVectors>([&](auto v) {
      const int8x16_t right = vld1q_s8(panel + 16 * v);
      unrolled<kRows>([&](auto r) {
        add<r, v>(vmull_s8(vget_low_s8(left[r]), vget_low_s8(right)), vmull_high_s8(left[r], right));
      });
    });
  }

  [[gnu::always_inline]] void store(const ArmTile& tile, std::int32_t* sums) const noexcept {
    unrolled<kVectors>([&](auto v) {
      const int32x4_t start = vld1q_s32(tile.start + 4 * v);
      unrolled<kRows>(
          [&](auto r) { vst1q_s32(sums + r * kPanel + 4 * v, vaddq_s32(start, vpaddq_s32(low[r][v], high[r][v]))); });
    });
  }
};

template <int kRows, int kVectors>
void sum_rows(const ArmTile& tile, const std::uint8_t* a, std::int32_t* sums) noexcept {
  HalfSums<kRows, kVectors> halves;
  const std::int8_t* panel = tile.panel;
  for (std::int64_t quad = 0; quad < tile.quads; ++quad, a += 4, panel += 4 * kPanel) halves.add_quad(tile, a, panel);
  halves.store(tile, sums);
}

/// The same where two products fit into 16 bits; rows of four quads at once.
template <int kRows, int kVectors>
void sum_rows_of_two(const ArmTile& tile, const std::uint8_t* a, std::int32_t* sums) noexcept {
  HalfSums<kRows, kVectors> halves;
  const std::int8_t* panel = tile.panel;
  const uint8x16_t flips = vdupq_n_u8(tile.flip);
  std::int64_t quads = tile.quads;
  for (; quads >= 4; quads -= 4, a += 16, panel += 4 * 4 * kPanel) {
    int32x4_t rows[kRows];
    unrolled<kRows>(
        [&](auto r) { rows[r] = vreinterpretq_s32_u8(veorq_u8(vld1q_u8(a + r * tile.row_stride), flips)); });
    unrolled<2>([&](auto pair) {
      int8x16_t first[kRows];
      int8x16_t second[kRows];
      unrolled<kRows>([&](auto r) {
        first[r] = vreinterpretq_s8_s32(vdupq_laneq_s32(rows[r], 2 * pair));
        second[r] = vreinterpretq_s8_s32(vdupq_laneq_s32(rows[r], 2 * pair + 1));
      });
      const std::int8_t* at = panel + 2 * pair * 4 * kPanel;
      unrolled<kVectors>([&](auto v) {
        const int8x16_t one = vld1q_s8(at + 16 * v);
        const int8x16_t two = vld1q_s8(at + 4 * kPanel + 16 * v);
        unrolled<kRows>([&](auto r) {
          const int16x8_t lower = vmull_s8(vget_low_s8(first[r]), vget_low_s8(one));
          const int16x8_t upper = vmull_high_s8(first[r], one);
          halves.template add<r, v>(vmlal_s8(lower, vget_low_s8(second[r]), vget_low_s8(two)),
                                    vmlal_high_s8(upper, second[r], two));
        });
      });
    });
  }
  for (; quads > 0; --quads, a += 4, panel += 4 * kPanel) halves.add_quad(tile, a, panel);
  halves.store(tile, sums);
}

template <int kRows>
void sum_columns(const ArmTile& tile, std::int64_t row) noexcept {
  const std::uint8_t* a = tile.a + row * tile.row_stride;
  std::int32_t* sums = tile.sums + row * kPanel;
  if constexpr (kRows <= kRowsOfTwo) {
    if (tile.sums_two)
      return tile.narrow ? sum_rows_of_two<kRows, 2>(tile, a, sums) : sum_rows_of_two<kRows, 4>(tile, a, sums);
  }
  tile.narrow ? sum_rows<kRows, 2>(tile, a, sums) : sum_rows<kRows, 4>(tile, a, sums);
}

}  // namespace

bool two_products_fit(const std::int8_t* panel, std::int64_t quads) noexcept {
  int8x16_t least = vdupq_n_s8(0);
  for (std::int64_t i = 0; i < quads * 4 * kPanel; i += 4 * kPanel)
    unrolled<4>([&](auto v) { least = vminq_s8(least, vld1q_s8(panel + i + 16 * v)); });
  return vminvq_s8(least) > INT8_MIN;
}

void sum_bytes_neon(const ArmTile& tile) noexcept {
  std::int64_t row = 0;
  if (tile.sums_two)
    for (; row + kRowsOfTwo <= tile.rows; row += kRowsOfTwo) sum_columns<kRowsOfTwo>(tile, row);
  for (; row + kRowsAtOnce <= tile.rows; row += kRowsAtOnce) sum_columns<kRowsAtOnce>(tile, row);
  for (; row + 2 <= tile.rows; row += 2) sum_columns<2>(tile, row);
  if (row < tile.rows) sum_columns<1>(tile, row);
}

}  // namespace bantam::ops::gemm

#endif
