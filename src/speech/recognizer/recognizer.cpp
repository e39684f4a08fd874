#include "bantam/recognizer.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>

#include "dsp/block.h"
#include "dsp/resampler.h"
#include "io/file.h"
#include "io/wav.h"
#include "package/writer/package_data.h"
#include "schedule/threads/thread_pool.h"
#include "speech/recognizer/graphs.h"
#include "speech/traits.h"

namespace bantam {
namespace {

namespace fs = std::filesystem;

constexpr int kSampleRate = 16000;
constexpr std::int64_t kMostUnitBytes = 64 << 20;

/// The list that was named, or the first that is where such lists usually are.
Result<fs::path> find_units(const RecognizerSpec& spec) {
  if (!spec.units.empty()) return spec.units;
  const fs::path folder = spec.model.lexically_normal();
  std::string tried;
  for (const fs::path& place : {folder, (folder.has_filename() ? folder : folder.parent_path()).parent_path()})
    for (const char* name : {"units.txt", "tokens.txt"}) {
      std::error_code ignored;
      const fs::path path = place / name;
      if (fs::is_regular_file(path, ignored)) return path;
      tried += (tried.empty() ? "" : ", ") + path.string();
    }
  return fail(StatusCode::kNotFound, fmt::format("no list of units is there: tried {}", tried),
              "put units.txt beside the model, or name it: --units FILE");
}

/// Compiles the decoder alone, for hypotheses of this many tokens and a short utterance, which takes less time. One
/// token more must work too: a graph that takes all of its table, instead of a part, is another one, and its size could
/// not change.
Result<void> try_decoder(RecognizerSpec spec, int max_tokens) {
  spec.max_seconds = 0.1;
  spec.max_tokens = max_tokens + 1;
  auto models = speech::describe_graphs(spec);
  if (!models) return fail(std::move(models.error()));
  ModelSpec& decoder = models->back();
  decoder.dims.merge(decoder.bounds);
  decoder.bounds.clear();
  auto compiled = compile({.models = {decoder}}, spec.compile);
  if (!compiled) return fail(std::move(compiled.error()));
  return {};
}

/// The decoder's table of positions is a constant of its graph that nothing else tells the length of: when there is
/// none for the hypotheses that the longest utterance may have, the longest that works is searched.
Result<int> longest_hypothesis(const RecognizerSpec& spec, int wanted) {
  constexpr int kClose = 8;  // tokens; a search to the last one is not worth its time
  auto first = try_decoder(spec, wanted);
  if (first) return wanted;
  if (first.error().code != StatusCode::kInvalidModel) return fail(std::move(first.error()));
  int works = 0;
  for (int fails = wanted; fails - works > kClose;) {
    const int middle = works + (fails - works) / 2;
    (try_decoder(spec, middle) ? works : fails) = middle;
  }
  if (works == 0) return fail(std::move(first.error()));
  return works;
}

}  // namespace

struct RecognizerStream::Parts {
  speech::StreamPlan plan;
  format::PackageBytes memory;
  std::optional<ThreadPool> threads;
  speech::Stream stream;
};

RecognizerStream::RecognizerStream(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
RecognizerStream::RecognizerStream(RecognizerStream&&) noexcept = default;
RecognizerStream& RecognizerStream::operator=(RecognizerStream&&) noexcept = default;
RecognizerStream::~RecognizerStream() = default;
speech::Stream& RecognizerStream::operator*() noexcept { return parts_->stream; }
const speech::StreamPlan& RecognizerStream::plan() const noexcept { return parts_->plan; }

struct Recognizer::Parts {
  std::string name;
  Compiled compiled;
  Package package;
  int threads = 1;
  std::string unit_text;
  std::vector<speech::Units::Unit> unit_table;
  speech::Units units;
  speech::Traits traits;

  Result<void> read_units(const fs::path& path) {
    auto bytes = io::read_file(path.string(), kMostUnitBytes);
    if (!bytes) return fail(std::move(bytes.error()));
    unit_text.assign(reinterpret_cast<const char*>(bytes->data()), bytes->size());
    std::int32_t count = 0;
    Status read = speech::Units::count(unit_text, &count);
    if (read.ok()) {
      unit_table.resize(static_cast<std::size_t>(count));
      read = speech::Units::place(unit_text, unit_table, &units);
    }
    if (!read.ok()) return fail(error_from(read, "write one unit and its number per line").in(path.string()));
    if (count != traits.vocabulary)
      return fail(StatusCode::kInvalidArgument,
                  fmt::format("{}: {} units, but the model tells {} apart", path.string(), count, traits.vocabulary),
                  "give the list that the model was trained with: --units FILE");
    return {};
  }
};

Recognizer::Recognizer(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Recognizer::Recognizer(Recognizer&&) noexcept = default;
Recognizer& Recognizer::operator=(Recognizer&&) noexcept = default;
Recognizer::~Recognizer() = default;

Result<Recognizer> Recognizer::open(const RecognizerSpec& wanted) {
  RecognizerSpec spec = wanted;
  if (spec.rescoring && spec.max_tokens == 0) {
    const auto guess = speech::likely_tokens(spec);
    if (!guess) return fail(guess.error());
    const auto tokens = longest_hypothesis(spec, *guess);
    if (!tokens) return fail(Error(tokens.error()).in(spec.model.string()));
    spec.max_tokens = *tokens;
  }
  auto models = speech::describe_graphs(spec);
  if (!models) return fail(std::move(models.error()));
  auto compiled = compile({.models = std::move(*models)}, spec.compile);
  if (!compiled) return fail(std::move(compiled.error()).in(spec.model.string()));
  auto parts = std::make_unique<Parts>();
  parts->name = spec.model.string();
  parts->threads = spec.compile.threads;
  parts->compiled = std::move(*compiled);
  if (const Status s = Package::open(parts->compiled.package(), &parts->package); !s.ok()) return fail(error_from(s));
  if (const Status s = speech::read_traits(parts->package, &parts->traits); !s.ok())
    return fail(error_from(s, "give a model with WeNet's interface").in(parts->name));
  const auto units = find_units(spec);
  if (!units) return fail(units.error());
  if (auto read = parts->read_units(*units); !read) return fail(std::move(read.error()));
  return Recognizer(std::move(parts));
}

Result<speech::StreamPlan> Recognizer::plan(const speech::StreamConfig& config) const {
  speech::StreamPlan plan;
  const Status planned = speech::Stream::plan(parts_->package, parts_->units, config, &plan);
  if (!planned.ok()) return fail(error_from(planned, "change the options of decoding").in(parts_->name));
  return plan;
}

Result<RecognizerStream> Recognizer::open_stream(const speech::StreamConfig& config) const {
  auto plan = this->plan(config);
  if (!plan) return fail(std::move(plan.error()));
  auto parts = std::make_unique<RecognizerStream::Parts>();
  parts->plan = *plan;
  parts->memory = format::PackageBytes(plan->total_bytes);
  if (parts->memory.data() == nullptr)
    return fail(StatusCode::kArenaTooSmall,
                fmt::format("the host has no {} bytes left for a stream", plan->total_bytes),
                "free memory, or lower the longest utterance");
  const Status opened =
      parts->stream.open(parts_->package, parts_->units, config, {parts->memory.data(), plan->total_bytes});
  if (!opened.ok()) return fail(error_from(opened).in(parts_->name));
  if (parts_->threads > 1) {
    auto pool = ThreadPool::create(parts_->threads);
    if (!pool) return fail(std::move(pool.error()));
    parts->threads = std::move(*pool);
    if (const Status s = parts->stream.set_threads(parts->threads->threads()); !s.ok()) return fail(error_from(s));
  }
  return RecognizerStream(std::move(parts));
}

const Package& Recognizer::package() const noexcept { return parts_->package; }
const speech::Units& Recognizer::units() const noexcept { return parts_->units; }
const Compiled& Recognizer::compiled() const noexcept { return parts_->compiled; }
int Recognizer::chunk_size() const noexcept { return parts_->traits.chunk; }
int Recognizer::left_chunks() const noexcept { return parts_->traits.left_chunks; }

Result<std::vector<std::int16_t>> read_speech(const fs::path& path) {
  auto sound = io::read_sound(path.string());
  if (!sound) return fail(std::move(sound.error()));
  std::vector<float> samples = io::mix_to_mono(*sound);
  if (sound->sample_rate == kSampleRate) return io::to_int16(samples);
  if (!dsp::Resampler::supports(sound->sample_rate, kSampleRate))
    return fail(StatusCode::kUnsupported,
                fmt::format("{}: {} Hz cannot be changed to {} Hz", path.string(), sound->sample_rate, kSampleRate),
                "convert the sound to 16 kHz");
  dsp::Resampler resampler;
  dsp::Block counting;
  resampler.lay_out(sound->sample_rate, kSampleRate, counting);
  format::PackageBytes memory(counting.used());
  if (memory.data() == nullptr)
    return fail(StatusCode::kArenaTooSmall, fmt::format("the host has no {} bytes left to resample", counting.used()),
                "free memory");
  dsp::Block block({memory.data(), counting.used()});
  resampler.lay_out(sound->sample_rate, kSampleRate, block);
  // The filter's delay is filled with silence behind and cut off in front.
  const std::size_t wanted = samples.size() * std::size_t{kSampleRate} / static_cast<std::size_t>(sound->sample_rate);
  const std::size_t late = resampler.latency();
  const std::size_t extra = (late + 1) * static_cast<std::size_t>(sound->sample_rate) / std::size_t{kSampleRate} + 1;
  samples.resize(samples.size() + extra, 0.0F);
  std::vector<float> out(resampler.max_output(samples.size()));
  out.resize(resampler.process(samples, out.data()));
  const std::size_t first = std::min(late, out.size());
  return io::to_int16(std::span(out).subspan(first, std::min(wanted, out.size() - first)));
}

}  // namespace bantam
