// Integer functions of keyword features, to the bit as TensorFlow Lite Micro's audio front end computes them: square
// root, logarithm, the gain of per-channel amplitude normalisation and its compression of small ratios.
//
// Called by the signal operators (ops/signal) and by dsp::MicroFeatures. Source of the methods: Wang et al., "Trainable
// frontend for robust and far-field keyword spotting", 2017, and the public behaviour of TensorFlow Lite Micro's signal
// library. Freestanding, pure functions, defined for all arguments: what would overflow wraps like two's complement.
#pragma once

#include <bit>
#include <cstdint>

namespace bantam::signal {

/// Position of the highest bit set, counted from 1; 0 for 0.
constexpr int highest_bit(std::uint64_t x) noexcept { return 64 - std::countl_zero(x); }

/// Rounded to nearest. Arguments of up to 32 bits use a 16-bit root whose rounding saturates, as the original does.
constexpr std::uint32_t rounded_square_root(std::uint64_t x) noexcept {
  if (x == 0) return 0;
  const std::uint64_t largest = (x >> 32) == 0 ? 0xFFFFU : 0xFFFFFFFFU;
  std::uint64_t root = 0;
  for (std::uint64_t bit = std::uint64_t{1} << ((highest_bit(x) - 1) & ~1); bit != 0; bit >>= 2) {
    if (x >= root + bit) {
      x -= root + bit;
      root = (root >> 1) + bit;
    } else {
      root >>= 1;
    }
  }
  if (x > root && root != largest) ++root;
  return static_cast<std::uint32_t>(root);
}

/// Entries of a gain table: the gain at 0 and 1, then per position of the argument's highest bit (2..32) value, slope
/// and curvature of a parabola, each triple four entries after the last.
inline constexpr int kGainEntries = 4 * 32 - 3;

/// The gain at level x: a parabola per octave, `table` has kGainEntries entries.
constexpr std::int16_t gain_at_level(std::uint32_t x, const std::int16_t* table) noexcept {
  if (x <= 2) return table[x];
  const int position = highest_bit(x);
  const std::int16_t* segment = table + 4 * position - 6;
  const auto fraction =
      static_cast<std::int32_t>((position < 11 ? x << (11 - position) : x >> (position - 11)) & 0x3FF);
  const std::int64_t slope = ((segment[2] * fraction) >> 5) + segment[1] * 32;
  const auto rise = static_cast<std::int32_t>((slope * fraction + (1 << 14)) >> 15);
  return static_cast<std::int16_t>(rise + segment[0]);
}

inline constexpr int kRatioBits = 12;  ///< fraction bits of a signal to noise ratio
inline constexpr int kShrunkBits = 6;  ///< fraction bits of a shrunk ratio

/// x^2/4 below 2, x - 1 above, so that small ratios are suppressed.
constexpr std::uint32_t shrink_ratio(std::uint32_t x) noexcept {
  if (x < (2U << kRatioBits)) return (x * x) >> (2 + 2 * kRatioBits - kShrunkBits);
  return (x >> (kRatioBits - kShrunkBits)) - (1U << kShrunkBits);
}

namespace detail {

inline constexpr int kLogSegmentBits = 7;
inline constexpr int kLogBits = 16;

/// round(2^16 (log2(1 + i/128) - i/128)) for i = 0..128.
inline constexpr std::int16_t kLogRemainder[(1 << kLogSegmentBits) + 1] = {
    0,    224,  442,  654,  861,  1063, 1259, 1450, 1636, 1817, 1992, 2163, 2329, 2490, 2646, 2797, 2944, 3087, 3224,
    3358, 3487, 3611, 3732, 3848, 3960, 4068, 4172, 4272, 4368, 4460, 4549, 4633, 4714, 4791, 4864, 4934, 5001, 5063,
    5123, 5178, 5231, 5280, 5326, 5368, 5408, 5444, 5477, 5507, 5533, 5557, 5578, 5595, 5610, 5622, 5631, 5637, 5640,
    5641, 5638, 5633, 5626, 5615, 5602, 5586, 5568, 5547, 5524, 5498, 5470, 5439, 5406, 5370, 5332, 5291, 5249, 5203,
    5156, 5106, 5054, 5000, 4944, 4885, 4825, 4762, 4697, 4630, 4561, 4490, 4416, 4341, 4264, 4184, 4103, 4020, 3935,
    3848, 3759, 3668, 3575, 3481, 3384, 3286, 3186, 3084, 2981, 2875, 2768, 2659, 2549, 2437, 2323, 2207, 2090, 1971,
    1851, 1729, 1605, 1480, 1353, 1224, 1094, 963,  830,  695,  559,  421,  282,  142,  0};

}  // namespace detail

/// `scale` times the natural logarithm of x > 0.
constexpr std::uint32_t scaled_log(std::uint32_t x, std::uint32_t scale) noexcept {
  using detail::kLogBits;
  using detail::kLogSegmentBits;
  constexpr std::uint64_t kLn2 = 45426;  // in 16 bits
  constexpr std::uint32_t kHalf = 1U << (kLogBits - 1);
  const int exponent = highest_bit(x) - 1;
  const std::uint32_t above = x - (std::uint32_t{1} << exponent);
  const std::uint32_t fraction = exponent < kLogBits ? above << (kLogBits - exponent) : above >> (exponent - kLogBits);
  const std::uint32_t segment = fraction >> (kLogBits - kLogSegmentBits);
  const std::int32_t low = detail::kLogRemainder[segment];
  const std::int32_t difference = detail::kLogRemainder[segment + 1] - low;
  const auto within = static_cast<std::int32_t>(fraction - (segment << (kLogBits - kLogSegmentBits)));
  const std::int32_t interpolated = (difference * within) >> kLogBits;
  const std::uint32_t log2 =
      (static_cast<std::uint32_t>(exponent) << kLogBits) + fraction + static_cast<std::uint32_t>(low + interpolated);
  const auto natural = static_cast<std::uint32_t>((kLn2 * log2 + kHalf) >> kLogBits);
  return (scale * natural + kHalf) >> kLogBits;
}

}  // namespace bantam::signal
