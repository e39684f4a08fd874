#include "io/image.h"

#include <algorithm>
#include <array>

#include "fmt/format.h"
#include "io/file.h"
#include "io/image_format.h"

namespace bantam::io {
namespace {

bool starts_with(std::span<const std::byte> bytes, std::span<const unsigned char> magic) {
  return bytes.size() >= magic.size() &&
         std::ranges::equal(magic, bytes.first(magic.size()), {}, [](unsigned char c) { return std::byte{c}; });
}

using Decode = Result<Image> (*)(std::span<const std::byte>, std::int64_t);

/// The decoder whose magic number the bytes start with, or null.
Decode decoder_for(std::span<const std::byte> bytes) {
  constexpr std::array<unsigned char, 8> kPng = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
  constexpr std::array<unsigned char, 3> kJpeg = {0xff, 0xd8, 0xff};
  if (starts_with(bytes, kPng)) return decode_png;
  if (starts_with(bytes, kJpeg)) return decode_jpeg;
  return nullptr;
}

}  // namespace

bool looks_like_image(std::span<const std::byte> bytes) noexcept { return decoder_for(bytes) != nullptr; }

Result<Image> make_image(std::int64_t width, std::int64_t height, int channels, std::int64_t max_pixels) {
  if (width < 1 || height < 1)
    return fail(StatusCode::kInvalidArgument, fmt::format("the picture is {}x{} pixels", width, height));
  // Division, because the product of two forged 32-bit sides could leave int64 only with a caller's absurd limit.
  if (width > max_pixels / height)
    return fail(StatusCode::kUnsupported,
                fmt::format("the picture is {}x{} pixels, at most {} pixels are accepted", width, height, max_pixels),
                "reduce its size first");
  Image image{static_cast<int>(width), static_cast<int>(height), channels, {}};
  image.pixels.resize(static_cast<std::size_t>(width * height * channels));
  return image;
}

Result<Image> decode_image(std::span<const std::byte> bytes, std::int64_t max_pixels) {
  const Decode decode = decoder_for(bytes);
  if (decode == nullptr)
    return fail(StatusCode::kInvalidArgument, "the bytes start neither like a PNG nor like a JPEG file",
                "convert the picture to PNG or JPEG");
  return decode(bytes, max_pixels);
}

Result<Image> read_image(const std::string& path, std::int64_t max_pixels) {
  const auto file = MappedFile::open(path);
  if (!file) return fail(file.error());
  return in_file(path, decode_image(file->bytes(), max_pixels));
}

Result<void> write_png(const std::string& path, const Image& image) {
  const auto bytes = encode_png(image);
  if (!bytes) return fail(bytes.error());
  return write_file(path, *bytes);
}

}  // namespace bantam::io
