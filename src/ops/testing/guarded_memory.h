// Memory for tests between two inaccessible pages: reading or writing one byte past the end (or far before the
// beginning) ends the process at the faulty instruction. Test code only, POSIX.
#pragma once

#include <cstddef>
#include <span>

namespace bantam::ops::testing {

/// Owns `bytes` bytes whose last byte touches the guard page when `alignment` divides `bytes`; otherwise the few bytes
/// between are canaries, like those before the beginning. Aborts when the system has no memory.
class GuardedMemory {
 public:
  GuardedMemory() = default;
  GuardedMemory(std::size_t bytes, std::size_t alignment);
  ~GuardedMemory();
  GuardedMemory(GuardedMemory&& other) noexcept;
  GuardedMemory& operator=(GuardedMemory&& other) noexcept;
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;

  std::byte* data() const noexcept { return data_; }
  std::size_t size() const noexcept { return bytes_; }
  std::span<std::byte> bytes() const noexcept { return {data_, bytes_}; }

  /// True while the canaries around the memory are untouched.
  bool intact() const noexcept;

 private:
  std::byte* map_ = nullptr;
  std::size_t map_bytes_ = 0;
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

/// The byte that fills canaries and gaps.
inline constexpr std::byte kCanary{0xA7};

}  // namespace bantam::ops::testing
