// bantam transcribe: streaming speech recognition on sound files, with error rate, time and memory accounted for.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <optional>

#include "bantam/recognizer.h"
#include "cli.h"
#include "diagnose/allocations/allocation_counter.h"
#include "speech/recognizer/error_rate.h"

namespace bantam::cli {
namespace {

constexpr double kSamplesPerSecond = 16000.0;
constexpr const char* kClock =
    "features, encoder with CTC graph, search, rescoring; not reading and resampling of files";

struct TranscribeArguments {
  std::vector<std::string> sounds;
  std::string model = "models/recogniser";
  std::string units;
  std::string reference;
  std::optional<int> chunk_size;
  std::optional<int> left_chunks;
  double chunk_ms = 0;
  double max_seconds = 0;
  int max_tokens = 0;
  int nbest = 10;
  int threads = 1;
  speech::StreamConfig decoding;
  bool partials = false;
  bool json = false;
};

struct Sound {
  std::string file;
  std::vector<std::int16_t> samples;

  std::string key() const { return std::filesystem::path(file).stem().string(); }
  double seconds() const { return static_cast<double>(samples.size()) / kSamplesPerSecond; }
};

/// One hypothesis, copied out of the stream.
struct Line {
  std::string text;
  speech::Hypothesis scores;  ///< its lists point into `tokens` and `frames` no more
  std::vector<std::pair<std::string, speech::UnitTime>> units;
};

struct Segment {
  speech::SegmentEnd end = speech::SegmentEnd::kInput;
  bool rescored = false;
  std::int64_t start_ms = 0;
  std::int64_t end_ms = 0;
  std::vector<Line> nbest;
};

struct Transcript {
  std::vector<Segment> segments;
  std::vector<std::string> partials;
  speech::StageTimes times;
  std::optional<speech::ErrorCount> errors;

  std::string text() const {
    std::string all;
    for (const Segment& s : segments)
      if (!s.nbest.empty() && !s.nbest.front().text.empty()) all += (all.empty() ? "" : " ") + s.nbest.front().text;
    return all;
  }
  bool cut() const {
    return std::ranges::any_of(segments, [](const Segment& s) { return s.end == speech::SegmentEnd::kLimit; });
  }
};

const char* end_name(speech::SegmentEnd end) {
  switch (end) {
    case speech::SegmentEnd::kNone: return "partial";
    case speech::SegmentEnd::kInput: return "end";
    case speech::SegmentEnd::kEndpoint: return "endpoint";
    case speech::SegmentEnd::kLimit: return "limit";
  }
  return "";
}

/// Hears what a stream says. What it allocates to remember it is not counted as the stream's.
class Collector {
 public:
  Collector(const Recognizer& recognizer, RecognizerStream& stream, std::size_t nbest)
      : recognizer_(recognizer), stream_(stream), nbest_(nbest) {
    stream_->set_listener(
        {this, [](void* self, const speech::Recognition& result) { static_cast<Collector*>(self)->hear(result); }});
  }
  Collector(const Collector&) = delete;
  Collector& operator=(const Collector&) = delete;

  Result<Transcript> run(const Sound& sound, std::size_t block) {
    transcript_ = {};
    own_allocations_ = 0;
    stream_->reset();
    const std::uint64_t before = diagnose::allocation_count();
    Status status;
    std::span<const std::int16_t> samples(sound.samples);
    while (status.ok() && !samples.empty()) {
      const auto part = samples.first(std::min(block, samples.size()));
      samples = samples.subspan(part.size());
      status = stream_->feed(part);
    }
    if (status.ok()) status = stream_->finish();
    allocations_ += diagnose::allocation_count() - before - own_allocations_;
    if (!status.ok()) return fail(error_from(status).in(sound.file));
    transcript_.times = stream_->times();
    return std::move(transcript_);
  }

  std::uint64_t allocations() const { return allocations_; }

 private:
  void hear(const speech::Recognition& result) {
    const std::uint64_t before = diagnose::allocation_count();
    if (result.end == speech::SegmentEnd::kNone) {
      transcript_.partials.emplace_back(result.text);
    } else {
      Segment segment{
          result.end, result.rescored, result.first_feature * 10, (result.first_feature + result.features) * 10, {}};
      for (const speech::Hypothesis& hypothesis : result.nbest.first(std::min(nbest_, result.nbest.size())))
        segment.nbest.push_back(line(result, hypothesis));
      transcript_.segments.push_back(std::move(segment));
    }
    own_allocations_ += diagnose::allocation_count() - before;
  }

