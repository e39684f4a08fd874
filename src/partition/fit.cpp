#include "partition/fit.h"

#include <fmt/format.h>

#include <algorithm>

namespace bantam::partition {
namespace {

std::string format_row(std::string_view name, const std::string& type, const std::string& subtype,
                       const std::string& offset, std::uint64_t bytes, const std::string& flags) {
  return fmt::format("{}, {}, {}, {}, {:#x}{}{}", name, type, subtype, offset, bytes, flags.empty() ? "" : ", ", flags);
}

std::string object_of(const FlashRow& row) { return fmt::format("line {} {}", row.line, quote(row.name)); }

/// The row that starts within the sectors that the image needs at the row's place, or null.
const FlashRow* in_the_way(const FlashTable& table, const FlashRow& row, std::uint64_t bytes) {
  if (!table.placed) return nullptr;
  const auto blocks = [&](const FlashRow& other) {
    return other.offset > row.offset && other.offset < row.offset + bytes && !other.offset_text.empty();
  };
  const auto found = std::ranges::find_if(table.rows, blocks);
  return found == table.rows.end() ? nullptr : &*found;
}

void report_missing(const FlashTable& table, std::string_view partition, const Fit& fit, Findings& findings) {
  constexpr std::size_t kNamesShown = 20;
  std::string names;
  for (std::size_t i = 0; i < std::min(table.rows.size(), kNamesShown); ++i)
    names += (names.empty() ? "" : ", ") + quote(table.rows[i].name);
  if (table.rows.size() > kNamesShown) names += ", ...";
  findings.error("the table", -1,
                 fmt::format("has no partition {}; it has {}", quote(partition), names.empty() ? "none" : names),
                 "add the line: " + fit.row);
}

void check_kind(const FlashRow& row, const Fit& fit, Findings& findings) {
  if (row.type != kDataType)
    findings.error(object_of(row), -1,
                   fmt::format("is of type {}, but the loader looks for type data", quote(row.type_text)),
                   "write the line: " + fit.row);
  else if (const char* owner = owned_data_subtype(row.subtype); owner != nullptr)
    findings.error(object_of(row), -1,
                   fmt::format("has the subtype {}: the system writes to such partitions itself", owner),
                   "write spiffs or leave the subtype empty");
}

void check_size(const Image& image, const FlashTable& table, const FlashRow& row, const Fit& fit, Findings& findings) {
  if (row.size < fit.needed_bytes) {
    std::string remedy = "write the line: " + fit.row;
    if (const FlashRow* next = in_the_way(table, row, fit.sector_bytes); next != nullptr)
      remedy += fmt::format(", and move {} behind it", object_of(*next));
    findings.error(object_of(row), -1,
                   fmt::format("has {} bytes, but the models need {}: {} bytes too few", row.size, fit.needed_bytes,
                               fit.needed_bytes - row.size),
                   remedy);
  } else if (row.size < image.file_bytes) {
    findings.error(
        object_of(row), -1,
        fmt::format("has {} bytes; the models need {}, but the file has {}: writing all of it would run into "
                    "what follows in flash",
                    row.size, fit.needed_bytes, image.file_bytes),
        fmt::format("cut the file to {} bytes", fit.needed_bytes));
  }
}

}  // namespace

Fit need_of(const Image& image, std::string_view partition) {
  Fit fit{image.used_bytes, to_sectors(image.used_bytes), 0, 0, {}};
  fit.row = format_row(partition, "data", "spiffs", "", fit.sector_bytes, "");
  return fit;
}

Fit check_fit(const Image& image, bool intact, const FlashTable& table, std::string_view partition,
              Findings& findings) {
  Fit fit = need_of(image, partition);
  const auto row = std::ranges::find(table.rows, partition, &FlashRow::name);
  if (row == table.rows.end()) {
    report_missing(table, partition, fit, findings);
    return fit;
  }
  fit.partition_bytes = row->size;
  fit.offset = row->offset;
  const bool usable = row->type == kDataType && owned_data_subtype(row->subtype) == nullptr;
  fit.row = format_row(row->name, "data", usable ? row->subtype_text : "spiffs", row->offset_text, fit.sector_bytes,
                       row->flags_text);
  check_kind(*row, fit, findings);
  if (intact) check_size(image, table, *row, fit, findings);
  return fit;
}

}  // namespace bantam::partition
