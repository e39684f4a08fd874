#include "partition/flash_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <span>
#include <utility>

namespace bantam::partition {
namespace {

constexpr std::size_t kNameLimit = 16;         // bytes of a label in the binary table
constexpr std::size_t kMaxRows = 94;           // that fit in the binary table with its checksum row
constexpr std::uint32_t kTableBytes = 0x1000;  // the flash that the table itself takes
constexpr std::uint64_t kAppAlignment = 0x10000;
constexpr std::uint64_t kDataAlignment = 0x1000;
constexpr std::int64_t kMaxAddress = 0xffffffff;
constexpr std::int64_t kMaxKind = 0xfe;  // of types and subtypes
constexpr std::uint32_t kUndefinedSubtype = 0x06;

struct Keyword {
  std::string_view name;
  std::uint32_t value;
};

constexpr Keyword kTypes[] = {{"app", kAppType}, {"data", kDataType}};

constexpr Keyword kAppSubtypes[] = {
    {"factory", 0x00}, {"ota_0", 0x10},  {"ota_1", 0x11},  {"ota_2", 0x12},  {"ota_3", 0x13},
    {"ota_4", 0x14},   {"ota_5", 0x15},  {"ota_6", 0x16},  {"ota_7", 0x17},  {"ota_8", 0x18},
    {"ota_9", 0x19},   {"ota_10", 0x1a}, {"ota_11", 0x1b}, {"ota_12", 0x1c}, {"ota_13", 0x1d},
    {"ota_14", 0x1e},  {"ota_15", 0x1f}, {"test", 0x20},   {"tee_0", 0x30},  {"tee_1", 0x31},
};

/// Those that ESP-IDF writes to stand first.
constexpr Keyword kDataSubtypes[] = {
    {"ota", 0x00},     {"phy", 0x01}, {"nvs", 0x02},    {"coredump", 0x03}, {"nvs_keys", 0x04}, {"efuse", 0x05},
    {"tee_ota", 0x90}, {"fat", 0x81}, {"spiffs", 0x82}, {"littlefs", 0x83}, {"esphttpd", 0x80}, {"undefined", 0x06},
};
constexpr std::size_t kOwnedDataSubtypes = 7;

/// Rows of these types describe what ESP-IDF itself puts in front of all partitions.
constexpr std::string_view kSystemTypes[] = {"bootloader", "partition_table"};

constexpr std::string_view kFlags[] = {"encrypted", "readonly"};

enum Field : std::size_t { kName, kType, kSubtype, kOffset, kSize, kFlagList, kFields };
using Fields = std::array<std::string_view, kFields>;

std::string_view trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\v\f";
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

bool iequals(std::string_view a, std::string_view lower) {
  return std::ranges::equal(a, lower, {}, [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
}

/// An integer as Python's int(text, 0) takes it, with K and M behind it.
std::optional<std::int64_t> parse_int(std::string_view text) {
  std::int64_t unit = 1;
  if (!text.empty()) {
    const char last = text.back();
    if (last == 'k' || last == 'K') unit = 1 << 10;
    if (last == 'm' || last == 'M') unit = 1 << 20;
    if (unit != 1) text = trim(text.substr(0, text.size() - 1));
  }
  bool negative = false;
  if (!text.empty() && (text.front() == '-' || text.front() == '+')) {
    negative = text.front() == '-';
    text.remove_prefix(1);
  }
  int base = 10;
  if (text.size() > 2 && text[0] == '0') {
    const char kind = text[1];
    base = kind == 'x' || kind == 'X' ? 16 : kind == 'o' || kind == 'O' ? 8 : kind == 'b' || kind == 'B' ? 2 : 10;
    if (base != 10) text.remove_prefix(2);
  }
  // A leading zero is no number in Python, unless all are.
  if (base == 10 && text.size() > 1 && text[0] == '0' && text.find_first_not_of('0') != std::string_view::npos)
    return std::nullopt;
  if (text.empty() || text.front() == '-') return std::nullopt;
  std::int64_t value = 0;
  const auto [stop, code] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (code != std::errc() || stop != text.data() + text.size() || value > kMaxAddress) return std::nullopt;
  return (negative ? -value : value) * unit;
}

std::string names_of(std::span<const Keyword> keywords) {
  std::string names;
  for (const Keyword& keyword : keywords) names += (names.empty() ? "" : ", ") + std::string(keyword.name);
  return names;
}

class TableReader {
 public:
  TableReader(Findings& findings, std::uint32_t table_offset)
      : findings_(findings), first_(std::uint64_t{table_offset} + kTableBytes) {}

  FlashTable run(std::string_view text) {
    constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
    if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
    for (int line = 1; !text.empty(); ++line) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      read_line(trim(text.substr(0, end)), line);
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    if (table_.rows.empty() && table_.placed)
      findings_.error("the table", -1, "has no rows", "expected rows such as: model, data, spiffs, , 1M");
    if (table_.rows.size() > kMaxRows)
      findings_.error("the table", -1, fmt::format("has {} rows, at most {} fit", table_.rows.size(), kMaxRows));
    check_names();
    if (table_.placed) place();
    return std::move(table_);
  }

 private:
  /// A row as read, before offsets and negative sizes are known.
  struct Extent {
    std::optional<std::int64_t> offset;
    std::int64_t size = 0;
  };

  static std::string object(int line, std::string_view name) { return fmt::format("line {} {}", line, quote(name)); }
  static std::string object(const FlashRow& row) { return object(row.line, row.name); }

  void read_line(std::string_view line, int number) {
    if (line.empty() || line.front() == '#') return;
    Fields fields;
    std::size_t count = 0;
    for (std::string_view rest = line;; ++count) {
      const std::size_t comma = rest.find(',');
      if (count < kFields) fields[count] = trim(rest.substr(0, comma));
      if (comma == std::string_view::npos) break;
      rest.remove_prefix(comma + 1);
    }
    const std::string row = object(number, fields[kName]);
    if (count >= kFields)
      findings_.warning(row, -1, fmt::format("has {} fields, those behind the sixth are not read", count + 1));
    if (line.find('$') != std::string_view::npos) {
      fault(row, "holds a '$': variables are not replaced here", "write the value itself");
      return;
    }
    if (std::ranges::any_of(kSystemTypes, [&](std::string_view type) { return iequals(fields[kType], type); })) {
      findings_.note(row, -1, fmt::format("is of type {}: not looked at", fields[kType]));
      return;
    }
    if (!read_row(row, fields, number)) table_.placed = false;
  }

  void fault(const std::string& row, std::string message, std::string remedy = {}) {
    findings_.error(row, -1, std::move(message), std::move(remedy));
    table_.placed = false;
  }

  /// False after a fault, which was reported; all fields are looked at.
  bool read_row(const std::string& object, const Fields& fields, int line) {
    FlashRow row{std::string(fields[kName]),
                 0,
                 0,
                 std::string(fields[kType]),
                 std::string(fields[kSubtype]),
                 std::string(fields[kOffset]),
                 std::string(fields[kFlagList]),
                 0,
                 0,
                 line};
    const std::size_t before = findings_.count(Severity::kError);
    if (row.name.empty()) findings_.error(object, -1, "has no name", "give the partition a name");
    if (row.name.size() > kNameLimit)
      findings_.error(object, -1, fmt::format("has a name of {} bytes, at most {} fit", row.name.size(), kNameLimit),
                      "shorten the name");
    if (const auto type = read_kind(object, "type", fields[kType], kTypes)) row.type = *type;
    read_subtype(object, fields[kSubtype], row);
    check_flags(object, fields[kFlagList]);
    const Extent extent = read_extent(object, fields);
    if (findings_.count(Severity::kError) != before) return false;
    row.size = extent.size > 0 ? static_cast<std::uint64_t>(extent.size) : 0;
    table_.rows.push_back(std::move(row));
    extents_.push_back(extent);
    return true;
  }

  Extent read_extent(const std::string& object, const Fields& fields) {
    Extent extent;
    if (!fields[kOffset].empty()) {
      extent.offset = parse_int(fields[kOffset]);
      if (!extent.offset || *extent.offset < 0 || *extent.offset > kMaxAddress)
        findings_.error(object, -1, fmt::format("the offset is {}, expected an address", quote(fields[kOffset])),
                        "write it like 0x10000, or leave it empty");
    }
    const auto size = parse_int(fields[kSize]);
    if (!size || *size == 0 || *size > kMaxAddress || *size < -kMaxAddress)
      findings_.error(object, -1,
                      fields[kSize].empty() ? std::string("has no size")
                                            : fmt::format("the size is {}, expected bytes", quote(fields[kSize])),
                      "write it like 0x10000, 512K or 1M");
    extent.size = size.value_or(0);
    return extent;
  }

  std::optional<std::uint32_t> read_kind(const std::string& object, const char* what, std::string_view text,
                                         std::span<const Keyword> keywords) {
    for (const Keyword& keyword : keywords)
      if (iequals(text, keyword.name)) return keyword.value;
    if (const auto number = parse_int(text); number && *number >= 0 && *number <= kMaxKind)
      return static_cast<std::uint32_t>(*number);
    findings_.error(object, -1,
                    text.empty() ? fmt::format("has no {}", what)
                                 : fmt::format("the {} is {}, which is neither known nor a number of 0 to {:#x}", what,
                                               quote(text), kMaxKind),
                    keywords.empty() ? std::string() : "known are " + names_of(keywords));
    return std::nullopt;
  }

  void read_subtype(const std::string& object, std::string_view text, FlashRow& row) {
    if (text.empty() && row.type != kAppType) {
      row.subtype = kUndefinedSubtype;
      return;
    }
    std::span<const Keyword> keywords;
    if (row.type == kAppType) keywords = kAppSubtypes;
    if (row.type == kDataType) keywords = kDataSubtypes;
    if (const auto subtype = read_kind(object, "subtype", text, keywords)) row.subtype = *subtype;
  }

  void check_flags(const std::string& object, std::string_view flags) {
    while (!flags.empty()) {
      const std::size_t end = std::min(flags.find(':'), flags.size());
      const std::string_view flag = trim(flags.substr(0, end));
      if (!flag.empty() && std::ranges::find(kFlags, flag) == std::end(kFlags))
        findings_.error(object, -1, fmt::format("has the unknown flag {}", quote(flag)),
                        "known are encrypted and readonly, with a colon between them");
      flags.remove_prefix(std::min(end + 1, flags.size()));
    }
  }

  void check_names() {
    std::map<std::string_view, int> lines;
    for (const FlashRow& row : table_.rows)
      if (const auto [first, added] = lines.try_emplace(row.name, row.line); !added)
        findings_.error(object(row), -1, fmt::format("has the name of line {}", first->second), "names must be unique");
  }

  void place() {
    std::uint64_t end = first_;
    std::string previous = fmt::format("the partition table ends at {:#x}", end);
    for (std::size_t i = 0; i < table_.rows.size(); ++i) {
      FlashRow& row = table_.rows[i];
      const std::uint64_t alignment = row.type == kAppType ? kAppAlignment : kDataAlignment;
      const std::int64_t size = extents_[i].size;
      row.offset = extents_[i].offset ? static_cast<std::uint64_t>(*extents_[i].offset)
                                      : (end + alignment - 1) / alignment * alignment;
      if (size < 0 && static_cast<std::uint64_t>(-size) <= row.offset) {
        findings_.error(object(row), -1, fmt::format("reaches up to {:#x}, but begins at {:#x}", -size, row.offset),
                        "move its end");
        continue;
      }
      row.size = size < 0 ? static_cast<std::uint64_t>(-size) - row.offset : static_cast<std::uint64_t>(size);
      check_row(row, alignment, end, previous);
      end = std::max(end, row.offset + row.size);
      previous = fmt::format("{} ends at {:#x}", object(row), end);
    }
  }

  void check_row(const FlashRow& row, std::uint64_t alignment, std::uint64_t end, const std::string& previous) {
    if (row.offset < end)
      findings_.error(object(row), -1, fmt::format("begins at {:#x}, but {}: they overlap", row.offset, previous),
                      "leave the offset empty or move it");
    if (row.offset % alignment != 0)
      findings_.error(object(row), -1,
                      fmt::format("begins at {:#x}, expected a multiple of {:#x}", row.offset, alignment),
                      "leave the offset empty or round it");
    if (row.size % kDataAlignment != 0)
      findings_.warning(object(row), -1,
                        fmt::format("has {} bytes, which is no multiple of the {} bytes that flash erases at once",
                                    row.size, kDataAlignment),
                        "round the size");
    if (row.offset + row.size > static_cast<std::uint64_t>(kMaxAddress))
      findings_.error(object(row), -1, fmt::format("ends at {:#x}, beyond 32-bit addresses", row.offset + row.size));
  }

  Findings& findings_;
  std::uint64_t first_;
  FlashTable table_;
  std::vector<Extent> extents_;
};

}  // namespace

FlashTable parse_flash_table(std::string_view text, Findings& findings, std::uint32_t table_offset) {
  return TableReader(findings, table_offset).run(text);
}

const char* owned_data_subtype(std::uint32_t subtype) noexcept {
  for (const Keyword& keyword : std::span(kDataSubtypes).first(kOwnedDataSubtypes))
    if (keyword.value == subtype) return keyword.name.data();
  return nullptr;
}

}  // namespace bantam::partition
