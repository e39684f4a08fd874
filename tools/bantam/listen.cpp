// bantam listen: a front end on recordings, as if they came from microphones.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>

#include "bantam/audio.h"
#include "cli.h"
#include "diagnose/allocations/allocation_counter.h"
#include "dsp/resampler.h"
#include "io/wav.h"

namespace bantam::cli {
namespace {

struct ListenArguments {
  std::string config;
  std::vector<std::string> sounds;
  std::string format;
  std::string output;
  std::int64_t chunk = 160;
  bool strict = false;
  bool json = false;
};

double seconds(std::uint64_t samples) { return static_cast<double>(samples) / audio::kSampleRate; }

/// One channel of a sound at another rate, without the resampler's delay.
Result<std::vector<float>> channel_at(const io::Sound& sound, int channel, int rate) {
  std::vector<float> samples;
  samples.reserve(static_cast<std::size_t>(sound.frames()));
  for (std::size_t i = static_cast<std::size_t>(channel); i < sound.samples.size();
       i += static_cast<std::size_t>(sound.channels))
    samples.push_back(sound.samples[i]);
  if (sound.sample_rate == rate) return samples;
  if (!dsp::Resampler::supports(sound.sample_rate, rate))
    return fail(StatusCode::kUnsupported, fmt::format("{} Hz cannot be turned into {} Hz", sound.sample_rate, rate),
                "use a sound of 1000 to 768000 Hz");
  dsp::Resampler resampler;
  dsp::Block counting;
  resampler.lay_out(sound.sample_rate, rate, counting);
  std::vector<std::byte> memory(counting.used());
  dsp::Block block(memory);
  resampler.lay_out(sound.sample_rate, rate, block);
  const auto wanted = static_cast<std::size_t>(sound.frames() * rate / sound.sample_rate);
  const std::size_t late = resampler.latency();
  samples.resize(samples.size() + (late + 1) * static_cast<std::size_t>(sound.sample_rate) / rate + 1);
  std::vector<float> result(resampler.max_output(samples.size()));
  resampler.process(samples, result.data());
  return std::vector<float>(result.begin() + static_cast<std::ptrdiff_t>(late),
                            result.begin() + static_cast<std::ptrdiff_t>(late + wanted));
}

/// All channels of all files side by side, as the front end takes them; shorter ones end in silence.
Result<std::vector<std::int16_t>> interleave(const std::vector<std::string>& files, const audio::InputConfig& input) {
  std::vector<std::vector<float>> channels;
  std::size_t longest = 0;
  for (const std::string& file : files) {
    const auto sound = io::read_sound(file);
    if (!sound) return fail(sound.error());
    for (int c = 0; c < sound->channels; ++c) {
      auto channel = channel_at(*sound, c, input.sample_rate);
      if (!channel) return fail(std::move(channel.error()).in(file));
      longest = std::max(longest, channel->size());
      channels.push_back(std::move(*channel));
    }
  }
  if (channels.size() != input.format.size())
    return fail(StatusCode::kInvalidArgument,
                fmt::format("the files have {} channels, the format \"{}\" has {}", channels.size(), input.format,
                            input.format.size()),
                "give as many letters with --format: M microphone, R playback reference, N not used");
  std::vector<float> interleaved(longest * channels.size());
  for (std::size_t c = 0; c < channels.size(); ++c)
    for (std::size_t i = 0; i < channels[c].size(); ++i) interleaved[i * channels.size() + c] = channels[c][i];
  return io::to_int16(interleaved);
}

struct Event {
  std::string kind;  ///< "speech" or "wake"
  double from = 0;   ///< seconds
  double to = 0;
  std::string word;
  float probability = 0;
};

class Listener {
 public:
  Listener(const ListenArguments& options, audio::FrontEnd& front_end) : options_(options), front_end_(front_end) {
    for (const audio::WakeConfig& wake : front_end.plan().config().wake)
      words_.insert(words_.end(), wake.words.begin(), wake.words.end());
  }

  /// Feeds everything in chunks and fetches what is ready after each; ends in silence until all sound has come out.
  Result<void> run(const std::vector<std::int16_t>& sound, std::size_t channels, int sample_rate) {
    const auto frames = static_cast<std::uint64_t>(sound.size() / channels);
    const std::uint64_t wanted = frames * audio::kSampleRate / static_cast<std::uint64_t>(sample_rate);
    std::span<const std::int16_t> rest = sound;
    while (!rest.empty()) {
      const std::size_t chunk = std::min(rest.size(), static_cast<std::size_t>(options_.chunk) * channels);
      rest = rest.subspan(feed(rest.first(chunk)));
      if (auto done = fetch_all(); !done) return done;
    }
    const std::vector<std::int16_t> silence(channels * 64, 0);
    while (heard_ < wanted) {
      feed(silence);
      if (auto done = fetch_all(); !done) return done;
    }
    if (speaking_) end_speech(seconds(heard_));
    return {};
  }

