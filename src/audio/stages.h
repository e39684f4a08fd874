// All stages of a front end and the order in which they take their memory.
//
// FrontEndPlan lays them out in a counting block to know what they need; FrontEnd lays them out in memory. Both call
// the same function, so that what is promised is what is used. Not copyable; threads as FrontEnd says.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <vector>

#include "audio/decisions.h"
#include "audio/detector.h"
#include "audio/echo_canceller.h"
#include "audio/input_stage.h"
#include "audio/noise_suppressor.h"
#include "audio/shapes.h"
#include "bantam/audio.h"
#include "dsp/block.h"
#include "dsp/micro_features.h"

namespace bantam::audio {

/// What is built: found in the configuration and the models' ports.
struct StageShapes {
  Channels channels;
  std::optional<EchoCanceller::Shape> echo;
  std::optional<NoiseShape> noise;
  std::optional<DetectorShape> voice;
  std::vector<DetectorShape> wake;
};

/// Feature rows that several detectors share: they hear the same sound at the same step.
struct FeatureStream {
  Source source = Source::kEnhanced;
  int step_ms = 0;
  dsp::MicroFeatures features;
};

inline constexpr int kMaxFeatureStreams = kMaxWakeModels + 1;

struct Stages {
  void lay_out(const StageShapes& shapes, const FrontEndConfig& config, dsp::Block& block,
               std::vector<FrontEndMemory::Part>* report);

  InputStage input;
  NoiseSuppressor noise;
  Detector voice;
  std::array<Detector, kMaxWakeModels> wake;
  std::array<WordTrigger, kMaxWakeWords> triggers;
  std::array<FeatureStream, kMaxFeatureStreams> streams;
  int stream_count = 0;
  std::int16_t* microphone = nullptr;
  std::int16_t* reference = nullptr;  ///< as late as the echo, then the newest
  std::size_t echo_delay = 0;         ///< samples by which it is late
  std::int16_t* raw = nullptr;
  std::int16_t* enhanced = nullptr;  ///< the pre-roll, then a frame
  std::size_t pre_roll = 0;          ///< samples

 private:
  void add_stream(const DetectorShape& shape, Source source, dsp::Block& block);
};

}  // namespace bantam::audio
