// What a user writes for an input: parsed, then applied to a picture, a sound, an array and raw bytes.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "io/input_spec.h"
#include "preprocessing.h"
#include "support.h"
#include "targets.h"

namespace bantam::fuzz {
namespace {

/// Sides beyond this only take time.
constexpr int kMaxSide = 64;

io::Image picture() {
  io::Image image{13, 11, 3, std::vector<std::uint8_t>(13 * 11 * 3)};
  for (std::size_t i = 0; i < image.pixels.size(); ++i) image.pixels[i] = static_cast<std::uint8_t>(i * 7);
  return image;
}

io::Sound sound() {
  io::Sound sound{8000, 2, std::vector<float>(200)};
  for (std::size_t i = 0; i < sound.samples.size(); ++i) sound.samples[i] = static_cast<float>(i) / 200.0F - 0.5F;
  return sound;
}

}  // namespace

void fuzz_input_spec(std::span<const std::byte> bytes) {
  const auto spec = io::parse_input_spec(text_of(bytes));
  if (!spec) {
    require_message(spec.error());
    return;
  }
  if (spec->resize && std::max(spec->resize->width, spec->resize->height) > kMaxSide) return;
  preprocess_for_typical_inputs(*spec, picture());
  preprocess_for_typical_inputs(*spec, sound());
  if (const auto array = io::make_array(ElementType::kF32, std::vector<std::int64_t>{5, 64}))
    preprocess_for_typical_inputs(*spec, *array);
  preprocess_for_typical_inputs(*spec, io::RawBytes{std::vector<std::byte>(256, std::byte{0x41})});
}

}  // namespace bantam::fuzz
