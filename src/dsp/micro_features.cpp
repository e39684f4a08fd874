#include "dsp/micro_features.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>

namespace bantam::dsp {
namespace {

constexpr int kTransform = 512;
constexpr int kBins = kTransform / 2 + 1;
constexpr int kWindowBits = 12;
constexpr float kLowestHz = 125.0F;
constexpr float kHighestHz = 7500.0F;
constexpr int kBandWeightBits = 12;
/// A band is a square root of energies weighted by 2^12 of a transform divided by 2^9: 2^3 too small.
constexpr int kCorrectionBits = 9 - kBandWeightBits / 2;

constexpr int kNoiseBits = 14;
constexpr int kSmoothingBits = 10;
constexpr std::uint32_t kNoiseOne = 1U << kNoiseBits;
constexpr auto kEvenSmoothing = static_cast<std::uint32_t>(0.025 * kNoiseOne);
constexpr auto kOddSmoothing = static_cast<std::uint32_t>(0.06 * kNoiseOne);
constexpr auto kMinSignalRemaining = static_cast<std::uint32_t>(0.05 * kNoiseOne);

constexpr float kGainStrength = 0.95F;
constexpr float kGainOffset = 80.0F;
constexpr int kGainBits = 21;
constexpr int kSnrBits = 12;
constexpr int kSnrOutputBits = 6;
constexpr int kSnrShift = kGainBits - kCorrectionBits - kSnrBits;
constexpr int kGainSegments = 32;  ///< one per position of the argument's highest bit
constexpr int kGainTable = 4 * kGainSegments - 3;

constexpr int kLogSegmentBits = 7;
constexpr int kLogBits = 16;
constexpr std::uint32_t kLn2 = 45426;  ///< ln 2 in 16 bits
constexpr std::uint32_t kLogOutputScale = 64;
/// Features reach about 670, which divided by 25.6 gave the range 0..26 of the first models' training.
constexpr std::int32_t kOutputDivisor = 666;
constexpr std::int32_t kOutputRange = 256;

constexpr double kPi = 3.14159265358979323846;

float mel(float hz) noexcept { return 1127.0F * std::log1p(hz / 700.0F); }

/// Position of the highest bit set, counted from 1; 0 for 0.
int highest_bit(std::uint64_t x) noexcept { return 64 - std::countl_zero(x); }

/// Rounded to nearest. Arguments of up to 32 bits use a 16-bit root whose rounding saturates, as the original does.
std::uint32_t square_root(std::uint64_t x) noexcept {
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

std::int16_t gain_at(std::uint32_t x) noexcept {
  const float level = static_cast<float>(x) / static_cast<float>(1U << (kSmoothingBits - kCorrectionBits));
  const float gain = static_cast<float>(1U << kGainBits) * std::pow(level + kGainOffset, -kGainStrength);
  constexpr float kLargest = 32767.0F;
  return gain > kLargest ? static_cast<std::int16_t>(kLargest) : static_cast<std::int16_t>(gain + 0.5F);
}

/// Entries 0 and 1: the gain at 0 and 1. Then per position of the argument's highest bit (2..32): value, slope and
/// curvature of the parabola through both ends and the middle.
void fill_gain_table(std::int16_t* table) noexcept {
  table[0] = gain_at(0);
  table[1] = gain_at(1);
  for (int position = 2; position <= kGainSegments; ++position) {
    const std::uint32_t x0 = 1U << (position - 1);
    const std::uint32_t x1 = x0 + (x0 >> 1);
    const std::uint32_t x2 = position == kGainSegments ? x0 + (x0 - 1) : 2 * x0;
    const std::int32_t y0 = gain_at(x0);
    const std::int32_t rise1 = gain_at(x1) - y0;
    const std::int32_t rise2 = gain_at(x2) - y0;
    const std::int32_t slope = 4 * rise1 - rise2;
    std::int16_t* segment = table + 4 * position - 6;
    segment[0] = static_cast<std::int16_t>(y0);
    segment[1] = static_cast<std::int16_t>(slope);
    segment[2] = static_cast<std::int16_t>(rise2 - slope);
  }
}

std::uint32_t gain_of(std::uint32_t x, const std::int16_t* table) noexcept {
  if (x <= 2) return static_cast<std::uint32_t>(table[x]);
  const int position = highest_bit(x);
  const std::int16_t* segment = table + 4 * position - 6;
  const auto fraction =
      static_cast<std::int32_t>((position < 11 ? x << (11 - position) : x >> (position - 11)) & 0x3FF);
  std::int32_t result = (segment[2] * fraction) >> 5;
  result += segment[1] * 32;
  result = static_cast<std::int32_t>((std::int64_t{result} * fraction + (1 << 14)) >> 15);
  return static_cast<std::uint32_t>(static_cast<std::int16_t>(result + segment[0]));
}

/// x^2/4 below 2, x - 1 above, so that small ratios are suppressed.
std::uint32_t shrink(std::uint32_t x) noexcept {
  if (x < (2U << kSnrBits)) return (x * x) >> (2 + 2 * kSnrBits - kSnrOutputBits);
  return (x >> (kSnrBits - kSnrOutputBits)) - (1U << kSnrOutputBits);
}

/// kLogOutputScale times the natural logarithm.
std::uint32_t scaled_log(std::uint32_t x, const std::int16_t* remainder) noexcept {
  const int exponent = highest_bit(x) - 1;
  const std::uint32_t above = x - (std::uint32_t{1} << exponent);
  const std::uint32_t fraction = exponent < kLogBits ? above << (kLogBits - exponent) : above >> (exponent - kLogBits);
  const std::uint32_t segment = fraction >> (kLogBits - kLogSegmentBits);
  const std::int32_t low = remainder[segment];
  const std::int32_t difference = remainder[segment + 1] - low;
  const auto within = static_cast<std::int32_t>(fraction - (segment << (kLogBits - kLogSegmentBits)));
  const std::int32_t interpolated = (difference * within) >> kLogBits;
  const std::uint32_t log2 =
      (static_cast<std::uint32_t>(exponent) << kLogBits) + fraction + static_cast<std::uint32_t>(low + interpolated);
  constexpr std::uint32_t kHalf = 1U << (kLogBits - 1);
  const auto natural = static_cast<std::uint32_t>((std::uint64_t{kLn2} * log2 + kHalf) >> kLogBits);
  return (kLogOutputScale * natural + kHalf) >> kLogBits;
}

std::int8_t quantised(std::uint32_t band, const std::int16_t* remainder) noexcept {
  const std::uint32_t scaled = band << kCorrectionBits;
  constexpr std::uint32_t kLargest = std::numeric_limits<std::int16_t>::max();
  const auto feature = static_cast<std::int32_t>(scaled > 1 ? std::min(scaled_log(scaled, remainder), kLargest) : 0);
  const std::int32_t stored = (feature * kOutputRange + kOutputDivisor / 2) / kOutputDivisor - 128;
  return static_cast<std::int8_t>(std::min(stored, std::int32_t{127}));
}

}  // namespace

void MicroFeatures::lay_out(int step_ms, Block& block) noexcept {
  step_ = step_ms * kSampleRate / 1000;
  fft_.lay_out(kTransform, block);
  history_ = block.take<std::int16_t>(kWindow);
  hann_ = block.take<std::int16_t>(kWindow);
  scaled_ = block.take<std::int16_t>(kTransform);
  spectrum_ = block.take<ComplexInt16>(kBins);
  gain_ = block.take<std::int16_t>(kGainTable);
  log_remainder_ = block.take<std::int16_t>((1 << kLogSegmentBits) + 1);
  bands_ = block.take<std::uint32_t>(kChannels);
  noise_ = block.take<std::uint32_t>(kChannels);
  row_ = block.take<std::int8_t>(kChannels);
  lay_out_bands(block);
  reset();
  if (row_ == nullptr) return;
  for (int i = 0; i < kWindow; ++i)
    hann_[i] = static_cast<std::int16_t>(
        std::lround((0.5 - 0.5 * std::cos(2 * kPi / kWindow * (i + 0.5))) * (1 << kWindowBits)));
  fill_gain_table(gain_);
  for (int i = 0; i <= 1 << kLogSegmentBits; ++i) {
    const double x = static_cast<double>(i) / (1 << kLogSegmentBits);
    log_remainder_[i] = static_cast<std::int16_t>(std::lround((1 << kLogBits) * (std::log2(1 + x) - x)));
  }
}

/// Slope c covers the bins between the centres c - 1 and c of 41 bands, the lowest of which counts for nothing. Single
/// precision, as the models' features were made with.
void MicroFeatures::lay_out_bands(Block& block) noexcept {
  slopes_ = block.take<Slope>(kChannels + 1);
  rising_ = block.take<std::int16_t>(kBins);
  falling_ = block.take<std::int16_t>(kBins);
  if (falling_ == nullptr) return;
  const float lowest = mel(kLowestHz);
  const float spacing = (mel(kHighestHz) - lowest) / static_cast<float>(kChannels + 1);
  constexpr float kHzPerBin = 0.5F * kSampleRate / (kBins - 1);
  constexpr float kOne = 1 << kBandWeightBits;
  int bin = 1 + static_cast<int>(kLowestHz / kHzPerBin);
  for (int c = 0; c <= kChannels; ++c) {
    const float centre = lowest + spacing * static_cast<float>(c + 1);
    const float below = c == 0 ? lowest : lowest + spacing * static_cast<float>(c);
    slopes_[c].first_bin = static_cast<std::int16_t>(bin);
    for (; bin < kBins && mel(static_cast<float>(bin) * kHzPerBin) <= centre; ++bin) {
      const float weight = (centre - mel(static_cast<float>(bin) * kHzPerBin)) / (centre - below);
      falling_[bin] = static_cast<std::int16_t>(weight * kOne);
      rising_[bin] = static_cast<std::int16_t>((1.0F - weight) * kOne);
    }
    slopes_[c].bins = static_cast<std::int16_t>(bin - slopes_[c].first_bin);
  }
}

void MicroFeatures::reset() noexcept {
  filled_ = 0;
  if (noise_ != nullptr) std::memset(noise_, 0, kChannels * sizeof *noise_);
}

std::size_t MicroFeatures::push(std::span<const std::int16_t> samples, const std::int8_t** row) noexcept {
  *row = nullptr;
  const std::size_t taken = std::min(samples.size(), static_cast<std::size_t>(kWindow - filled_));
  std::copy_n(samples.data(), taken, history_ + filled_);
  filled_ += static_cast<int>(taken);
  if (filled_ < kWindow) return taken;
  compute(history_, row_);
  std::copy(history_ + step_, history_ + kWindow, history_);
  filled_ = kWindow - step_;
  *row = row_;
  return taken;
}

/// Windows and transforms with the largest scale that does not overflow; returns that scale's bits.
int MicroFeatures::transform(const std::int16_t* window) noexcept {
  std::int32_t largest = 0;
  for (int i = 0; i < kWindow; ++i) {
    scaled_[i] = static_cast<std::int16_t>((window[i] * hann_[i]) >> kWindowBits);
    largest = std::max(largest, std::abs(std::int32_t{scaled_[i]}));
  }
  const int scale_bits = largest == 0 ? 0 : std::max(0, 15 - highest_bit(static_cast<std::uint32_t>(largest)));
  for (int i = 0; i < kWindow; ++i) scaled_[i] = static_cast<std::int16_t>(scaled_[i] * (1 << scale_bits));
  std::fill(scaled_ + kWindow, scaled_ + kTransform, std::int16_t{0});
  fft_.forward(scaled_, spectrum_);
  return scale_bits;
}

void MicroFeatures::energies_to_bands(int scale_bits) noexcept {
  std::uint64_t from_slope_below = 0;
  for (int c = 0; c <= kChannels; ++c) {
    std::uint64_t sum = from_slope_below;
    from_slope_below = 0;
    for (int bin = slopes_[c].first_bin; bin < slopes_[c].first_bin + slopes_[c].bins; ++bin) {
      const std::int32_t re = spectrum_[bin].re;
      const std::int32_t im = spectrum_[bin].im;
      const std::uint64_t energy = static_cast<std::uint32_t>(re * re) + static_cast<std::uint32_t>(im * im);
      sum += energy * static_cast<std::uint64_t>(falling_[bin]);
      from_slope_below += energy * static_cast<std::uint64_t>(rising_[bin]);
    }
    if (c > 0) bands_[c - 1] = square_root(sum) >> scale_bits;
  }
}

void MicroFeatures::reduce_noise() noexcept {
  for (int c = 0; c < kChannels; ++c) {
    const std::uint32_t smoothing = c % 2 == 0 ? kEvenSmoothing : kOddSmoothing;
    const std::uint32_t signal = bands_[c] << kSmoothingBits;
    noise_[c] = static_cast<std::uint32_t>(
        (std::uint64_t{signal} * smoothing + std::uint64_t{noise_[c]} * (kNoiseOne - smoothing)) >> kNoiseBits);
    const auto floor = static_cast<std::uint32_t>((std::uint64_t{bands_[c]} * kMinSignalRemaining) >> kNoiseBits);
    const std::uint32_t remaining = (signal - std::min(noise_[c], signal)) >> kSmoothingBits;
    bands_[c] = std::max(remaining, floor);
  }
}

void MicroFeatures::normalise_gain() noexcept {
  for (int c = 0; c < kChannels; ++c)
    bands_[c] = shrink(static_cast<std::uint32_t>((std::uint64_t{bands_[c]} * gain_of(noise_[c], gain_)) >> kSnrShift));
}

void MicroFeatures::compute(const std::int16_t* window, std::int8_t* row) noexcept {
  energies_to_bands(transform(window));
  reduce_noise();
  normalise_gain();
  for (int c = 0; c < kChannels; ++c) row[c] = quantised(bands_[c], log_remainder_);
}

}  // namespace bantam::dsp
