#include <png.h>

#include <algorithm>

#include "fmt/format.h"
#include "io/image_format.h"

namespace bantam::io {
namespace {

/// libpng's simplified interface: it reports by return value and frees what it holds after every failure.
class PngImage {
 public:
  PngImage() { image_.version = PNG_IMAGE_VERSION; }
  PngImage(const PngImage&) = delete;
  PngImage& operator=(const PngImage&) = delete;
  ~PngImage() { png_image_free(&image_); }
  png_image* get() { return &image_; }
  png_image* operator->() { return &image_; }
  tl::unexpected<Error> failure(const char* action) const {
    return fail(StatusCode::kInvalidArgument, fmt::format("cannot {} PNG: {}", action, image_.message));
  }

 private:
  png_image image_{};
};

struct PngFormat {
  png_uint_32 format;
  int channels;
};

/// Gray stays gray; whatever has alpha becomes RGBA.
PngFormat format_for(png_uint_32 stored) {
  if ((stored & PNG_FORMAT_FLAG_ALPHA) != 0) return {PNG_FORMAT_RGBA, 4};
  if ((stored & PNG_FORMAT_FLAG_COLOR) != 0) return {PNG_FORMAT_RGB, 3};
  return {PNG_FORMAT_GRAY, 1};
}

}  // namespace

Result<void> decode_png(std::span<const std::byte> bytes, const PixelMemory& memory) {
  PngImage png;
  if (png_image_begin_read_from_memory(png.get(), bytes.data(), bytes.size()) == 0) return png.failure("read");
  const PngFormat format = format_for(png->format);
  // libpng refuses sides beyond 31 bits.
  const ImageInfo info{static_cast<int>(png->width), static_cast<int>(png->height), format.channels};
  const auto pixels = memory(info);
  if (!pixels) return fail(pixels.error());
  png->format = format.format;
  // Without a stated transfer curve samples are taken as sRGB whatever their depth, as other readers do.
  png->flags |= PNG_IMAGE_FLAG_16BIT_sRGB;
  const auto stride = static_cast<png_int_32>(info.width * info.channels);
  if (png_image_finish_read(png.get(), nullptr, *pixels, stride, nullptr) == 0) return png.failure("read");
  return {};
}

Result<std::vector<std::byte>> encode_png(const Image& image) {
  const bool known = image.channels == 1 || image.channels == 3 || image.channels == 4;
  const auto expected = static_cast<std::int64_t>(image.width) * image.height * image.channels;
  if (!known || image.width < 1 || image.height < 1 || static_cast<std::int64_t>(image.pixels.size()) != expected)
    return fail(StatusCode::kInvalidArgument,
                fmt::format("a picture of {}x{} pixels, {} channels and {} bytes cannot be written", image.width,
                            image.height, image.channels, image.pixels.size()));
  PngImage png;
  png->width = static_cast<png_uint_32>(image.width);
  png->height = static_cast<png_uint_32>(image.height);
  png->format = image.channels == 1 ? PNG_FORMAT_GRAY : image.channels == 3 ? PNG_FORMAT_RGB : PNG_FORMAT_RGBA;
  const auto stride = static_cast<png_int_32>(image.width * image.channels);
  // No compressed PNG is larger than this bound, so that one pass is enough.
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(*png.get());
  std::vector<std::byte> bytes(size);
  if (png_image_write_to_memory(png.get(), bytes.data(), &size, 0, image.pixels.data(), stride, nullptr) == 0)
    return png.failure("write");
  bytes.resize(size);
  return bytes;
}

}  // namespace bantam::io
