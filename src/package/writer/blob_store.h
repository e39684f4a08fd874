// Collects the weights of a package: every blob 64-byte aligned, equal blobs stored once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

namespace bantam::format {

class BlobStore {
 public:
  /// Stores a copy of the bytes unless equal ones are there; returns their offset. Empty blobs lie at 0.
  std::uint64_t add(std::span<const std::byte> bytes);

  std::span<const std::byte> bytes() const noexcept { return bytes_; }

 private:
  struct Blob {
    std::uint64_t offset;
    std::uint64_t size;
  };
  std::vector<std::byte> bytes_;
  std::unordered_multimap<std::uint64_t, Blob> blobs_;  ///< by content hash
};

}  // namespace bantam::format
