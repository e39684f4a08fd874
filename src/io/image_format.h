// The decoders behind image.h, one per format. Internal to this folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "io/image.h"

namespace bantam::io {

/// Told what a picture is, gives the memory for its pixels (width x height x channels bytes), or refuses.
using PixelMemory = std::function<Result<std::uint8_t*>(const ImageInfo& info)>;

Result<void> decode_png(std::span<const std::byte> bytes, const PixelMemory& memory);
Result<void> decode_jpeg(std::span<const std::byte> bytes, const PixelMemory& memory);

}  // namespace bantam::io
