// A partitions.csv of ESP-IDF: name, type, subtype, offset, size, flags.
//
// Read as ESP-IDF's own gen_esp32part.py does: # begins a comment line; numbers are decimal, 0x, 0o or 0b with K or M
// behind them; an empty offset follows the row before, aligned for its type (app 64 KiB, else 4 KiB); a negative size
// reaches up to that address; an empty subtype of a data row is "undefined". All findings come in one pass. Pure
// function on untrusted text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "partition/finding.h"

namespace bantam::partition {

inline constexpr std::int64_t kMaxTableTextBytes = std::int64_t{1} << 20;

/// Where flash keeps the table itself unless a project says otherwise; partitions begin behind its one sector.
inline constexpr std::uint32_t kDefaultTableOffset = 0x8000;

inline constexpr std::uint32_t kAppType = 0;
inline constexpr std::uint32_t kDataType = 1;

struct FlashRow {
  std::string name;
  std::uint32_t type = 0;
  std::uint32_t subtype = 0;
  std::string type_text;     ///< as the row has it
  std::string subtype_text;  ///< as the row has it; may be empty
  std::string offset_text;   ///< as the row has it; may be empty
  std::string flags_text;    ///< as the row has it; may be empty
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  int line = 0;  ///< from 1
};

struct FlashTable {
  std::vector<FlashRow> rows;  ///< rows with faults are left out
  /// False when a fault leaves open where rows lie; their sizes hold all the same.
  bool placed = true;
};

FlashTable parse_flash_table(std::string_view text, Findings& findings,
                             std::uint32_t table_offset = kDefaultTableOffset);

/// The name of a data subtype when ESP-IDF itself writes to such partitions, else null.
const char* owned_data_subtype(std::uint32_t subtype) noexcept;

}  // namespace bantam::partition
