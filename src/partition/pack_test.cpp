// From folders to an image and back.
#include "partition/pack.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>

#include "io/file.h"
#include "io/testing/temporary_folder.h"
#include "partition/testing/raw_image.h"

namespace bantam::partition {
namespace {

using io::testing::TemporaryFolder;
using ::testing::AllOf;
using ::testing::HasSubstr;

void write(const std::string& path, std::string_view text) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

/// A collection of two models, as text by "model/file".
std::map<std::string, std::string> two_models() {
  return {{"wn9_b/wn9_data", "the weights"},
          {"wn9_b/wn9_index", std::string("index\0\xff", 7)},
          {"wn9_b/_MODEL_INFO_", "wakenet9_v1_hello_3_0.6_0.7"},
          {"nsnet_a/data", "noise"},
          {"nsnet_a/empty", ""}};
}

void write_all(const TemporaryFolder& folder, const std::map<std::string, std::string>& files) {
  for (const auto& [name, text] : files) write(folder.file(name), text);
}

/// What an image holds, by "model/file".
std::map<std::string, std::string> contents_of(std::span<const std::byte> bytes) {
  const Inspection result = inspect(bytes);
  EXPECT_TRUE(result.findings.ok());
  std::map<std::string, std::string> contents;
  if (!result.findings.ok()) return contents;
  for (const ImageModel& model : result.image.models)
    for (const ImageFile& file : model.files) {
      const auto part = bytes.subspan(file.start, file.length);
      contents[model.name + "/" + file.name] = {reinterpret_cast<const char*>(part.data()), part.size()};
    }
  return contents;
}

std::vector<std::byte> pack(const std::vector<std::string>& folders, std::uint32_t alignment = kPayloadAlignment) {
  const auto read = read_model_folders(folders);
  EXPECT_TRUE(read) << (read ? "" : read.error().message);
  if (!read) return {};
  auto image = build_image(read->models, alignment);
  EXPECT_TRUE(image);
  return image ? std::move(*image) : std::vector<std::byte>();
}

std::string refusal(const std::vector<std::string>& folders) {
  const auto read = read_model_folders(folders);
  return read ? std::string("read") : read.error().message;
}

TEST(Pack, HoldsWhatTheFoldersHold) {
  const TemporaryFolder folder;
  write_all(folder, two_models());
  EXPECT_EQ(contents_of(pack({folder.path()})), two_models());
  EXPECT_EQ(contents_of(pack({folder.path() + "/"})), two_models());
  EXPECT_EQ(contents_of(pack({folder.file("wn9_b"), folder.file("nsnet_a/")})), two_models());
}

TEST(Pack, DependsOnNamesAndContentsOnly) {
  const TemporaryFolder folder;
  write_all(folder, two_models());
  const auto image = pack({folder.path()});
  EXPECT_EQ(pack({folder.file("wn9_b"), folder.file("nsnet_a")}), image);
  const Image read = inspect(image).image;
  EXPECT_EQ(read.models.at(0).name, "nsnet_a");
  EXPECT_EQ(read.models.at(1).files.at(0).name, "_MODEL_INFO_");
}

TEST(Pack, AlignsEveryFile) {
  const TemporaryFolder folder;
  write_all(folder, two_models());
  for (const std::uint32_t alignment : {1U, 4U, 16U, 4096U})
    for (const ImageModel& model : inspect(pack({folder.path()}, alignment)).image.models)
      for (const ImageFile& file : model.files) EXPECT_EQ(file.start % alignment, 0U) << alignment;
}

TEST(Pack, WithoutAlignmentIsTheLayoutOfEspSr) {
  const TemporaryFolder folder;
  testing::RawImage expected = testing::small_image();
  std::ranges::sort(expected.models, {}, &testing::RawModel::name);
  for (testing::RawModel& model : expected.models) {
    std::ranges::sort(model.files, {}, &testing::RawFile::name);
    for (const testing::RawFile& file : model.files) write(folder.file(model.name + "/" + file.name), file.content);
  }
  EXPECT_EQ(pack({folder.path()}, 1), expected.bytes());
}

TEST(Pack, PutsNamedModelsFirst) {
  std::vector<PackedModel> models = {{"a", {}}, {"b", {}}, {"c", {}}, {"d", {}}};
  ASSERT_TRUE(order_models(models, {"c", "a"}));
  EXPECT_EQ(models[0].name + models[1].name + models[2].name + models[3].name, "cabd");
  EXPECT_THAT(order_models(models, {"x"}).error().message, HasSubstr("'x'"));
  EXPECT_THAT(order_models(models, {"a", "a"}).error().message, HasSubstr("'a'"));
}

TEST(Pack, ListsFilesBesideTheModels) {
  const TemporaryFolder folder;
  write_all(folder, two_models());
  write(folder.file("srmodels.bin"), "an older image");
  const auto read = read_model_folders({folder.path()});
  ASSERT_TRUE(read);
  EXPECT_EQ(read->ignored, std::vector<std::string>{folder.file("srmodels.bin")});
  EXPECT_EQ(read->models.size(), 2U);
}

TEST(Pack, RefusesWhatTheFormatCannotHoldAllAtOnce) {
  const TemporaryFolder folder;
  const std::string longest(31, 'n');
  write(folder.file(longest + "/" + longest), "x");
  EXPECT_EQ(refusal({folder.path()}), "read");
  write(folder.file("a_model_name_that_has_32_bytes__/data"), "x");
  write(folder.file("model/na\xc3\xafve"), "x");
  write(folder.file("model/folder/data"), "x");
  std::filesystem::create_directory(folder.file("empty"));
  EXPECT_THAT(refusal({folder.path()}),
              AllOf(HasSubstr("has 32 bytes and no room for its terminator"), HasSubstr("not ASCII"),
                    HasSubstr("model/folder': is no regular file"), HasSubstr("empty': is empty")));
}

TEST(Pack, RefusesFoldersThatCannotBeRead) {
  const TemporaryFolder folder;
  write(folder.file("file"), "x");
  EXPECT_THAT(refusal({folder.file("absent")}), HasSubstr("is no folder"));
  EXPECT_THAT(refusal({folder.file("file")}), HasSubstr("is no folder"));
  write(folder.file("a/model/data"), "x");
  write(folder.file("b/model/data"), "x");
  EXPECT_THAT(refusal({folder.file("a"), folder.file("b")}), HasSubstr("has the name of another model"));
}

TEST(Pack, OfRandomModelsIsReadBack) {
  const auto seed = static_cast<unsigned>(::testing::UnitTest::GetInstance()->random_seed());
  std::mt19937 random(seed);
  for (int round = 0; round < 200; ++round) {
    std::vector<PackedModel> models(1 + random() % 5);
    for (std::size_t m = 0; m < models.size(); ++m) {
      models[m] = {"model" + std::to_string(m), std::vector<PackedFile>(1 + random() % 4)};
      for (std::size_t f = 0; f < models[m].files.size(); ++f) {
        models[m].files[f] = {"file" + std::to_string(f), std::vector<std::byte>(random() % 100)};
        for (std::byte& b : models[m].files[f].bytes) b = static_cast<std::byte>(random());
      }
    }
    const auto image = build_image(models, 1U << random() % 8);
    ASSERT_TRUE(image);
    const auto contents = contents_of(*image);
    for (const PackedModel& model : models)
      for (const PackedFile& file : model.files) {
        const std::string text(reinterpret_cast<const char*>(file.bytes.data()), file.bytes.size());
        EXPECT_EQ(contents.at(model.name + "/" + file.name), text) << "--gtest_random_seed=" << seed;
      }
  }
}

TEST(Extract, GivesBackTheFolders) {
  const TemporaryFolder from;
  const TemporaryFolder to;
  write_all(from, two_models());
  const auto image = pack({from.path()});
  const auto written = extract(inspect(image).image, image, to.file("new/folder"));
  ASSERT_TRUE(written) << written.error().message;
  EXPECT_EQ(written->size(), 5U);
  EXPECT_EQ(pack({to.file("new/folder")}), image);
}

TEST(Extract, OverwritesNothingAndFollowsNoLinks) {
  const TemporaryFolder from;
  const TemporaryFolder to;
  const TemporaryFolder outside;
  write_all(from, two_models());
  const auto image = pack({from.path()});
  std::filesystem::create_directory_symlink(outside.path(), to.file("wn9_b"));
  const auto refused = extract(inspect(image).image, image, to.path());
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("is there already"));
  EXPECT_EQ(outside.entries(), 0);
  EXPECT_EQ(to.entries(), 1);
}

}  // namespace
}  // namespace bantam::partition