  const std::vector<Event>& events() const { return events_; }
  const std::vector<std::int16_t>& output() const { return output_; }
  double busy_seconds() const { return busy_seconds_; }
  std::uint64_t allocations() const { return allocations_; }
  std::uint64_t heard() const { return heard_; }

 private:
  /// Calls f with the clock and the allocation count running.
  template <typename F>
  auto measured(F&& f) {
    const std::uint64_t before = diagnose::allocation_count();
    const auto start = std::chrono::steady_clock::now();
    const auto result = f();
    busy_seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    allocations_ += diagnose::allocation_count() - before;
    return result;
  }

  std::size_t feed(std::span<const std::int16_t> samples) {
    return measured([&] { return front_end_.feed(samples); });
  }

  Result<void> fetch_all() {
    while (true) {
      audio::Frame frame;
      const audio::Fetched fetched = measured([&] { return front_end_.fetch(&frame); });
      if (!fetched.status.ok()) return fail(error_from(fetched.status));
      if (!fetched.ready) return {};
      heard_ = frame.position + frame.samples.size();
      if (!options_.output.empty()) output_.insert(output_.end(), frame.samples.begin(), frame.samples.end());
      tell(frame);
    }
  }

  void tell(const audio::Frame& frame) {
    if (frame.speech_started) {
      speaking_ = true;
      speech_from_ = seconds(frame.position - frame.pre_roll.size());
    }
    if (frame.speech_ended && speaking_) {
      // Speech counts as ended when silence has lasted; it was silent from when that began.
      const int silence_ms = front_end_.plan().config().vad.min_noise_ms;
      end_speech(std::max(speech_from_, seconds(frame.position + frame.samples.size()) - silence_ms / 1000.0));
    }
    if (frame.wake_word == 0) return;
    const double now = seconds(frame.position + frame.samples.size());
    add({"wake", now, now, words_[static_cast<std::size_t>(frame.wake_word - 1)], frame.wake_probability});
  }

  void end_speech(double to) {
    speaking_ = false;
    add({"speech", speech_from_, to, {}, 0});
  }

  void add(Event event) {
    if (!options_.json) {
      if (event.kind == "speech") {
        fmt::print("{:8.2f} s  speech until {:.2f} s\n", event.from, event.to);
      } else {
        fmt::print("{:8.2f} s  wake word \"{}\" ({:.2f})\n", event.from, printable(event.word), event.probability);
      }
    }
    events_.push_back(std::move(event));
  }

