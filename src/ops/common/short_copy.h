// Copies of few bytes, whose number is not known while compiling: without a call or a loop over single bytes.
// Freestanding.
#pragma once

#include <cstdint>
#include <cstring>

namespace bantam::ops {

/// The first and the last kBytes of `bytes`, which may overlap: all, where these are kBytes to 2 * kBytes.
template <int kBytes>
inline void copy_ends(const std::uint8_t* from, std::int64_t bytes, std::uint8_t* to) noexcept {
  std::uint8_t first[kBytes];
  std::uint8_t last[kBytes];
  std::memcpy(first, from, kBytes);
  std::memcpy(last, from + bytes - kBytes, kBytes);
  std::memcpy(to, first, kBytes);
  std::memcpy(to + bytes - kBytes, last, kBytes);
}

/// memcpy, best where `bytes` is less than some hundreds. Memory does not overlap.
inline void copy_short(const std::uint8_t* from, std::int64_t bytes, std::uint8_t* to) noexcept {
  if (bytes >= 16) {
    for (; bytes > 32; bytes -= 16, from += 16, to += 16) std::memcpy(to, from, 16);
    copy_ends<16>(from, bytes, to);
  } else if (bytes >= 8) {
    copy_ends<8>(from, bytes, to);
  } else if (bytes >= 4) {
    copy_ends<4>(from, bytes, to);
  } else if (bytes >= 2) {
    copy_ends<2>(from, bytes, to);
  } else if (bytes == 1) {
    *to = *from;
  }
}

}  // namespace bantam::ops
