// Does an image fit the partition that a table gives it, and would the loader find it there?
//
// The loader looks for a partition of type data and of the given name, whatever its subtype. Pure function.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "partition/finding.h"
#include "partition/flash_table.h"
#include "partition/image.h"

namespace bantam::partition {

struct Fit {
  std::uint64_t needed_bytes = 0;     ///< exactly what the models need
  std::uint64_t sector_bytes = 0;     ///< the same in whole flash sectors
  std::uint64_t partition_bytes = 0;  ///< 0: there is no such partition
  std::uint64_t offset = 0;           ///< of the partition in flash, when the table tells
  std::string row;                    ///< the line of partitions.csv that fits
};

/// What the image needs, without a table.
Fit need_of(const Image& image, std::string_view partition);

/// The same, compared with the table; what is wrong goes to `findings`. Of an image that is damaged (`intact` is false)
/// nobody knows the size: then only name, type and subtype are compared.
Fit check_fit(const Image& image, bool intact, const FlashTable& table, std::string_view partition, Findings& findings);

}  // namespace bantam::partition
