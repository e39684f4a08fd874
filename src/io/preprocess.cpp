#include "io/preprocess.h"

#include <algorithm>
#include <optional>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/shape.h"
#include "fmt/format.h"
#include "io/planes.h"
#include "io/raw.h"

namespace bantam::io {
namespace {

using Dims = std::vector<std::int64_t>;

Dims dims_of(const TensorDesc& desc) { return {desc.dims, desc.dims + desc.rank}; }

Dims without_ones(Dims dims) {
  std::erase(dims, 1);
  return dims;
}

std::string shape_text(const Dims& dims) { return fmt::format("[{}]", fmt::join(dims, ",")); }

tl::unexpected<Error> shape_mismatch(const InputTarget& target, std::string_view what, const Dims& given,
                                     std::string remedy) {
  return fail(
      StatusCode::kInvalidArgument,
      fmt::format("{} gives shape {}, the model's input takes {}", what, shape_text(given), describe(target.desc)),
      std::move(remedy));
}

/// Fails when a key was given that means nothing for this kind of data.
Result<void> check_keys(const InputSpec& spec, std::string_view what, std::span<const std::string_view> allowed) {
  for (const std::string_view key : given_keys(spec))
    if (std::ranges::find(allowed, key) == allowed.end())
      return fail(StatusCode::kInvalidArgument, fmt::format("option {}= does not apply to {}", key, what),
                  fmt::format("options for {} are {}", what, fmt::join(allowed, ", ")));
  return {};
}

bool is_quantized(const InputSpec& spec, const InputTarget& target) {
  return !is_float(target.desc.type) && target.quantization.scale != 0 && spec.quantize.value_or(true);
}

/// y = (x - mean) * scale, with the channel as the last dimension.
Result<void> normalize(const InputSpec& spec, std::size_t channels, std::span<float> values) {
  const auto check = [&](std::string_view key, std::size_t count) -> Result<void> {
    if (count <= 1 || count == channels) return {};
    return fail(StatusCode::kInvalidArgument,
                fmt::format("option {}= has {} values, expected 1 or {}, one per channel", key, count, channels));
  };
  if (auto ok = check("mean", spec.mean.size()); !ok) return ok;
  if (auto ok = check("scale", spec.scale.size()); !ok) return ok;
  if (spec.mean.empty() && spec.scale.empty()) return {};
  const auto pick = [](const std::vector<float>& list, std::size_t channel, float otherwise) {
    return list.empty() ? otherwise : list[list.size() == 1 ? 0 : channel];
  };
  for (std::size_t c = 0; c < channels; ++c) {
    const float mean = pick(spec.mean, c, 0.0F);
    const float scale = pick(spec.scale, c, 1.0F);
    for (std::size_t i = c; i < values.size(); i += channels) values[i] = (values[i] - mean) * scale;
  }
  return {};
}

/// Numbers stored as the target stores them; the shape, already checked, becomes the target's.
Result<Array> store(const Array& numbers, const InputSpec& spec, const InputTarget& target) {
  Result<Array> stored;
  if (is_quantized(spec, target)) {
    const auto real = convert(numbers, ElementType::kF32);
    if (!real) return real;
    stored = quantize(*real, target.desc.type, target.quantization);
  } else {
    stored = convert(numbers, target.desc.type);
  }
  if (!stored) return stored;
  stored->desc = target.desc;
  stored->desc.set_dense_strides();
  return stored;
}

/// An f32 array of the target's shape that holds `values`, of which there are as many as the target has elements.
Result<Array> real_array(std::span<const float> values, const InputTarget& target) {
  TensorDesc desc = target.desc;
  desc.type = ElementType::kF32;
  auto array = make_array(desc);
  if (array) std::ranges::copy(values, elements_of<float>(*array).begin());
  return array;
}

// ---- pictures

/// A target read as a picture.
struct Picture {
  Layout layout = Layout::kNhwc;
  int width = 0;
  int height = 0;
  int channels = 0;
};

/// The shape of a picture in a tensor of that rank (2: no channel dimension, 3, 4: batch of one).
Dims dims_of(const Picture& picture, int rank) {
  if (rank == 2 && picture.channels == 1) return {picture.height, picture.width};
  Dims dims = picture.layout == Layout::kNhwc ? Dims{picture.height, picture.width, picture.channels}
                                              : Dims{picture.channels, picture.height, picture.width};
  if (rank == 4) dims.insert(dims.begin(), 1);
  return dims;
}

/// The target as a picture of 1 or 3 channels in that layout, if it can be read so. A single row without a channel
/// dimension is a feature vector: a picture squeezed into it would be a mistake.
std::optional<Picture> as_picture(const TensorDesc& desc, Layout layout) {
  if (desc.rank < 2 || desc.rank > 4 || (desc.rank == 4 && desc.dims[0] != 1)) return std::nullopt;
  if (desc.rank == 2 && desc.dims[0] == 1) return std::nullopt;
  const std::int32_t* dims = desc.dims + (desc.rank == 4 ? 1 : 0);
  Picture picture{layout, dims[1], dims[0], 1};
  if (desc.rank > 2) {
    picture.channels = layout == Layout::kNhwc ? dims[2] : dims[0];
    if (layout == Layout::kNchw) std::tie(picture.height, picture.width) = std::pair(dims[1], dims[2]);
  }
  if ((picture.channels != 1 && picture.channels != 3) || picture.width < 1 || picture.height < 1) return std::nullopt;
  return picture;
}

std::optional<Picture> as_picture(const TensorDesc& desc) {
  const auto picture = as_picture(desc, Layout::kNhwc);
  return picture ? picture : as_picture(desc, Layout::kNchw);
}

std::string keys_that_fit(const TensorDesc& desc) {
  const auto picture = as_picture(desc);
  if (!picture) return "this input does not take a picture of 1 or 3 channels: give an npy, npz or raw file";
  return fmt::format("use resize={}x{},color={},layout={}, or leave these keys out", picture->width, picture->height,
                     picture->channels == 1 ? "gray" : "rgb", picture->layout == Layout::kNhwc ? "nhwc" : "nchw");
}

/// What the specification makes of an image, with what is left out chosen to fit the target where possible.
Picture plan_picture(const InputSpec& spec, const Image& image, const TensorDesc& desc) {
  const auto fitting = spec.layout ? as_picture(desc, *spec.layout) : as_picture(desc);
  Picture picture = fitting.value_or(
      Picture{spec.layout.value_or(Layout::kNhwc), image.width, image.height, image.channels == 1 ? 1 : 3});
  if (spec.color) picture.channels = channels_of(*spec.color);
  if (spec.resize) std::tie(picture.width, picture.height) = std::pair(spec.resize->width, spec.resize->height);
  return picture;
}

std::vector<float> to_planar(const Pixels& pixels) {
  const auto channels = static_cast<std::size_t>(pixels.channels);
  std::vector<float> planar;
  planar.reserve(pixels.values.size());
  for (std::size_t c = 0; c < channels; ++c)
    for (std::size_t i = c; i < pixels.values.size(); i += channels) planar.push_back(pixels.values[i]);
  return planar;
}

Result<Array> preprocess_source(const InputSpec& spec, const Image& image, const InputTarget& target) {
  static constexpr std::string_view kAllowed[] = {"color", "resize", "fit", "layout", "mean", "scale", "quantize"};
  if (auto ok = check_keys(spec, "a picture", kAllowed); !ok) return fail(ok.error());
  const Picture picture = plan_picture(spec, image, target.desc);
  const Dims dims = dims_of(picture, target.desc.rank);
  if (dims != dims_of(target.desc)) return shape_mismatch(target, "the picture", dims, keys_that_fit(target.desc));

  const Color color = spec.color.value_or(picture.channels == 1 ? Color::kGray : Color::kRgb);
  Pixels pixels = resize(to_color(image, color), picture.width, picture.height, spec.fit.value_or(Fit::kStretch));
  if (auto ok = normalize(spec, static_cast<std::size_t>(picture.channels), pixels.values); !ok)
    return fail(ok.error());
  const auto real = real_array(picture.layout == Layout::kNchw ? to_planar(pixels) : pixels.values, target);
  return real ? store(*real, spec, target) : real;
}

// ---- windows

/// A run of `count` rows (frames) of data that have `available` rows.
struct Window {
  std::int64_t offset = 0;
  std::int64_t count = 0;
  std::int64_t available = 0;