  Line line(const speech::Recognition& result, const speech::Hypothesis& hypothesis) {
    const speech::Units& units = recognizer_.units();
    Line line;
    line.text.resize(hypothesis.tokens.size() * units.longest());
    line.text.resize(units.join(hypothesis.tokens, line.text));
    line.scores = hypothesis;
    for (std::size_t i = 0; i < hypothesis.tokens.size(); ++i)
      line.units.emplace_back(units.symbol(hypothesis.tokens[i]),
                              speech::unit_time(result, hypothesis, i, stream_->frame_ms()));
    return line;
  }

  const Recognizer& recognizer_;
  RecognizerStream& stream_;
  std::size_t nbest_;
  Transcript transcript_;
  std::uint64_t own_allocations_ = 0;
  std::uint64_t allocations_ = 0;
};

std::int64_t steady_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

nlohmann::json segment_json(const Segment& segment) {
  nlohmann::json j = {{"end", end_name(segment.end)},
                      {"start_ms", segment.start_ms},
                      {"end_ms", segment.end_ms},
                      {"rescored", segment.rescored},
                      {"nbest", nlohmann::json::array()}};
  for (const Line& line : segment.nbest) {
    nlohmann::json units = nlohmann::json::array();
    for (const auto& [unit, time] : line.units)
      units.push_back({{"unit", unit}, {"start_ms", time.start_ms}, {"end_ms", time.end_ms}});
    j["nbest"].push_back({{"text", line.text},
                          {"score", line.scores.score},
                          {"ctc_score", line.scores.ctc_score},
                          {"attention_score", line.scores.attention_score},
                          {"units", std::move(units)}});
  }
  return j;
}

nlohmann::json times_json(const speech::StageTimes& times) {
  const auto ms = [](std::int64_t ns) { return static_cast<double>(ns) / 1e6; };
  return {{"features", ms(times.features)},   {"encoder", ms(times.encoder)}, {"search", ms(times.search)},
          {"rescoring", ms(times.rescoring)}, {"total", ms(times.total())},   {"inside", kClock}};
}

nlohmann::json stream_memory_json(const speech::StreamPlan& plan) {
  nlohmann::json j = requirements_json(plan.fleet);
  j["stream_bytes"] = plan.total_bytes;
  j["feature_bytes"] = plan.feature_bytes;
  j["search_bytes"] = plan.search_bytes;
  j["utterance_bytes"] = plan.utterance_bytes;
  j["result_bytes"] = plan.result_bytes;
  j["max_encoder_frames"] = plan.max_encoder_frames;
  j["max_tokens"] = plan.max_tokens;
  return j;
}

/// Sums over all sounds.
struct Totals {
  double seconds = 0;
  speech::StageTimes times;
  speech::ErrorCount errors;
  bool has_errors = false;

