#include "audio/detector.h"

#include <algorithm>
#include <cmath>

#include "audio/samples.h"
#include "dsp/micro_features.h"

namespace bantam::audio {
namespace {

constexpr int kRow = dsp::MicroFeatures::kChannels;

/// Drops the oldest `hop` units of a window.
template <typename T>
void slide(T* window, int units, int hop, int width) noexcept {
  std::copy(window + hop * width, window + units * width, window);
}

}  // namespace

void Detector::lay_out(const DetectorShape& shape, dsp::Block& block) noexcept {
  shape_ = shape;
  const auto units = static_cast<std::size_t>(shape.window);
  if (shape.kind == DetectorKind::kWave) {
    samples_ = block.take<std::int16_t>(units);
  } else {
    rows_ = block.take<std::int8_t>(units * kRow);
    if (rows_ != nullptr) std::fill_n(rows_, units * kRow, static_cast<std::int8_t>(dsp::MicroFeatures::kZeroPoint));
  }
}

void Detector::reset() noexcept {
  session_->reset();
  filled_ = 0;
  if (samples_ != nullptr) std::fill_n(samples_, shape_.window, std::int16_t{0});
  if (rows_ != nullptr)
    std::fill_n(rows_, shape_.window * kRow, static_cast<std::int8_t>(dsp::MicroFeatures::kZeroPoint));
}

std::size_t Detector::add(std::span<const std::int16_t> samples, bool* due) noexcept {
  if (filled_ == 0) slide(samples_, shape_.window, shape_.hop, 1);
  const std::size_t taken = std::min(samples.size(), static_cast<std::size_t>(shape_.hop - filled_));
  std::copy_n(samples.data(), taken, samples_ + shape_.window - shape_.hop + filled_);
  filled_ += static_cast<int>(taken);
  *due = filled_ == shape_.hop;
  if (*due) filled_ = 0;
  return taken;
}

bool Detector::add_row(const std::int8_t* row) noexcept {
  if (filled_ == 0) slide(rows_, shape_.window, shape_.hop, kRow);
  std::copy_n(row, kRow, rows_ + (shape_.window - shape_.hop + filled_) * kRow);
  filled_ = (filled_ + 1) % shape_.hop;
  return filled_ == 0;
}

void Detector::fill_input() noexcept {
  const Tensor input = session_->input(shape_.input);
  if (shape_.kind == DetectorKind::kWave) {
    std::transform(samples_, samples_ + shape_.window, input.as<float>(), to_float);
  } else if (shape_.quantised) {
    std::copy_n(rows_, shape_.window * kRow, input.as<std::int8_t>());
  } else {
    std::transform(rows_, rows_ + shape_.window * kRow, input.as<float>(), [](std::int8_t stored) {
      return dsp::MicroFeatures::kScale * static_cast<float>(stored - dsp::MicroFeatures::kZeroPoint);
    });
  }
}

Status Detector::invoke() noexcept {
  fill_input();
  return session_->invoke();
}

float Detector::score(int c) const noexcept {
  const Tensor output = session_->output(shape_.output);
  const Quantization& q = shape_.output_quantization;
  const auto real = [&](int stored) {
    return q.scale == 0 ? static_cast<float>(stored) : q.scale * static_cast<float>(stored - q.zero_point);
  };
  switch (shape_.output_type) {
    case ElementType::kI8: return real(output.as<std::int8_t>()[c]);
    case ElementType::kU8: return real(output.as<std::uint8_t>()[c]);
    default: return output.as<float>()[c];
  }
}

float Detector::probability(int c) const noexcept {
  float p = score(c);
  if (shape_.scores == Scores::kLogProbability) p = std::exp(p);
  if (shape_.scores == Scores::kLogit) {
    // One class stands against nothing, many against each other.
    float others = shape_.classes == 1 ? std::exp(-p) : 0.0F;
    for (int i = 0; i < shape_.classes; ++i)
      if (i != c) others += std::exp(score(i) - p);
    p = 1.0F / (1.0F + others);
  }
  return p >= 0 ? std::min(p, 1.0F) : 0.0F;
}

}  // namespace bantam::audio
