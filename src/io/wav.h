// Sound files: everything libsndfile reads (WAV, FLAC, Ogg, AIFF, ...) as float; 16-bit WAV written.
//
// No resampling here. Memory grows with what is really decoded, up to kMaxSoundSamples. Values, no shared state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "bantam/error.h"

namespace bantam::io {

/// Most samples (frames times channels) of one sound: 46 minutes of 48 kHz mono, 512 MiB as float.
inline constexpr std::int64_t kMaxSoundSamples = std::int64_t{1} << 27;

struct Sound {
  int sample_rate = 0;         ///< Hz
  int channels = 0;            ///< at least 1
  std::vector<float> samples;  ///< interleaved; integer formats give [-1, 1), float formats what they hold

  std::int64_t frames() const noexcept {
    return channels > 0 ? static_cast<std::int64_t>(samples.size()) / channels : 0;
  }
};

Result<Sound> decode_sound(std::span<const std::byte> bytes);
Result<Sound> read_sound(const std::string& path);

/// The mean of the channels of every frame.
std::vector<float> mix_to_mono(const Sound& sound);

/// Samples times 32768, rounded half away from zero, saturated; NaN becomes 0. Gives back the very samples of a 16-bit
/// file.
std::vector<std::int16_t> to_int16(std::span<const float> samples);

/// A 16-bit PCM WAV file. Fails when sample rate or channels are out of range or the last frame is incomplete.
Result<std::vector<std::byte>> encode_wav(const Sound& sound);
Result<void> write_wav(const std::string& path, const Sound& sound);

}  // namespace bantam::io
