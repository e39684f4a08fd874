#include "base/hash.h"

#include <cstring>

namespace bantam {
namespace {

constexpr std::uint64_t kA = 0x9e3779b185ebca87;
constexpr std::uint64_t kB = 0xc2b2ae3d27d4eb4f;
constexpr std::uint64_t kC = 0x165667b19e3779f9;

constexpr std::uint64_t rotate(std::uint64_t x, int bits) { return (x << bits) | (x >> (64 - bits)); }

std::uint64_t load64(const unsigned char* p) {
  std::uint64_t word;
  std::memcpy(&word, p, sizeof word);
  return word;
}

constexpr std::uint64_t mix(std::uint64_t lane, std::uint64_t word) { return rotate(lane + word * kB, 31) * kA; }

}  // namespace

std::uint64_t hash64(const void* data, std::size_t bytes, std::uint64_t seed) noexcept {
  const auto* p = static_cast<const unsigned char*>(data);
  const unsigned char* const end = p + bytes;
  std::uint64_t lanes[4] = {seed + kA + kB, seed + kB, seed, seed - kA};
  while (static_cast<std::size_t>(end - p) >= 32) {
    for (int i = 0; i < 4; ++i) lanes[i] = mix(lanes[i], load64(p + 8 * i));
    p += 32;
  }
  std::uint64_t h = rotate(lanes[0], 1) + rotate(lanes[1], 7) + rotate(lanes[2], 12) + rotate(lanes[3], 18);
  h += bytes;
  while (static_cast<std::size_t>(end - p) >= 8) {
    h = rotate(h ^ mix(0, load64(p)), 27) * kA + kC;
    p += 8;
  }
  while (p != end) h = rotate(h ^ (*p++ * kC), 11) * kA;
  h ^= h >> 33;
  h *= kB;
  h ^= h >> 29;
  h *= kC;
  return h ^ (h >> 32);
}

}  // namespace bantam
