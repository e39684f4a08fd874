// The model partition of a speech box, srmodels.bin: its format, and a reader that checks every byte of the header.
//
// All integers are little endian, 32 bits:
//   model count
//   per model:  name, char[32], zero-terminated; file count
//     per file: name, char[32], zero-terminated; start, from the beginning of the image; length
//   the files' bytes
// The format has no magic number, version or hash, and the loader on the chip checks nothing: what is wrong in here is
// a crash there. inspect() therefore follows the counts as the loader would, bounded by the bytes that are there, and
// reports everything that it finds. Pure functions on untrusted bytes; memory grows with entries that really are there,
// at most kMaxEntries, never with a claimed count.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "partition/finding.h"
#include "partition/model_info.h"

namespace bantam::partition {

inline constexpr std::size_t kCountBytes = 4;
inline constexpr std::size_t kNameBytes = 32;  ///< the terminator included
inline constexpr std::size_t kModelEntryBytes = kNameBytes + 4;
inline constexpr std::size_t kFileEntryBytes = kNameBytes + 8;

/// Flash is erased in sectors of this size, so partitions are multiples of it.
inline constexpr std::uint64_t kSectorBytes = 4096;

/// What vector loads want; the alignment that `pack` gives.
inline constexpr std::uint32_t kPayloadAlignment = 16;

/// The loader keeps sizes in a signed 32-bit integer.
inline constexpr std::int64_t kMaxImageBytes = (std::int64_t{1} << 31) - 1;

/// Most models and files together that are looked at; a chip's loader allocates for each.
inline constexpr std::size_t kMaxEntries = 65536;

struct ImageFile {
  std::string name;
  std::uint32_t start = 0;   ///< bytes from the beginning of the image
  std::uint32_t length = 0;  ///< bytes
  std::uint64_t end() const noexcept { return std::uint64_t{start} + length; }
};

struct ImageModel {
  std::string name;
  std::vector<ImageFile> files;
  std::optional<ModelInfo> info;  ///< when there is a readable _MODEL_INFO_
};

struct Image {
  std::uint64_t file_bytes = 0;    ///< all bytes given
  std::uint64_t header_bytes = 0;  ///< up to the end of the last entry
  std::uint64_t used_bytes = 0;    ///< up to the end of the last file: what a partition must hold
  std::vector<ImageModel> models;  ///< those that could be read
};

struct Inspection {
  Image image;
  Findings findings;
};

Inspection inspect(std::span<const std::byte> bytes);

/// Empty when `name` can stand in an image and as a file on a disk, else what is wrong with it.
std::string name_problem(std::string_view name);

/// `bytes` rounded up to whole flash sectors.
constexpr std::uint64_t to_sectors(std::uint64_t bytes) noexcept {
  return (bytes + kSectorBytes - 1) / kSectorBytes * kSectorBytes;
}

}  // namespace bantam::partition
