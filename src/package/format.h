// Constants and the file header of the package format. Shared by reader and writer; freestanding.
#pragma once

#include <cstddef>
#include <cstdint>

namespace bantam::format {

inline constexpr char kMagic[8] = {'B', 'A', 'N', 'T', 'A', 'M', '\r', '\n'};
/// Another one whenever tables change, or how a kernel's constants are laid out: a package is refused then, not
/// misread.
inline constexpr std::uint32_t kVersion = 5;
inline constexpr std::size_t kWeightAlignment = 64;

/// First 64 bytes of a package, little endian.
struct Header {
  char magic[8];
  std::uint32_t version;
  std::uint32_t reserved;  ///< zero
  std::uint64_t file_bytes;
  std::uint64_t meta_bytes;      ///< FlatBuffer right after the header
  std::uint64_t weights_offset;  ///< multiple of kWeightAlignment; the weights reach to the end of the file
  std::uint64_t meta_hash;       ///< hash64 of the FlatBuffer
  std::uint64_t weights_hash;    ///< hash64 from weights_offset to the end
  std::uint64_t header_hash;     ///< hash64 of the 56 bytes before this field
};
static_assert(sizeof(Header) == 64);

/// Indices of a session's base addresses. Ports follow from kFirstPort: inputs, then outputs; behind them the
/// activations of the second tier and those behind it (tables.h: tier_slot).
enum Slot : std::uint32_t {
  kWeights = 0,
  kState = 1,
  kActivations = 2,  ///< in the first tier
  kSwapRead = 3,     ///< states updated out of place: the copy that this invoke reads
  kSwapWrite = 4,    ///< and the one it writes; the two trade places after every invoke
  kFirstPort = 5,
};
/// Memories of different speed that a package may be planned for.
inline constexpr std::uint32_t kMaxTiers = 4;

inline constexpr std::uint32_t kUnplaced = 0xffffffff;

/// Operand index of an absent operand.
inline constexpr std::uint32_t kAbsent = 0xffffffff;

/// Alignment of every buffer in the arena, and of the arena itself; big buffers start on cache lines.
inline constexpr std::size_t kBufferAlignment = 16;
inline constexpr std::size_t kBigBufferAlignment = 64;
inline constexpr std::size_t kBigBufferBytes = 4096;
inline constexpr std::size_t kArenaAlignment = 64;

}  // namespace bantam::format
