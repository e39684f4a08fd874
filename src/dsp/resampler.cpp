#include "dsp/resampler.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace bantam::dsp {
namespace {

constexpr int kLowestRate = 1000;
constexpr int kHighestRate = 768000;
constexpr int kLargestRatio = 48;
/// Filter length in samples of the lower rate; with the window below it puts the transition at 0.42 to 0.5 of the rate.
constexpr std::uint32_t kTaps = 64;
/// Beyond this many phases neighbours are interpolated, which errs by less than -100 dB.
constexpr std::uint32_t kMostPhases = 512;
constexpr double kKaiserBeta = 8.0;  ///< 80 dB
/// Middle of the transition band, as a share of the lower rate's half.
constexpr double kCutoff = 0.92;
constexpr double kPi = 3.14159265358979323846;

double bessel_i0(double x) noexcept {
  double sum = 1;
  double term = 1;
  for (int k = 1; term > 1e-12 * sum; ++k) {
    term *= (x / (2 * k)) * (x / (2 * k));
    sum += term;
  }
  return sum;
}

/// The low-pass filter at t input samples from its middle; `scale` <= 1 stretches it for lower output rates.
double filter(double t, double half_length, double scale) noexcept {
  const double x = t / half_length;
  if (x <= -1 || x >= 1) return 0;
  const double window = bessel_i0(kKaiserBeta * std::sqrt(1 - x * x)) / bessel_i0(kKaiserBeta);
  const double frequency = kCutoff * scale;
  const double angle = kPi * frequency * t;
  return window * frequency * (angle == 0 ? 1 : std::sin(angle) / angle);
}

}  // namespace

bool Resampler::supports(int from_rate, int to_rate) noexcept {
  const auto [low, high] = std::minmax(from_rate, to_rate);
  return low >= kLowestRate && high <= kHighestRate && high <= low * kLargestRatio;
}

void Resampler::lay_out(int from_rate, int to_rate, Block& block) noexcept {
  const int common = std::gcd(from_rate, to_rate);
  up_ = static_cast<std::uint32_t>(to_rate / common);
  down_ = static_cast<std::uint32_t>(from_rate / common);
  phases_ = std::min(up_, kMostPhases);
  const double scale = std::min(1.0, static_cast<double>(up_) / down_);
  taps_ = static_cast<std::uint32_t>(std::ceil(kTaps / scale));
  filters_ = block.take<float>(std::size_t{taps_} * (phases_ + 1));
  history_ = block.take<float>(std::size_t{taps_} * 2);
  if (history_ == nullptr) return;
  const double middle = 0.5 * taps_;
  for (std::uint32_t p = 0; p <= phases_; ++p) {
    float* coefficients = filters_ + std::size_t{p} * taps_;
    const double shift = static_cast<double>(p) / phases_;
    double sum = 0;
    for (std::uint32_t k = 0; k < taps_; ++k) sum += filter(k + shift - middle, middle, scale);
    // Every phase passes a constant unchanged.
    for (std::uint32_t k = 0; k < taps_; ++k)
      coefficients[k] = static_cast<float>(filter(k + shift - middle, middle, scale) / sum);
  }
  reset();
}

void Resampler::reset() noexcept {
  std::fill_n(history_, std::size_t{taps_} * 2, 0.0F);
  position_ = 0;
  newest_ = 0;
}

std::size_t Resampler::max_output(std::size_t n) const noexcept {
  return static_cast<std::size_t>((std::uint64_t{n} * up_ + down_ - 1) / down_) + 1;
}

std::size_t Resampler::latency() const noexcept {
  return static_cast<std::size_t>(std::uint64_t{taps_} * up_ / (2 * std::uint64_t{down_}));
}

/// Filter `phase` over the history; coefficient 0 belongs to the newest sample.
float Resampler::dot(std::size_t phase) const noexcept {
  const float* coefficients = filters_ + phase * taps_;
  const float* newest = history_ + newest_ + taps_;
  float sum = 0;
  for (std::uint32_t k = 0; k < taps_; ++k) sum += coefficients[k] * *(newest - k);
  return sum;
}

float Resampler::output() const noexcept {
  if (phases_ == up_) return dot(position_);
  const double exact = static_cast<double>(position_) * phases_ / up_;
  const auto phase = static_cast<std::size_t>(exact);
  const float share = static_cast<float>(exact - static_cast<double>(phase));
  return (1 - share) * dot(phase) + share * dot(phase + 1);
}

std::size_t Resampler::process(std::span<const float> samples, float* out) noexcept {
  std::size_t written = 0;
  for (const float sample : samples) {
    newest_ = newest_ + 1 == taps_ ? 0 : newest_ + 1;
    history_[newest_] = sample;
    history_[newest_ + taps_] = sample;
    for (; position_ < up_; position_ += down_) out[written++] = output();
    position_ -= up_;
  }
  return written;
}

}  // namespace bantam::dsp
