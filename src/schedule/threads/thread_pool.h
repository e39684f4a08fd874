// Threads for kernels on a host: pthreadpool behind the operators' Threads interface. Host only.
#pragma once

#include <memory>

#include "bantam/error.h"
#include "ops/op.h"

namespace bantam {

/// A fixed number of threads, the calling one included. Runs allocate nothing. One invoke uses it at a time.
class ThreadPool {
 public:
  /// count >= 1; 1 starts no thread.
  static Result<ThreadPool> create(int count);

  /// Address-stable for as long as the pool lives, wherever the pool object is moved.
  const ops::Threads* threads() const noexcept { return threads_.get(); }

 private:
  struct Destroy {
    void operator()(void* pool) const noexcept;
  };
  ThreadPool() = default;

  std::unique_ptr<void, Destroy> pool_;
  std::unique_ptr<ops::Threads> threads_;
};

}  // namespace bantam
