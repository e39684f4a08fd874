#include "audio/noise_suppressor.h"

#include <algorithm>
#include <numeric>

#include "audio/samples.h"

namespace bantam::audio {

void NoiseSuppressor::lay_out(const NoiseShape& shape, int frame, dsp::Block& block) noexcept {
  shape_ = shape;
  frame_ = frame;
  latency_ = shape.hop - std::gcd(shape.hop, frame);
  hop_ = block.take<float>(static_cast<std::size_t>(shape.hop));
  ready_ = block.take<float>(static_cast<std::size_t>(latency_ + frame + shape.hop));
  if (shape.kind != NoiseKind::kWave) {
    stft_.lay_out(shape.stft, block);
    spectrum_ = block.take<std::complex<float>>(static_cast<std::size_t>(shape.stft.size / 2 + 1));
    if (shape.second) blocks_ = block.take<float>(static_cast<std::size_t>(shape.stft.size));
  }
  ready_count_ = latency_;
}

void NoiseSuppressor::attach(Session* session, Session* second) noexcept {
  session_ = session;
  second_ = second;
}

void NoiseSuppressor::reset() noexcept {
  session_->reset();
  if (second_ != nullptr) second_->reset();
  if (shape_.kind != NoiseKind::kWave) stft_.reset();
  filled_ = 0;
  std::fill_n(ready_, latency_, 0.0F);
  ready_count_ = latency_;
  was_active_ = true;
}

Status NoiseSuppressor::process(const std::int16_t* in, bool active, std::int16_t* out) noexcept {
  for (int t = 0; t < frame_;) {
    const int count = std::min(frame_ - t, shape_.hop - filled_);
    for (int i = 0; i < count; ++i) hop_[filled_ + i] = to_float(in[t + i]);
    filled_ += count;
    t += count;
    if (filled_ < shape_.hop) break;
    BANTAM_RETURN_IF_ERROR(step(active));
    filled_ = 0;
    std::copy_n(hop_, shape_.hop, ready_ + ready_count_);
    ready_count_ += shape_.hop;
  }
  for (int i = 0; i < frame_; ++i) out[i] = to_int16(ready_[i]);
  std::copy(ready_ + frame_, ready_ + ready_count_, ready_);
  ready_count_ -= frame_;
  return ok_status();
}

/// One hop: hop_ is replaced by its result.
Status NoiseSuppressor::step(bool active) noexcept {
  if (active && !was_active_) {
    // What the models remember is from before the pause.
    session_->reset();
    if (second_ != nullptr) second_->reset();
  }
  was_active_ = active;
  if (shape_.kind == NoiseKind::kWave) return active ? run_wave(hop_) : ok_status();
  stft_.analyse(hop_, spectrum_);
  if (active) BANTAM_RETURN_IF_ERROR(shape_.kind == NoiseKind::kSpectrum ? run_spectrum() : run_mask());
  if (!active || second_ == nullptr) {
    stft_.synthesise(spectrum_, hop_);
    return ok_status();
  }
  stft_.block_of(spectrum_, blocks_);
  BANTAM_RETURN_IF_ERROR(run_second(blocks_));
  stft_.overlap_add(blocks_, false, hop_);
  return ok_status();
}

Status NoiseSuppressor::run_wave(float* samples) noexcept {
  std::copy_n(samples, shape_.hop, session_->input(shape_.input).as<float>());
  BANTAM_RETURN_IF_ERROR(session_->invoke());
  std::copy_n(session_->output(shape_.output).as<float>(), shape_.hop, samples);
  return ok_status();
}

Status NoiseSuppressor::run_spectrum() noexcept {
  // Complex numbers are two floats, real part first ([complex.numbers.general]).
  const auto floats = static_cast<std::size_t>(2 * stft_.bins());
  auto* values = reinterpret_cast<float*>(spectrum_);
  std::copy_n(values, floats, session_->input(shape_.input).as<float>());
  BANTAM_RETURN_IF_ERROR(session_->invoke());
  std::copy_n(session_->output(shape_.output).as<float>(), floats, values);
  return ok_status();
}

Status NoiseSuppressor::run_mask() noexcept {
  auto* magnitudes = session_->input(shape_.input).as<float>();
  for (int k = 0; k < stft_.bins(); ++k) magnitudes[k] = std::abs(spectrum_[k]);
  BANTAM_RETURN_IF_ERROR(session_->invoke());
  const auto* mask = session_->output(shape_.output).as<float>();
  for (int k = 0; k < stft_.bins(); ++k) spectrum_[k] *= mask[k];
  return ok_status();
}

Status NoiseSuppressor::run_second(float* samples) noexcept {
  std::copy_n(samples, shape_.stft.size, second_->input(shape_.second_input).as<float>());
  BANTAM_RETURN_IF_ERROR(second_->invoke());
  std::copy_n(second_->output(shape_.second_output).as<float>(), shape_.stft.size, samples);
  return ok_status();
}

}  // namespace bantam::audio
