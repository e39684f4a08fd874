#include "io/image.h"

#include <cstdio>
// jpeglib.h needs FILE and size_t declared before it.
#include <jpeglib.h>
#include <png.h>

#include <algorithm>
#include <cstdlib>

#include "gmock/gmock.h"
#include "io/file.h"
#include "io/testing/corruption.h"
#include "io/testing/temporary_folder.h"

namespace bantam::io {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Image gradient(int width, int height, int channels) {
  Image image{width, height, channels, {}};
  for (int i = 0; i < width * height * channels; ++i) image.pixels.push_back(static_cast<std::uint8_t>(i * 7 % 256));
  return image;
}

Image flat(int width, int height, const std::vector<std::uint8_t>& pixel) {
  Image image{width, height, static_cast<int>(pixel.size()), {}};
  for (int i = 0; i < width * height; ++i) image.pixels.insert(image.pixels.end(), pixel.begin(), pixel.end());
  return image;
}

std::vector<std::byte> encode_jpeg(const Image& image, bool progressive) {
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* data = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &data, &size);
  info.image_width = static_cast<JDIMENSION>(image.width);
  info.image_height = static_cast<JDIMENSION>(image.height);
  info.input_components = image.channels;
  info.in_color_space = image.channels == 1 ? JCS_GRAYSCALE : image.channels == 3 ? JCS_RGB : JCS_CMYK;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, 95, TRUE);
  if (progressive) jpeg_simple_progression(&info);
  jpeg_start_compress(&info, TRUE);
  while (info.next_scanline < info.image_height) {
    auto* row = const_cast<unsigned char*>(
        &image.pixels[std::size_t{info.next_scanline} * static_cast<std::size_t>(image.width * image.channels)]);
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  const auto bytes = std::as_bytes(std::span(data, size));
  std::vector<std::byte> result(bytes.begin(), bytes.end());
  jpeg_destroy_compress(&info);
  std::free(data);
  return result;
}

TEST(Png, PixelsSurvive) {
  for (const int channels : {1, 3, 4}) {
    const Image image = gradient(13, 7, channels);
    const auto bytes = encode_png(image);
    ASSERT_TRUE(bytes.has_value()) << bytes.error().message;
    const auto back = decode_image(*bytes);
    ASSERT_TRUE(back.has_value()) << back.error().message;
    EXPECT_EQ(back->width, 13);
    EXPECT_EQ(back->height, 7);
    EXPECT_EQ(back->channels, channels);
    EXPECT_EQ(back->pixels, image.pixels);
  }
}

TEST(Png, GrayWithAlphaBecomesRgba) {
  png_image png{};
  png.version = PNG_IMAGE_VERSION;
  png.width = 1;
  png.height = 1;
  png.format = PNG_FORMAT_GA;
  const std::uint8_t pixel[] = {100, 200};
  std::vector<std::byte> bytes(1000);
  png_alloc_size_t size = bytes.size();
  ASSERT_NE(png_image_write_to_memory(&png, bytes.data(), &size, 0, pixel, 2, nullptr), 0);
  bytes.resize(size);
  const auto image = decode_image(bytes);
  ASSERT_TRUE(image.has_value()) << image.error().message;
  EXPECT_THAT(image->pixels, ElementsAre(100, 100, 100, 200));
}

TEST(Png, RefusesToWriteInconsistentImages) {
  EXPECT_FALSE(encode_png({2, 2, 3, std::vector<std::uint8_t>(11)}).has_value());
  EXPECT_FALSE(encode_png({0, 2, 3, {}}).has_value());
  EXPECT_FALSE(encode_png({1, 1, 2, std::vector<std::uint8_t>(2)}).has_value());
  EXPECT_FALSE(encode_png({-1, -1, 1, std::vector<std::uint8_t>(1)}).has_value());
}

TEST(Png, EveryTruncationGivesTheWholePictureOrAnError) {
  const Image image = gradient(9, 9, 3);
  const auto file = encode_png(image);
  std::size_t accepted = 0;
  testing::for_each_truncation(*file, [&](const auto& bytes) {
    const auto back = decode_image(bytes);
    if (!back) return;
    EXPECT_EQ(back->pixels, image.pixels);
    ++accepted;
  });
  EXPECT_LE(accepted, 24U);  // only the end chunk and the tail of the last data chunk may be missing
}

