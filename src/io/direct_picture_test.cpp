// Pictures decoded straight into tensors: the same bytes as by way of a picture, or not at all.
#include "io/direct_picture.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "io/load_input.h"
#include "io/testing/temporary_folder.h"

namespace bantam::io {
namespace {

TensorDesc desc(ElementType type, std::initializer_list<std::int32_t> dims) {
  TensorDesc d;
  d.type = type;
  d.rank = static_cast<std::uint8_t>(dims.size());
  std::ranges::copy(dims, d.dims);
  d.set_dense_strides();
  return d;
}

class DirectPictureTest : public ::testing::Test {
 protected:
  std::string write(int width, int height, int channels) {
    Image image{width, height, channels,
                std::vector<std::uint8_t>(static_cast<std::size_t>(width * height * channels))};
    std::mt19937 random(static_cast<unsigned>(width + 31 * height + 977 * channels));
    std::ranges::generate(image.pixels, [&] { return static_cast<std::uint8_t>(random()); });
    const std::string path = folder_.file("picture.png");
    EXPECT_TRUE(write_png(path, image));
    return path;
  }

  /// Decodes directly and by way of a picture; true when both were possible and gave the same bytes.
  static bool same(const std::string& text, const InputTarget& target) {
    const auto spec = parse_input_spec(text);
    if (!spec) return false;
    const auto direct = DirectPicture::open(*spec, target);
    const auto expected = load_input(*spec, target);
    if (!direct || !*direct || !expected) return false;
    std::vector<std::byte> tensor(static_cast<std::size_t>(target.desc.bytes()), std::byte{0x77});
    return (*direct)->decode(tensor) && tensor == expected->data;
  }

  static bool is_direct(const std::string& text, const InputTarget& target) {
    const auto spec = parse_input_spec(text);
    EXPECT_TRUE(spec);
    const auto direct = DirectPicture::open(*spec, target);
    EXPECT_TRUE(direct) << direct.error().message;
    return direct && direct->has_value();
  }

  testing::TemporaryFolder folder_;
};

TEST_F(DirectPictureTest, GivesWhatPreprocessingGives) {
  const std::string rgb = write(7, 5, 3);
  const InputTarget plain{"x", desc(ElementType::kU8, {1, 5, 7, 3}), {}};
  const InputTarget quantized{"x", desc(ElementType::kI8, {1, 5, 7, 3}), {1.0F / 255, -128}};
  const InputTarget coarse{"x", desc(ElementType::kU8, {5, 7, 3}), {0.037F, 12}};
  EXPECT_TRUE(same(rgb, plain));
  EXPECT_TRUE(same(rgb + ",resize=7x5,color=rgb,layout=nhwc", plain));
  EXPECT_TRUE(same(rgb + ",mean=3", plain));
  EXPECT_TRUE(same(rgb + ",scale=0.00392156862745098", quantized));
  EXPECT_TRUE(same(rgb + ",quantize=no", quantized));
  EXPECT_TRUE(same(rgb + ",mean=120/130/140,scale=0.0078125", coarse));
  EXPECT_TRUE(same(rgb + ",mean=1,scale=0.01/0.02/0.03", coarse));
}

TEST_F(DirectPictureTest, GrayPicturesFitEveryLayoutOfOneChannel) {
  const std::string gray = write(6, 4, 1);
  for (const TensorDesc& d : {desc(ElementType::kU8, {4, 6}), desc(ElementType::kU8, {4, 6, 1}),
                              desc(ElementType::kU8, {1, 4, 6}), desc(ElementType::kU8, {1, 1, 4, 6})})
    EXPECT_TRUE(same(gray + ",color=gray", {"x", d, {}}));
}

TEST_F(DirectPictureTest, WhatMovesOrWidensPixelsIsPreprocessed) {
  const std::string rgb = write(8, 8, 3);
  EXPECT_FALSE(is_direct(rgb, {"x", desc(ElementType::kF32, {1, 8, 8, 3}), {}}));
  EXPECT_FALSE(is_direct(rgb, {"x", desc(ElementType::kI16, {1, 8, 8, 3}), {}}));
  EXPECT_FALSE(is_direct(rgb, {"x", desc(ElementType::kU8, {1, 3, 8, 8}), {}}));
  EXPECT_FALSE(is_direct(rgb, {"x", desc(ElementType::kU8, {1, 4, 4, 3}), {}}));
  const InputTarget target{"x", desc(ElementType::kU8, {1, 8, 8, 3}), {}};
  EXPECT_TRUE(is_direct(rgb, target));
  EXPECT_FALSE(is_direct(rgb + ",color=bgr", target));
  EXPECT_FALSE(is_direct(rgb + ",resize=9x8", target));
  EXPECT_FALSE(is_direct("random:1", target));
  EXPECT_FALSE(is_direct(write(8, 8, 4), target)) << "alpha has to be mixed in";
}

TEST_F(DirectPictureTest, DamagedPicturesAreErrors) {
  const std::string path = write(16, 16, 3);
  const InputTarget target{"x", desc(ElementType::kU8, {1, 16, 16, 3}), {}};
  const auto bytes = read_file(path, 1 << 20);
  ASSERT_TRUE(bytes);
  for (std::size_t size = 0; size < bytes->size(); size += 23) {
    ASSERT_TRUE(write_file(path, std::span(*bytes).first(size)));
    const auto spec = parse_input_spec(path);
    ASSERT_TRUE(spec);
    const auto direct = DirectPicture::open(*spec, target);
    if (!direct || !*direct) continue;
    std::vector<std::byte> tensor(static_cast<std::size_t>(target.desc.bytes()));
    const auto decoded = (*direct)->decode(tensor);
    // What is missing behind the last pixel is nobody's loss.
    EXPECT_EQ(decoded.has_value(), decode_image(std::span(*bytes).first(size)).has_value()) << size;
    if (decoded) continue;
    EXPECT_NE(decoded.error().message.find("picture.png"), std::string::npos);
  }
}

TEST(ImageInto, RefusesAnotherSizeBeforeItWrites) {
  const Image image{3, 2, 1, {1, 2, 3, 4, 5, 6}};
  const auto png = encode_png(image);
  ASSERT_TRUE(png);
  ASSERT_TRUE(image_info(*png));
  EXPECT_EQ(*image_info(*png), (ImageInfo{3, 2, 1}));
  std::vector<std::uint8_t> pixels(6, 9);
  EXPECT_FALSE(decode_image_into(*png, {2, 3, 1}, pixels));
  EXPECT_FALSE(decode_image_into(*png, {3, 2, 1}, std::span(pixels).first(5)));
  EXPECT_EQ(pixels, std::vector<std::uint8_t>(6, 9));
  EXPECT_TRUE(decode_image_into(*png, {3, 2, 1}, pixels));
  EXPECT_EQ(pixels, image.pixels);
}

}  // namespace
}  // namespace bantam::io
