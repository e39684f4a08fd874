// A fast 64-bit content hash for detecting damage and finding equal blobs. Not cryptographic: it protects against
// accidents (truncation, bit rot, mixed-up files), not against an attacker; packages are verified structurally as well.
#pragma once

#include <cstddef>
#include <cstdint>

namespace bantam {

/// Four lanes of multiply-and-rotate over 32-byte blocks (the structure of xxHash64), the same on every target.
std::uint64_t hash64(const void* data, std::size_t bytes, std::uint64_t seed = 0) noexcept;

}  // namespace bantam
