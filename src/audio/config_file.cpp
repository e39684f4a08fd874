// Front-end files: the tables of a fleet file, and those of the stages.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "bantam/audio.h"
#include "compiler/fleet_tables.h"
#include "compiler/toml_reader.h"
#include "feed/feeder.h"

namespace bantam::audio {
namespace {

constexpr const char* kInteger = "an integer";
constexpr const char* kNumber = "a number";
constexpr const char* kFlag = "true or false";
constexpr const char* kRemedy = "correct the lines named; `bantam listen --help` and the README show a front-end file";

template <typename T>
using Names = std::vector<std::pair<const char*, T>>;

class FrontEndFileReader : public TomlReader {
 public:
  using TomlReader::TomlReader;

  Result<FrontEndConfig> run(const toml::table& root) {
    check_keys(root, "the file", {"budget", "model", "session", "link", "frame", "input", "aec", "ns", "vad", "wake"});
    read(root, "frame", kInteger, config_.frame);
    with_table(root, "input", [&](const toml::table& table) { read_input(table); });
    with_table(root, "aec", [&](const toml::table& table) { read_echo(table); });
    with_table(root, "ns", [&](const toml::table& table) { read_noise(table); });
    with_table(root, "vad", [&](const toml::table& table) { read_voice(table); });
    for_each_table(root, "wake", [&](const toml::table& table) { read_wake(table); });
    auto fleet = read_fleet(root, name(), directory());
    if (!fleet || !findings().empty())
      return fail(StatusCode::kInvalidArgument,
                  findings() + (fleet || findings().empty() ? "" : "\n") + (fleet ? "" : fleet.error().message),
                  kRemedy);
    config_.fleet = std::move(fleet->spec);
    return std::move(config_);
  }

 private:
  template <typename F>
  void with_table(const toml::table& root, const char* key, F&& f) {
    const toml::node* node = root.get(key);
    if (node == nullptr) return;
    if (const toml::table* table = node->as_table()) return f(*table);
    note(*node, fmt::format("'{0}' must be a table: write [{0}]", key));
  }

  template <typename T>
  void read_choice(const toml::table& table, const char* key, const Names<T>& names, T& out) {
    const toml::node* node = table.get(key);
    if (node == nullptr) return;
    const auto text = node->value_exact<std::string>();
    std::string known;
    for (const auto& [name, value] : names) {
      if (text && *text == name) {
        out = value;
        return;
      }
      known += fmt::format("{}\"{}\"", known.empty() ? "" : ", ", name);
    }
    note(*node, fmt::format("'{}' must be one of {}", key, known));
  }

  std::string needed_model(const toml::table& table, const char* where) {
    std::string model = text(table, "model");
    if (model.empty()) note(table, fmt::format("{} needs a model: the name of a [[model]] or [[session]]", where));
    return model;
  }

  void read_input(const toml::table& table) {
    check_keys(table, "[input]", {"format", "sample_rate", "microphone", "reference", "ring_ms"});
    InputConfig& input = config_.input;
    read(table, "format", "a text such as \"MR\"", input.format);
    read(table, "sample_rate", kInteger, input.sample_rate);
    read(table, "microphone", kInteger, input.microphone);
    read(table, "reference", kInteger, input.reference);
    read(table, "ring_ms", kInteger, input.ring_ms);
  }

  void read_echo(const toml::table& table) {
    check_keys(table, "[aec]", {"enabled", "filter_ms", "delay_ms", "suppress_residual"});
    if (table.contains("enabled")) read(table, "enabled", kFlag, config_.aec.enabled.emplace());
    read(table, "filter_ms", kInteger, config_.aec.filter_ms);
    read(table, "delay_ms", kInteger, config_.aec.delay_ms);
    read(table, "suppress_residual", kFlag, config_.aec.suppress_residual);
  }