  /// Rows that exist within the window; the others are zero.
  std::int64_t present() const { return std::clamp<std::int64_t>(available - offset, 0, count); }
};

Result<Window> make_window(const InputSpec& spec, std::int64_t count, std::int64_t available) {
  const Window window{spec.offset.value_or(0), count, available};
  if (spec.pad == WindowPad::kError && window.present() < count)
    return fail(
        StatusCode::kInvalidArgument,
        fmt::format("{} samples from offset {} are needed, the data end at {}", count, window.offset, available),
        "use a smaller offset=, or pad=zero");
  return window;
}

/// The window of rows of `row` elements each.
template <typename T>
std::vector<T> cut(std::span<const T> from, const Window& window, std::size_t row) {
  std::vector<T> result(static_cast<std::size_t>(window.count) * row);
  const auto present = static_cast<std::size_t>(window.present()) * row;
  if (present > 0)
    std::ranges::copy(from.subspan(static_cast<std::size_t>(window.offset) * row, present), result.begin());
  return result;
}

// ---- sounds

/// How a target holds a sound: frames of one or several channels, or channels of frames.
struct SoundShape {
  std::int64_t frames = 0;
  int channels = 1;
  bool planar = false;
};

std::optional<SoundShape> as_sound(const TensorDesc& desc, int channels) {
  const Dims dims = without_ones(dims_of(desc));
  if (dims.size() < 2) return SoundShape{dims.empty() ? 1 : dims[0], 1, false};
  if (dims.size() > 2 || channels < 2) return std::nullopt;
  if (dims[1] == channels) return SoundShape{dims[0], channels, false};
  if (dims[0] == channels) return SoundShape{dims[1], channels, true};
  return std::nullopt;
}

/// Samples on the scale that the specification asks for, or that suits the target.
Result<std::vector<float>> scaled_samples(const InputSpec& spec, std::vector<float> samples,
                                          const InputTarget& target) {
  const bool plain_integer = !is_float(target.desc.type) && !is_quantized(spec, target);
  const ElementType type = spec.type.value_or(plain_integer ? ElementType::kI16 : ElementType::kF32);
  if (type == ElementType::kF32) return samples;
  if (type != ElementType::kI16)
    return fail(StatusCode::kInvalidArgument, fmt::format("option type={} for a sound", element_type_name(type)),
                "use type=f32 for samples in [-1,1) or type=i16 for -32768..32767");
  const auto integers = to_int16(samples);
  std::ranges::copy(integers, samples.begin());
  return samples;
}

Result<Array> preprocess_source(const InputSpec& spec, const Sound& sound, const InputTarget& target) {
  static constexpr std::string_view kAllowed[] = {"mean", "scale", "offset", "samples", "pad", "type", "quantize"};
  if (auto ok = check_keys(spec, "a sound", kAllowed); !ok) return fail(ok.error());
  const auto shape = as_sound(target.desc, sound.channels);
  if (!shape)
    return shape_mismatch(target, "the sound", {sound.frames(), sound.channels},
                          "this input does not take sound samples: compute its features first and give them as npy");
  if (spec.samples.value_or(shape->frames) != shape->frames)
    return shape_mismatch(target, "the sound", {*spec.samples, shape->channels},
                          fmt::format("use samples={}", shape->frames));
  const auto window = make_window(spec, shape->frames, sound.frames());
  if (!window) return fail(window.error());

  const auto channels = static_cast<std::size_t>(shape->channels);
  const std::vector<float> mono = channels == 1 ? mix_to_mono(sound) : std::vector<float>();
  auto samples = scaled_samples(spec, cut<float>(channels == 1 ? mono : sound.samples, *window, channels), target);
  if (!samples) return fail(samples.error());
  if (auto ok = normalize(spec, channels, *samples); !ok) return fail(ok.error());
  if (shape->planar) *samples = to_planar({static_cast<int>(shape->frames), 1, shape->channels, std::move(*samples)});
  const auto real = real_array(*samples, target);
  return real ? store(*real, spec, target) : real;
}

// ---- arrays

/// The rows of `array` along its first dimension larger than 1 that the specification and the target ask for.
Result<Array> cut_rows(const InputSpec& spec, const Array& array, const InputTarget& target) {
  Dims dims = without_ones(dims_of(array.desc));
  const Dims wanted = without_ones(dims_of(target.desc));
  if (dims.empty()) dims.push_back(1);
  const std::int64_t available = dims[0];
  // A target of one row has lost its row dimension with the ones.
  const std::int64_t rows = spec.samples.value_or(wanted.size() == dims.size() ? wanted[0] : 1);
  dims[0] = rows;
  if (without_ones(dims) != wanted)
    return shape_mismatch(target, "the window of the array", dims,
                          wanted.empty() ? "use samples=1" : fmt::format("use samples={}", wanted[0]));
  const auto window = make_window(spec, rows, available);
  if (!window) return fail(window.error());
  Array result{target.desc, {}};
  result.desc.type = array.desc.type;
  const std::size_t row_bytes = available == 0 ? 0 : array.data.size() / static_cast<std::size_t>(available);
  result.data = cut<std::byte>(array.data, *window, row_bytes);
  result.data.resize(static_cast<std::size_t>(result.desc.bytes()));
  return result;
}

Result<Array> store_array(const InputSpec& spec, const Array& array, const InputTarget& target) {
  const bool normalized = !spec.mean.empty() || !spec.scale.empty();
  if (!normalized && array.desc.type == target.desc.type) return Array{target.desc, array.data};
  if (!normalized) return store(array, spec, target);
  auto real = convert(array, ElementType::kF32);
  if (!real) return real;
  const int rank = target.desc.rank;
  const std::int32_t channels = rank > 0 ? target.desc.last(0) : 1;
  if (channels == 0) return store(*real, spec, target);
  if (auto ok = normalize(spec, static_cast<std::size_t>(channels), elements_of<float>(*real)); !ok)
    return fail(ok.error());
  return store(*real, spec, target);
}

Result<Array> preprocess_source(const InputSpec& spec, const Array& array, const InputTarget& target) {
  static constexpr std::string_view kAllowed[] = {"mean", "scale", "offset", "samples", "pad", "quantize"};
  if (auto ok = check_keys(spec, "an array", kAllowed); !ok) return fail(ok.error());
  if (spec.offset || spec.samples || spec.pad) {
    const auto rows = cut_rows(spec, array, target);
    return rows ? store_array(spec, *rows, target) : rows;
  }
  const Dims dims = dims_of(array.desc);
  if (without_ones(dims) != without_ones(dims_of(target.desc)))
    return shape_mismatch(target, "the array", dims,
                          "give an array of that shape, or cut a window with offset= and samples=");
  return store_array(spec, array, target);
}

Result<Array> preprocess_source(const InputSpec& spec, const RawBytes& raw, const InputTarget& target) {
  static constexpr std::string_view kAllowed[] = {"mean", "scale", "type", "quantize"};
  if (auto ok = check_keys(spec, "raw data", kAllowed); !ok) return fail(ok.error());
  TensorDesc desc = target.desc;
  desc.type = spec.type.value_or(desc.type);
  const auto array = parse_raw(raw.bytes, desc);
  return array ? store_array(spec, *array, target) : array;
}

// ---- generated values

/// SplitMix64: the same sequence everywhere, good enough for test data.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15U;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
  }