  void add(const Sound& sound, const Transcript& transcript) {
    seconds += sound.seconds();
    times.features += transcript.times.features;
    times.encoder += transcript.times.encoder;
    times.search += transcript.times.search;
    times.rescoring += transcript.times.rescoring;
    has_errors = has_errors || transcript.errors.has_value();
    if (transcript.errors) errors += *transcript.errors;
  }
  double real_time_factor() const { return seconds > 0 ? static_cast<double>(times.total()) / 1e9 / seconds : 0.0; }
};

void print_stream_plan(const TranscribeArguments& options, const Recognizer& recognizer,
                       const speech::StreamPlan& plan) {
  const std::string chunks = recognizer.chunk_size() > 0
                                 ? fmt::format("chunks of {} encoder frames, {} chunks of history",
                                               recognizer.chunk_size(), recognizer.left_chunks())
                                 : std::string("whole utterances");
  fmt::print("{}: {}, {} units\n", printable(options.model), chunks, recognizer.units().size());
  fmt::print(
      "a stream: {} bytes (activations {}, caches {}, tables {}, features {}, search {}, utterance {}, results {})\n",
      plan.total_bytes, plan.fleet.activation_bytes, plan.fleet.state_bytes, plan.fleet.table_bytes, plan.feature_bytes,
      plan.search_bytes, plan.utterance_bytes, plan.result_bytes);
  fmt::print("weights, shared by all streams: {} bytes\n", plan.fleet.weights_bytes);
}

void print_transcript(const TranscribeArguments& options, const Sound& sound, const Transcript& transcript) {
  if (options.partials)
    for (const std::string& partial : transcript.partials) fmt::print("  ... {}\n", printable(partial));
  std::string note;
  if (transcript.errors)
    note = fmt::format("  ({} of {} characters wrong)", transcript.errors->edits, transcript.errors->characters);
  fmt::print("{}  {}{}\n", printable(sound.key()), printable(transcript.text()), note);
  if (transcript.segments.size() > 1)
    for (const Segment& s : transcript.segments)
      fmt::print("  {:7.2f} to {:7.2f} s, {:8}  {}\n", static_cast<double>(s.start_ms) / 1000,
                 static_cast<double>(s.end_ms) / 1000, end_name(s.end),
                 s.nbest.empty() ? "" : printable(s.nbest.front().text));
  if (transcript.cut())
    fmt::print(
        "  an utterance reached the longest that is planned for, or that the model has positions for, and was cut: "
        "see --max-seconds and --continuous\n");
}

void print_totals(const Totals& totals, std::uint64_t allocations) {
  if (totals.has_errors)
    fmt::print("character error rate: {:.2f} % ({} of {})\n", 100 * totals.errors.rate(), totals.errors.edits,
               totals.errors.characters);
  const auto ms = [](std::int64_t ns) { return static_cast<double>(ns) / 1e6; };
  fmt::print(
      "real-time factor: {:.4f} ({:.1f} ms for {:.2f} s of sound: features {:.1f}, encoder {:.1f}, search {:.1f}, "
      "rescoring {:.1f})\n",
      totals.real_time_factor(), ms(totals.times.total()), totals.seconds, ms(totals.times.features),
      ms(totals.times.encoder), ms(totals.times.search), ms(totals.times.rescoring));
  fmt::print("  inside the clock: {}\n", kClock);
  if (diagnose::counts_allocations())
    fmt::print("allocations after start: {}\n", allocations);
  else
    fmt::print("allocations after start: not counted in this build\n");
}

Result<std::vector<Sound>> read_sounds(const TranscribeArguments& options) {
  std::vector<Sound> sounds;
  for (const std::string& file : options.sounds) {
    auto samples = read_speech(file);
    if (!samples) return fail(std::move(samples.error()));
    sounds.push_back({file, std::move(*samples)});
  }
  return sounds;
}

/// The longest utterance to plan for: what was asked, else the longest sound up to a minute; with endpoints, the
/// longest that the rules let pass and a chunk more.
double longest_utterance(const TranscribeArguments& options, const std::vector<Sound>& sounds) {
  constexpr double kMinute = 60;
  if (options.max_seconds > 0) return options.max_seconds;
  double longest = 1;
  for (const Sound& sound : sounds) longest = std::max(longest, sound.seconds());
  return std::min(longest, options.decoding.continuous ? RecognizerSpec{}.max_seconds : kMinute);
}

int transcribe(const TranscribeArguments& options) {
  const auto sounds = read_sounds(options);
  if (!sounds) return report(sounds.error());
  std::map<std::string, std::string> references;
  if (!options.reference.empty()) {
    auto read = speech::read_references(options.reference);
    if (!read) return report(read.error());
    references = std::move(*read);
  }
  RecognizerSpec spec{.model = options.model, .units = options.units};
  spec.chunk_size = options.chunk_size;
  spec.left_chunks = options.left_chunks;
  spec.max_seconds = longest_utterance(options, *sounds);
  spec.max_tokens = options.max_tokens;
  spec.rescoring = options.decoding.rescoring_weight > 0;
  spec.compile.threads = options.threads;
  auto recognizer = Recognizer::open(spec);
  if (!recognizer) return report(recognizer.error());
  speech::StreamConfig config = options.decoding;
  config.clock = steady_ns;
  auto stream = recognizer->open_stream(config);
  if (!stream) return report(stream.error());
  // Said before anything runs: the memory is a promise.
  if (!options.json) print_stream_plan(options, *recognizer, stream->plan());

  const auto block = options.chunk_ms > 0 ? static_cast<std::size_t>(std::max(1.0, options.chunk_ms * 16.0))
                                          : static_cast<std::size_t>(kSamplesPerSecond);
  Collector collector(*recognizer, *stream, static_cast<std::size_t>(options.nbest));
  Totals totals;
  nlohmann::json files = nlohmann::json::array();
  for (const Sound& sound : *sounds) {
    auto transcript = collector.run(sound, block);
    if (!transcript) return report(transcript.error());
    if (const auto said = references.find(sound.key()); said != references.end())
      transcript->errors = speech::count_errors(transcript->text(), said->second);
    totals.add(sound, *transcript);
    if (!options.json) {
      print_transcript(options, sound, *transcript);
      continue;
    }
    nlohmann::json j = {{"file", sound.file},
                        {"key", sound.key()},
                        {"seconds", sound.seconds()},
                        {"text", transcript->text()},
                        {"partials", transcript->partials},
                        {"segments", nlohmann::json::array()},
                        {"times_ms", times_json(transcript->times)}};
    for (const Segment& segment : transcript->segments) j["segments"].push_back(segment_json(segment));
    if (transcript->errors)
      j["errors"] = {{"edits", transcript->errors->edits},
                     {"characters", transcript->errors->characters},
                     {"rate", transcript->errors->rate()}};
    files.push_back(std::move(j));
  }
  if (options.json) {
    nlohmann::json j = {{"model", options.model},
                        {"files", std::move(files)},
                        {"real_time_factor", totals.real_time_factor()},
                        {"times_ms", times_json(totals.times)},
                        {"memory", stream_memory_json(stream->plan())},
                        {"allocations", collector.allocations()}};
    if (totals.has_errors) j["character_error_rate"] = totals.errors.rate();
    print_json(j);
  } else {
    print_totals(totals, collector.allocations());
  }
  return kExitOk;
}

}  // namespace

void add_transcribe(CLI::App& app, int* exit_code) {
  CLI::App* command = app.add_subcommand("transcribe", "recognise speech in sound files, as a stream");
  auto options = std::make_shared<TranscribeArguments>();
  command->add_option("sounds", options->sounds, "sound files; other sample rates than 16 kHz are resampled")
      ->required()
      ->type_name("FILE");
  command->add_option("--model", options->model, "folder with encoder.onnx, ctc.onnx, decoder.onnx and units.txt")
      ->type_name("DIR")
      ->capture_default_str();
  command->add_option("--units", options->units, "list of output units (default: units.txt or tokens.txt)")
      ->type_name("FILE");
  command
      ->add_option("--ref", options->reference,
                   "lines 'key transcript' (key: the file's stem): prints the character "
                   "error rate")
      ->type_name("FILE");
  command->add_option("--chunk-ms", options->chunk_ms, "sound fed at once; results do not depend on it (default 1000)")
      ->check(CLI::Range(0.0625, 1e9))
      ->type_name("MS");
  command->add_option("--chunk-size", options->chunk_size, "encoder frames per chunk, as the model was exported")
      ->type_name("N");
  command->add_option("--left-chunks", options->left_chunks, "chunks of history, as the model was exported")
      ->type_name("N");
  command->add_option("--beam", options->decoding.beam, "prefixes and tokens per frame that the search keeps")
      ->check(CLI::Range(1, 32))
      ->capture_default_str();
  command->add_option("--nbest", options->nbest, "hypotheses in the JSON output")
      ->check(CLI::Range(1, 32))
      ->capture_default_str();
  command->add_option("--ctc-weight", options->decoding.ctc_weight, "weight of the CTC score")->capture_default_str();
  command
      ->add_option("--rescoring-weight", options->decoding.rescoring_weight, "weight of the decoder's score; 0: none")
      ->capture_default_str();
  command->add_option("--reverse-weight", options->decoding.reverse_weight, "share of the right-to-left decoder, 0..1")
      ->capture_default_str();
  command->add_option("--blank-scale", options->decoding.blank_scale, "factor on the blank's probability")
      ->capture_default_str();
  command->add_flag("--continuous", options->decoding.continuous, "close utterances at pauses and go on");
  command
      ->add_option("--max-seconds", options->max_seconds,
                   "longest utterance that memory is planned for (default: the longest file, at most a minute; 21 s "
                   "with --continuous)")
      ->check(CLI::Range(0.1, 3600.0))
      ->type_name("S");
  command
      ->add_option("--max-tokens", options->max_tokens,
                   "longest hypothesis (default: three for every four encoder frames)")
      ->check(CLI::Range(1, 65536))
      ->type_name("N");
  command->add_option("--threads", options->threads, "threads per invoke")->check(CLI::Range(1, 64));
  command->add_flag("--partials", options->partials, "print what was recognised after every chunk");
  command->add_flag("--json", options->json,
                    "print JSON: n-best with scores and times, partial results, memory, times");
  command->footer(
      "Examples:\n"
      "  bantam transcribe talk.wav --model models/recogniser --partials\n"
      "  bantam transcribe test/*.wav --ref test/text --reverse-weight 0.3\n"
      "  bantam transcribe meeting.wav --continuous --json");
  command->callback([=] { *exit_code = transcribe(*options); });
}

}  // namespace bantam::cli
