#include "audio/stages.h"

#include <algorithm>

namespace bantam::audio {

void Stages::add_stream(const DetectorShape& shape, Source source, dsp::Block& block) {
  if (shape.kind != DetectorKind::kMicroFeatures) return;
  const bool shared = std::any_of(streams.begin(), streams.begin() + stream_count, [&](const FeatureStream& s) {
    return s.source == source && s.step_ms == shape.step_ms;
  });
  if (shared) return;
  FeatureStream& stream = streams[static_cast<std::size_t>(stream_count++)];
  stream.source = source;
  stream.step_ms = shape.step_ms;
  stream.features.lay_out(shape.step_ms, block);
}

void Stages::lay_out(const StageShapes& shapes, const FrontEndConfig& config, dsp::Block& block,
                     std::vector<FrontEndMemory::Part>* report) {
  std::size_t before = block.used();
  const auto done = [&](const char* name) {
    if (report != nullptr && block.used() > before) report->push_back({name, block.used() - before});
    before = block.used();
  };
  const auto frame = static_cast<std::size_t>(config.frame);
  input.lay_out(config.input, shapes.channels, config.frame, block);
  done("input ring");
  microphone = block.take<std::int16_t>(frame);
  if (shapes.echo) {
    echo_delay = static_cast<std::size_t>(config.aec.delay_ms) * (kSampleRate / 1000);
    reference = block.take<std::int16_t>(echo_delay + frame);
    raw = block.take<std::int16_t>(frame);
  } else {
    raw = microphone;
  }
  done("microphone and reference");
  if (shapes.noise) noise.lay_out(*shapes.noise, config.frame, block);
  done("noise suppression");
  stream_count = 0;
  if (shapes.voice) add_stream(*shapes.voice, config.vad.source, block);
  for (std::size_t i = 0; i < shapes.wake.size(); ++i) add_stream(shapes.wake[i], config.wake[i].source, block);
  done("features");
  if (shapes.voice) voice.lay_out(*shapes.voice, block);
  done("voice activity");
  std::size_t word = 0;
  for (std::size_t i = 0; i < shapes.wake.size(); ++i) {
    wake[i].lay_out(shapes.wake[i], block);
    for (std::size_t w = 0; w < config.wake[i].words.size(); ++w)
      triggers[word++].lay_out(config.wake[i].smoothing, config.wake[i].refractory_ms * (kSampleRate / 1000), block);
  }
  done("wake words");
  pre_roll = shapes.voice ? static_cast<std::size_t>(config.vad.delay_ms) * (kSampleRate / 1000) : 0;
  enhanced = block.take<std::int16_t>(pre_roll + frame);
  done("frame and pre-roll");
}

}  // namespace bantam::audio
