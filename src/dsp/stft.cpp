#include "dsp/stft.h"

#include <algorithm>

namespace bantam::dsp {
namespace {

/// Where the squared windows add up to less than this, undoing them would amplify noise by more than 40 dB.
constexpr float kSmallestSum = 1e-2F;

/// What the squared windows add up to at sample t of a hop.
float overlapped(const StftShape& shape, int t) noexcept {
  float sum = 0;
  for (int i = t; i < shape.size; i += shape.hop) {
    const float value = window_value(shape.window, i, shape.size);
    sum += value * value;
  }
  return sum;
}

}  // namespace

Status Stft::check(const StftShape& shape) noexcept {
  if (RealFft::bytes(shape.size) == 0)
    return failure(StatusCode::kUnsupported, "transform size must be even, at most 65536, of factors 2, 3 and 5",
                   shape.size);
  if (shape.hop < 1 || shape.hop > shape.size)
    return failure(StatusCode::kInvalidArgument, "hop is outside 1..transform size", shape.hop, shape.size);
  for (int t = 0; t < shape.hop; ++t)
    if (overlapped(shape, t) < kSmallestSum)
      return failure(StatusCode::kInvalidArgument, "windows this far apart do not add up to a constant", shape.hop,
                     shape.size / 2);
  return ok_status();
}

void Stft::lay_out(const StftShape& shape, Block& block) noexcept {
  shape_ = shape;
  const auto size = static_cast<std::size_t>(shape.size);
  const std::size_t fft_bytes = RealFft::bytes(shape.size);
  std::byte* fft_memory = block.take_bytes(fft_bytes);
  window_ = block.take<float>(size);
  weight_ = block.take<float>(static_cast<std::size_t>(shape.hop));
  history_ = block.take<float>(size);
  overlap_ = block.take<float>(size);
  work_ = block.take<float>(size);
  if (work_ == nullptr) return;
  // Cannot fail: the size is supported, the memory large enough and aligned.
  static_cast<void>(fft_.place(shape.size, {fft_memory, fft_bytes}).ok());
  for (int i = 0; i < shape.size; ++i) window_[i] = window_value(shape.window, i, shape.size);
  for (int t = 0; t < shape.hop; ++t) weight_[t] = 1.0F / overlapped(shape, t);
}

void Stft::reset() noexcept {
  std::fill_n(history_, shape_.size, 0.0F);
  std::fill_n(overlap_, shape_.size, 0.0F);
}

void Stft::analyse(const float* samples, std::complex<float>* spectrum) noexcept {
  std::copy(history_ + shape_.hop, history_ + shape_.size, history_);
  std::copy_n(samples, shape_.hop, history_ + shape_.size - shape_.hop);
  for (int i = 0; i < shape_.size; ++i) work_[i] = history_[i] * window_[i];
  fft_.forward(work_, spectrum);
}

void Stft::block_of(const std::complex<float>* spectrum, float* block) noexcept {
  fft_.inverse(spectrum, block);
  for (int i = 0; i < shape_.size; ++i) block[i] *= window_[i];
}

void Stft::overlap_add(const float* block, bool weighted, float* samples) noexcept {
  for (int i = 0; i < shape_.size; ++i) overlap_[i] += weighted ? block[i] * weight_[i % shape_.hop] : block[i];
  std::copy_n(overlap_, shape_.hop, samples);
  std::copy(overlap_ + shape_.hop, overlap_ + shape_.size, overlap_);
  std::fill_n(overlap_ + shape_.size - shape_.hop, shape_.hop, 0.0F);
}

void Stft::synthesise(const std::complex<float>* spectrum, float* samples) noexcept {
  block_of(spectrum, work_);
  overlap_add(work_, true, samples);
}

}  // namespace bantam::dsp
