// Partition tables: what is free of errors has places for all rows, none over another, and an image compared with it
// is told what it needs.
#include <algorithm>
#include <string>
#include <vector>

#include "partition/fit.h"
#include "support.h"
#include "targets.h"

namespace bantam::fuzz {

void fuzz_flash_table(std::span<const std::byte> bytes) {
  partition::Findings findings;
  const partition::FlashTable table = partition::parse_flash_table(text_of(bytes), findings);
  for (const partition::Finding& finding : findings.list())
    require(!finding.message.empty() && describe(finding).find('\n') == std::string::npos,
            "a finding is not one line of text");
  if (findings.ok()) {
    require(table.placed && !table.rows.empty(), "a table without errors has no places");
    std::vector<const partition::FlashRow*> rows;
    for (const partition::FlashRow& row : table.rows) rows.push_back(&row);
    std::ranges::sort(rows, {}, &partition::FlashRow::offset);
    std::uint64_t end = 0;
    for (const partition::FlashRow* row : rows) {
      require(row->offset >= end && row->size > 0, "two partitions overlap without an error");
      end = row->offset + row->size;
    }
  }
  constexpr std::uint64_t kNeeded = 100'000;
  const partition::Image image{kNeeded, 4, kNeeded, {}};
  for (const partition::FlashRow& row : table.rows) {
    partition::Findings of_fit;
    const partition::Fit fit = partition::check_fit(image, true, table, row.name, of_fit);
    require(!of_fit.ok() || fit.partition_bytes >= kNeeded, "a partition that is too small is accepted");
  }
}

}  // namespace bantam::fuzz
