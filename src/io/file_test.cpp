#include "io/file.h"

#include <sys/stat.h>

#include <filesystem>

#include "gmock/gmock.h"
#include "io/testing/temporary_folder.h"

namespace bantam::io {
namespace {

using ::testing::HasSubstr;
using testing::TemporaryFolder;

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(WriteFile, WhatIsWrittenIsReadAndMapped) {
  const TemporaryFolder folder;
  const std::string path = folder.file("a b,c.txt");
  ASSERT_TRUE(write_file(path, std::string_view("hello")).has_value());
  EXPECT_EQ(text_of(*read_file(path)), "hello");
  EXPECT_EQ(text_of(MappedFile::open(path)->bytes()), "hello");
  EXPECT_EQ(folder.entries(), 1);
}

TEST(WriteFile, ReplacesAsAWhole) {
  const TemporaryFolder folder;
  const std::string path = folder.file("x");
  ASSERT_TRUE(write_file(path, std::string_view("a long first content")).has_value());
  const auto before = MappedFile::open(path);
  ASSERT_TRUE(write_file(path, std::string_view("new")).has_value());
  EXPECT_EQ(text_of(*read_file(path)), "new");
  EXPECT_EQ(text_of(before->bytes()), "a long first content");
}

TEST(WriteFile, KeepsASymbolicLink) {
  const TemporaryFolder folder;
  ASSERT_TRUE(write_file(folder.file("target"), std::string_view("old")).has_value());
  std::filesystem::create_symlink("target", folder.file("link"));
  ASSERT_TRUE(write_file(folder.file("link"), std::string_view("new")).has_value());
  EXPECT_TRUE(std::filesystem::is_symlink(folder.file("link")));
  EXPECT_EQ(text_of(*read_file(folder.file("target"))), "new");
}

TEST(WriteFile, FailureLeavesNothingBehind) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder.file("taken"));
  const auto onto_folder = write_file(folder.file("taken"), std::string_view("x"));
  ASSERT_FALSE(onto_folder.has_value());
  EXPECT_THAT(onto_folder.error().message, HasSubstr("taken"));
  const auto no_folder = write_file(folder.file("none/x"), std::string_view("x"));
  ASSERT_FALSE(no_folder.has_value());
  EXPECT_EQ(no_folder.error().code, StatusCode::kNotFound);
  EXPECT_EQ(folder.entries(), 1);
}

TEST(WriteFile, FullDeviceIsAnError) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  EXPECT_FALSE(write_file("/dev/full", std::string_view("x")).has_value());
}

TEST(ReadFile, NamesWhatIsMissing) {
  const auto result = read_file("/no/such/file");
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code, StatusCode::kNotFound);
  EXPECT_THAT(result.error().message, HasSubstr("/no/such/file"));
  EXPECT_FALSE(result.error().remedy.empty());
}

TEST(ReadFile, RefusesFolders) {
  const TemporaryFolder folder;
  EXPECT_FALSE(read_file(folder.path()).has_value());
  EXPECT_FALSE(MappedFile::open(folder.path()).has_value());
}

TEST(ReadFile, StopsAtTheLimit) {
  const TemporaryFolder folder;
  const std::string path = folder.file("x");
  ASSERT_TRUE(write_file(path, std::string_view("12345")).has_value());
  EXPECT_TRUE(read_file(path, 5).has_value());
  EXPECT_FALSE(read_file(path, 4).has_value());
  EXPECT_FALSE(read_file("/dev/zero", 1 << 20).has_value());
}

TEST(ReadFile, ReadsStreamsOfUnknownSize) { EXPECT_FALSE(read_file("/proc/self/status")->empty()); }

TEST(MappedFile, EmptyFileHasNoBytes) {
  const TemporaryFolder folder;
  const std::string path = folder.file("empty");
  ASSERT_TRUE(write_file(path, std::string_view()).has_value());
  EXPECT_TRUE(MappedFile::open(path)->bytes().empty());
  EXPECT_TRUE(read_file(path)->empty());
}

TEST(MappedFile, RefusesDevicesAndPipesWithoutWaiting) {
  const TemporaryFolder folder;
  ASSERT_EQ(::mkfifo(folder.file("pipe").c_str(), 0600), 0);
  EXPECT_FALSE(MappedFile::open(folder.file("pipe")).has_value());
  EXPECT_FALSE(MappedFile::open("/dev/null").has_value());
}

TEST(MappedFile, MovesWithItsBytes) {
  const TemporaryFolder folder;
  const std::string path = folder.file("x");
  ASSERT_TRUE(write_file(path, std::string_view("abc")).has_value());
  auto first = MappedFile::open(path);
  const std::byte* address = first->bytes().data();
  MappedFile second(std::move(*first));
  MappedFile third;
  third = std::move(second);
  EXPECT_EQ(third.bytes().data(), address);
  EXPECT_EQ(text_of(third.bytes()), "abc");
}

}  // namespace
}  // namespace bantam::io
