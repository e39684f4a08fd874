#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "bantam/speech.h"

namespace bantam::speech {
namespace {

/// A list of units with its table.
struct PlacedUnits {
  explicit PlacedUnits(std::string list) : text(std::move(list)) {
    std::int32_t count = 0;
    status = Units::count(text, &count);
    if (!status.ok()) return;
    table.resize(static_cast<std::size_t>(count));
    status = Units::place(text, table, &units);
  }

  std::string join(const std::vector<std::int32_t>& tokens) const {
    std::string out(tokens.size() * units.longest(), '?');
    out.resize(units.join(tokens, out));
    return out;
  }

  std::string text;
  std::vector<Units::Unit> table;
  Units units;
  Status status;
};

constexpr const char* kList = "<blank> 0\n<unk> 1\n\xE2\x96\x81 2\na 3\nB 4\n\xE2\x96\x81the 5\n\xC3\xA4 6\n<eos> 8\n";

TEST(Units, ReadsSymbolsById) {
  const PlacedUnits placed(kList);
  ASSERT_TRUE(placed.status.ok()) << placed.status.message;
  EXPECT_EQ(placed.units.size(), 9U);
  EXPECT_EQ(placed.units.symbol(0), "<blank>");
  EXPECT_EQ(placed.units.symbol(3), "a");
  EXPECT_EQ(placed.units.symbol(7), "");
  EXPECT_EQ(placed.units.symbol(-1), "");
  EXPECT_EQ(placed.units.symbol(9), "");
  EXPECT_EQ(placed.units.longest(), 7U);
}

TEST(Units, JoinsWordsWithSingleSpaces) {
  const PlacedUnits placed(kList);
  EXPECT_EQ(placed.join({2, 3, 4, 2, 2, 6, 2}), "ab \xC3\xA4");
  EXPECT_EQ(placed.join({5, 5, 3, 1, 3}), "the theaa");
  EXPECT_EQ(placed.join({1, 2, 1}), "");
  EXPECT_EQ(placed.join({}), "");
  EXPECT_EQ(placed.join({3, 99, -5, 4}), "ab");
}

TEST(Units, CutsWhatDoesNotFit) {
  const PlacedUnits placed(kList);
  char out[4];
  EXPECT_EQ(placed.units.join(std::vector<std::int32_t>{5, 5}, out), 4U);
  EXPECT_EQ(std::string(out, 4), "the ");
}

TEST(Units, TakesOtherLineEndsAndGaps) {
  const PlacedUnits placed("\n<blank>\t0\r\n  \na   1  \r\n");
  ASSERT_TRUE(placed.status.ok()) << placed.status.message;
  EXPECT_EQ(placed.units.symbol(0), "<blank>");
  EXPECT_EQ(placed.units.symbol(1), "a");
}

TEST(Units, RefusesMalformedListsNamingTheLine) {
  for (const char* list : {"a 0\nb\n", "a 0\nb -1\n", "a 0\nb 1x\n", "a 0\nb 99999999999999999999\n", "a 0\nb 0\n",
                           "a 0\n 1\n", "a 0\nb 4000000000\n"}) {
    const PlacedUnits placed(list);
    EXPECT_FALSE(placed.status.ok()) << list;
    EXPECT_EQ(placed.status.index, 2) << list;
  }
}

}  // namespace
}  // namespace bantam::speech
