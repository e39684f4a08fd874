// Counts every call of the C and C++ allocators in the process, on all threads, by standing in their place.
//
// A program that calls allocation_count() gets malloc, calloc, realloc, free, aligned_alloc, posix_memalign and
// memalign that count and pass on to glibc (operator new calls malloc). `bantam run` and `bench` print the count around
// invokes; tests fail on the first. Not available under sanitizers, which replace the allocator themselves.
#pragma once

#include <cstdint>

namespace bantam::diagnose {

/// False under sanitizers: the counts are then always zero.
bool counts_allocations() noexcept;

/// Calls that took memory so far: malloc, calloc, realloc, aligned allocations.
std::uint64_t allocation_count() noexcept;

/// Calls that gave memory back so far.
std::uint64_t deallocation_count() noexcept;

/// Bytes taken and not yet given back, as the allocator rounds them.
std::int64_t live_bytes() noexcept;

}  // namespace bantam::diagnose
