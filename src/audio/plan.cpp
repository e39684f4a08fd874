#include "audio/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

namespace bantam::audio {
namespace {

/// Frames of the echo canceller: SpeexDSP's delay and cost are best near 16 ms.
constexpr int kEchoFrame = 256;

Error strict_error(const std::vector<ConfigChange>& changes) {
  std::string message;
  for (const ConfigChange& c : changes)
    message += fmt::format("{}{}: {} would become {}: {}", message.empty() ? "" : "\n", c.field, c.from, c.to, c.why);
  return {StatusCode::kInvalidArgument, message, "change the configuration accordingly, or do without strict"};
}

std::string pipeline_of(const FrontEndConfig& config) {
  std::string text = "[input]";
  if (config.aec.enabled.value_or(false)) text += " -> |AEC(speex)|";
  if (config.ns.enabled)
    text += fmt::format(" -> |NS({}{}{})|", config.ns.model, config.ns.second_model.empty() ? "" : " + ",
                        config.ns.second_model);
  if (config.vad.enabled) text += fmt::format(" -> |VAD({})|", config.vad.model);
  for (const WakeConfig& wake : config.wake) {
    std::string words;
    for (const std::string& word : wake.words) words += (words.empty() ? "" : ", ") + word;
    text += fmt::format(" -> |WAKE({}: {})|", wake.model, words);
  }
  return text + " -> [output]";
}

EchoCanceller::Shape echo_shape(const FrontEndConfig& config) {
  // The largest divisor of the fetched frame that is not above kEchoFrame; frames are multiples of 32.
  int frame = std::min(kEchoFrame, config.frame);
  while (config.frame % frame != 0) --frame;
  return {frame, config.aec.filter_ms * (kSampleRate / 1000), config.aec.suppress_residual};
}

Result<void> class_in_range(const std::string& stage, int index, const DetectorShape& shape) {
  if (index < shape.classes && index >= 0) return {};
  return fail(StatusCode::kOutOfRange,
              fmt::format("{}: class {} is asked for, the model's output has {}", stage, index, shape.classes),
              "classes are counted from 0");
}

}  // namespace

class FrontEndPlanner {
 public:
  explicit FrontEndPlanner(FrontEndPlan::Parts& parts) : parts_(parts) {}

  /// Finds what the models take. Their ports are known once they are placed, which is done here for this alone.
  Result<void> find_shapes() {
    FrontEndConfig& config = parts_.config;
    StageShapes& shapes = parts_.shapes;
    shapes.channels = channels_of(config.input);
    if (config.aec.enabled.value_or(false)) shapes.echo = echo_shape(config);
    if (config.fleet.models.empty()) return {};
    const Requirements need = parts_.package.requirements();
    const auto bytes = static_cast<std::size_t>(need.arena_bytes);
    const OwnedBlock arena = allocate_block(bytes);
    if (arena == nullptr)
      return fail(StatusCode::kArenaTooSmall, fmt::format("the host has no {} bytes for the models", bytes),
                  "free memory or use smaller models");
    Fleet* fleet = nullptr;
    if (const Status s = Fleet::place(parts_.package, {arena.get(), bytes}, &fleet); !s.ok())
      return fail(error_from(s));
    if (config.ns.enabled) {
      const Session* second = config.ns.second_model.empty() ? nullptr : fleet->find(config.ns.second_model);
      auto shape = noise_shape(*fleet->find(config.ns.model), second, config.ns);
      if (!shape) return fail(std::move(shape.error()).in("ns"));
      shapes.noise = *shape;
    }
    if (config.vad.enabled) {
      auto shape = detector_shape(*fleet->find(config.vad.model), config.vad, has_state(config.vad.model));
      if (!shape) return fail(std::move(shape.error()).in("vad"));
      if (config.vad.class_index < 0) config.vad.class_index = shape->classes - 1;
      if (auto good = class_in_range("vad", config.vad.class_index, *shape); !good) return good;
      shapes.voice = *shape;
    }
    for (std::size_t i = 0; i < config.wake.size(); ++i)
      if (auto found = find_wake(*fleet, fmt::format("wake[{}]", i + 1), config.wake[i]); !found) return found;
    return {};
  }

  void measure() {
    FrontEndMemory& memory = parts_.memory;
    if (!parts_.config.fleet.models.empty()) memory.fleet = parts_.package.requirements();
    dsp::Block block;
    block.take_bytes(static_cast<std::size_t>(memory.fleet.arena_bytes));
    const auto stages = std::make_unique<Stages>();
    stages->lay_out(parts_.shapes, parts_.config, block, &memory.parts);
    memory.parts.push_back({"arena of all models", 0});
    std::size_t buffers = 0;
    for (const FrontEndMemory::Part& part : memory.parts) buffers += part.bytes;
    memory.block_bytes = block.used();
    memory.parts.back().bytes = memory.block_bytes - buffers;
    memory.control_bytes = FrontEnd::object_bytes();
    if (!parts_.shapes.echo) return;
    memory.echo_heap_bytes = EchoCanceller::measure(*parts_.shapes.echo);
    memory.echo_heap_counted = memory.echo_heap_bytes > 0;
  }

 private:
  bool has_state(const std::string& session) const {
    for (std::size_t i = 0; i < parts_.package.session_count(); ++i)
      if (parts_.package.session_name(i) == session) return parts_.package.session_requirements(i).state_bytes > 0;
    return false;
  }

  Result<void> find_wake(Fleet& fleet, const std::string& stage, const WakeConfig& wake) {
    auto shape = detector_shape(*fleet.find(wake.model), wake, has_state(wake.model));
    if (!shape) return fail(std::move(shape.error()).in(stage));
    for (const int c : wake.classes)
      if (auto good = class_in_range(stage, c, *shape); !good) return good;
    parts_.shapes.wake.push_back(*shape);
    return {};
  }

  FrontEndPlan::Parts& parts_;
};

FrontEndPlan::FrontEndPlan(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
FrontEndPlan::FrontEndPlan(FrontEndPlan&&) noexcept = default;
FrontEndPlan& FrontEndPlan::operator=(FrontEndPlan&&) noexcept = default;
FrontEndPlan::~FrontEndPlan() = default;

Result<FrontEndPlan> FrontEndPlan::make(FrontEndConfig config, const FrontEndOptions& options) {
  auto parts = std::make_unique<Parts>();
  parts->config = std::move(config);
  auto changes = check(parts->config);
  if (!changes) return fail(std::move(changes.error()));
  parts->changes = std::move(*changes);
  if (options.strict && !parts->changes.empty()) return fail(strict_error(parts->changes));
  if (!parts->config.fleet.models.empty()) {
    auto compiled = compile(parts->config.fleet, {.backend = options.backend});
    if (!compiled) return fail(std::move(compiled.error()));
    parts->compiled = std::move(*compiled);
    if (const Status s = Package::open(parts->compiled.package(), &parts->package); !s.ok()) return fail(error_from(s));
  }
  FrontEndPlanner planner(*parts);
  if (auto found = planner.find_shapes(); !found) return fail(std::move(found.error()));
  planner.measure();
  parts->pipeline = pipeline_of(parts->config);
  return FrontEndPlan(std::move(parts));
}

const FrontEndConfig& FrontEndPlan::config() const noexcept { return parts_->config; }
const std::vector<ConfigChange>& FrontEndPlan::changes() const noexcept { return parts_->changes; }
const FrontEndMemory& FrontEndPlan::memory() const noexcept { return parts_->memory; }
const std::string& FrontEndPlan::pipeline() const noexcept { return parts_->pipeline; }

}  // namespace bantam::audio