  void read_noise(const toml::table& table) {
    check_keys(table, "[ns]", {"enabled", "model", "kind", "hop", "window", "second_model"});
    NoiseConfig& ns = config_.ns;
    read(table, "enabled", kFlag, ns.enabled);
    ns.model = needed_model(table, "[ns]");
    read_choice(table, "kind",
                {{"wave", NoiseKind::kWave}, {"spectrum", NoiseKind::kSpectrum}, {"mask", NoiseKind::kMask}}, ns.kind);
    read(table, "hop", kInteger, ns.hop);
    read_choice(table, "window",
                {{"rectangular", AnalysisWindow::kRectangular},
                 {"hann", AnalysisWindow::kHann},
                 {"sqrt-hann", AnalysisWindow::kSqrtHann},
                 {"hamming", AnalysisWindow::kHamming}},
                ns.window);
    ns.second_model = text(table, "second_model");
  }

  void read_detector(const toml::table& table, const char* where, DetectorConfig& detector) {
    read(table, "enabled", kFlag, detector.enabled);
    detector.model = needed_model(table, where);
    read_choice(table, "kind", {{"wave", DetectorKind::kWave}, {"micro-features", DetectorKind::kMicroFeatures}},
                detector.kind);
    read_choice(table, "source", {{"enhanced", Source::kEnhanced}, {"raw", Source::kRaw}}, detector.source);
    read(table, "step_ms", kInteger, detector.step_ms);
    read(table, "hop_ms", kInteger, detector.hop_ms);
    detector.output = text(table, "output");
    read_choice(table, "scores",
                {{"probability", Scores::kProbability},
                 {"log-probability", Scores::kLogProbability},
                 {"logit", Scores::kLogit}},
                detector.scores);
  }

  void read_voice(const toml::table& table) {
    check_keys(table, "[vad]",
               {"enabled", "model", "kind", "source", "step_ms", "hop_ms", "output", "scores", "class", "threshold",
                "min_speech_ms", "min_noise_ms", "delay_ms"});
    VoiceConfig& vad = config_.vad;
    read_detector(table, "[vad]", vad);
    read(table, "class", kInteger, vad.class_index);
    read(table, "threshold", kNumber, vad.threshold);
    read(table, "min_speech_ms", kInteger, vad.min_speech_ms);
    read(table, "min_noise_ms", kInteger, vad.min_noise_ms);
    read(table, "delay_ms", kInteger, vad.delay_ms);
  }

  void read_wake(const toml::table& table) {
    check_keys(table, "[[wake]]",
               {"enabled", "model", "kind", "source", "step_ms", "hop_ms", "output", "scores", "words", "labels",
                "classes", "threshold", "smoothing", "refractory_ms"});
    WakeConfig wake;
    read_detector(table, "[[wake]]", wake);
    read(table, "threshold", kNumber, wake.threshold);
    read(table, "smoothing", kInteger, wake.smoothing);
    read(table, "refractory_ms", kInteger, wake.refractory_ms);
    read_words(table, wake);
    config_.wake.push_back(std::move(wake));
  }

  void read_words(const toml::table& table, WakeConfig& wake) {
    wake.words = texts(table, "words");
    if (const toml::node* node = table.get("classes")) wake.classes = numbers<int>(*node, "wake", "classes");
    const std::string labels = text(table, "labels");
    if (labels.empty()) return;
    if (!wake.classes.empty()) return note(table, "'labels' and 'classes' both say which classes the words are");
    const auto names = feed::read_labels(directory() / labels);
    if (!names) return note(table, names.error().message);
    for (const std::string& word : wake.words) {
      const auto it = std::find(names->begin(), names->end(), word);
      if (it == names->end()) return note(table, fmt::format("'{}' is not among the labels in {}", word, labels));
      wake.classes.push_back(static_cast<int>(it - names->begin()));
    }
  }

  FrontEndConfig config_;
};

}  // namespace

Result<FrontEndConfig> parse_front_end_file(std::string_view text, const std::string& name,
                                            const std::filesystem::path& directory) {
  return parse_toml(text, name, kRemedy,
                    [&](const toml::table& root) { return FrontEndFileReader(name, directory).run(root); });
}

Result<FrontEndConfig> read_front_end_file(const std::filesystem::path& path) {
  const auto text = read_toml(path);
  if (!text) return fail(text.error());
  return parse_front_end_file(*text, path.string(), path.parent_path());
}

}  // namespace bantam::audio
