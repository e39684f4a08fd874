#include "audio/shapes.h"

#include <fmt/format.h>

#include <cmath>
#include <string>

#include "dsp/micro_features.h"

namespace bantam::audio {
namespace {

constexpr int kFeatures = dsp::MicroFeatures::kChannels;
/// Longest input of a model, in samples or feature values: a minute.
constexpr std::int64_t kMaxWindow = 60 * kSampleRate;

std::string describe(const TensorDesc& desc) {
  std::string text = std::string(element_type_name(desc.type)) + "[";
  for (int i = 0; i < desc.rank; ++i) text += (i == 0 ? "" : ",") + std::to_string(desc.dims[i]);
  return text + "]";
}

std::string describe(const Session& session, const PortInfo& port) {
  return fmt::format("'{}' {} of session '{}'", port.name, describe(*port.desc), session.name());
}

/// The one input that sound goes to: states and fixed values are no inputs any more.
Result<std::size_t> only_input(const Session& session) {
  if (session.input_count() == 1) return 0;
  std::string names;
  for (std::size_t i = 0; i < session.input_count(); ++i)
    names += fmt::format("{}'{}'", i == 0 ? "" : ", ", session.input_info(i).name);
  return fail(
      StatusCode::kInvalidArgument,
      fmt::format("session '{}' has {} inputs ({}), a stage feeds one", session.name(), session.input_count(), names),
      "declare the others in [[model]]: states = { input = \"output\" } or values = { input = number }");
}

Result<std::size_t> output_named(const Session& session, const std::string& name) {
  if (session.output_count() == 0)
    return fail(StatusCode::kInvalidModel, fmt::format("session '{}' has no output", session.name()));
  if (name.empty()) return 0;
  const int index = session.find_output(name);
  if (index >= 0) return static_cast<std::size_t>(index);
  return fail(StatusCode::kNotFound, fmt::format("session '{}' has no output '{}'", session.name(), name),
              "`bantam inspect` lists a model's outputs");
}

bool is_feature_quantisation(const Quantization& q) {
  // Models are calibrated on real features, whose largest value is a little below the format's.
  return q.zero_point == dsp::MicroFeatures::kZeroPoint && std::fabs(q.scale / dsp::MicroFeatures::kScale - 1) < 0.05F;
}

/// The first output of that many float elements.
Result<std::size_t> output_like(const Session& session, std::int64_t elements) {
  for (std::size_t o = 0; o < session.output_count(); ++o) {
    const TensorDesc& desc = *session.output_info(o).desc;
    if (desc.type == ElementType::kF32 && desc.elements() == elements) return o;
  }
  return fail(
      StatusCode::kInvalidModel,
      fmt::format("session '{}' has no f32 output of {} elements, as many as its input has", session.name(), elements),
      "noise suppression needs a model whose result has the form of its input");
}

Result<std::size_t> float_input(const Session& session) {
  auto input = only_input(session);
  if (!input) return input;
  const PortInfo port = session.input_info(*input);
  if (port.desc->type == ElementType::kF32 && port.desc->elements() >= 2 && port.desc->elements() <= kMaxWindow)
    return input;
  return fail(
      StatusCode::kUnsupported,
      fmt::format("input {}: noise suppression feeds f32, 2 to {} elements", describe(session, port), kMaxWindow),
      "use a float model");
}

NoiseKind detect(const TensorDesc& desc) {
  const std::int64_t n = desc.elements();
  // n bins are size/2+1 of an even size, hence odd for sizes that are multiples of 4, as all usual ones are.
  if (n % 2 == 1) return NoiseKind::kMask;
  return desc.rank >= 2 && desc.last(0) == 2 && (n / 2) % 2 == 1 ? NoiseKind::kSpectrum : NoiseKind::kWave;
}

dsp::Window window_of(AnalysisWindow window) {
  switch (window) {
    case AnalysisWindow::kRectangular: return dsp::Window::kRectangular;
    case AnalysisWindow::kHann: return dsp::Window::kHann;
    case AnalysisWindow::kSqrtHann: return dsp::Window::kSqrtHann;
    case AnalysisWindow::kHamming: return dsp::Window::kHamming;
  }
  return dsp::Window::kRectangular;
}

Result<void> find_second(const Session& second, const NoiseConfig& config, NoiseShape& shape) {
  if (shape.kind == NoiseKind::kWave)
    return fail(StatusCode::kInvalidArgument,
                fmt::format("ns.second_model '{}' follows a spectrum or mask model, but '{}' takes waves",
                            config.second_model, config.model),
                "leave ns.second_model out, or set ns.kind");
  auto input = float_input(second);
  if (!input) return fail(std::move(input.error()));
  const std::int64_t elements = second.input_info(*input).desc->elements();
  if (elements != shape.stft.size)
    return fail(StatusCode::kInvalidModel,
                fmt::format("input {} takes {} samples, blocks of '{}' have {}",
                            describe(second, second.input_info(*input)), elements, config.model, shape.stft.size));
  auto output = output_like(second, elements);
  if (!output) return fail(std::move(output.error()));
  shape.second = true;
  shape.second_input = *input;
  shape.second_output = *output;
  return {};
}

Result<void> find_rows(const Session& session, const DetectorConfig& config, DetectorShape& shape) {
  const PortInfo port = session.input_info(shape.input);
  const bool int8 = port.desc->type == ElementType::kI8;
  if (port.desc->elements() % kFeatures != 0 || (!int8 && port.desc->type != ElementType::kF32))
    return fail(StatusCode::kUnsupported,
                fmt::format("input {}: feature rows are i8 or f32, a multiple of {} elements", describe(session, port),
                            kFeatures),
                "set kind = \"wave\" if the model takes samples");
  if (int8 && !is_feature_quantisation(port.quantization))
    return fail(StatusCode::kUnsupported,
                fmt::format("input {} has scale {} and zero point {}; the features have {:.4f} and {}",
                            describe(session, port), port.quantization.scale, port.quantization.zero_point,
                            dsp::MicroFeatures::kScale, dsp::MicroFeatures::kZeroPoint),
                "the model was trained on other features, which the front end does not compute");
  shape.quantised = int8;
  shape.window = static_cast<int>(port.desc->elements() / kFeatures);
  shape.step_ms = config.step_ms;
  return {};
}

}  // namespace

Result<DetectorShape> detector_shape(const Session& session, const DetectorConfig& config, bool has_state) {
  DetectorShape shape;
  auto input = only_input(session);
  if (!input) return fail(std::move(input.error()));
  auto output = output_named(session, config.output);
  if (!output) return fail(std::move(output.error()));
  shape.input = *input;
  shape.output = *output;
  const PortInfo in = session.input_info(*input);
  const PortInfo out = session.output_info(*output);
  if (in.desc->elements() < 1 || in.desc->elements() > kMaxWindow)
    return fail(StatusCode::kUnsupported,
                fmt::format("input {} does not have 1 to {} elements", describe(session, in), kMaxWindow));
  shape.kind = config.kind;
  if (shape.kind == DetectorKind::kDetect)
    shape.kind = in.desc->type == ElementType::kI8 ? DetectorKind::kMicroFeatures : DetectorKind::kWave;
  int unit_ms = 0;
  int samples_per_unit = 1;
  if (shape.kind == DetectorKind::kMicroFeatures) {
    auto rows = find_rows(session, config, shape);
    if (!rows) return fail(std::move(rows.error()));
    unit_ms = config.step_ms;
    samples_per_unit = config.step_ms * kSampleRate / 1000;
  } else if (in.desc->type != ElementType::kF32) {
    return fail(StatusCode::kUnsupported, fmt::format("input {}: samples are fed as f32", describe(session, in)),
                "use a float model, or one that takes micro features");
  } else {
    shape.window = static_cast<int>(in.desc->elements());
  }
  if (config.hop_ms > 0) {
    shape.hop = unit_ms > 0 ? config.hop_ms / unit_ms : config.hop_ms * (kSampleRate / 1000);
  } else {
    shape.hop = has_state ? shape.window : std::max(1, shape.window / 10);
  }
  if (shape.hop < 1 || shape.hop > shape.window)
    return fail(StatusCode::kInvalidArgument,
                fmt::format("hop_ms = {} of session '{}' is outside its input of {} ms", config.hop_ms, session.name(),
                            shape.window * samples_per_unit / (kSampleRate / 1000)),
                "leave hop_ms out for the default");
  shape.hop_samples = shape.hop * samples_per_unit;
  const bool known =
      out.desc->type == ElementType::kF32 || out.desc->type == ElementType::kI8 || out.desc->type == ElementType::kU8;
  if (!known || out.desc->elements() < 1 || out.desc->elements() > 1 << 16)
    return fail(StatusCode::kUnsupported,
                fmt::format("output {}: scores are f32, i8 or u8, 1 to 65536 of them", describe(session, out)),
                "name another output with output = \"...\"");
  shape.classes = static_cast<int>(out.desc->elements());
  shape.scores = config.scores;
  shape.output_type = out.desc->type;
  shape.output_quantization = out.quantization;
  return shape;
}

Result<NoiseShape> noise_shape(const Session& session, const Session* second, const NoiseConfig& config) {
  NoiseShape shape;
  auto input = float_input(session);
  if (!input) return fail(std::move(input.error()));
  const TensorDesc& desc = *session.input_info(*input).desc;
  const auto elements = static_cast<int>(desc.elements());
  auto output = output_like(session, elements);
  if (!output) return fail(std::move(output.error()));
  shape.input = *input;
  shape.output = *output;
  shape.kind = config.kind == NoiseKind::kDetect ? detect(desc) : config.kind;
  if (shape.kind == NoiseKind::kWave) {
    shape.hop = elements;
  } else {
    if (shape.kind == NoiseKind::kSpectrum && elements % 2 != 0)
      return fail(StatusCode::kInvalidModel, fmt::format("input {} cannot hold pairs of real and imaginary parts",
                                                         describe(session, session.input_info(*input))));
    const int bins = shape.kind == NoiseKind::kSpectrum ? elements / 2 : elements;
    shape.stft = {2 * (bins - 1), config.hop > 0 ? config.hop : bins - 1, window_of(config.window)};
    shape.hop = shape.stft.hop;
    if (const Status s = dsp::Stft::check(shape.stft); !s.ok())
      return fail(error_from(s, "set ns.hop and ns.window as the model was trained")
                      .in(fmt::format("ns: transforms for input {}", describe(session, session.input_info(*input)))));
  }
  if (second != nullptr)
    if (auto found = find_second(*second, config, shape); !found) return fail(std::move(found.error()));
  return shape;
}

}  // namespace bantam::audio