  const ListenArguments& options_;
  audio::FrontEnd& front_end_;
  std::vector<std::string> words_;
  std::vector<Event> events_;
  std::vector<std::int16_t> output_;
  std::uint64_t heard_ = 0;
  bool speaking_ = false;
  double speech_from_ = 0;
  double busy_seconds_ = 0;
  std::uint64_t allocations_ = 0;
};

void print_stages(const audio::FrontEndPlan& plan) {
  fmt::print("{}\n", printable(plan.pipeline()));
  for (const audio::ConfigChange& c : plan.changes())
    fmt::print("changed: {}: {} -> {}: {}\n", c.field, printable(c.from), printable(c.to), printable(c.why));
  const audio::FrontEndMemory& memory = plan.memory();
  std::vector<std::vector<std::string>> rows = {{"memory", "bytes"}};
  for (const auto& part : memory.parts) rows.push_back({"  " + part.name, std::to_string(part.bytes)});
  rows.push_back({"one block", std::to_string(memory.block_bytes)});
  rows.push_back({"the front end's object", std::to_string(memory.control_bytes)});
  if (plan.config().aec.enabled.value_or(false))
    rows.push_back({"SpeexDSP's own, measured",
                    memory.echo_heap_counted ? std::to_string(memory.echo_heap_bytes) : "not counted in this build"});
  rows.push_back({"weights, in the package", std::to_string(memory.fleet.weights_bytes)});
  fmt::print("{}", format_table(rows, {false, true}));
  fmt::print("arena of all models: activations {} shared, state {}, links {}, tables {}\n",
             memory.fleet.activation_bytes, memory.fleet.state_bytes, memory.fleet.link_bytes,
             memory.fleet.table_bytes);
}

void print_findings(const audio::FrontEnd& front_end, const Listener& listener) {
  const double length = seconds(listener.heard());
  fmt::print("{:.2f} s of sound in {:.3f} s, real-time factor {:.4f} (feed and fetch, one thread)\n", length,
             listener.busy_seconds(), listener.busy_seconds() / length);
  if (front_end.plan().config().aec.enabled.value_or(false))
    fmt::print(
        "echo cancellation took away {:.1f} dB where the loudspeaker played, {:.1f} dB in the best half second\n",
        front_end.echo_return_loss_db(), front_end.best_echo_return_loss_db());
  if (diagnose::counts_allocations()) {
    fmt::print("allocations after start: {}\n", listener.allocations());
  } else {
    fmt::print("allocations after start: not counted in this build\n");
  }
}

nlohmann::json stages_json(const audio::FrontEndPlan& plan) {
  const audio::FrontEndMemory& memory = plan.memory();
  nlohmann::json j = {{"pipeline", plan.pipeline()},
                      {"changes", nlohmann::json::array()},
                      {"block_bytes", memory.block_bytes},
                      {"parts", nlohmann::json::array()},
                      {"control_bytes", memory.control_bytes},
                      {"echo_heap_bytes", memory.echo_heap_bytes},
                      {"fleet", requirements_json(memory.fleet)}};
  for (const audio::ConfigChange& c : plan.changes())
    j["changes"].push_back({{"field", c.field}, {"from", c.from}, {"to", c.to}, {"why", c.why}});
  for (const auto& part : memory.parts) j["parts"].push_back({{"name", part.name}, {"bytes", part.bytes}});
  return j;
}

nlohmann::json events_json(const std::vector<Event>& events) {
  nlohmann::json j = nlohmann::json::array();
  for (const Event& e : events) {
    nlohmann::json event = {{"kind", e.kind}, {"from", e.from}, {"to", e.to}};
    if (e.kind == "wake") event.update({{"word", e.word}, {"probability", e.probability}});
    j.push_back(event);
  }
  return j;
}

int listen(const ListenArguments& options) {
  auto config = audio::read_front_end_file(options.config);
  if (!config) return report(config.error());
  if (!options.format.empty()) config->input.format = options.format;
  const auto sound = interleave(options.sounds, config->input);
  if (!sound) return report(sound.error());
  auto plan = audio::FrontEndPlan::make(std::move(*config), {.strict = options.strict});
  if (!plan) return report(plan.error());
  nlohmann::json j = stages_json(*plan);
  // Said before anything runs: the memory is a promise.
  if (!options.json) print_stages(*plan);
  auto front_end = audio::FrontEnd::create(std::move(*plan));
  if (!front_end) return report(front_end.error());
  const audio::InputConfig& input = front_end->plan().config().input;
  Listener listener(options, *front_end);
  if (auto done = listener.run(*sound, input.format.size(), input.sample_rate); !done) return report(done.error());
  if (!options.output.empty()) {
    io::Sound enhanced{audio::kSampleRate, 1, {}};
    for (const std::int16_t s : listener.output()) enhanced.samples.push_back(static_cast<float>(s) / 32768.0F);
    if (auto written = io::write_wav(options.output, enhanced); !written) return report(written.error());
  }
  if (!options.json) {
    print_findings(*front_end, listener);
    return kExitOk;
  }
  j["events"] = events_json(listener.events());
  j["seconds"] = seconds(listener.heard());
  j["busy_seconds"] = listener.busy_seconds();
  j["echo_return_loss_db"] = front_end->echo_return_loss_db();
  j["best_echo_return_loss_db"] = front_end->best_echo_return_loss_db();
  j["allocations"] = listener.allocations();
  print_json(j);
  return kExitOk;
}

}  // namespace

void add_listen(CLI::App& app, int* exit_code) {
  CLI::App* command = app.add_subcommand("listen", "run a speech front end on recordings");
  auto options = std::make_shared<ListenArguments>();
  command->add_option("config", options->config, "front-end file")->required()->type_name("CONFIG.toml");
  command->add_option("sounds", options->sounds, "recordings; their channels side by side are the input")
      ->required()
      ->type_name("FILE.wav");
  command->add_option("--format", options->format, "a letter per channel: M microphone, R reference, N not used")
      ->type_name("MR");
  command->add_option("--chunk", options->chunk, "samples per channel fed at a time; results do not depend on it")
      ->check(CLI::Range(1, 1 << 30))
      ->type_name("SAMPLES");
  command->add_option("-o,--output", options->output, "write the enhanced sound")->type_name("FILE.wav");
  command->add_flag("--strict", options->strict, "refuse a configuration that would have to be changed");
  command->add_flag("--json", options->json, "print JSON");
  command->footer(
      "The file is a fleet file with the further tables [input], [aec], [ns], [vad] and [[wake]];\n"
      "models/front-end.toml shows them. Sounds of any rate are resampled. Times are those of the enhanced sound.\n"
      "Examples:\n"
      "  bantam listen models/front-end.toml talk.wav\n"
      "  bantam listen models/front-end.toml mic.wav loudspeaker.wav --format MR -o clean.wav");
  command->callback([=] { *exit_code = listen(*options); });
}

}  // namespace bantam::cli
