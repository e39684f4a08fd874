#include "package/writer/blob_store.h"

#include <cstring>

#include "base/hash.h"
#include "package/format.h"

namespace bantam::format {

std::uint64_t BlobStore::add(std::span<const std::byte> bytes) {
  if (bytes.empty()) return 0;
  const std::uint64_t hash = hash64(bytes.data(), bytes.size());
  const auto [first, last] = blobs_.equal_range(hash);
  for (auto it = first; it != last; ++it)
    if (it->second.size == bytes.size() &&
        std::memcmp(bytes_.data() + it->second.offset, bytes.data(), bytes.size()) == 0)
      return it->second.offset;
  const std::size_t offset = (bytes_.size() + kWeightAlignment - 1) / kWeightAlignment * kWeightAlignment;
  bytes_.resize(offset);  // zero padding
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  blobs_.emplace(hash, Blob{offset, bytes.size()});
  return offset;
}

}  // namespace bantam::format
