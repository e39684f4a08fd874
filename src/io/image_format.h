// The decoders behind image.h, one per format. Internal to this folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "io/image.h"

namespace bantam::io {

Result<Image> decode_png(std::span<const std::byte> bytes, std::int64_t max_pixels);
Result<Image> decode_jpeg(std::span<const std::byte> bytes, std::int64_t max_pixels);

/// An image of that size with zero pixels. Fails, before it allocates, when a side is 0 or there are too many pixels.
Result<Image> make_image(std::int64_t width, std::int64_t height, int channels, std::int64_t max_pixels);

}  // namespace bantam::io
