// Samples as int16 and as float with full scale 1. io/wav.h has the conversions of whole sounds.
#pragma once

#include <cmath>
#include <cstdint>

namespace bantam::audio {

constexpr float to_float(std::int16_t sample) noexcept { return static_cast<float>(sample) * (1.0F / 32768.0F); }

/// Rounded to nearest, saturated; NaN becomes 0.
inline std::int16_t to_int16(float sample) noexcept {
  const float scaled = sample * 32768.0F;
  if (!(scaled > -32768.0F)) return scaled != scaled ? std::int16_t{0} : std::int16_t{-32768};
  if (scaled >= 32767.0F) return 32767;
  return static_cast<std::int16_t>(std::lround(scaled));
}

}  // namespace bantam::audio
