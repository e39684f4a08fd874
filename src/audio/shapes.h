// What the front end needs to know of a stage's model: found in the ports of its session and checked against what the
// configuration says, before any memory is laid out.
//
// Called by FrontEndPlan on a fleet that is placed for the purpose. Values; errors name session, port, what was found
// and what was expected.
#pragma once

#include "bantam/audio.h"
#include "bantam/error.h"
#include "bantam/runtime.h"
#include "dsp/stft.h"

namespace bantam::audio {

struct DetectorShape {
  DetectorKind kind = DetectorKind::kWave;
  std::size_t input = 0;
  std::size_t output = 0;
  bool quantised = false;  ///< int8 input instead of float
  int window = 0;          ///< samples, or feature rows, of one invoke
  int hop = 0;             ///< of them that are new
  int hop_samples = 0;     ///< the same at 16 kHz
  int step_ms = 0;         ///< of feature rows
  int classes = 0;
  Scores scores = Scores::kProbability;
  ElementType output_type = ElementType::kF32;
  Quantization output_quantization;
};

struct NoiseShape {
  NoiseKind kind = NoiseKind::kWave;
  std::size_t input = 0;
  std::size_t output = 0;
  int hop = 0;          ///< samples from invoke to invoke
  dsp::StftShape stft;  ///< spectrum and mask
  bool second = false;
  std::size_t second_input = 0;
  std::size_t second_output = 0;
};

/// `has_state`: the model keeps state from invoke to invoke.
Result<DetectorShape> detector_shape(const Session& session, const DetectorConfig& config, bool has_state);

/// `second`: null when there is none.
Result<NoiseShape> noise_shape(const Session& session, const Session* second, const NoiseConfig& config);

}  // namespace bantam::audio
