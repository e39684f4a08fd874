#include "ops/testing/guarded_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <mutex>
#include <utility>

namespace bantam::ops::testing {
namespace {

std::size_t page_bytes() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }

/// Two inaccessible pages with others between, `bytes` in all.
std::byte* map_between_guards(std::size_t bytes) {
  const std::size_t page = page_bytes();
  void* map = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (map == MAP_FAILED) std::abort();
  auto* first = static_cast<std::byte*>(map);
  if (mprotect(first + page, bytes - 2 * page, PROT_READ | PROT_WRITE) != 0) std::abort();
  return first;
}

/// Maps that nobody uses now: to make new ones each time takes a fifth of the time of all tests. Any thread may call.
class SpareMaps {
 public:
  std::byte* take(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    const auto found = maps_.find(bytes);
    if (found == maps_.end()) return map_between_guards(bytes);
    std::byte* map = found->second;
    maps_.erase(found);
    held_ -= bytes;
    return map;
  }

  void give(std::byte* map, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    if (held_ + bytes > kMostHeld) {
      munmap(map, bytes);
      return;
    }
    maps_.emplace(bytes, map);
    held_ += bytes;
  }

 private:
  static constexpr std::size_t kMostHeld = std::size_t{64} << 20;

  std::mutex mutex_;
  std::multimap<std::size_t, std::byte*> maps_;
  std::size_t held_ = 0;
};

/// Never destroyed, since memory may be given back until the process ends.
SpareMaps& spare_maps() {
  static SpareMaps& maps = *new SpareMaps;
  return maps;
}

}  // namespace

GuardedMemory::GuardedMemory(std::size_t bytes, std::size_t alignment) : bytes_(bytes) {
  const std::size_t page = page_bytes();
  const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  // At least 64 canaries lie before the data.
  const std::size_t inner = (rounded + 64 + page - 1) / page * page;
  map_bytes_ = inner + 2 * page;
  map_ = spare_maps().take(map_bytes_);
  std::fill(map_ + page, map_ + page + inner, kCanary);
  data_ = map_ + page + inner - rounded;
}

GuardedMemory::~GuardedMemory() {
  if (map_ != nullptr) spare_maps().give(map_, map_bytes_);
}

GuardedMemory::GuardedMemory(GuardedMemory&& other) noexcept { *this = std::move(other); }

GuardedMemory& GuardedMemory::operator=(GuardedMemory&& other) noexcept {
  std::swap(map_, other.map_);
  std::swap(map_bytes_, other.map_bytes_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

bool GuardedMemory::intact() const noexcept {
  if (map_ == nullptr) return true;
  const std::byte* first = map_ + page_bytes();
  const std::byte* last = map_ + map_bytes_ - page_bytes();
  const auto is_canary = [](std::byte b) { return b == kCanary; };
  return std::all_of(first, static_cast<const std::byte*>(data_), is_canary) &&
         std::all_of(static_cast<const std::byte*>(data_) + bytes_, last, is_canary);
}

}  // namespace bantam::ops::testing
