// Block: one piece of memory handed out in a fixed order, or merely counted.
//
//   dsp::Block counting;                 // no memory: every take() only counts
//   parts.lay_out(counting);             // the same function answers how much it needs ...
//   dsp::Block block(memory);            // memory: counting.used() bytes, aligned to Block::kAlignment
//   parts.lay_out(block);                // ... and takes it
//
// Who calls it: components whose need must be known before they exist. Memory: not owned, nothing is allocated. A take
// beyond the end yields null, as all takes of a counting block do; `complete` tells whether all were served.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

#include "bantam/status.h"

namespace bantam::dsp {

class Block {
 public:
  static constexpr std::size_t kAlignment = 16;

  Block() = default;
  explicit Block(std::span<std::byte> memory) noexcept : memory_(memory) {}

  /// Zeroed room for n objects, aligned to kAlignment; null when counting or when the memory is used up.
  template <typename T>
  T* take(std::size_t n) noexcept {
    static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= kAlignment);
    return static_cast<T*>(static_cast<void*>(take_bytes(n * sizeof(T))));
  }

  /// The same as a span; empty when counting or when the memory is used up.
  template <typename T>
  std::span<T> take_span(std::size_t n) noexcept {
    T* const first = take<T>(n);
    return {first, first == nullptr ? 0 : n};
  }

  std::byte* take_bytes(std::size_t bytes) noexcept {
    const std::size_t begin = used_;
    used_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
    if (memory_.data() == nullptr || used_ > memory_.size()) return nullptr;
    std::memset(memory_.data() + begin, 0, bytes);
    return memory_.data() + begin;
  }

  /// Bytes taken so far, those that were refused included.
  std::size_t used() const noexcept { return used_; }
  bool counting() const noexcept { return memory_.data() == nullptr; }

  /// kArenaTooSmall when a take was refused, kMisaligned when the memory is; `what` names the memory.
  Status complete(const char* what) const noexcept {
    const auto misalignment = reinterpret_cast<std::uintptr_t>(memory_.data()) % kAlignment;
    if (misalignment != 0) return failure(StatusCode::kMisaligned, what, static_cast<std::int64_t>(misalignment), 0);
    if (used_ <= memory_.size()) return ok_status();
    return failure(StatusCode::kArenaTooSmall, what, static_cast<std::int64_t>(memory_.size()),
                   static_cast<std::int64_t>(used_));
  }

 private:
  std::span<std::byte> memory_;
  std::size_t used_ = 0;
};

}  // namespace bantam::dsp
