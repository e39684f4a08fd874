#include "speech/recognizer/error_rate.h"

#include <gtest/gtest.h>

#include "io/file.h"
#include "io/testing/temporary_folder.h"

namespace bantam::speech {
namespace {

std::size_t edits(std::string_view a, std::string_view b) { return count_errors(a, b).edits; }

TEST(ErrorRate, CountsInsertionsDeletionsAndReplacements) {
  EXPECT_EQ(edits("kitten", "sitting"), 3U);
  EXPECT_EQ(edits("", "abc"), 3U);
  EXPECT_EQ(edits("abc", ""), 3U);
  EXPECT_EQ(edits("abc", "abc"), 0U);
  EXPECT_EQ(count_errors("abc", "abcd").characters, 4U);
  EXPECT_DOUBLE_EQ(count_errors("abc", "abcd").rate(), 0.25);
  EXPECT_DOUBLE_EQ(count_errors("", "").rate(), 0.0);
  EXPECT_DOUBLE_EQ(count_errors("ab", "").rate(), 2.0);
}

TEST(ErrorRate, IgnoresCaseAndTheAmountOfWhiteSpace) {
  EXPECT_EQ(edits(" Turn  ON\tthe light\r\n", "turn on the light"), 0U);
  EXPECT_EQ(edits("turnon", "turn on"), 1U);
}

TEST(ErrorRate, ComparesCodePointsNotBytes) {
  EXPECT_EQ(edits("\xE4\xBD\xA0\xE5\xA5\xBD", "\xE4\xBD\xA0"), 1U);
  EXPECT_EQ(count_errors("", "\xE4\xBD\xA0\xE5\xA5\xBD").characters, 2U);
  EXPECT_EQ(edits("\xFF\xFE\x80", "\xFF\xFE\x80"), 0U);
}

TEST(References, ReadsKeysAndTranscripts) {
  const io::testing::TemporaryFolder folder;
  ASSERT_TRUE(io::write_file(folder.file("text"), "\none turn on\r\n  two\tstop \n three\n"));
  const auto read = read_references(folder.file("text"));
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_EQ(read->size(), 3U);
  EXPECT_EQ(edits(read->at("one"), "turn on"), 0U);
  EXPECT_EQ(edits(read->at("two"), "stop"), 0U);
  EXPECT_EQ(edits(read->at("three"), ""), 0U);
}

TEST(References, RefusesTwoTranscriptsOfOneSound) {
  const io::testing::TemporaryFolder folder;
  ASSERT_TRUE(io::write_file(folder.file("text"), "one a\none b\n"));
  const auto read = read_references(folder.file("text"));
  ASSERT_FALSE(read);
  EXPECT_NE(read.error().message.find("line 2"), std::string::npos) << read.error().message;
  EXPECT_FALSE(read_references(folder.file("absent")));
}

}  // namespace
}  // namespace bantam::speech
