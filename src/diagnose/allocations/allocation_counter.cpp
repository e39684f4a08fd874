#include "diagnose/allocations/allocation_counter.h"

#include <malloc.h>

#include <atomic>
#include <cerrno>
#include <cstddef>

namespace bantam::diagnose {
namespace {

// Zero-initialised before any constructor runs: allocations during start-up are counted as well.
std::atomic<std::uint64_t> allocations;
std::atomic<std::uint64_t> deallocations;
std::atomic<std::int64_t> live;

}  // namespace

bool counts_allocations() noexcept {
#if defined(BANTAM_SANITIZED)
  return false;
#else
  return true;
#endif
}

std::uint64_t allocation_count() noexcept { return allocations.load(std::memory_order_relaxed); }
std::uint64_t deallocation_count() noexcept { return deallocations.load(std::memory_order_relaxed); }
std::int64_t live_bytes() noexcept { return live.load(std::memory_order_relaxed); }

}  // namespace bantam::diagnose

#if !defined(BANTAM_SANITIZED)

namespace {

void add_live(std::int64_t bytes) { bantam::diagnose::live.fetch_add(bytes, std::memory_order_relaxed); }

std::int64_t size_of(void* memory) { return static_cast<std::int64_t>(malloc_usable_size(memory)); }

/// Counts a call that took `memory`, which is null when there was none.
void* count_allocation(void* memory) {
  bantam::diagnose::allocations.fetch_add(1, std::memory_order_relaxed);
  add_live(size_of(memory));
  return memory;
}

}  // namespace

// glibc's own entry points; see "Replacing malloc" in the GNU C Library manual for the set that must be replaced.
extern "C" {

void* __libc_malloc(std::size_t size);                           // NOLINT: glibc's names
void* __libc_calloc(std::size_t count, std::size_t size);        // NOLINT
void* __libc_realloc(void* memory, std::size_t size);            // NOLINT
void* __libc_memalign(std::size_t alignment, std::size_t size);  // NOLINT
void __libc_free(void* memory);                                  // NOLINT

void* malloc(std::size_t size) { return count_allocation(__libc_malloc(size)); }

void* calloc(std::size_t count, std::size_t size) { return count_allocation(__libc_calloc(count, size)); }

void* realloc(void* memory, std::size_t size) {
  const std::int64_t before = size_of(memory);
  void* const result = __libc_realloc(memory, size);
  // Where it fails, the old block stays.
  if (result != nullptr || size == 0) add_live(-before);
  return count_allocation(result);
}

void* memalign(std::size_t alignment, std::size_t size) { return count_allocation(__libc_memalign(alignment, size)); }

void* aligned_alloc(std::size_t alignment, std::size_t size) {
  return count_allocation(__libc_memalign(alignment, size));
}

int posix_memalign(void** memory, std::size_t alignment, std::size_t size) {
  if (alignment % sizeof(void*) != 0 || (alignment & (alignment - 1)) != 0 || alignment == 0) return EINVAL;
  void* const result = count_allocation(__libc_memalign(alignment, size));
  if (result == nullptr) return ENOMEM;
  *memory = result;
  return 0;
}

void free(void* memory) {
  if (memory != nullptr) bantam::diagnose::deallocations.fetch_add(1, std::memory_order_relaxed);
  add_live(-size_of(memory));
  __libc_free(memory);
}

}  // extern "C"

#endif
