// Copies of few bytes, whose number is not known while compiling: without a call or a loop over single bytes.
// Freestanding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

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

/// memcpy of at most kMost bytes, a multiple of kUnit: so the compiler sees that it touches no other memory.
template <std::int64_t kMost, std::int64_t kUnit>
inline void copy_at_most(const std::uint8_t* from, std::int64_t bytes, std::uint8_t* to) noexcept {
  if constexpr (kMost > 32)
    for (; bytes > 32; bytes -= 16, from += 16, to += 16) std::memcpy(to, from, 16);
  if constexpr (kMost >= 16)
    if (bytes >= 16) return copy_ends<16>(from, bytes, to);
  if constexpr (kMost >= 8)
    if (bytes >= 8) return copy_ends<8>(from, bytes, to);
  if constexpr (kUnit <= 4 && kMost >= 4)
    if (bytes >= 4) return copy_ends<4>(from, bytes, to);
  if constexpr (kUnit <= 2 && kMost >= 2)
    if (bytes >= 2) return copy_ends<2>(from, bytes, to);
  if constexpr (kUnit == 1)
    if (bytes == 1) *to = *from;
}

/// memcpy, best where `bytes` is less than some hundreds. Memory does not overlap.
inline void copy_short(const std::uint8_t* from, std::int64_t bytes, std::uint8_t* to) noexcept {
  copy_at_most<std::numeric_limits<std::int64_t>::max(), 1>(from, bytes, to);
}

/// The same of n <= kMost elements.
template <std::size_t kMost, typename T>
inline void copy_few(const T* from, std::size_t n, T* to) noexcept {
  static_assert(std::is_trivially_copyable_v<T>);
  copy_at_most<kMost * sizeof(T), sizeof(T)>(reinterpret_cast<const std::uint8_t*>(from),
                                             static_cast<std::int64_t>(n * sizeof(T)),
                                             reinterpret_cast<std::uint8_t*>(to));
}

/// Up to 8 bytes, a multiple of kUnit, as the low ones of a number, the others 0; of a little-endian processor. What is
/// among the first and the last ones that are read at once is the same in both.
template <std::int64_t kUnit>
inline std::uint64_t low_bytes(const std::uint8_t* from, std::int64_t bytes) noexcept {
  const auto of_ends = [&]<typename Part>(Part first, Part last) {
    std::memcpy(&first, from, sizeof first);
    std::memcpy(&last, from + bytes - sizeof last, sizeof last);
    return std::uint64_t{first} | std::uint64_t{last} << 8 * (static_cast<std::size_t>(bytes) - sizeof last);
  };
  if constexpr (kUnit <= 4)
    if (bytes >= 4) return of_ends(std::uint32_t{}, std::uint32_t{});
  if constexpr (kUnit <= 2)
    if (bytes >= 2) return of_ends(std::uint16_t{}, std::uint16_t{});
  if constexpr (kUnit == 1)
    if (bytes == 1) return *from;
  return 0;
}

/// Stores the low bytes, up to 8 and a multiple of kUnit, of a number; of a little-endian processor.
template <std::int64_t kUnit>
inline void store_low_bytes(std::uint64_t number, std::int64_t bytes, std::uint8_t* to) noexcept {
  const auto to_ends = [&]<typename Part>(Part first, Part last) {
    std::memcpy(to, &first, sizeof first);
    std::memcpy(to + bytes - sizeof last, &last, sizeof last);
  };
  const auto rest_of = [&](std::size_t part) { return number >> 8 * (static_cast<std::size_t>(bytes) - part); };
  if constexpr (kUnit <= 4)
    if (bytes >= 4) return to_ends(static_cast<std::uint32_t>(number), static_cast<std::uint32_t>(rest_of(4)));
  if constexpr (kUnit <= 2)
    if (bytes >= 2) return to_ends(static_cast<std::uint16_t>(number), static_cast<std::uint16_t>(rest_of(2)));
  if constexpr (kUnit == 1)
    if (bytes == 1) *to = static_cast<std::uint8_t>(number);
}

/// `count` pieces of `bytes` each, which begin so far apart: how they are copied is found once for all.
inline void copy_pieces(std::int64_t count, std::int64_t bytes, const std::uint8_t* from, std::int64_t from_step,
                        std::uint8_t* to, std::int64_t to_step) noexcept {
  constexpr std::int64_t kLong = 256;
  const auto each = [&](auto copy) {
    for (; count > 0; --count, from += from_step, to += to_step) copy();
  };
  if (bytes > kLong) {
    each([&] { std::memcpy(to, from, static_cast<std::size_t>(bytes)); });
  } else if (bytes >= 16) {
    each([&] { copy_short(from, bytes, to); });
  } else if (bytes >= 8) {
    each([&] { copy_ends<8>(from, bytes, to); });
  } else if (bytes >= 4) {
    each([&] { copy_ends<4>(from, bytes, to); });
  } else if (bytes >= 2) {
    each([&] { copy_ends<2>(from, bytes, to); });
  } else if (bytes == 1) {
    each([&] { *to = *from; });
  }
}

}  // namespace bantam::ops
