#include "audio/input_stage.h"

#include <algorithm>

#include "audio/samples.h"

namespace bantam::audio {
namespace {

/// Channel of the n-th `letter` of the format, or -1.
int channel_of(const std::string& format, char letter, int n) {
  for (std::size_t i = 0; i < format.size(); ++i)
    if (format[i] == letter && n-- == 0) return static_cast<int>(i);
  return -1;
}

}  // namespace

Channels channels_of(const InputConfig& input) {
  return {static_cast<int>(input.format.size()), channel_of(input.format, 'M', input.microphone),
          channel_of(input.format, 'R', input.reference)};
}

void InputStage::lay_out(const InputConfig& config, const Channels& channels, int frame, dsp::Block& block) noexcept {
  channels_ = channels;
  frame_ = frame;
  const auto count = static_cast<std::size_t>(channels.count);
  const auto rate = static_cast<std::size_t>(config.sample_rate);
  ring_.lay_out(std::max<std::size_t>(1, rate * static_cast<std::size_t>(config.ring_ms) / 1000) * count, block);
  resampling_ = config.sample_rate != kSampleRate;
  // Pieces of 10 ms keep the sound that waits here short.
  piece_frames_ = resampling_ ? std::max<std::size_t>(1, rate / 100) : static_cast<std::size_t>(frame);
  piece_ = block.take<std::int16_t>(piece_frames_ * count);
  if (!resampling_) return;
  const int used = channels.reference >= 0 ? 2 : 1;
  for (Resampled& channel : std::span(resampled_, static_cast<std::size_t>(used))) {
    channel.resampler.lay_out(config.sample_rate, kSampleRate, block);
    channel.in = block.take<float>(piece_frames_);
    channel.pending = block.take<float>(static_cast<std::size_t>(frame) + channel.resampler.max_output(piece_frames_));
  }
}

void InputStage::reset() noexcept {
  ring_.clear();
  phase_ = 0;
  skip_ = 0;
  dropped_samples_.store(0, std::memory_order_relaxed);
  pending_ = 0;
  if (!resampling_) return;
  for (Resampled& channel : resampled_)
    if (channel.pending != nullptr) channel.resampler.reset();
}

std::size_t InputStage::write(std::span<const std::int16_t> interleaved) noexcept {
  const std::size_t skipped = std::min(skip_, interleaved.size());
  skip_ -= skipped;
  dropped_samples_.fetch_add(skipped, std::memory_order_relaxed);
  const std::size_t taken = std::min(interleaved.size() - skipped, ring_.room());
  ring_.write(interleaved.subspan(skipped, taken));
  phase_ = (phase_ + taken) % static_cast<std::size_t>(channels_.count);
  return skipped + taken;
}

void InputStage::write_or_drop(std::span<const std::int16_t> interleaved) noexcept {
  const auto count = static_cast<std::size_t>(channels_.count);
  std::size_t fits = std::min(interleaved.size(), skip_ + ring_.room());
  // What is cut must end a sample frame. The ring holds whole ones but for the last, so there is room to end that.
  if (fits < interleaved.size() && fits > skip_) fits -= (phase_ + fits - skip_) % count;
  interleaved = interleaved.subspan(write(interleaved.first(fits)));
  if (interleaved.empty()) return;
  dropped_samples_.fetch_add(interleaved.size(), std::memory_order_relaxed);
  skip_ = (count - interleaved.size() % count) % count;
}

std::uint64_t InputStage::dropped() const noexcept {
  return dropped_samples_.load(std::memory_order_relaxed) / static_cast<std::uint64_t>(channels_.count);
}

bool InputStage::read_piece(std::size_t frames) noexcept {
  const std::size_t samples = frames * static_cast<std::size_t>(channels_.count);
  if (ring_.available() < samples) return false;
  ring_.read({piece_, samples});
  return true;
}

bool InputStage::fill_pending() noexcept {
  while (pending_ < static_cast<std::size_t>(frame_)) {
    if (!read_piece(piece_frames_)) return false;
    std::size_t made = 0;
    const int source[] = {channels_.microphone, channels_.reference};
    for (std::size_t c = 0; c < 2; ++c) {
      if (source[c] < 0) continue;
      for (std::size_t i = 0; i < piece_frames_; ++i)
        resampled_[c].in[i] = to_float(piece_[i * static_cast<std::size_t>(channels_.count) + source[c]]);
      made = resampled_[c].resampler.process({resampled_[c].in, piece_frames_}, resampled_[c].pending + pending_);
    }
    pending_ += made;
  }
  return true;
}

bool InputStage::read(std::int16_t* microphone, std::int16_t* reference) noexcept {
  const auto frame = static_cast<std::size_t>(frame_);
  const int source[] = {channels_.microphone, channels_.reference};
  std::int16_t* const out[] = {microphone, reference};
  if (resampling_ ? !fill_pending() : !read_piece(frame)) return false;
  if (resampling_) pending_ -= frame;
  for (std::size_t c = 0; c < 2; ++c) {
    if (source[c] < 0 || out[c] == nullptr) continue;
    if (resampling_) {
      float* pending = resampled_[c].pending;
      std::transform(pending, pending + frame, out[c], to_int16);
      std::copy(pending + frame, pending + frame + pending_, pending);
    } else {
      for (std::size_t i = 0; i < frame; ++i)
        out[c][i] = piece_[i * static_cast<std::size_t>(channels_.count) + source[c]];
    }
  }
  return true;
}

}  // namespace bantam::audio