 private:
  std::uint64_t state_;
};

template <typename T>
T random_element(Random& random) {
  if constexpr (std::is_integral_v<T> && sizeof(T) <= 2) {
    return static_cast<T>(random.next() >> 48);
  } else if constexpr (std::is_integral_v<T> || std::is_same_v<T, Bool8>) {
    return element_from<T>(random.next() >> 63);
  } else {
    // 24 bits are what a float holds exactly on [-1, 1) in steps of 2^-23.
    return element_from<T>(static_cast<float>(random.next() >> 40) * 0x1p-23F - 1.0F);
  }
}

Result<Array> generate_random(std::uint64_t seed, const TensorDesc& desc) {
  auto array = make_array(desc);
  if (!array) return array;
  Random random(seed);
  with_element_type(desc.type, [&]<typename T>(std::type_identity<T>) {
    for (T& element : elements_of<T>(*array)) element = random_element<T>(random);
  });
  return array;
}

Result<Array> generate_values(const InputSpec& spec, const InputTarget& target) {
  if (spec.kind == SourceKind::kRandom) return generate_random(spec.seed, target.desc);
  if (spec.kind == SourceKind::kFile)
    return fail(StatusCode::kInvalidArgument, "a file is named where a value is generated");
  TensorDesc desc = target.desc;
  desc.type = ElementType::kF32;
  auto array = make_array(desc);
  if (!array) return array;
  std::ranges::fill(elements_of<float>(*array), spec.kind == SourceKind::kFill ? spec.fill : 0.0F);
  return store(*array, spec, target);
}

Result<Array> for_input(const InputTarget& target, Result<Array> result) {
  return std::move(result).map_error(
      [&](Error&& error) { return std::move(error).in(fmt::format("input '{}'", target.name)); });
}

}  // namespace

Result<Array> preprocess(const InputSpec& spec, const Source& source, const InputTarget& target) {
  if (const Status status = check_shape(target.desc); !status.ok()) return for_input(target, fail(error_from(status)));
  return for_input(target, std::visit([&](const auto& data) { return preprocess_source(spec, data, target); }, source));
}

Result<Array> generate(const InputSpec& spec, const InputTarget& target) {
  if (const Status status = check_shape(target.desc); !status.ok()) return for_input(target, fail(error_from(status)));
  return for_input(target, generate_values(spec, target));
}

}  // namespace bantam::io
