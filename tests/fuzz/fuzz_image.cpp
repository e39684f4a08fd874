#include "io/image.h"
#include "preprocessing.h"
#include "support.h"
#include "targets.h"

namespace bantam::fuzz {

void fuzz_image(std::span<const std::byte> bytes) {
  // Far below the default limit: a picture of one colour compresses a thousandfold, and decoding it only takes time.
  constexpr std::int64_t kMaxPixels = 1 << 20;
  auto image = io::decode_image(bytes, kMaxPixels);
  if (!image) {
    require_message(image.error());
    return;
  }
  const std::int64_t pixels = std::int64_t{image->width} * image->height;
  require(pixels >= 1 && pixels <= kMaxPixels, "a picture beyond the limit");
  require(static_cast<std::int64_t>(image->pixels.size()) == pixels * image->channels, "a picture of the wrong size");
  require(io::encode_png(*image).has_value(), "a picture that was read cannot be written");
  preprocess_for_typical_inputs({}, *image);
}

}  // namespace bantam::fuzz
