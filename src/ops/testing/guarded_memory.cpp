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

/// All pages of a map but the first and the last.
void set_access(std::byte* map, std::size_t bytes, int access) {
  if (mprotect(map + page_bytes(), bytes - 2 * page_bytes(), access) != 0) std::abort();
}

/// Maps of which at most the pages between the first and the last can be accessed. Those that nobody uses are kept,
/// with no access: to map and to fill pages each time takes a good part of the time of all tests. Any thread may call.
class Maps {
 public:
  std::byte* take(std::size_t bytes) {
    std::byte* map = find_spare(bytes);
    if (map == nullptr) {
      void* made = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (made == MAP_FAILED) std::abort();
      map = static_cast<std::byte*>(made);
    }
    set_access(map, bytes, PROT_READ | PROT_WRITE);
    return map;
  }

  void give(std::byte* map, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    if (held_ + bytes > kMostHeld) {
      munmap(map, bytes);
      return;
    }
    set_access(map, bytes, PROT_NONE);
    spare_.emplace(bytes, map);
    held_ += bytes;
  }

 private:
  static constexpr std::size_t kMostHeld = std::size_t{64} << 20;

  /// Null if there is none of that size.
  std::byte* find_spare(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    const auto found = spare_.find(bytes);
    if (found == spare_.end()) return nullptr;
    std::byte* map = found->second;
    spare_.erase(found);
    held_ -= bytes;
    return map;
  }

  std::mutex mutex_;
  std::multimap<std::size_t, std::byte*> spare_;
  std::size_t held_ = 0;
};

/// Never destroyed, since memory may be given back until the process ends.
Maps& maps() {
  static Maps& all = *new Maps;
  return all;
}

}  // namespace

GuardedMemory::GuardedMemory(std::size_t bytes, std::size_t alignment) : bytes_(bytes) {
  const std::size_t page = page_bytes();
  const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  // At least 64 canaries lie before the data.
  const std::size_t inner = (rounded + 64 + page - 1) / page * page;
  map_bytes_ = inner + 2 * page;
  map_ = maps().take(map_bytes_);
  std::fill(map_ + page, map_ + page + inner, kCanary);
  data_ = map_ + page + inner - rounded;
}

GuardedMemory::~GuardedMemory() {
  if (map_ != nullptr) maps().give(map_, map_bytes_);
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
