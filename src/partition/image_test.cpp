// What is read from healthy images, and that every kind of damage is found and named.
#include "partition/image.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "io/testing/corruption.h"
#include "partition/testing/raw_image.h"

namespace bantam::partition {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::RawFile;
using testing::RawImage;
using testing::RawModel;
using testing::small_image;

std::string all_of(const Findings& findings, Severity severity) {
  std::string text;
  for (const Finding& finding : findings.list())
    if (finding.severity == severity) text += describe(finding) + "\n";
  return text;
}

std::string errors_of(const RawImage& image) { return all_of(inspect(image.bytes()).findings, Severity::kError); }
std::string warnings_of(const RawImage& image) { return all_of(inspect(image.bytes()).findings, Severity::kWarning); }

/// Holds for whatever bytes there are.
void expect_sound(std::span<const std::byte> bytes) {
  const Inspection result = inspect(bytes);
  for (const Finding& finding : result.findings.list()) {
    EXPECT_FALSE(finding.object.empty());
    EXPECT_FALSE(finding.message.empty());
    EXPECT_EQ(describe(finding).find('\n'), std::string::npos);
  }
  EXPECT_LE(result.image.used_bytes, bytes.size());
  if (!result.findings.ok()) return;
  for (const ImageModel& model : result.image.models)
    for (const ImageFile& file : model.files) EXPECT_LE(file.end(), bytes.size());
}

TEST(Image, OfTwoModelsIsReadAsWritten) {
  const auto bytes = small_image().bytes();
  const Inspection result = inspect(bytes);
  EXPECT_EQ(all_of(result.findings, Severity::kError), "");
  EXPECT_EQ(all_of(result.findings, Severity::kWarning), "");
  const Image& image = result.image;
  EXPECT_EQ(image.header_bytes, 4U + 2 * 36 + 5 * 40);
  EXPECT_EQ(image.used_bytes, bytes.size());
  ASSERT_EQ(image.models.size(), 2U);
  EXPECT_EQ(image.models[0].name, "wn9_hilexin");
  ASSERT_EQ(image.models[0].files.size(), 3U);
  EXPECT_EQ(image.models[0].files[0].name, "wn9_index");
  EXPECT_EQ(image.models[0].files[0].start, image.header_bytes);
  EXPECT_EQ(image.models[0].files[0].length, 16U);
  EXPECT_EQ(image.models[1].files[1].end(), bytes.size());
  ASSERT_TRUE(image.models[0].info);
  EXPECT_EQ(image.models[0].info->labels.at(0).word, "hilexin");
}

TEST(Image, ThatIsErasedFlashIsCalledSo) {
  for (const std::size_t size : {4, 5, 4096}) {
    const std::vector<std::byte> erased(size, std::byte{0xff});
    EXPECT_THAT(all_of(inspect(erased).findings, Severity::kError), HasSubstr("erased flash")) << size;
  }
  RawImage begun = small_image();
  begun.count = 0xffffffff;
  EXPECT_THAT(errors_of(begun), HasSubstr("begins like erased flash"));
}

TEST(Image, WithoutModelsOrFilesIsRefused) {
  EXPECT_THAT(errors_of({{}}), HasSubstr("model count 0"));
  EXPECT_THAT(errors_of({{{"empty", {}}}}), AllOf(HasSubstr("model 0 'empty'"), HasSubstr("has no files")));
  EXPECT_THAT(all_of(inspect({}).findings, Severity::kError), HasSubstr("has 0 bytes"));
}

TEST(Image, CountsThatCannotBeTrueAreNamedWithWhatFits) {
  RawImage image = small_image();
  image.count = 5000;
  EXPECT_THAT(errors_of(image), AllOf(HasSubstr("model count 5000 (0x1388)"), HasSubstr("room for")));
  image = small_image();
  image.models[0].count = 0x10000000;
  EXPECT_THAT(errors_of(image), AllOf(HasSubstr("model 0 'wn9_hilexin'"), HasSubstr("file count 268435456"),
                                      HasSubstr("the 1 models after model 0 cannot be found")));
}

TEST(Image, CountsThatAreOneOffAreFound) {
  for (const int off : {-1, 1}) {
    RawImage image = small_image();
    image.count = static_cast<std::uint32_t>(2 + off);
    EXPECT_NE(errors_of(image), "") << "models " << *image.count;
    for (const std::size_t m : {0, 1}) {
      image = small_image();
      image.models[m].count = static_cast<std::uint32_t>(static_cast<int>(image.models[m].files.size()) + off);
      EXPECT_NE(errors_of(image), "") << "model " << m << " files " << *image.models[m].count;
    }
  }
}

TEST(Image, NamesAreChecked) {
  const auto error_of_name = [](const std::string& name) { return errors_of({{{name, {{"data", "weights"}}}}}); };
  EXPECT_EQ(error_of_name(std::string(31, 'n')), "");
  EXPECT_THAT(error_of_name(std::string(32, 'n')), HasSubstr("no room for its terminator"));
  EXPECT_THAT(error_of_name(""), HasSubstr("is empty"));
  EXPECT_THAT(error_of_name("../boot"), HasSubstr("path separator"));
  EXPECT_THAT(error_of_name("a\\b"), HasSubstr("path separator"));
  EXPECT_THAT(error_of_name(".."), HasSubstr("folder's own name"));
  EXPECT_THAT(error_of_name("bell\a"), AllOf(HasSubstr("control character"), HasSubstr("'bell\\x07'")));
  EXPECT_THAT(error_of_name("na\xc3\xafve"), HasSubstr("not ASCII"));
  EXPECT_THAT(errors_of({{{"model", {{std::string(32, 'f'), "weights"}}}}}),
              AllOf(HasSubstr("model 0 'model', file 0"), HasSubstr("no room for its terminator")));
  EXPECT_THAT(warnings_of({{{std::string("model\0rest", 10), {{"data", "weights"}}}}}),
              HasSubstr("stand other bytes than zeros"));
}

TEST(Image, DuplicateNamesAreFound) {
  EXPECT_THAT(errors_of({{{"a", {{"x", "1"}}}, {"b", {{"x", "2"}}}, {"a", {{"x", "3"}}}}}),
              AllOf(HasSubstr("model 2 'a': has the name of model 0")));
  EXPECT_THAT(errors_of({{{"a", {{"x", "1"}, {"y", "2"}, {"x", "3"}}}}}),
              HasSubstr("file 2 'x': has the name of file 0"));
}

TEST(Image, FilesOutsideTheirPlaceAreFound) {
  RawImage image = small_image();
  image.models[0].files[1].start = 100;
  EXPECT_THAT(errors_of(image), AllOf(HasSubstr("file 1 'wn9_data': begins at byte 100, within the header, which ends "
                                                "at byte 276")));
  image = small_image();
  image.models[1].files[0].start = 0xfffffff0;
  image.models[1].files[0].length = 0xfffffff0;
  EXPECT_THAT(errors_of(image), AllOf(HasSubstr("lies at bytes 4294967280 to 8589934560"), HasSubstr("are missing")));
  image = small_image();
  image.models[0].files[1].start = 280;
  EXPECT_THAT(errors_of(image), HasSubstr("they overlap"));
}

TEST(Image, SharedBytesAreAnOverlap) {
  RawImage image = small_image();
  image.models[1].files[1].start = 276;
  image.models[1].files[1].length = 16;
  EXPECT_THAT(errors_of(image), HasSubstr("they overlap"));
}

TEST(Image, BytesThatBelongToNoFileAreFoundUnlessEmpty) {
  RawImage image = small_image();
  image.models[0].files[1].length = 10;
  EXPECT_THAT(errors_of(image), AllOf(HasSubstr("belong to no file"), HasSubstr("too small")));
  image = small_image();
  image.tail = std::string(100, '\xff');
  EXPECT_EQ(errors_of(image) + warnings_of(image), "");
  EXPECT_THAT(all_of(inspect(image.bytes()).findings, Severity::kNote), HasSubstr("100 empty bytes follow"));
  image.tail = "appended";
  EXPECT_THAT(errors_of(image), HasSubstr("8 bytes follow the last file"));
}

TEST(Image, RemainsInLaterSectorsAreOnlyAWarning) {
  RawImage image = small_image();
  const std::size_t used = image.bytes().size();
  image.tail = std::string(4096 - used, '\xff') + "left from before";
  EXPECT_EQ(errors_of(image), "");
  EXPECT_THAT(warnings_of(image), HasSubstr("remains"));
  image.tail[4096 - used - 1] = 'x';
  EXPECT_THAT(errors_of(image), HasSubstr("follow the last file"));
}

TEST(Image, EmptyAndErasedFilesAreWarnedOf) {
  EXPECT_THAT(warnings_of({{{"m", {{"x", ""}, {"y", "1"}}}}}), HasSubstr("file 0 'x': is empty"));
  EXPECT_THAT(warnings_of({{{"m", {{"x", std::string(20, '\xff')}}}}}), HasSubstr("nothing but 0xff"));
}

TEST(Image, ModelInformationIsChecked) {
  const auto with_info = [](const std::string& info) { return RawImage{{{"wn9_x", {{"_MODEL_INFO_", info}}}}}; };
  EXPECT_THAT(errors_of(with_info("wakenet9_v1_word_3_0.6")), HasSubstr("_MODEL_INFO_"));
  EXPECT_THAT(errors_of(with_info("wakenet9_v1_word_three_0.6_0.7")), HasSubstr("'three'"));
  EXPECT_THAT(warnings_of(with_info("wakenet9_v1_word_3_6_0.7")), HasSubstr("expected 0 to 1"));
  EXPECT_THAT(warnings_of({{{"wn9_x", {{"data", "weights"}}}}}), HasSubstr("wake words are unknown"));
}

TEST(Image, FaultsOfSeveralKindsAreAllReportedAtOnce) {
  RawImage image = small_image();
  image.models[0].name = "bad/name";
  image.models[0].files[0].length = 4000;
  image.models[1].files[0].start = 3;
  image.models[1].files[1].name = "nsnet2_data";
  EXPECT_THAT(errors_of(image), AllOf(HasSubstr("path separator"), HasSubstr("bytes are missing"),
                                      HasSubstr("within the header"), HasSubstr("has the name of file 0")));
}

TEST(Image, ManyFindingsAreCountedButNotKept) {
  RawImage image;
  for (int i = 0; i < 500; ++i) image.models.push_back({"same", {{"x", "y"}}});
  const Findings findings = inspect(image.bytes()).findings;
  EXPECT_EQ(findings.count(Severity::kError), 499U);
  EXPECT_EQ(findings.list().size(), Findings::kMaxFindings);
  EXPECT_EQ(findings.dropped(), 500 - Findings::kMaxFindings);  // with the note on alignment
}

TEST(Image, ManyEntriesOverTheSameBytesAreReadOnce) {
  // 60000 files that all claim the same megabyte of erased flash: looked into one by one, that would take hours.
  RawImage image;
  RawModel model{"m", {}};
  for (int i = 0; i < 60000; ++i)
    model.files.push_back({i % 2 == 0 ? "x" + std::to_string(i) : "_MODEL_INFO_", "", 60000U * 40 + 40, 1U << 20});
  image.models.push_back(std::move(model));
  image.tail = std::string(1U << 20, '\xff');
  const Findings findings = inspect(image.bytes()).findings;
  EXPECT_GE(findings.count(Severity::kError), 59999U);
}

TEST(DamagedImage, EveryTruncationIsAnError) {
  io::testing::for_each_truncation(small_image().bytes(), [](const std::vector<std::byte>& bytes) {
    const Inspection result = inspect(bytes);
    EXPECT_FALSE(result.findings.ok());
    expect_sound(bytes);
  });
}

/// The positions of all counts, starts and lengths.
std::vector<std::size_t> number_positions(const RawImage& image) {
  std::vector<std::size_t> positions = {0};
  std::size_t at = 4;
  for (const RawModel& model : image.models) {
    positions.push_back(at + 32);
    at += 36;
    for (std::size_t f = 0; f < model.files.size(); ++f, at += 40) {
      positions.push_back(at + 32);
      positions.push_back(at + 36);
    }
  }
  return positions;
}

TEST(DamagedImage, EveryFlippedBitOfANumberIsAnError) {
  const RawImage image = small_image();
  const std::vector<std::byte> healthy = image.bytes();
  for (const std::size_t at : number_positions(image)) {
    for (std::size_t bit = 0; bit < 32; ++bit) {
      std::vector<std::byte> bytes = healthy;
      bytes[at + bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
      EXPECT_FALSE(inspect(bytes).findings.ok()) << "bit " << bit << " of the number at byte " << at;
    }
  }
}

TEST(DamagedImage, EveryForgedNumberIsAnError) {
  const RawImage image = small_image();
  const std::vector<std::byte> healthy = image.bytes();
  for (const std::size_t at : number_positions(image)) {
    for (const std::uint32_t forged :
         {0U, 1U, 4U, 40U, 276U, 4096U, 0x7fffffffU, 0x80000000U, 0xfffffffeU, 0xffffffffU}) {
      std::vector<std::byte> bytes = healthy;
      for (std::size_t i = 0; i < 4; ++i) bytes[at + i] = static_cast<std::byte>(forged >> (8 * i));
      if (bytes == healthy) continue;
      EXPECT_FALSE(inspect(bytes).findings.ok()) << forged << " at byte " << at;
      expect_sound(bytes);
    }
  }
}

TEST(DamagedImage, EveryValueOfEveryByteIsAnswered) {
  const std::vector<std::byte> healthy = small_image().bytes();
  std::vector<std::byte> bytes = healthy;
  for (std::size_t at = 0; at < healthy.size(); ++at) {
    for (unsigned value = 0; value < 256; ++value) {
      bytes[at] = static_cast<std::byte>(value);
      expect_sound(bytes);
    }
    bytes[at] = healthy[at];
  }
}

TEST(DamagedImage, RandomDamageIsAnswered) {
  io::testing::for_random_damage(small_image().bytes(), 20000,
                                 [](const std::vector<std::byte>& bytes) { expect_sound(bytes); });
}

}  // namespace
}  // namespace bantam::partition
