// Compiled for 16-bit floating-point arithmetic (src/CMakeLists.txt); called where the processor has it. What is here
// and in other sources too must be inlined: the linker keeps one copy of a function, which every processor runs.
#include "ops/nn/gemm/gemm_f16_tile.h"

#if defined(__ARM_FEATURE_FP16_VECTOR_ARITHMETIC) || defined(__AVX512FP16__)

#if defined(__aarch64__)
#include <arm_neon.h>
#else
#include <immintrin.h>
#endif

#include "ops/common/unrolled.h"

namespace bantam::ops::gemm {
namespace {

#if defined(__aarch64__)

using Halves = float16x8_t;
using Floats = float32x4_t;

[[gnu::always_inline]] inline Halves zero() noexcept { return vreinterpretq_f16_u16(vdupq_n_u16(0)); }

/// Part 0 or 1 of a vector of halves.
template <int kPart>
[[gnu::always_inline]] inline Floats to_floats(Halves halves) noexcept {
  return kPart == 0 ? vcvt_f32_f16(vget_low_f16(halves)) : vcvt_high_f32_f16(halves);
}

[[gnu::always_inline]] inline Floats load(const float* from) noexcept { return vld1q_f32(from); }
[[gnu::always_inline]] inline void store(Floats v, float* to) noexcept { vst1q_f32(to, v); }
[[gnu::always_inline]] inline Floats multiply_add(Floats x, float scale, Floats sum) noexcept {
  return vfmaq_n_f32(sum, x, scale);
}
[[gnu::always_inline]] inline Floats clamped(Floats v, float low, float high) noexcept {
  return vminq_f32(vmaxq_f32(v, vdupq_n_f32(low)), vdupq_n_f32(high));
}

/// sum + right * the number in a lane of `left`. In assembly: gcc would copy a lane that two products share to a
/// vector.
template <int kLane>
[[gnu::always_inline]] inline Halves multiply_lane(Halves sum, Halves right, Halves left) noexcept {
  asm("fmla %0.8h, %1.8h, %2.h[%3]" : "+w"(sum) : "w"(right), "x"(left), "i"(kLane));
  return sum;
}

/// Adds the products of the numbers in lane `kLane` of each row with one row of the panel.
template <int kLane, int kRows, int kVectors>
[[gnu::always_inline]] inline void add_lane(const Halves (&left)[kRows], const std::uint16_t*& panel,
                                            Halves (&sum)[kRows][kVectors]) noexcept {
  unrolled<kVectors>([&](auto v) {
    // One vector after the other: all at once do not fit the registers.
    asm volatile("" : "+r"(panel));
    const Halves right = vreinterpretq_f16_u16(vld1q_u16(panel + kHalfLanes * v));
    unrolled<kRows>([&](auto r) { sum[r][v] = multiply_lane<kLane>(sum[r][v], right, left[r]); });
  });
  panel += kPanel;
}

/// Adds the products of `count` numbers of each row, from first_k on.
template <int kRows, int kVectors>
[[gnu::always_inline]] inline void add_products(const HalfTile& tile, std::int64_t first_k, std::int64_t count,
                                                Halves (&sum)[kRows][kVectors]) noexcept {
  const std::uint16_t* a = tile.a + first_k;
  const std::uint16_t* panel = tile.panel + first_k * kPanel;
  const std::int64_t stride = tile.row_stride;
  const std::uint16_t* ahead = tile.ahead + first_k * tile.ahead_step;
  for (; count >= 8; count -= 8, a += 8, ahead += 8 * tile.ahead_step) {
    __builtin_prefetch(ahead, 0, 3);
    Halves left[kRows];
    unrolled<kRows>([&](auto r) { left[r] = vreinterpretq_f16_u16(vld1q_u16(a + r * stride)); });
    unrolled<8>([&](auto lane) { add_lane<lane, kRows, kVectors>(left, panel, sum); });
  }
  for (; count > 0; --count, ++a) {
    Halves left[kRows];
    unrolled<kRows>([&](auto r) { left[r] = vreinterpretq_f16_u16(vld1q_dup_u16(a + r * stride)); });
    add_lane<0, kRows, kVectors>(left, panel, sum);
  }
}

#else

using Halves = __m512h;
using Floats = __m512;

[[gnu::always_inline]] inline Halves zero() noexcept { return _mm512_setzero_ph(); }

/// Part 0 or 1 of a vector of halves.
template <int kPart>
[[gnu::always_inline]] inline Floats to_floats(Halves halves) noexcept {
  return _mm512_cvtxph_ps(_mm256_castsi256_ph(_mm512_extracti64x4_epi64(_mm512_castph_si512(halves), kPart)));
}

[[gnu::always_inline]] inline Floats load(const float* from) noexcept { return _mm512_loadu_ps(from); }
[[gnu::always_inline]] inline void store(Floats v, float* to) noexcept { _mm512_storeu_ps(to, v); }
[[gnu::always_inline]] inline Floats multiply_add(Floats x, float scale, Floats sum) noexcept {
  return _mm512_fmadd_ps(x, _mm512_set1_ps(scale), sum);
}
[[gnu::always_inline]] inline Floats clamped(Floats v, float low, float high) noexcept {
  // Of two numbers one of which is NaN these are the second.
  return _mm512_min_ps(_mm512_set1_ps(high), _mm512_max_ps(_mm512_set1_ps(low), v));
}

/// A row of two panels.
[[gnu::always_inline]] inline Halves load_pair(const std::uint16_t* first, const std::uint16_t* second) noexcept {
  const __m256i low = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(first));
  const __m256i high = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(second));
  return _mm512_castsi512_ph(_mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1));
}

