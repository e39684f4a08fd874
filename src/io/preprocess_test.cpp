#include "io/preprocess.h"

#include <set>

#include "gmock/gmock.h"
#include "io/testing/arrays.h"

namespace bantam::io {
namespace {

using testing::array_of;
using testing::desc_of;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using testing::values_of;

InputTarget target_of(ElementType type, std::initializer_list<std::int64_t> dims, Quantization quantization = {}) {
  return {"x", desc_of(type, dims), quantization};
}

Result<Array> run(const std::string& options, const Source& source, const InputTarget& target) {
  const auto spec = parse_input_spec("file" + options);
  EXPECT_TRUE(spec.has_value()) << spec.error().message;
  return preprocess(*spec, source, target);
}

template <typename T>
std::vector<T> values(const Result<Array>& result) {
  EXPECT_TRUE(result.has_value()) << result.error().message << " | " << result.error().remedy;
  return result ? values_of<T>(*result) : std::vector<T>();
}

std::string error_of(const Result<Array>& result) {
  return result ? "accepted" : result.error().message + " | " + result.error().remedy;
}

const Image kTwoPixels{2, 1, 3, {1, 2, 3, 4, 5, 6}};

TEST(PreprocessPicture, FitsBothLayoutsWithoutOptions) {
  EXPECT_THAT(values<float>(run("", kTwoPixels, target_of(ElementType::kF32, {1, 1, 2, 3}))),
              ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(values<float>(run("", kTwoPixels, target_of(ElementType::kF32, {1, 3, 1, 2}))),
              ElementsAre(1, 4, 2, 5, 3, 6));
  EXPECT_THAT(values<float>(run("", kTwoPixels, target_of(ElementType::kF32, {3, 1, 2}))),
              ElementsAre(1, 4, 2, 5, 3, 6));
}

TEST(PreprocessPicture, BecomesGrayForOneChannel) {
  const Image image{1, 1, 3, {10, 20, 30}};
  EXPECT_THAT(values<std::uint8_t>(run("", image, target_of(ElementType::kU8, {1, 1, 1, 1}))), ElementsAre(18));
  EXPECT_THAT(values<std::uint8_t>(run("", image, target_of(ElementType::kU8, {2, 1}))), ElementsAre(18, 18));
  EXPECT_THAT(values<std::uint8_t>(run("", Image{2, 1, 1, {7, 9}}, target_of(ElementType::kU8, {1, 1, 2}))),
              ElementsAre(7, 9));
}

TEST(PreprocessPicture, IsResizedToTheTarget) {
  EXPECT_THAT(values<float>(run("", Image{1, 1, 3, {7, 8, 9}}, target_of(ElementType::kF32, {1, 1, 2, 3}))),
              ElementsAre(7, 8, 9, 7, 8, 9));
}

TEST(PreprocessPicture, MeanAndScaleFollowTheFinalChannelOrder) {
  EXPECT_THAT(values<float>(
                  run(",color=bgr,mean=3/2/1,scale=1/10/100", kTwoPixels, target_of(ElementType::kF32, {1, 1, 2, 3}))),
              ElementsAre(0, 0, 0, 3, 30, 300));
  EXPECT_THAT(values<float>(run(",mean=1,scale=2", kTwoPixels, target_of(ElementType::kF32, {1, 3, 1, 2}))),
              ElementsAre(0, 6, 2, 8, 4, 10));
}

TEST(PreprocessPicture, IsQuantizedUnlessTurnedOff) {
  const Quantization half{0.5F, -10};
  EXPECT_THAT(values<std::int8_t>(run("", kTwoPixels, target_of(ElementType::kI8, {1, 1, 2, 3}, half))),
              ElementsAre(-8, -6, -4, -2, 0, 2));
  EXPECT_THAT(
      values<std::int8_t>(run(",quantize=no,mean=128", kTwoPixels, target_of(ElementType::kI8, {1, 1, 2, 3}, half))),
      ElementsAre(-127, -126, -125, -124, -123, -122));
  EXPECT_THAT(values<std::int8_t>(run(",scale=100", kTwoPixels, target_of(ElementType::kI8, {1, 1, 2, 3}))),
              ElementsAre(100, 127, 127, 127, 127, 127));
}

TEST(PreprocessPicture, MismatchNamesBothShapesAndTheKeys) {
  const InputTarget target = target_of(ElementType::kF32, {1, 3, 320, 640});
  EXPECT_THAT(
      error_of(run(",resize=320x240", kTwoPixels, target)),
      HasSubstr("input 'x': the picture gives shape [1,3,240,320], the model's input takes f32[1,3,320,640] | use "
                "resize=640x320,color=rgb,layout=nchw"));
  EXPECT_THAT(error_of(run(",layout=nhwc", kTwoPixels, target)), HasSubstr("layout=nchw"));
  EXPECT_THAT(error_of(run(",color=gray", kTwoPixels, target)), HasSubstr("[1,1,320,640]"));
  EXPECT_THAT(error_of(run("", kTwoPixels, target_of(ElementType::kF32, {1, 40}))), HasSubstr("the picture"));
  EXPECT_THAT(error_of(run("", kTwoPixels, target_of(ElementType::kF32, {2, 4, 4, 3}))), HasSubstr("give an npy"));
  EXPECT_THAT(error_of(run("", kTwoPixels, target_of(ElementType::kF32, {1, 4, 4, 5}))), HasSubstr("give an npy"));
}

TEST(PreprocessPicture, RefusesForeignKeysAndWrongCounts) {
  const InputTarget target = target_of(ElementType::kF32, {1, 1, 2, 3});
  EXPECT_THAT(error_of(run(",samples=3", kTwoPixels, target)), HasSubstr("samples= does not apply to a picture"));
  EXPECT_THAT(error_of(run(",mean=1/2", kTwoPixels, target)), HasSubstr("expected 1 or 3"));
}

const Sound kMono{16000, 1, {0.0F, 0.25F, 0.5F, -1.0F}};

TEST(PreprocessSound, WindowIsCutAndPaddedWithSilence) {
  EXPECT_THAT(values<float>(run("", kMono, target_of(ElementType::kF32, {1, 2}))), ElementsAre(0.0F, 0.25F));
  EXPECT_THAT(values<float>(run(",offset=2,samples=3", kMono, target_of(ElementType::kF32, {1, 3, 1}))),
              ElementsAre(0.5F, -1.0F, 0.0F));
  EXPECT_THAT(values<float>(run(",offset=9223372036854775807", kMono, target_of(ElementType::kF32, {2}))), Each(0.0F));
  EXPECT_THAT(values<float>(run(",mean=1,scale=2", kMono, target_of(ElementType::kF32, {5}))),
              ElementsAre(-2.0F, -1.5F, -1.0F, -4.0F, -2.0F));
}

TEST(PreprocessSound, PadErrorRefusesAShortSound) {
  EXPECT_TRUE(run(",pad=error", kMono, target_of(ElementType::kF32, {4})).has_value());
  EXPECT_THAT(error_of(run(",pad=error,offset=1", kMono, target_of(ElementType::kF32, {4}))),
              HasSubstr("the data end at 4"));
}

TEST(PreprocessSound, PlainIntegersTakeSampleValues) {
  EXPECT_THAT(values<std::int16_t>(run("", kMono, target_of(ElementType::kI16, {1, 4}))),
              ElementsAre(0, 8192, 16384, -32768));
  EXPECT_THAT(values<float>(run(",type=i16", kMono, target_of(ElementType::kF32, {2}))), ElementsAre(0, 8192));
  EXPECT_THAT(values<std::int16_t>(run("", kMono, target_of(ElementType::kI16, {2}, {0.125F, 1}))), ElementsAre(1, 3));
  EXPECT_THAT(error_of(run(",type=u8", kMono, target_of(ElementType::kF32, {2}))), HasSubstr("type=u8"));
}

TEST(PreprocessSound, ChannelsAreMixedOrKept) {
  const Sound stereo{8000, 2, {0.5F, 0.0F, 1.0F, -0.5F, 0.25F, 0.25F}};
  EXPECT_THAT(values<float>(run("", stereo, target_of(ElementType::kF32, {1, 3}))), ElementsAre(0.25F, 0.25F, 0.25F));
  EXPECT_THAT(values<float>(run(",offset=1", stereo, target_of(ElementType::kF32, {1, 3, 2}))),
              ElementsAre(1.0F, -0.5F, 0.25F, 0.25F, 0.0F, 0.0F));
  EXPECT_THAT(values<float>(run("", stereo, target_of(ElementType::kF32, {2, 3}))),
              ElementsAre(0.5F, 1.0F, 0.25F, 0.0F, -0.5F, 0.25F));
}

TEST(PreprocessSound, MismatchNamesBothShapesAndTheKey) {
  EXPECT_THAT(error_of(run(",samples=16000", kMono, target_of(ElementType::kF32, {1, 480}))),
              HasSubstr("gives shape [16000,1], the model's input takes f32[1,480] | use samples=480"));
  EXPECT_THAT(error_of(run("", kMono, target_of(ElementType::kF32, {1, 49, 40}))), HasSubstr("features"));
}

TEST(PreprocessArray, ShapesAgreeApartFromOnes) {
  const Array array = array_of<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  const auto result = run("", array, target_of(ElementType::kF32, {1, 2, 1, 3}));
  EXPECT_THAT(values<float>(result), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_EQ(describe(result->desc), "f32[1,2,1,3]");
  EXPECT_THAT(error_of(run("", array, target_of(ElementType::kF32, {3, 2}))),
              HasSubstr("the array gives shape [2,3], the model's input takes f32[3,2]"));
}

TEST(PreprocessArray, SameTypeIsTakenAsStoredOthersAsRealValues) {
  const InputTarget target = target_of(ElementType::kI8, {2}, {0.5F, 1});
  EXPECT_THAT(values<std::int8_t>(run("", array_of<std::int8_t>({2}, {5, -5}), target)), ElementsAre(5, -5));
  EXPECT_THAT(values<std::int8_t>(run("", array_of<float>({2}, {5, -5}), target)), ElementsAre(11, -9));
  EXPECT_THAT(values<std::int8_t>(run("", array_of<std::int32_t>({2}, {5, -5}), target)), ElementsAre(11, -9));
  EXPECT_THAT(values<std::int8_t>(run(",scale=2", array_of<std::int8_t>({2}, {5, -5}), target)), ElementsAre(21, -19));
  EXPECT_THAT(values<std::int8_t>(run(",quantize=no", array_of<float>({2}, {2.5F, -500}), target)),
              ElementsAre(3, -128));
}

TEST(PreprocessArray, WideIntegersStayExact) {
  const std::int64_t large = (std::int64_t{1} << 53) + 1;
  EXPECT_THAT(values<std::int64_t>(run("", array_of<std::uint64_t>({1}, {static_cast<std::uint64_t>(large)}),
                                       target_of(ElementType::kI64, {}))),
              ElementsAre(large));
}

TEST(PreprocessArray, MeanAndScaleApplyToTheLastDimension) {
  EXPECT_THAT(values<float>(run(",mean=1/2,scale=10", array_of<float>({2, 2}, {1, 2, 3, 4}),
                                target_of(ElementType::kF32, {2, 2}))),
              ElementsAre(0, 0, 20, 20));
  EXPECT_TRUE(run(",mean=1", array_of<float>({2, 0}, {}), target_of(ElementType::kF32, {2, 0})).has_value());
}

TEST(PreprocessArray, WindowOfRowsIsCutAndPadded) {
  const Array array = array_of<std::int16_t>({3, 2}, {1, 2, 3, 4, 5, 6});
  EXPECT_THAT(values<float>(run(",offset=2", array, target_of(ElementType::kF32, {1, 2, 2}))), ElementsAre(5, 6, 0, 0));
  EXPECT_THAT(values<float>(run(",offset=1", array, target_of(ElementType::kF32, {1, 2}))), ElementsAre(3, 4));
  EXPECT_THAT(
      values<float>(run(",offset=1,samples=2", array_of<float>({1, 3}, {1, 2, 3}), target_of(ElementType::kF32, {2}))),
      ElementsAre(2, 3));
  EXPECT_THAT(error_of(run(",offset=2,pad=error", array, target_of(ElementType::kF32, {2, 2}))), HasSubstr("end at 3"));
  EXPECT_THAT(error_of(run(",samples=3", array, target_of(ElementType::kF32, {2, 2}))), HasSubstr("use samples=2"));
  EXPECT_THAT(error_of(run(",samples=9223372036854775807", array, target_of(ElementType::kF32, {2, 2}))),
              HasSubstr("use samples=2"));
  EXPECT_FALSE(run(",offset=1", array, target_of(ElementType::kF32, {3, 3})).has_value());
}

TEST(PreprocessRaw, TypeTellsHowTheBytesAreRead) {
  const RawBytes raw{{std::byte{1}, std::byte{255}}};
  EXPECT_THAT(values<std::uint8_t>(run("", raw, target_of(ElementType::kU8, {1, 2}))), ElementsAre(1, 255));
  EXPECT_THAT(values<float>(run(",type=i8,scale=2", raw, target_of(ElementType::kF32, {2}))), ElementsAre(2, -2));
  EXPECT_THAT(error_of(run("", raw, target_of(ElementType::kF32, {2}))),
              HasSubstr("raw data have 2 bytes, f32[2] takes 8"));
}

Array generated(const std::string& text, const InputTarget& target) {
  const auto result = generate(*parse_input_spec(text), target);
  EXPECT_TRUE(result.has_value());
  return result.value_or(Array{});
}

TEST(Generate, ZerosAndFillAreRealValues) {
  EXPECT_THAT(values_of<float>(generated("zeros", target_of(ElementType::kF32, {2}))), Each(0.0F));
  EXPECT_THAT(values_of<std::int8_t>(generated("zeros", target_of(ElementType::kI8, {2}, {0.1F, -7}))), Each(-7));
  EXPECT_THAT(values_of<float>(generated("fill:0.46875", target_of(ElementType::kF32, {3}))), Each(0.46875F));
  EXPECT_THAT(values_of<std::int8_t>(generated("fill:0.46875", target_of(ElementType::kI8, {2}, {0.0625F, -128}))),
              Each(-120));
  EXPECT_THAT(values_of<std::int64_t>(generated("fill:8000", target_of(ElementType::kI64, {}))), ElementsAre(8000));
}

TEST(Generate, RandomIsReproducibleAndInRange) {
  const InputTarget target = target_of(ElementType::kF32, {1000});
  const auto first = values_of<float>(generated("random:7", target));
  EXPECT_EQ(first, values_of<float>(generated("random:7", target)));
  EXPECT_NE(first, values_of<float>(generated("random:8", target)));
  EXPECT_GE(*std::ranges::min_element(first), -1.0F);
  EXPECT_LT(*std::ranges::max_element(first), 1.0F);
  EXPECT_LT(*std::ranges::min_element(first), -0.9F);
  EXPECT_GT(*std::ranges::max_element(first), 0.9F);
}

TEST(Generate, RandomIntegersSuitTheirUse) {
  const auto bytes = values_of<std::int8_t>(generated("random:1", target_of(ElementType::kI8, {10000}, {0.1F, 3})));
  EXPECT_EQ(std::set<std::int8_t>(bytes.begin(), bytes.end()).size(), 256U);
  const auto wide = values_of<std::int64_t>(generated("random:1", target_of(ElementType::kI64, {1000})));
  EXPECT_THAT(std::set<std::int64_t>(wide.begin(), wide.end()), ElementsAre(0, 1));
}

TEST(Generate, UnsuitableTargetsAreErrors) {
  InputTarget target{"x", {}, {}};
  EXPECT_FALSE(generate(*parse_input_spec("zeros"), target).has_value());
  target.desc = desc_of(ElementType::kU8, {2});
  target.desc.type = ElementType::kI4;
  EXPECT_FALSE(generate(*parse_input_spec("random:1"), target).has_value());
  target = target_of(ElementType::kI8, {2}, {-1.0F, 0});
  EXPECT_FALSE(generate(*parse_input_spec("zeros"), target).has_value());
  EXPECT_FALSE(generate(*parse_input_spec("file"), target_of(ElementType::kF32, {1})).has_value());
}

}  // namespace
}  // namespace bantam::io
