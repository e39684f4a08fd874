#include "io/planes.h"

#include "gmock/gmock.h"

namespace bantam::io {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::FloatNear;

Pixels row(std::vector<float> values) {
  const int width = static_cast<int>(values.size());
  return {width, 1, 1, std::move(values)};
}

TEST(ToColor, OrdersAndWeighsChannels) {
  const Image image{1, 1, 3, {10, 20, 30}};
  EXPECT_THAT(to_color(image, Color::kRgb).values, ElementsAre(10, 20, 30));
  EXPECT_THAT(to_color(image, Color::kBgr).values, ElementsAre(30, 20, 10));
  EXPECT_THAT(to_color(image, Color::kGray).values, ElementsAre(FloatNear(18.15F, 1e-4F)));
}

TEST(ToColor, WhiteStaysWhiteAndGrayIsRepeated) {
  EXPECT_THAT(to_color({1, 1, 3, {255, 255, 255}}, Color::kGray).values, ElementsAre(FloatNear(255.0F, 1e-3F)));
  EXPECT_THAT(to_color({1, 1, 1, {9}}, Color::kRgb).values, ElementsAre(9, 9, 9));
  EXPECT_THAT(to_color({1, 1, 1, {9}}, Color::kGray).values, ElementsAre(9));
}

TEST(ToColor, AlphaIsDropped) {
  EXPECT_THAT(to_color({1, 1, 4, {1, 2, 3, 0}}, Color::kRgb).values, ElementsAre(1, 2, 3));
}

TEST(Resize, SameSizeIsUnchanged) {
  EXPECT_THAT(resize(row({1, 2, 3}), 3, 1, Fit::kStretch).values, ElementsAre(1, 2, 3));
}

TEST(Resize, UsesHalfPixelCentres) {
  // Doubled: centres at -0.25, 0.25, 0.75, 1.25 of the input.
  EXPECT_THAT(resize(row({0, 100}), 4, 1, Fit::kStretch).values, ElementsAre(0, 25, 75, 100));
  // Halved: each output lies midway between two inputs.
  EXPECT_THAT(resize(row({0, 10, 20, 30}), 2, 1, Fit::kStretch).values, ElementsAre(5, 25));
}

TEST(Resize, WorksOnBothAxesAndAllChannels) {
  const Pixels from{2, 2, 2, {0, 100, 10, 110, 20, 120, 30, 130}};
  EXPECT_THAT(resize(from, 1, 1, Fit::kStretch).values, ElementsAre(15, 115));
  EXPECT_EQ(resize(from, 5, 3, Fit::kStretch).values.size(), 30U);
}

TEST(Resize, ConstantStaysConstantAtAnySize) {
  const Pixels from{7, 5, 3, std::vector<float>(105, 42.0F)};
  for (const Fit fit : {Fit::kStretch, Fit::kCrop})
    for (const auto& [width, height] : {std::pair(1, 1), {13, 2}, {3, 17}, {7, 6}})
      EXPECT_THAT(resize(from, width, height, fit).values, Each(FloatEq(42.0F)));
}

TEST(Resize, CropKeepsTheMiddle) {
  EXPECT_THAT(resize(row({1, 2, 3, 4, 5}), 1, 1, Fit::kCrop).values, ElementsAre(3));
  EXPECT_THAT(resize(row({1, 2, 3, 4, 5}), 3, 1, Fit::kCrop).values, ElementsAre(2, 3, 4));
}

TEST(Resize, PadCentresThePictureOnBlack) {
  EXPECT_THAT(resize({1, 1, 1, {8}}, 3, 1, Fit::kPad).values, ElementsAre(0, 8, 0));
  EXPECT_THAT(resize(row({8, 8}), 2, 4, Fit::kPad).values, ElementsAre(0, 0, 8, 8, 0, 0, 0, 0));
}

TEST(Resize, ExtremeAspectRatiosKeepAtLeastOnePixel) {
  const auto padded = resize({1000, 1, 1, std::vector<float>(1000, 5.0F)}, 10, 10, Fit::kPad);
  EXPECT_EQ(std::count(padded.values.begin(), padded.values.end(), 5.0F), 10);
  EXPECT_EQ(resize({1, 1000, 1, std::vector<float>(1000, 5.0F)}, 10, 10, Fit::kCrop).values.size(), 100U);
}

}  // namespace
}  // namespace bantam::io
