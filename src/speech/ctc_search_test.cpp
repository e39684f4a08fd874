#include "speech/ctc_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <vector>

namespace bantam::speech {
namespace {

using ::testing::ElementsAre;
using Tokens = std::vector<std::int32_t>;

struct alignas(dsp::Block::kAlignment) Unit {
  std::byte bytes[dsp::Block::kAlignment];
};

struct Placed {
  explicit Placed(const SearchConfig& config)
      : memory((CtcSearch::bytes(config) + sizeof(Unit) - 1) / sizeof(Unit)),
        status(search.place(config, {memory.front().bytes, CtcSearch::bytes(config)})) {}

  Tokens tokens(std::size_t i) const { return {search.tokens(i).begin(), search.tokens(i).end()}; }
  Tokens frames(std::size_t i) const { return {search.frames(i).begin(), search.frames(i).end()}; }

  std::vector<Unit> memory;
  CtcSearch search;
  Status status;
};

/// Log-probabilities of one frame from probabilities.
std::vector<float> logs(std::vector<float> probabilities) {
  for (float& p : probabilities) p = std::log(p);
  return probabilities;
}

/// Sums the probabilities of all alignments by what they spell.
std::map<Tokens, double> all_alignments(const std::vector<std::vector<float>>& frames) {
  const std::size_t vocabulary = frames.front().size();
  std::map<Tokens, double> sums;
  std::vector<std::size_t> path(frames.size(), 0);
  for (bool more = true; more;) {
    Tokens spelled;
    double log_probability = 0;
    for (std::size_t t = 0; t < path.size(); ++t) {
      log_probability += static_cast<double>(frames[t][path[t]]);
      if (path[t] != 0 && (t == 0 || path[t - 1] != path[t])) spelled.push_back(static_cast<std::int32_t>(path[t]));
    }
    sums[spelled] += std::exp(log_probability);
    more = false;
    for (std::size_t& step : path) {
      if (++step < vocabulary) {
        more = true;
        break;
      }
      step = 0;
    }
  }
  return sums;
}

TEST(CtcSearch, SumsAllAlignmentsWhenTheBeamHoldsEveryPrefix) {
  std::mt19937 random(11);
  std::uniform_real_distribution<float> uniform(0.05F, 1.0F);
  for (int round = 0; round < 20; ++round) {
    SCOPED_TRACE(round);
    std::vector<std::vector<float>> frames;
    for (int t = 0; t < 4; ++t) frames.push_back(logs({uniform(random), uniform(random), uniform(random)}));
    Placed placed({.beam = 32, .max_tokens = 8});
    ASSERT_TRUE(placed.status.ok());
    for (const auto& frame : frames) placed.search.step(frame);
    const auto expected = all_alignments(frames);
    ASSERT_EQ(placed.search.size(), expected.size());
    for (std::size_t i = 0; i < placed.search.size(); ++i) {
      const auto sum = expected.find(placed.tokens(i));
      ASSERT_NE(sum, expected.end());
      EXPECT_NEAR(static_cast<double>(placed.search.score(i)), std::log(sum->second), 1e-5);
      EXPECT_LE(placed.search.score(i), placed.search.score(i > 0 ? i - 1 : 0));
    }
  }
}

TEST(CtcSearch, KeepsNoMoreThanTheBeam) {
  Placed placed({.beam = 2, .max_tokens = 8});
  for (int t = 0; t < 5; ++t) placed.search.step(logs({0.4F, 0.3F, 0.2F, 0.1F}));
  EXPECT_EQ(placed.search.size(), 2U);
}

TEST(CtcSearch, OfEqualTokensTheLowerIsKept) {
  Placed placed({.beam = 2, .max_tokens = 8});
  placed.search.step(logs({0.1F, 0.3F, 0.3F, 0.3F}));
  EXPECT_THAT(placed.tokens(0), ElementsAre(1));
  EXPECT_THAT(placed.tokens(1), ElementsAre(2));
}

TEST(CtcSearch, TellsTheFramesOfTheBestAlignment) {
  Placed placed({.beam = 4, .max_tokens = 8});
  const auto blank = logs({0.9F, 0.05F, 0.05F});
  const auto one = logs({0.05F, 0.9F, 0.05F});
  const auto two = logs({0.05F, 0.05F, 0.9F});
  // A repeated token is one that lasts, a blank between makes it two.
  for (const auto& frame : {blank, one, one, blank, one, two, blank}) placed.search.step(frame);
  EXPECT_THAT(placed.tokens(0), ElementsAre(1, 1, 2));
  EXPECT_THAT(placed.frames(0), ElementsAre(2, 4, 5));
  EXPECT_EQ(placed.search.frame_count(), 7);
}

TEST(CtcSearch, AFullPrefixDoesNotGrow) {
  Placed placed({.beam = 4, .max_tokens = 2});
  EXPECT_EQ(placed.search.room(), 2U);
  for (int t = 0; t < 8; ++t) placed.search.step(t % 2 == 0 ? logs({0.1F, 0.9F}) : logs({0.9F, 0.1F}));
  EXPECT_EQ(placed.search.room(), 0U);
  for (std::size_t i = 0; i < placed.search.size(); ++i) EXPECT_LE(placed.tokens(i).size(), 2U);
}

TEST(CtcSearch, ResetForgetsEverything) {
  Placed used({.beam = 3, .max_tokens = 8});
  Placed fresh({.beam = 3, .max_tokens = 8});
  used.search.step(logs({0.1F, 0.9F}));
  used.search.reset();
  for (Placed* placed : {&used, &fresh}) placed->search.step(logs({0.2F, 0.8F}));
  EXPECT_EQ(used.search.size(), fresh.search.size());
  EXPECT_EQ(used.frames(0), fresh.frames(0));
  EXPECT_EQ(used.search.score(0), fresh.search.score(0));
}

TEST(CtcSearch, SurvivesWhatNoModelShouldGive) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::mt19937 random(5);
  const float values[] = {kNan, kInfinity, -kInfinity, kLogZero, -kLogZero, 0.0F, -1.0F, 1e30F, -1e30F};
  Placed placed({.beam = 5, .max_tokens = 6});
  for (int t = 0; t < 2000; ++t) {
    std::vector<float> frame(7);
    for (float& v : frame) v = values[random() % std::size(values)];
    placed.search.step(frame);
    ASSERT_GE(placed.search.size(), 1U);
    for (std::size_t i = 0; i < placed.search.size(); ++i)
      for (const std::int32_t frame_index : placed.search.frames(i)) ASSERT_LE(frame_index, t);
  }
  placed.search.step(std::vector<float>(7, kNan));
  EXPECT_GE(placed.search.size(), 1U);
}

TEST(CtcSearch, NeedsExactlyTheBytesItNames) {
  const SearchConfig config{.beam = 10, .max_tokens = 100};
  const std::size_t bytes = CtcSearch::bytes(config);
  std::vector<Unit> memory(bytes / sizeof(Unit) + 1);
  CtcSearch search;
  const Status status = search.place(config, {memory.front().bytes, bytes - 1});
  EXPECT_EQ(status.code, StatusCode::kArenaTooSmall);
  EXPECT_EQ(status.expected, static_cast<std::int64_t>(bytes));
  EXPECT_TRUE(search.place(config, {memory.front().bytes, bytes}).ok());
}

TEST(CtcSearch, RefusesBeamsOutOfRange) {
  for (const int beam : {-1, 0, kMaxBeam + 1}) {
    EXPECT_EQ(CtcSearch::bytes({.beam = beam}), 0U);
    EXPECT_EQ(CtcSearch().place({.beam = beam}, {}).code, StatusCode::kUnsupported);
  }
}

TEST(LogAdd, LeavesOutImpossibleArguments) {
  EXPECT_EQ(log_add(kLogZero, -3.0F), -3.0F);
  EXPECT_EQ(log_add(-3.0F, kLogZero), -3.0F);
  EXPECT_EQ(log_add(kLogZero, kLogZero), kLogZero);
  EXPECT_NEAR(log_add(std::log(0.25F), std::log(0.5F)), std::log(0.75F), 1e-6);
}

}  // namespace
}  // namespace bantam::speech
