// Tables that are a line, rounded and limited, as those are that change a scale: vectors of such bytes can be computed
// instead of looked up. Whether a table is one is found out from its entries, once, when it is packed. Freestanding.
#pragma once

#include <cstdint>

namespace bantam::ops {

/// y = min(floor((floor(slope * x / 256) + offset) / 256), maximum), with x counted from where y begins to rise, and
/// 8 bits of fraction. Bytes count as unsigned after their flips, which make signed ones so.
struct Line {
  static constexpr int kOne = 65536;
  static constexpr int kSlopes = 3;

  std::uint8_t x_flip = 0;
  std::uint8_t y_flip = 0;
  std::uint8_t origin = 0;   ///< the last x of the least y
  std::uint8_t maximum = 0;  ///< of y
  int slope = -1;            ///< y per x times kOne, below kSlopes * kOne; negative where there is no line
  int offset = 0;            ///< in [0, 65535]

  bool exists() const noexcept { return slope >= 0; }
};

/// The line that gives all 256 entries of a table, indexed by bit patterns of x, to the bit; none if it is not found.
Line find_line(const std::uint8_t* table, std::uint8_t x_flip, std::uint8_t y_flip) noexcept;

}  // namespace bantam::ops
