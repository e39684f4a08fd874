#include "ops/testing/guarded_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <utility>

namespace bantam::ops::testing {
namespace {

std::size_t page_bytes() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }

}  // namespace

GuardedMemory::GuardedMemory(std::size_t bytes, std::size_t alignment) : bytes_(bytes) {
  const std::size_t page = page_bytes();
  const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  // At least 64 canaries lie before the data.
  const std::size_t inner = (rounded + 64 + page - 1) / page * page;
  map_bytes_ = inner + 2 * page;
  void* map = mmap(nullptr, map_bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (map == MAP_FAILED) std::abort();
  map_ = static_cast<std::byte*>(map);
  if (mprotect(map_ + page, inner, PROT_READ | PROT_WRITE) != 0) std::abort();
  std::fill(map_ + page, map_ + page + inner, kCanary);
  data_ = map_ + page + inner - rounded;
}

GuardedMemory::~GuardedMemory() {
  if (map_ != nullptr) munmap(map_, map_bytes_);
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
