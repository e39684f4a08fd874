// What a package says about its recogniser: metadata and ports of the three models, checked against each other.
#pragma once

#include <cstddef>
#include <cstdint>

#include "bantam/runtime.h"

namespace bantam::speech {

inline constexpr std::int32_t kNoModel = -1;

struct Traits {
  // Sessions of the package; kNoModel where there is none.
  std::int32_t encoder = kNoModel;
  std::int32_t ctc = kNoModel;
  std::int32_t decoder = kNoModel;

  std::int32_t chunk = 0;          ///< encoder frames; 0: the whole utterance at once
  std::int32_t left_chunks = 0;    ///< of chunk frames each, seen by attention; 0 without a mask
  std::int32_t subsampling = 0;    ///< feature frames per encoder frame
  std::int32_t right_context = 0;  ///< feature frames that an encoder frame sees beyond its first
  std::int32_t feature_bins = 0;
  std::int32_t window = 0;  ///< feature frames of an encoder call, the most
  std::int32_t frames = 0;  ///< encoder frames that it gives, the most
  std::int32_t width = 0;   ///< of an encoder frame
  std::int32_t vocabulary = 0;
  bool masked = false;  ///< the encoder has an input that says which keys count

  std::int32_t sos = 0;
  std::int32_t eos = 0;
  std::int32_t decoder_frames = 0;  ///< encoder frames that the decoder takes, the most
  std::int32_t decoder_length = 0;  ///< tokens with sos, the most
  bool reverse = false;             ///< the decoder scores from right to left too

  /// Feature frames that the next encoder call needs again.
  std::int32_t overlap() const noexcept { return 1 + right_context - subsampling; }
  /// Feature frames below which the encoder gives nothing.
  std::int32_t least() const noexcept { return right_context + 1; }
  /// Encoder frames of `features` feature frames.
  std::int32_t encoded(std::int32_t features) const noexcept {
    return features < least() ? 0 : (features - least()) / subsampling + 1;
  }
  /// Position of the first frame after a reset, behind the empty cache.
  std::int64_t first_offset() const noexcept { return std::int64_t{chunk} * left_chunks; }
};

Status read_traits(const Package& package, Traits* out) noexcept;

}  // namespace bantam::speech
