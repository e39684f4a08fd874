#include "io/input_spec.h"

#include <random>

#include "gmock/gmock.h"

namespace bantam::io {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string error_of(std::string_view text) {
  const auto spec = parse_input_spec(text);
  return spec ? "accepted" : spec.error().message + " | " + spec.error().remedy;
}

TEST(InputSpec, PictureOptionsAreRead) {
  const auto spec =
      parse_input_spec("astronaut-512.jpg,resize=320x240,color=bgr,mean=127,scale=0.0078125,layout=nchw,fit=pad");
  ASSERT_TRUE(spec.has_value()) << spec.error().message;
  EXPECT_EQ(spec->kind, SourceKind::kFile);
  EXPECT_EQ(spec->path, "astronaut-512.jpg");
  EXPECT_EQ(spec->resize->width, 320);
  EXPECT_EQ(spec->resize->height, 240);
  EXPECT_EQ(spec->color, Color::kBgr);
  EXPECT_THAT(spec->mean, ElementsAre(127.0F));
  EXPECT_THAT(spec->scale, ElementsAre(0.0078125F));
  EXPECT_EQ(spec->layout, Layout::kNchw);
  EXPECT_EQ(spec->fit, Fit::kPad);
  EXPECT_THAT(given_keys(*spec), ElementsAre("color", "resize", "fit", "layout", "mean", "scale"));
}

TEST(InputSpec, SoundOptionsAreRead) {
  const auto spec = parse_input_spec("yes.wav,samples=16000,offset=0,type=f32,mean=-1/2.5/3e-2,pad=error,quantize=no");
  ASSERT_TRUE(spec.has_value()) << spec.error().message;
  EXPECT_EQ(spec->samples, 16000);
  EXPECT_EQ(spec->offset, 0);
  EXPECT_EQ(spec->type, ElementType::kF32);
  EXPECT_THAT(spec->mean, ElementsAre(-1.0F, 2.5F, 0.03F));
  EXPECT_EQ(spec->pad, WindowPad::kError);
  EXPECT_EQ(spec->quantize, false);
}

TEST(InputSpec, GeneratedSourcesAreRead) {
  EXPECT_EQ(parse_input_spec("zeros")->kind, SourceKind::kZeros);
  const auto fill = parse_input_spec("fill:0.46875");
  EXPECT_EQ(fill->kind, SourceKind::kFill);
  EXPECT_EQ(fill->fill, 0.46875F);
  const auto random = parse_input_spec("random:18446744073709551615");
  EXPECT_EQ(random->kind, SourceKind::kRandom);
  EXPECT_EQ(random->seed, 0xffffffffffffffffU);
}

TEST(InputSpec, ArchiveEntriesMayHoldAnything) {
  const auto spec = parse_input_spec("dir/x.npz:in.a:0,b/c");
  EXPECT_EQ(spec->path, "dir/x.npz");
  EXPECT_EQ(spec->entry, "in.a:0,b/c");
  EXPECT_EQ(parse_input_spec("x.npz")->entry, "");
}

TEST(InputSpec, FileNamesMayHoldCommasAndColons) {
  EXPECT_EQ(parse_input_spec("a,b.wav,offset=1")->path, "a,b.wav");
  EXPECT_EQ(parse_input_spec("a,=.wav")->path, "a,=.wav");
  EXPECT_EQ(parse_input_spec("C:x.wav")->path, "C:x.wav");
}

TEST(InputSpec, NamesWhatIsWrong) {
  EXPECT_THAT(error_of(""), HasSubstr("names no file"));
  EXPECT_THAT(error_of(",mean=1"), HasSubstr("names no file"));
  EXPECT_THAT(error_of("a.png,colour=rgb"), HasSubstr("unknown input option 'colour=rgb' | keys are color, resize"));
  EXPECT_THAT(error_of("a.png,color=rgb,"), HasSubstr("unknown input option ''"));
  EXPECT_THAT(error_of("a.png,color=rgba"), HasSubstr("expected rgb, bgr or gray"));
  EXPECT_THAT(error_of("a.png,mean=1,mean=2"), HasSubstr("mean= is given twice"));
  EXPECT_THAT(error_of("zeros,mean=1"), HasSubstr("no options"));
  EXPECT_THAT(error_of("fill:x"), HasSubstr("fill:NUMBER"));
  EXPECT_THAT(error_of("fill:nan"), HasSubstr("fill:NUMBER"));
  EXPECT_THAT(error_of("random:-1"), HasSubstr("SEED"));
  EXPECT_THAT(error_of(std::string_view("a\0b", 3)), HasSubstr("zero byte"));
}

TEST(InputSpec, RefusesValuesOutOfRange) {
  for (const char* option : {"resize=320",
                             "resize=0x1",
                             "resize=-1x1",
                             "resize=1x99999",
                             "resize=1x1x1",
                             "resize=x",
                             "mean=",
                             "mean=1/",
                             "mean=/1",
                             "mean=inf",
                             "scale=1e99",
                             "scale=1,5",
                             "offset=-1",
                             "offset=99999999999999999999",
                             "samples=0",
                             "samples=1.5",
                             "pad=1",
                             "type=f31",
                             "type=i4",
                             "type=none",
                             "quantize=maybe",
                             "layout=NCHW",
                             "fit="})
    EXPECT_FALSE(parse_input_spec(std::string("a.png,") + option).has_value()) << option;
}

TEST(InputSpec, AnyTextGivesASpecificationOrAnError) {
  const auto seed = static_cast<unsigned>(::testing::UnitTest::GetInstance()->random_seed());
  std::mt19937 random(seed);
  const std::string alphabet = "a,=:/x.0123456789-mean scale resize npz zeros random fill";
  for (int i = 0; i < 20000; ++i) {
    std::string text = i % 2 == 0 ? "a.png,mean=1/2,resize=3x4,offset=5" : "";
    for (auto n = random() % 12; n > 0; --n)
      text.insert(random() % (text.size() + 1), 1, alphabet[random() % alphabet.size()]);
    const auto spec = parse_input_spec(text);
    if (!spec) {
      EXPECT_FALSE(spec.error().message.empty()) << text << " (--gtest_random_seed=" << seed << ")";
    }
  }
}

}  // namespace
}  // namespace bantam::io
