#include "dsp/kaldi_fbank.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <numbers>

namespace bantam::dsp {
namespace {

constexpr float kPreEmphasis = 0.97F;
constexpr double kPoveyPower = 0.85;

/// The next power of two: Kaldi's transform length.
int transform_size(int frame_samples) noexcept {
  int n = 2;
  while (n < frame_samples) n *= 2;
  return n;
}

bool supported(const FbankConfig& c) noexcept {
  return c.sample_rate >= 1000 && c.sample_rate <= 192000 && c.frame_samples >= 16 && c.frame_samples <= 32768 &&
         c.shift_samples >= 1 && c.shift_samples <= c.frame_samples && c.bins >= 1 && c.bins <= 1024 &&
         c.low_hz >= 0.0F && c.high_hz > c.low_hz && c.high_hz <= 0.5F * static_cast<float>(c.sample_rate);
}

float mel(float hz) noexcept { return 1127.0F * std::log(1.0F + hz / 700.0F); }

}  // namespace

void KaldiFbank::lay_out(Block& block) noexcept {
  const int n = transform_size(config_.frame_samples);
  const auto size = static_cast<std::size_t>(n);
  fft_memory_ = block.take_span<std::byte>(RealFft::bytes(n));
  frame_ = block.take_span<std::int16_t>(static_cast<std::size_t>(config_.frame_samples));
  window_ = block.take_span<float>(static_cast<std::size_t>(config_.frame_samples));
  padded_ = block.take_span<float>(size);
  spectrum_ = block.take_span<std::complex<float>>(size / 2 + 1);
  power_ = block.take_span<float>(size / 2);
  triangles_ = block.take_span<Triangle>(static_cast<std::size_t>(config_.bins));
  // Every bin of the spectrum lies below at most two triangles.
  weights_ = block.take_span<float>(size);
}

std::size_t KaldiFbank::bytes(const FbankConfig& config) noexcept {
  if (!supported(config)) return 0;
  KaldiFbank fbank;
  fbank.config_ = config;
  Block block;
  fbank.lay_out(block);
  return block.used();
}

Status KaldiFbank::place(const FbankConfig& config, std::span<std::byte> memory) noexcept {
  if (!supported(config)) return failure(StatusCode::kUnsupported, "configuration of log-mel features");
  config_ = config;
  Block block(memory);
  lay_out(block);
  BANTAM_RETURN_IF_ERROR(block.complete("memory of log-mel features"));
  BANTAM_RETURN_IF_ERROR(fft_.place(transform_size(config.frame_samples), fft_memory_));
  std::fill(padded_.begin(), padded_.end(), 0.0F);
  make_window();
  make_triangles();
  reset();
  return ok_status();
}

void KaldiFbank::make_window() noexcept {
  const auto n = static_cast<double>(window_.size());
  for (std::size_t i = 0; i < window_.size(); ++i) {
    const double hann = 0.5 - 0.5 * std::cos(2.0 * std::numbers::pi * static_cast<double>(i) / (n - 1.0));
    window_[i] = static_cast<float>(std::pow(hann, kPoveyPower));
  }
}

void KaldiFbank::make_triangles() noexcept {
  const float low = mel(config_.low_hz);
  const float step = (mel(config_.high_hz) - low) / static_cast<float>(config_.bins + 1);
  const float bin_hz = static_cast<float>(config_.sample_rate) / static_cast<float>(fft_.size());
  std::uint32_t used = 0;
  for (std::size_t t = 0; t < triangles_.size(); ++t) {
    const float left = low + static_cast<float>(t) * step;
    const float centre = left + step;
    const float right = centre + step;
    Triangle triangle{0, 0, used};
    for (std::size_t k = 0; k < power_.size(); ++k) {
      const float m = mel(bin_hz * static_cast<float>(k));
      if (m <= left || m >= right) continue;
      if (triangle.count == 0) triangle.first = static_cast<std::uint32_t>(k);
      // Rounding at the edges cannot give a bin a third triangle, but the array's end is a hard limit.
      if (used == weights_.size()) break;
      weights_[used++] = m <= centre ? (m - left) / step : (right - m) / step;
      ++triangle.count;
    }
    triangles_[t] = triangle;
  }
}

std::size_t KaldiFbank::feed(std::span<const std::int16_t> samples, std::span<float> features,
                             bool* complete) noexcept {
  const std::size_t taken = std::min(samples.size(), frame_.size() - held_);
  std::copy_n(samples.begin(), taken, frame_.begin() + static_cast<std::ptrdiff_t>(held_));
  held_ += taken;
  *complete = held_ == frame_.size();
  if (!*complete) return taken;
  compute(features);
  const auto shift = static_cast<std::ptrdiff_t>(config_.shift_samples);
  std::copy(frame_.begin() + shift, frame_.end(), frame_.begin());
  held_ = frame_.size() - static_cast<std::size_t>(shift);
  return taken;
}

void KaldiFbank::compute(std::span<float> features) noexcept {
  const std::size_t n = frame_.size();
  float sum = 0.0F;
  for (std::size_t i = 0; i < n; ++i) sum += padded_[i] = static_cast<float>(frame_[i]);
  const float mean = sum / static_cast<float>(n);
  for (std::size_t i = 0; i < n; ++i) padded_[i] -= mean;
  for (std::size_t i = n - 1; i > 0; --i) padded_[i] -= kPreEmphasis * padded_[i - 1];
  padded_[0] -= kPreEmphasis * padded_[0];
  for (std::size_t i = 0; i < n; ++i) padded_[i] *= window_[i];
  fft_.forward(padded_.data(), spectrum_.data());
  for (std::size_t k = 0; k < power_.size(); ++k) power_[k] = std::norm(spectrum_[k]);
  for (std::size_t t = 0; t < triangles_.size(); ++t) {
    const Triangle& triangle = triangles_[t];
    float energy = 0.0F;
    const auto weights = weights_.subspan(triangle.weights, triangle.count);
    const auto power = power_.subspan(triangle.first, triangle.count);
    for (std::size_t i = 0; i < weights.size(); ++i) energy += weights[i] * power[i];
    features[t] = std::log(std::max(energy, FLT_EPSILON));
  }
}

}  // namespace bantam::dsp