TEST(Png, DamagedFilesGiveAConsistentPictureOrAnError) {
  const auto file = encode_png(gradient(9, 9, 3));
  testing::for_random_damage(*file, 5000, [](const auto& bytes) {
    const auto back = decode_image(bytes);
    if (!back) return;
    EXPECT_EQ(static_cast<std::int64_t>(back->pixels.size()),
              std::int64_t{back->width} * back->height * back->channels);
  });
}

TEST(Jpeg, FlatColoursSurvive) {
  for (const bool progressive : {false, true}) {
    const auto gray = decode_image(encode_jpeg(flat(20, 10, {77}), progressive));
    ASSERT_TRUE(gray.has_value()) << gray.error().message;
    EXPECT_EQ(gray->channels, 1);
    EXPECT_THAT(gray->pixels, Each(77));
    const auto colour = decode_image(encode_jpeg(flat(20, 10, {200, 100, 50}), progressive));
    ASSERT_TRUE(colour.has_value()) << colour.error().message;
    ASSERT_EQ(colour->channels, 3);
    EXPECT_EQ(colour->width, 20);
    EXPECT_EQ(colour->height, 10);
    EXPECT_NEAR(colour->pixels[0], 200, 3);
    EXPECT_NEAR(colour->pixels[1], 100, 3);
    EXPECT_NEAR(colour->pixels[2], 50, 3);
  }
}

TEST(Jpeg, RefusesCmyk) {
  const auto result = decode_image(encode_jpeg(flat(8, 8, {1, 2, 3, 4}), false));
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code, StatusCode::kUnsupported);
}

TEST(Jpeg, EveryTruncationIsAnError) {
  for (const bool progressive : {false, true}) {
    const auto file = encode_jpeg(gradient(24, 16, 3), progressive);
    testing::for_each_truncation(file, [](const auto& bytes) { EXPECT_FALSE(decode_image(bytes).has_value()); });
  }
}

TEST(Jpeg, DamagedFilesGiveAConsistentPictureOrAnError) {
  for (const bool progressive : {false, true}) {
    const auto file = encode_jpeg(gradient(24, 16, 3), progressive);
    testing::for_random_damage(file, 3000, [](const auto& bytes) {
      const auto back = decode_image(bytes, 1 << 20);
      if (!back) return;
      EXPECT_EQ(static_cast<std::int64_t>(back->pixels.size()),
                std::int64_t{back->width} * back->height * back->channels);
    });
  }
}

TEST(Image, PixelLimitHolds) {
  for (const auto& file : {*encode_png(gradient(16, 16, 1)), encode_jpeg(gradient(16, 16, 1), false)}) {
    EXPECT_TRUE(decode_image(file, 256).has_value());
    const auto result = decode_image(file, 255);
    ASSERT_FALSE(result.has_value());
    EXPECT_THAT(result.error().message, HasSubstr("16x16"));
  }
}

TEST(Image, ForgedSizeIsRefusedBeforeAllocation) {
  // A JPEG that claims 65500 x 65500 pixels: 12 GB if it were believed.
  auto bytes = encode_jpeg(gradient(16, 16, 3), false);
  const auto marker = bytes_of(std::string_view("\xff\xc0", 2));
  const auto sof = std::search(bytes.begin(), bytes.end(), marker.begin(), marker.end()) - bytes.begin();
  for (const int at : {5, 7}) {
    bytes[static_cast<std::size_t>(sof + at)] = std::byte{0xff};
    bytes[static_cast<std::size_t>(sof + at + 1)] = std::byte{0xdc};
  }
  const auto result = decode_image(bytes);
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code, StatusCode::kUnsupported);
}

TEST(Image, OtherBytesAreAnError) {
  EXPECT_FALSE(decode_image({}).has_value());
  EXPECT_FALSE(decode_image(bytes_of("GIF89a")).has_value());
  EXPECT_FALSE(looks_like_image(bytes_of("GIF89a")));
}

TEST(Image, FilesAreWrittenAndRead) {
  const testing::TemporaryFolder folder;
  ASSERT_TRUE(write_png(folder.file("a.png"), gradient(3, 3, 3)).has_value());
  EXPECT_EQ(read_image(folder.file("a.png"))->pixels, gradient(3, 3, 3).pixels);
  EXPECT_THAT(read_image(folder.file("b.png")).error().message, HasSubstr("b.png"));
}

}  // namespace
}  // namespace bantam::io
