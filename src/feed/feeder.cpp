#include "feed/feeder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "io/file.h"
#include "io/load_input.h"

namespace bantam::feed {
namespace {

constexpr std::int64_t kMaxLabelBytes = 1 << 20;

std::string input_names(const Session& session) {
  std::string names;
  for (std::size_t i = 0; i < session.input_count(); ++i)
    names += fmt::format("{}{}", i == 0 ? "" : ", ", session.input_info(i).name);
  return names.empty() ? "none" : names;
}

/// Frames of a source along the axis that windows move on; nothing for pictures and raw bytes.
std::optional<std::int64_t> frame_count(const io::Source& source) {
  if (const auto* sound = std::get_if<io::Sound>(&source)) return sound->frames();
  if (const auto* array = std::get_if<io::Array>(&source)) {
    for (int i = 0; i < array->desc.rank; ++i)
      if (array->desc.dims[i] > 1) return array->desc.dims[i];
  }
  return std::nullopt;
}

/// Frames that one window of the target takes: `samples`, or the target's elements.
std::int64_t window_frames(const io::InputSpec& spec, const io::InputTarget& target) {
  return spec.samples.value_or(std::max<std::int64_t>(target.desc.elements(), 1));
}

/// Heat above which a local maximum counts as a detection.
constexpr double kDetectionHeat = 0.4;

/// A [1,C,H,W] map of class heat: how many local maxima (of 3x3 cells) each class has, "circle, 2 square".
feed::Reading read_heat_map(const TensorDesc& desc, const std::vector<double>& heat,
                            const std::vector<std::string>& labels) {
  const int height = desc.dims[2];
  const int width = desc.dims[3];
  const auto at = [&](int c, int y, int x) {
    return heat[static_cast<std::size_t>((std::int64_t{c} * height + y) * width + x)];
  };
  const auto is_peak = [&](int c, int y, int x) {
    for (int v = std::max(y - 1, 0); v <= std::min(y + 1, height - 1); ++v)
      for (int u = std::max(x - 1, 0); u <= std::min(x + 1, width - 1); ++u)
        if (at(c, v, u) > at(c, y, x)) return false;
    return at(c, y, x) >= kDetectionHeat;
  };
  feed::Reading reading;
  for (int c = 0; c < desc.dims[1]; ++c) {
    int peaks = 0;
    for (int y = 0; y < height; ++y)
      for (int x = 0; x < width; ++x) {
        peaks += is_peak(c, y, x) ? 1 : 0;
        reading.value = std::max(reading.value, at(c, y, x));
      }
    if (peaks == 0) continue;
    const std::string count = peaks == 1 ? "" : fmt::format("{} ", peaks);
    reading.text += fmt::format("{}{}{}", reading.text.empty() ? "" : ", ", count, labels[static_cast<std::size_t>(c)]);
  }
  if (reading.text.empty()) reading.text = "nothing";
  reading.labelled = true;
  return reading;
}

bool is_heat_map(const TensorDesc& desc, const std::vector<std::string>& labels) {
  return desc.rank == 4 && desc.dims[0] == 1 && static_cast<std::size_t>(desc.dims[1]) == labels.size() &&
         desc.dims[2] > 1 && desc.dims[3] > 1;
}

}  // namespace

Result<Feeder> Feeder::create(const SessionFeed& feed, const Session& session, const std::vector<bool>& linked) {
  for (const auto& [name, spec] : feed.inputs)
    if (session.find_input(name) < 0)
      return fail(StatusCode::kInvalidArgument,
                  fmt::format("session '{}' has no input '{}'; it has: {}", session.name(), name, input_names(session)),
                  "use one of the names listed");
  Feeder feeder;
  for (std::size_t i = 0; i < session.input_count(); ++i) {
    if (i < linked.size() && linked[i]) continue;
    const PortInfo info = session.input_info(i);
    const std::string name(info.name);
    const auto text = feed.inputs.find(name);
    if (text == feed.inputs.end())
      return fail(StatusCode::kInvalidArgument,
                  fmt::format("session '{}': nothing feeds input '{}'", session.name(), name),
                  fmt::format("say what does: --input {}=FILE, or =zeros, =random:1; see `bantam run --help`", name));
    auto spec = io::parse_input_spec(text->second);
    if (!spec) return fail(std::move(spec.error()).in(fmt::format("input '{}'", name)));
    Input input{i, std::move(*spec), {name, *info.desc, info.quantization}, std::nullopt, 0, std::nullopt};
    auto direct = io::DirectPicture::open(input.spec, input.target);
    if (!direct) return fail(std::move(direct.error()).in(fmt::format("input '{}'", name)));
    input.direct = std::move(*direct);
    if (input.spec.kind == io::SourceKind::kFile && !input.direct) {
      auto source = io::open_source(input.spec);
      if (!source) return fail(std::move(source.error()));
      input.source = std::move(*source);
    }
    if (const auto step = feed.steps.find(name); step != feed.steps.end()) {
      const auto frames = input.source ? frame_count(*input.source) : std::nullopt;
      if (!frames)
        return fail(StatusCode::kInvalidArgument, fmt::format("input '{}' cannot step: its source has no frames", name),
                    "steps are for sounds and arrays");
      input.step = step->second;
      const std::int64_t first = input.spec.offset.value_or(0) + window_frames(input.spec, input.target);
      const std::int64_t rounds = *frames < first ? 1 : (*frames - first) / input.step + 1;
      feeder.rounds_ = std::min(feeder.rounds_.value_or(rounds), rounds);
    }
    feeder.inputs_.push_back(std::move(input));
  }
  return feeder;
}

Result<void> Feeder::fill(Session& session, std::int64_t round) const {
  for (const Input& input : inputs_) {
    if (input.direct) {
      const Tensor tensor = session.input(input.port);
      const std::span<std::byte> memory(tensor.as<std::byte>(), static_cast<std::size_t>(tensor.desc->bytes()));
      if (auto decoded = input.direct->decode(memory); !decoded) return decoded;
      continue;
    }
    io::InputSpec spec = input.spec;
    if (input.step > 0) spec.offset = spec.offset.value_or(0) + round * input.step;
    auto array = input.source ? io::preprocess(spec, *input.source, input.target) : io::generate(spec, input.target);
    if (!array) return fail(input.source ? std::move(array.error()).in(spec.path) : std::move(array.error()));
    if (!array->data.empty()) std::memcpy(session.input(input.port).data, array->data.data(), array->data.size());
  }
  return {};
}

std::vector<std::string> Feeder::direct_inputs() const {
  std::vector<std::string> names;
  for (const Input& input : inputs_)
    if (input.direct) names.push_back(input.target.name);
  return names;
}

Result<void> fill_random(Session& session) {
  SessionFeed feed;
  for (std::size_t i = 0; i < session.input_count(); ++i)
    feed.inputs[std::string(session.input_info(i).name)] = fmt::format("random:{}", i + 1);
  auto feeder = Feeder::create(feed, session, {});
  if (!feeder) return fail(std::move(feeder.error()));
  return feeder->fill(session, 0);
}

Result<std::vector<std::string>> read_labels(const std::filesystem::path& path) {
  auto bytes = io::read_file(path.string(), kMaxLabelBytes);
  if (!bytes) return fail(std::move(bytes.error()));
  std::vector<std::string> labels(1);
  for (const std::byte b : *bytes) {
    const char c = static_cast<char>(b);
    if (c == '\n') {
      labels.emplace_back();
    } else if (c != '\r') {
      labels.back() += c;
    }
  }
  while (!labels.empty() && labels.back().empty()) labels.pop_back();
  if (labels.empty())
    return fail(StatusCode::kInvalidArgument, path.string() + " names no class", "write one class name a line");
  return labels;
}

std::vector<double> real_elements(const Tensor& tensor, const Quantization& quantization) {
  std::vector<double> values;
  io::with_element_type(tensor.desc->type, [&]<typename T>(std::type_identity<T>) {
    const auto n = static_cast<std::size_t>(tensor.desc->elements());
    values.reserve(n);
    for (std::size_t i = 0; i < n; ++i) {
      const auto stored = static_cast<double>(io::number_of(tensor.as<T>()[i]));
      const bool quantized = quantization.scale != 0.0F && !is_float(tensor.desc->type);
      values.push_back(quantized ? (stored - quantization.zero_point) * static_cast<double>(quantization.scale)
                                 : stored);
    }
  });
  return values;
}

std::vector<Reading> read_output(const Session& session, std::size_t output, const std::vector<std::string>& labels) {
  const std::vector<double> values = real_elements(session.output(output), session.output_info(output).quantization);
  if (values.empty()) return {{"empty", 0, false}};
  if (values.size() == 1 && labels.size() == 2) return {{labels[values[0] >= 0.5 ? 1 : 0], values[0], true}};
  if (values.size() == 1 && labels.size() == 1)
    return {{values[0] >= 0.5 ? labels.front() : "no " + labels.front(), values[0], true}};
  if (!labels.empty() && is_heat_map(*session.output(output).desc, labels))
    return {read_heat_map(*session.output(output).desc, values, labels)};
  std::vector<Reading> readings;
  if (!labels.empty() && values.size() % labels.size() == 0) {
    for (std::size_t row = 0; row < values.size(); row += labels.size()) {
      const auto first = values.begin() + static_cast<std::ptrdiff_t>(row);
      const auto best = std::max_element(first, first + static_cast<std::ptrdiff_t>(labels.size()));
      readings.push_back({labels[static_cast<std::size_t>(best - first)], *best, true});
    }
    return readings;
  }
  if (values.size() == 1) return {{fmt::format("{:.4g}", values[0]), values[0], false}};
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  return {{fmt::format("{} values in [{:.4g}, {:.4g}]", values.size(), *low, *high), *high, false}};
}

}  // namespace bantam::feed