/// Adds the products of `count` numbers of each row, from first_k on.
template <int kRows, int kVectors>
[[gnu::always_inline]] inline void add_products(const HalfTile& tile, std::int64_t first_k, std::int64_t count,
                                                Halves (&sum)[kRows][kVectors]) noexcept {
  // A panel that is missing is replaced by the one before it.
  std::int64_t offset[2 * kVectors];
  unrolled<2 * kVectors>([&](auto i) { offset[i] = (i < tile.panels ? i : tile.panels - 1) * tile.panel_stride; });
  // Every third row has a pointer; the two between are reached by an index, which keeps all in registers.
  const std::int64_t stride = tile.row_stride;
  const std::uint16_t* ahead = tile.ahead + first_k * tile.ahead_step;
  const std::uint16_t* panel = tile.panel + first_k * kPanel;
  const auto* numbers = reinterpret_cast<const _Float16*>(tile.a + first_k);
  const _Float16* base[(kRows + 2) / 3];
  unrolled<(kRows + 2) / 3>([&](auto g) { base[g] = numbers + 3 * g * stride; });
  for (std::int64_t k = 0; k < count; ++k, panel += kPanel) {
    __builtin_prefetch(ahead, 0, 2);
    ahead += tile.ahead_step;
    Halves right[kVectors];
    unrolled<kVectors>([&](auto v) { right[v] = load_pair(panel + offset[2 * v], panel + offset[2 * v + 1]); });
    unrolled<kRows>([&](auto r) {
      const Halves x = _mm512_set1_ph(base[r / 3][r % 3 * stride + k]);
      unrolled<kVectors>([&](auto v) { sum[r][v] = _mm512_fmadd_ph(x, right[v], sum[r][v]); });
    });
  }
}

#endif

/// Adds the sums of a piece, times what its numbers are multiples of, to `start`.
template <int kRows, int kVectors>
[[gnu::always_inline]] inline void end_piece(const HalfTile& tile, const Halves (&sum)[kRows][kVectors],
                                             const float* scales, const float* start, std::int64_t start_stride,
                                             bool clamps) noexcept {
  constexpr std::int64_t kFloats = kHalfLanes / 2;
  unrolled<kRows>([&](auto r) {
    const float scale = scales[r * tile.scale_stride];
    unrolled<kVectors>([&](auto v) {
      unrolled<2>([&](auto part) {
        const std::int64_t column = v * kHalfLanes + part * kFloats;
        Floats y = multiply_add(to_floats<part>(sum[r][v]), scale, load(start + r * start_stride + column));
        if (clamps) y = clamped(y, tile.low, tile.high);
        store(y, tile.y + r * tile.y_stride + column);
      });
    });
  });
}

template <int kRows, int kVectors>
void multiply_tile(const HalfTile& tile) noexcept {
  const float* start = tile.start;
  std::int64_t start_stride = tile.start_stride;
  const float* scales = tile.scales;
  for (std::int64_t k = 0; k < tile.k; k += tile.piece) {
    Halves sum[kRows][kVectors];
    unrolled<kRows>([&](auto r) { unrolled<kVectors>([&](auto v) { sum[r][v] = zero(); }); });
    const std::int64_t count = tile.piece < tile.k - k ? tile.piece : tile.k - k;
    add_products<kRows, kVectors>(tile, k, count, sum);
    end_piece<kRows, kVectors>(tile, sum, scales, start, start_stride, tile.clamps && k + count == tile.k);
    start = tile.y;
    start_stride = tile.y_stride;
    ++scales;
  }
}

template <int kVectors, int... kRowsMinusOne>
HalfTileFunction tile_of(std::int64_t rows, std::integer_sequence<int, kRowsMinusOne...>) {
  static constexpr HalfTileFunction kFunctions[] = {multiply_tile<kRowsMinusOne + 1, kVectors>...};
  return kFunctions[rows - 1];
}

void multiply_rows(const HalfTile& tile) noexcept {
  constexpr auto kRows = std::make_integer_sequence<int, kHalfTileRows>();
  (tile.vectors == 1 ? tile_of<1>(tile.rows, kRows) : tile_of<2>(tile.rows, kRows))(tile);
}

}  // namespace

HalfTileFunction half_tile_function() noexcept { return multiply_rows; }

}  // namespace bantam::ops::gemm

#else

namespace bantam::ops::gemm {

HalfTileFunction half_tile_function() noexcept { return nullptr; }

}  // namespace bantam::ops::gemm

#endif
