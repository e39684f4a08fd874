#include "dsp/micro_features.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "signal/fixed_point_levels.h"

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
constexpr int kSnrShift = kGainBits - kCorrectionBits - signal::kRatioBits;
constexpr int kGainSegments = 32;  ///< one per position of the argument's highest bit

constexpr std::uint32_t kLogOutputScale = 64;
/// Features reach about 670, which divided by 25.6 gave the range 0..26 of the first models' training.
constexpr std::int32_t kOutputDivisor = 666;
constexpr std::int32_t kOutputRange = 256;

constexpr double kPi = 3.14159265358979323846;

float mel(float hz) noexcept { return 1127.0F * std::log1p(hz / 700.0F); }

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

std::int8_t quantised(std::uint32_t band) noexcept {
  const std::uint32_t scaled = band << kCorrectionBits;
  constexpr std::uint32_t kLargest = std::numeric_limits<std::int16_t>::max();
  const auto feature =
      static_cast<std::int32_t>(scaled > 1 ? std::min(signal::scaled_log(scaled, kLogOutputScale), kLargest) : 0);
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
  gain_ = block.take<std::int16_t>(signal::kGainEntries);
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
  const int scale_bits = largest == 0 ? 0 : std::max(0, 15 - signal::highest_bit(static_cast<std::uint32_t>(largest)));
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
    if (c > 0) bands_[c - 1] = signal::rounded_square_root(sum) >> scale_bits;
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
  for (int c = 0; c < kChannels; ++c) {
    const auto gain = static_cast<std::uint32_t>(signal::gain_at_level(noise_[c], gain_));
    bands_[c] = signal::shrink_ratio(static_cast<std::uint32_t>((std::uint64_t{bands_[c]} * gain) >> kSnrShift));
  }
}

void MicroFeatures::compute(const std::int16_t* window, std::int8_t* row) noexcept {
  energies_to_bands(transform(window));
  reduce_noise();
  normalise_gain();
  for (int c = 0; c < kChannels; ++c) row[c] = quantised(bands_[c]);
}

}  // namespace bantam::dsp
