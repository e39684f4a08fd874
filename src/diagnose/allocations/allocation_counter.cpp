#include "diagnose/allocations/allocation_counter.h"

#include <atomic>
#include <cerrno>
#include <cstddef>

namespace bantam::diagnose {
namespace {

// Zero-initialised before any constructor runs: allocations during start-up are counted as well.
std::atomic<std::uint64_t> allocations;
std::atomic<std::uint64_t> deallocations;

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

}  // namespace bantam::diagnose

#if !defined(BANTAM_SANITIZED)

namespace {

void count_allocation() { bantam::diagnose::allocations.fetch_add(1, std::memory_order_relaxed); }

}  // namespace

// glibc's own entry points; see "Replacing malloc" in the GNU C Library manual for the set that must be replaced.
extern "C" {

void* __libc_malloc(std::size_t size);                           // NOLINT: glibc's names
void* __libc_calloc(std::size_t count, std::size_t size);        // NOLINT
void* __libc_realloc(void* memory, std::size_t size);            // NOLINT
void* __libc_memalign(std::size_t alignment, std::size_t size);  // NOLINT
void __libc_free(void* memory);                                  // NOLINT

void* malloc(std::size_t size) {
  count_allocation();
  return __libc_malloc(size);
}

void* calloc(std::size_t count, std::size_t size) {
  count_allocation();
  return __libc_calloc(count, size);
}

void* realloc(void* memory, std::size_t size) {
  count_allocation();
  return __libc_realloc(memory, size);
}

void* memalign(std::size_t alignment, std::size_t size) {
  count_allocation();
  return __libc_memalign(alignment, size);
}

void* aligned_alloc(std::size_t alignment, std::size_t size) {
  count_allocation();
  return __libc_memalign(alignment, size);
}

int posix_memalign(void** memory, std::size_t alignment, std::size_t size) {
  count_allocation();
  if (alignment % sizeof(void*) != 0 || (alignment & (alignment - 1)) != 0 || alignment == 0) return EINVAL;
  void* const result = __libc_memalign(alignment, size);
  if (result == nullptr) return ENOMEM;
  *memory = result;
  return 0;
}

void free(void* memory) {
  if (memory != nullptr) bantam::diagnose::deallocations.fetch_add(1, std::memory_order_relaxed);
  __libc_free(memory);
}

}  // extern "C"

#endif
