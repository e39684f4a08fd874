#include "io/input_spec.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include "fmt/format.h"

namespace bantam::io {
namespace {

template <typename T>
bool parse_number(std::string_view text, T* value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  if constexpr (std::is_floating_point_v<T>) {
    if (!std::isfinite(*value)) return false;
  }
  return error == std::errc() && end == text.data() + text.size();
}

template <typename T>
struct Choice {
  std::string_view name;
  T value;
};

template <typename T>
bool parse_choice(std::string_view text, std::span<const Choice<T>> choices, std::optional<T>* value) {
  const auto found = std::ranges::find(choices, text, &Choice<T>::name);
  if (found == choices.end()) return false;
  *value = found->value;
  return true;
}

bool set_color(std::string_view text, InputSpec* spec) {
  static constexpr Choice<Color> kChoices[] = {{"rgb", Color::kRgb}, {"bgr", Color::kBgr}, {"gray", Color::kGray}};
  return parse_choice<Color>(text, kChoices, &spec->color);
}

bool set_resize(std::string_view text, InputSpec* spec) {
  const std::size_t cross = text.find('x');
  if (cross == std::string_view::npos) return false;
  ImageSize size;
  if (!parse_number(text.substr(0, cross), &size.width) || !parse_number(text.substr(cross + 1), &size.height))
    return false;
  if (std::min(size.width, size.height) < 1 || std::max(size.width, size.height) > kMaxResizeSide) return false;
  spec->resize = size;
  return true;
}

bool set_fit(std::string_view text, InputSpec* spec) {
  static constexpr Choice<Fit> kChoices[] = {{"stretch", Fit::kStretch}, {"crop", Fit::kCrop}, {"pad", Fit::kPad}};
  return parse_choice<Fit>(text, kChoices, &spec->fit);
}

bool set_layout(std::string_view text, InputSpec* spec) {
  static constexpr Choice<Layout> kChoices[] = {{"nhwc", Layout::kNhwc}, {"nchw", Layout::kNchw}};
  return parse_choice<Layout>(text, kChoices, &spec->layout);
}

bool parse_per_channel(std::string_view text, std::vector<float>* values) {
  while (true) {
    const std::size_t slash = text.find('/');
    if (!parse_number(text.substr(0, slash), &values->emplace_back())) return false;
    if (slash == std::string_view::npos) return true;
    text.remove_prefix(slash + 1);
  }
}

bool set_mean(std::string_view text, InputSpec* spec) { return parse_per_channel(text, &spec->mean); }
bool set_scale(std::string_view text, InputSpec* spec) { return parse_per_channel(text, &spec->scale); }

bool set_offset(std::string_view text, InputSpec* spec) {
  return parse_number(text, &spec->offset.emplace()) && *spec->offset >= 0;
}

bool set_samples(std::string_view text, InputSpec* spec) {
  return parse_number(text, &spec->samples.emplace()) && *spec->samples >= 1;
}

bool set_pad(std::string_view text, InputSpec* spec) {
  static constexpr Choice<WindowPad> kChoices[] = {{"zero", WindowPad::kZero}, {"error", WindowPad::kError}};
  return parse_choice<WindowPad>(text, kChoices, &spec->pad);
}

bool set_type(std::string_view text, InputSpec* spec) {
  const ElementType type = element_type_from_name(text.data(), text.size());
  spec->type = type;
  return element_size(type) > 0;
}

bool set_quantize(std::string_view text, InputSpec* spec) {
  static constexpr Choice<bool> kChoices[] = {{"yes", true}, {"no", false}};
  return parse_choice<bool>(text, kChoices, &spec->quantize);
}

struct Key {
  std::string_view name;
  std::string_view expected;
  bool (*set)(std::string_view, InputSpec*);
  bool (*given)(const InputSpec&);
};

constexpr Key kKeys[] = {
    {"color", "rgb, bgr or gray", set_color, [](const InputSpec& s) { return s.color.has_value(); }},
    {"resize", "WIDTHxHEIGHT, sides from 1 to 16384", set_resize,
     [](const InputSpec& s) { return s.resize.has_value(); }},
    {"fit", "stretch, crop or pad", set_fit, [](const InputSpec& s) { return s.fit.has_value(); }},
    {"layout", "nhwc or nchw", set_layout, [](const InputSpec& s) { return s.layout.has_value(); }},
    {"mean", "a number, or numbers separated by '/'", set_mean, [](const InputSpec& s) { return !s.mean.empty(); }},
    {"scale", "a number, or numbers separated by '/'", set_scale, [](const InputSpec& s) { return !s.scale.empty(); }},
    {"offset", "a whole number from 0", set_offset, [](const InputSpec& s) { return s.offset.has_value(); }},
    {"samples", "a whole number from 1", set_samples, [](const InputSpec& s) { return s.samples.has_value(); }},
    {"pad", "zero or error", set_pad, [](const InputSpec& s) { return s.pad.has_value(); }},
    {"type", "an element type such as f32, i16 or u8", set_type, [](const InputSpec& s) { return s.type.has_value(); }},
    {"quantize", "yes or no", set_quantize, [](const InputSpec& s) { return s.quantize.has_value(); }},
};
static_assert(kMaxResizeSide == 16384, "the text for resize= names the limit");

/// Position of the first comma that is followed by `lower-case word =`, or npos.
std::size_t options_start(std::string_view text) {
  for (std::size_t comma = text.find(','); comma != std::string_view::npos; comma = text.find(',', comma + 1)) {
    const std::size_t end = text.find_first_not_of("abcdefghijklmnopqrstuvwxyz", comma + 1);
    if (end != std::string_view::npos && end > comma + 1 && text[end] == '=') return comma;
  }
  return std::string_view::npos;
}

std::string key_list() {
  std::vector<std::string_view> names;
  for (const Key& key : kKeys) names.push_back(key.name);
  return fmt::format("keys are {}", fmt::join(names, ", "));
}

Result<void> apply_option(std::string_view option, InputSpec* spec) {
  const std::size_t equals = option.find('=');
  const std::string_view name = option.substr(0, equals);
  const auto* key = std::ranges::find(kKeys, name, &Key::name);
  if (equals == std::string_view::npos || key == std::end(kKeys))
    return fail(StatusCode::kInvalidArgument, fmt::format("unknown input option '{}'", option), key_list());
  if (key->given(*spec))
    return fail(StatusCode::kInvalidArgument, fmt::format("input option {}= is given twice", name));
  const std::string_view value = option.substr(equals + 1);
  if (!key->set(value, spec))
    return fail(StatusCode::kInvalidArgument,
                fmt::format("input option {}={}: expected {}", name, value, key->expected));
  return {};
}

Result<void> parse_source(std::string_view text, InputSpec* spec) {
  constexpr std::string_view kFillPrefix = "fill:";
  constexpr std::string_view kRandomPrefix = "random:";
  constexpr std::string_view kArchive = ".npz:";
  if (text.empty()) return fail(StatusCode::kInvalidArgument, "the input names no file", "write FILE[,key=value...]");
  if (text == "zeros") {
    spec->kind = SourceKind::kZeros;
  } else if (text.starts_with(kFillPrefix)) {
    spec->kind = SourceKind::kFill;
    if (!parse_number(text.substr(kFillPrefix.size()), &spec->fill))
      return fail(StatusCode::kInvalidArgument, fmt::format("input '{}': expected fill:NUMBER", text));
  } else if (text.starts_with(kRandomPrefix)) {
    spec->kind = SourceKind::kRandom;
    if (!parse_number(text.substr(kRandomPrefix.size()), &spec->seed))
      return fail(StatusCode::kInvalidArgument, fmt::format("input '{}': expected random:SEED, a whole number", text));
  } else if (const std::size_t at = text.find(kArchive); at != std::string_view::npos) {
    spec->path = text.substr(0, at + kArchive.size() - 1);
    spec->entry = text.substr(at + kArchive.size());
  } else {
    spec->path = text;
  }
  if (spec->path.find('\0') != std::string::npos)
    return fail(StatusCode::kInvalidArgument, "the file name of the input holds a zero byte");
  return {};
}

}  // namespace

Result<InputSpec> parse_input_spec(std::string_view text) {
  InputSpec spec;
  const std::size_t start = options_start(text);
  if (auto source = parse_source(text.substr(0, start), &spec); !source) return fail(source.error());
  if (start == std::string_view::npos) return spec;
  if (spec.kind != SourceKind::kFile)
    return fail(StatusCode::kInvalidArgument, fmt::format("input '{}': zeros, fill and random take no options", text));
  std::string_view rest = text.substr(start + 1);
  while (true) {
    const std::size_t comma = rest.find(',');
    if (auto applied = apply_option(rest.substr(0, comma), &spec); !applied) return fail(applied.error());
    if (comma == std::string_view::npos) return spec;
    rest.remove_prefix(comma + 1);
  }
}

std::vector<std::string_view> given_keys(const InputSpec& spec) {
  std::vector<std::string_view> names;
  for (const Key& key : kKeys)
    if (key.given(spec)) names.push_back(key.name);
  return names;
}

}  // namespace bantam::io
