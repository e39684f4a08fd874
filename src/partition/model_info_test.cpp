// Texts as ESP-SR's models carry them, and texts that nobody could read.
#include "partition/model_info.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bantam::partition {
namespace {

using ::testing::HasSubstr;

TEST(ModelInfo, OfOneWordIsParsed) {
  const auto info = parse_model_info("wakenet9_v1h24_hilexin_3_0.608_0.615");
  ASSERT_TRUE(info) << info.error().message;
  EXPECT_EQ(info->type, "wakenet9");
  EXPECT_EQ(info->version, "v1h24");
  ASSERT_EQ(info->labels.size(), 1U);
  EXPECT_EQ(info->labels[0].word, "hilexin");
  EXPECT_EQ(info->labels[0].window, 3);
  EXPECT_DOUBLE_EQ(info->labels[0].threshold_90, 0.608);
  EXPECT_DOUBLE_EQ(info->labels[0].threshold_95, 0.615);
}

TEST(ModelInfo, OfSeveralWordsIsParsed) {
  const auto info = parse_model_info("WakeNet5_v3_hi jeson_5_0.4_0.5_\xe4\xbd\xa0\xe5\xa5\xbd_6_0.7_0.8\r\n");
  ASSERT_TRUE(info) << info.error().message;
  ASSERT_EQ(info->labels.size(), 2U);
  EXPECT_EQ(info->labels[0].word, "hi jeson");
  EXPECT_EQ(info->labels[1].word, "\xe4\xbd\xa0\xe5\xa5\xbd");
  EXPECT_EQ(info->labels[1].window, 6);
}

TEST(ModelInfo, CommentsAreSkipped) {
  const auto info = parse_model_info("# (type)_(version)_(word_...)\n#\nnsnet2_v1_ns_0_0.0_0.0\n");
  ASSERT_TRUE(info) << info.error().message;
  EXPECT_EQ(info->type, "nsnet2");
}

TEST(ModelInfo, WithoutWordsIsParsed) {
  const auto info = parse_model_info("tokens_v2");
  ASSERT_TRUE(info);
  EXPECT_TRUE(info->labels.empty());
}

TEST(ModelInfo, WhatCannotBeReadIsRefused) {
  const auto refused = [](std::string_view text) {
    const auto info = parse_model_info(text);
    return info ? std::string("parsed") : info.error().message;
  };
  for (const char* text : {"", "\n\n", "# only a comment", "#", "#\n"})
    EXPECT_THAT(refused(text), HasSubstr("no line that is not a comment")) << text;
  EXPECT_THAT(refused(std::string(kMaxModelInfoBytes + 1, '#')), HasSubstr("has more than 4096 bytes"));
  EXPECT_THAT(refused("wakenet9"), HasSubstr("has 1 parts"));
  EXPECT_THAT(refused("wakenet9_v1_word_3_0.6"), HasSubstr("has 5 parts"));
  EXPECT_THAT(refused("wakenet9_v1_word_x_0.6_0.7"), HasSubstr("the window of 'word' is 'x'"));
  EXPECT_THAT(refused("wakenet9_v1_word_3_0.6x_0.7"), HasSubstr("first threshold"));
  EXPECT_THAT(refused("wakenet9_v1_word_3_0.6_"), HasSubstr("parts"));
  EXPECT_THAT(refused("wakenet9_v1\nwakenet9_v2"), HasSubstr("more than one line"));
  EXPECT_THAT(refused(std::string_view("wakenet9\0_v1", 12)), HasSubstr("control character \\x00"));
}

}  // namespace
}  // namespace bantam::partition
