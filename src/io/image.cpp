#include "io/image.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "fmt/format.h"
#include "io/file.h"
#include "io/image_format.h"

namespace bantam::io {
namespace {

bool starts_with(std::span<const std::byte> bytes, std::span<const unsigned char> magic) {
  return bytes.size() >= magic.size() &&
         std::ranges::equal(magic, bytes.first(magic.size()), {}, [](unsigned char c) { return std::byte{c}; });
}

using Decode = Result<void> (*)(std::span<const std::byte>, const PixelMemory&);

/// The decoder whose magic number the bytes start with, or null.
Decode decoder_for(std::span<const std::byte> bytes) {
  constexpr std::array<unsigned char, 8> kPng = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
  constexpr std::array<unsigned char, 3> kJpeg = {0xff, 0xd8, 0xff};
  if (starts_with(bytes, kPng)) return decode_png;
  if (starts_with(bytes, kJpeg)) return decode_jpeg;
  return nullptr;
}

Result<void> decode(std::span<const std::byte> bytes, const PixelMemory& memory) {
  const Decode decoder = decoder_for(bytes);
  if (decoder != nullptr) return decoder(bytes, memory);
  return fail(StatusCode::kInvalidArgument, "the bytes start neither like a PNG nor like a JPEG file",
              "convert the picture to PNG or JPEG");
}

}  // namespace

bool looks_like_image(std::span<const std::byte> bytes) noexcept { return decoder_for(bytes) != nullptr; }

Result<Image> decode_image(std::span<const std::byte> bytes, std::int64_t max_pixels) {
  Image image;
  const auto decoded = decode(bytes, [&](const ImageInfo& info) -> Result<std::uint8_t*> {
    const auto width = static_cast<std::int64_t>(info.width);
    if (info.width < 1 || info.height < 1)
      return fail(StatusCode::kInvalidArgument, fmt::format("the picture is {}x{} pixels", info.width, info.height));
    // Division, because the product of two forged sides could leave int64 only with a caller's absurd limit.
    if (width > max_pixels / info.height)
      return fail(StatusCode::kUnsupported,
                  fmt::format("the picture is {}x{} pixels, at most {} pixels are accepted", info.width, info.height,
                              max_pixels),
                  "reduce its size first");
    image = {info.width, info.height, info.channels, {}};
    image.pixels.resize(static_cast<std::size_t>(width * info.height * info.channels));
    return image.pixels.data();
  });
  if (!decoded) return fail(decoded.error());
  return image;
}

Result<ImageInfo> image_info(std::span<const std::byte> bytes) {
  std::optional<ImageInfo> found;
  const auto decoded = decode(bytes, [&](const ImageInfo& info) -> Result<std::uint8_t*> {
    found = info;
    return fail(StatusCode::kOutOfRange, "only the size is wanted");
  });
  if (found) return *found;
  return fail(decoded.error());
}

Result<void> decode_image_into(std::span<const std::byte> bytes, const ImageInfo& expected,
                               std::span<std::uint8_t> pixels) {
  return decode(bytes, [&](const ImageInfo& info) -> Result<std::uint8_t*> {
    if (info == expected && std::cmp_equal(std::int64_t{info.width} * info.height * info.channels, pixels.size()))
      return pixels.data();
    return fail(StatusCode::kInvalidArgument,
                fmt::format("the picture is {}x{} pixels of {} channels, expected {}x{} of {}", info.width, info.height,
                            info.channels, expected.width, expected.height, expected.channels));
  });
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
