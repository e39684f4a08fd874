// Threads for kernels on a host: pthreadpool behind the operators' Threads interface. Host only.
#pragma once

#include <memory>
#include <span>

#include "bantam/error.h"
#include "ops/op.h"

namespace bantam {

/// A fixed number of threads, the calling one included. Runs allocate nothing. One invoke uses it at a time.
class ThreadPool {
 public:
  /// count >= 1; 1 starts no thread. With `cpus`, each thread runs on one of these processors only, in turn, the
  /// calling thread, which stays bound, on the first. Fails when the process may not use one of them.
  static Result<ThreadPool> create(int count, std::span<const int> cpus = {});

  /// Address-stable for as long as the pool lives, wherever the pool object is moved.
  const ops::Threads* threads() const noexcept { return threads_.get(); }

 private:
  struct Destroy {
    void operator()(void* pool) const noexcept;
  };
  ThreadPool() = default;
  Result<void> start(int count);

  std::unique_ptr<void, Destroy> pool_;
  std::unique_ptr<ops::Threads> threads_;
};

}  // namespace bantam
