// Pictures in memory: PNG and JPEG decoded to 8 bits per channel, PNG written.
//
// Untrusted bytes: the pixel count is compared with the limit before pixels are allocated; damaged or truncated data
// are an error, never a picture with guessed parts. No shared state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "bantam/error.h"

namespace bantam::io {

/// Most pixels of one picture (256 MiB as RGBA).
inline constexpr std::int64_t kMaxImagePixels = std::int64_t{1} << 26;

struct Image {
  int width = 0;                     ///< pixels, at least 1
  int height = 0;                    ///< pixels, at least 1
  int channels = 0;                  ///< 1 gray, 3 RGB, 4 RGBA (alpha not premultiplied)
  std::vector<std::uint8_t> pixels;  ///< height x width x channels, interleaved, sRGB
};

/// True when the bytes start like a PNG or JPEG file.
bool looks_like_image(std::span<const std::byte> bytes) noexcept;

/// Decodes a PNG (16-bit samples are reduced to 8, palettes expanded, gray with alpha becomes RGBA) or a JPEG (gray or
/// colour; not CMYK). Orientation tags are not applied.
Result<Image> decode_image(std::span<const std::byte> bytes, std::int64_t max_pixels = kMaxImagePixels);
/// What a file says about its picture, as decode_image would give it.
struct ImageInfo {
  int width = 0;
  int height = 0;
  int channels = 0;

  bool operator==(const ImageInfo&) const = default;
};
Result<ImageInfo> image_info(std::span<const std::byte> bytes);

/// Decodes into the caller's memory, row by row. Fails before anything is written when the picture is not as `expected`
/// or `pixels` is not exactly its size; after damage in the data the pixels are unspecified.
Result<void> decode_image_into(std::span<const std::byte> bytes, const ImageInfo& expected,
                               std::span<std::uint8_t> pixels);

Result<Image> read_image(const std::string& path, std::int64_t max_pixels = kMaxImagePixels);

Result<std::vector<std::byte>> encode_png(const Image& image);
Result<void> write_png(const std::string& path, const Image& image);

}  // namespace bantam::io
