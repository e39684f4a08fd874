// How kernels share work among threads: an interface that the owner of the threads fills in. Freestanding.
#pragma once

#include <cstddef>
#include <cstdint>

namespace bantam {

/// Runs tasks 0..n-1, possibly in parallel; returns when all are done. A null `run` means: call them in turn.
/// The owner (the host's lane) supplies it; it must not allocate. Results of a kernel never depend on `count`.
struct Threads {
  std::int32_t count = 1;
  void* pool = nullptr;
  void (*run)(void* pool, void (*task)(void* argument, std::size_t index), void* argument, std::size_t n) = nullptr;

  void parallel_for(std::size_t n, void (*task)(void*, std::size_t), void* argument) const {
    if (run != nullptr && count > 1 && n > 1) {
      run(pool, task, argument, n);
    } else {
      for (std::size_t i = 0; i < n; ++i) task(argument, i);
    }
  }
};

}  // namespace bantam
