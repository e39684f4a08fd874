// A ring of int16 samples between one thread that writes and one that reads, without locks.
//
// Memory: in a Block of the caller's. Threads: write and free_share may be called by one thread, read, available and
// free_share by another; lay_out and clear need both to rest. The indices only grow; each side publishes its own with
// release order and reads the other's with acquire order, so that samples are seen before the index that covers them.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "dsp/block.h"

namespace bantam::audio {

class SampleRing {
 public:
  void lay_out(std::size_t capacity, dsp::Block& block) noexcept {
    samples_ = block.take<std::int16_t>(capacity);
    capacity_ = capacity;
    clear();
  }

  void clear() noexcept {
    written_.store(0, std::memory_order_relaxed);
    read_.store(0, std::memory_order_relaxed);
  }

  /// Room for that many samples.
  std::size_t room() const noexcept { return capacity_ - available(); }

  std::size_t available() const noexcept {
    const std::uint64_t read = read_.load(std::memory_order_acquire);
    return static_cast<std::size_t>(written_.load(std::memory_order_acquire) - read);
  }

  /// Requires samples.size() <= room().
  void write(std::span<const std::int16_t> samples) noexcept {
    const std::uint64_t written = written_.load(std::memory_order_relaxed);
    const auto at = static_cast<std::size_t>(written % capacity_);
    const std::size_t first = std::min(samples.size(), capacity_ - at);
    std::copy_n(samples.data(), first, samples_ + at);
    std::copy_n(samples.data() + first, samples.size() - first, samples_);
    written_.store(written + samples.size(), std::memory_order_release);
  }

  /// Requires out.size() <= available().
  void read(std::span<std::int16_t> out) noexcept {
    const std::uint64_t read = read_.load(std::memory_order_relaxed);
    const auto at = static_cast<std::size_t>(read % capacity_);
    const std::size_t first = std::min(out.size(), capacity_ - at);
    std::copy_n(samples_ + at, first, out.data());
    std::copy_n(samples_, out.size() - first, out.data() + first);
    read_.store(read + out.size(), std::memory_order_release);
  }

  float free_share() const noexcept { return static_cast<float>(room()) / static_cast<float>(capacity_); }

 private:
  std::int16_t* samples_ = nullptr;
  std::size_t capacity_ = 1;
  std::atomic<std::uint64_t> written_{0};
  std::atomic<std::uint64_t> read_{0};
};

}  // namespace bantam::audio
