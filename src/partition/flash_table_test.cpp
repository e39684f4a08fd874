// Tables as ESP-IDF reads them, faults in them, and images compared with them.
#include "partition/flash_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "partition/fit.h"

namespace bantam::partition {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Parsed {
  FlashTable table;
  Findings findings;
  std::string text(Severity severity) const {
    std::string all;
    for (const Finding& f : findings.list())
      if (f.severity == severity) all += describe(f) + "\n";
    return all;
  }
};

Parsed parse(std::string_view text, std::uint32_t table_offset = kDefaultTableOffset) {
  Parsed result;
  result.table = parse_flash_table(text, result.findings, table_offset);
  return result;
}

std::string table_errors(std::string_view text) { return parse(text).text(Severity::kError); }

TEST(FlashTable, OfAProjectIsPlacedAsEspIdfPlacesIt) {
  const Parsed parsed = parse(
      "\xef\xbb\xbf# Name,   Type, SubType, Offset,  Size, Flags\r\n"
      "\r\n"
      "nvs,      data, nvs,     0x9000,  0x6000,\r\n"
      "phy_init, data, phy,     ,        4K,\r\n"
      "factory,  app,  factory, ,        0x10K, encrypted\n"
      "model,    DATA, spiffs,  ,        7900k,\n"
      "rest,     0x40, 7,       ,        -16M, encrypted:readonly\n"
      "last,     data, ,        0x1000000, 1m");
  EXPECT_THAT(parsed.text(Severity::kError), IsEmpty());
  ASSERT_EQ(parsed.table.rows.size(), 6U);
  const auto& rows = parsed.table.rows;
  EXPECT_EQ(rows[1].offset, 0xf000U);
  EXPECT_EQ(rows[1].size, 4096U);
  EXPECT_EQ(rows[2].offset, 0x10000U);
  EXPECT_EQ(rows[2].size, 0x4000U);
  EXPECT_EQ(rows[3].offset, 0x14000U);
  EXPECT_EQ(rows[3].type, kDataType);
  EXPECT_EQ(rows[3].size, 7900U * 1024);
  EXPECT_EQ(rows[4].type, 0x40U);
  EXPECT_EQ(rows[4].offset + rows[4].size, 16U << 20);
  EXPECT_EQ(rows[5].subtype, 6U) << "an empty data subtype is `undefined`";
  EXPECT_EQ(rows[5].line, 8);
}

TEST(FlashTable, AppsAreAlignedTo64KiBAndDataTo4KiB) {
  const Parsed parsed = parse("a, data, nvs, , 100\nb, data, nvs, , 4K\nc, app, ota_0, , 64K\n");
  EXPECT_THAT(parsed.text(Severity::kError), IsEmpty());
  EXPECT_THAT(parsed.text(Severity::kWarning), HasSubstr("100 bytes, which is no multiple"));
  EXPECT_EQ(parsed.table.rows[1].offset, 0xa000U);
  EXPECT_EQ(parsed.table.rows[2].offset, 0x10000U);
  EXPECT_THAT(table_errors("c, app, ota_0, 0x11000, 64K"), HasSubstr("expected a multiple of 0x10000"));
  EXPECT_THAT(table_errors("c, data, nvs, 0x11100, 4K"), HasSubstr("expected a multiple of 0x1000"));
}

TEST(FlashTable, OverlapsAreFound) {
  EXPECT_THAT(table_errors("a, data, nvs, 0x8000, 4K"), HasSubstr("the partition table ends at 0x9000"));
  EXPECT_THAT(table_errors("a, data, nvs, 0x9000, 8K\nb, data, nvs, 0xa000, 4K"),
              AllOf(HasSubstr("line 2 'b': begins at 0xa000"), HasSubstr("line 1 'a' ends at 0xb000")));
  EXPECT_EQ(parse("a, data, nvs, , 4K", 0x10000).table.rows.at(0).offset, 0x11000U);
}

TEST(FlashTable, FaultsOfAllLinesAreReportedAtOnce) {
  const std::string errors = table_errors(
      "a_name_that_is_too_long, data, nvs, , 4K\n"
      "b, dota, nvs, , 4K\n"
      "c, data, nvx, , 4K\n"
      "d, data, nvs, 4 parsecs, 4K\n"
      "e, data, nvs, ,\n"
      "f, data, nvs, , 010\n"
      "g, app, , , 64K\n"
      "h, data, nvs, , 4K, secret\n"
      "i, data, nvs, , $SIZE\n"
      ", data, nvs, , 4K\n"
      "j\n"
      "k, data, nvs, , 4K\n"
      "k, data, nvs, , 4K\n");
  for (const char* expected :
       {"line 1 'a_name_that_is_too_long': has a name of 23 bytes", "line 2 'b': the type is 'dota'",
        "line 3 'c': the subtype is 'nvx'", "line 4 'd': the offset is '4 parsecs'", "line 5 'e': has no size",
        "line 6 'f': the size is '010'", "line 7 'g': has no subtype", "line 8 'h': has the unknown flag 'secret'",
        "line 9 'i': holds a '$'", "line 10 '': has no name", "line 11 'j': has no type",
        "line 13 'k': has the name of line 12"})
    EXPECT_THAT(errors, HasSubstr(expected));
}

TEST(FlashTable, NumbersAreBounded) {
  for (const char* size :
       {"0", "5000000K", "0x100000001", "99999999999999999999", "--4", "-0x", "0x", "K", "1.5M", "1e3"})
    EXPECT_NE(table_errors(std::string("a, data, nvs, , ") + size), "") << size;
  for (const char* offset : {"-4096", "0x100000000"})
    EXPECT_NE(table_errors(std::string("a, data, nvs, ") + offset + ", 4K"), "") << offset;
  EXPECT_NE(table_errors("a, data, 300, , 4K"), "");
  EXPECT_THAT(table_errors("a, data, nvs, 0xfffff000, 8K"), HasSubstr("beyond 32-bit addresses"));
  EXPECT_THAT(table_errors("a, data, nvs, , -4K"), HasSubstr("reaches up to 0x1000, but begins at 0x9000"));
}

TEST(FlashTable, RowsOfTheSystemAreSkipped) {
  const Parsed parsed =
      parse("boot, bootloader, primary, , \ntable, partition_table, primary, N/A, 4K\na, data, nvs, , 4K\n");
  EXPECT_THAT(parsed.text(Severity::kError), IsEmpty());
  ASSERT_EQ(parsed.table.rows.size(), 1U);
  EXPECT_EQ(parsed.table.rows[0].offset, 0x9000U);
}

TEST(FlashTable, WithoutRowsIsAnError) {
  EXPECT_THAT(table_errors(""), HasSubstr("has no rows"));
  EXPECT_THAT(table_errors("# nothing\n\n"), HasSubstr("has no rows"));
}

TEST(FlashTable, WithMoreRowsThanTheBinaryTableHoldsIsAnError) {
  std::string text;
  for (int i = 0; i < 94; ++i) text += "p" + std::to_string(i) + ", data, nvs, , 4K\n";
  EXPECT_EQ(table_errors(text), "");
  EXPECT_THAT(table_errors(text + "more, data, nvs, , 4K"), HasSubstr("has 95 rows, at most 94 fit"));
}

/// Of an image that needs `bytes`, compared with a table.
struct Compared {
  Fit fit;
  Parsed parsed;
};

Compared compare(std::uint64_t bytes, std::string_view text, bool intact = true) {
  Compared result{{}, parse(text)};
  EXPECT_THAT(result.parsed.text(Severity::kError), IsEmpty());
  const Image image{bytes, 4, bytes, {}};
  result.fit = check_fit(image, intact, result.parsed.table, "model", result.parsed.findings);
  return result;
}

TEST(Fit, IsExactToTheByte) {
  const Compared fits = compare(4096, "model, data, spiffs, , 4K");
  EXPECT_TRUE(fits.parsed.findings.ok());
  EXPECT_EQ(fits.fit.partition_bytes, 4096U);
  const Compared small = compare(4097, "model, data, spiffs, , 4K");
  EXPECT_THAT(small.parsed.text(Severity::kError),
              AllOf(HasSubstr("has 4096 bytes, but the models need 4097"), HasSubstr("1 bytes too few")));
  EXPECT_EQ(small.fit.sector_bytes, 8192U);
  EXPECT_EQ(small.fit.row, "model, data, spiffs, , 0x2000");
}

TEST(Fit, OfASmallPartitionSaysWhatIsInTheWay) {
  const Compared small =
      compare(100000, "model, data, , 0x10000, 64K, readonly\nstorage, data, fat, 0x20000, 1M\nmore, data, nvs, , 4K");
  EXPECT_EQ(small.fit.row, "model, data, , 0x10000, 0x19000, readonly");
  EXPECT_THAT(small.parsed.findings.list().at(0).remedy,
              AllOf(HasSubstr(small.fit.row), HasSubstr("move line 2 'storage' behind it")));
}

TEST(Fit, WithoutThePartitionNamesThoseThatAreThere) {
  const Compared missing = compare(5000, "models, data, spiffs, , 1M\nnvs, data, nvs, , 4K");
  EXPECT_THAT(missing.parsed.text(Severity::kError),
              AllOf(HasSubstr("no partition 'model'"), HasSubstr("'models', 'nvs'")));
  EXPECT_EQ(missing.parsed.findings.list().at(0).remedy, "add the line: model, data, spiffs, , 0x2000");
  EXPECT_EQ(missing.fit.partition_bytes, 0U);
}

TEST(Fit, OfAPartitionOfAnotherKindIsRefused) {
  EXPECT_THAT(compare(5000, "model, app, ota_0, , 1M").parsed.text(Severity::kError), HasSubstr("is of type 'app'"));
  EXPECT_THAT(compare(5000, "model, data, nvs, , 1M").parsed.text(Severity::kError), HasSubstr("has the subtype nvs"));
  for (const char* subtype : {"", "spiffs", "undefined", "0x40"})
    EXPECT_TRUE(compare(5000, "model, data, " + std::string(subtype) + ", , 1M").parsed.findings.ok()) << subtype;
}

TEST(Fit, OfADamagedImageComparesNoSizes) {
  EXPECT_TRUE(compare(5000, "model, data, spiffs, , 4K", false).parsed.findings.ok());
}

TEST(Fit, OfAFileWithATailLargerThanThePartitionIsRefused) {
  Parsed parsed = parse("model, data, spiffs, , 8K");
  const Image image{9000, 4, 8000, {}};
  check_fit(image, true, parsed.table, "model", parsed.findings);
  EXPECT_THAT(parsed.text(Severity::kError), HasSubstr("the models need 8000, but the file has 9000"));
}

}  // namespace
}  // namespace bantam::partition
