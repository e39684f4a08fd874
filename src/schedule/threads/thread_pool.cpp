#include "schedule/threads/thread_pool.h"

#include <fmt/format.h>
#include <pthreadpool.h>

namespace bantam {
namespace {

void run_tasks(void* pool, void (*task)(void* argument, std::size_t index), void* argument, std::size_t n) {
  pthreadpool_parallelize_1d(static_cast<pthreadpool_t>(pool), task, argument, n, 0);
}

}  // namespace

void ThreadPool::Destroy::operator()(void* pool) const noexcept {
  pthreadpool_destroy(static_cast<pthreadpool_t>(pool));
}

Result<ThreadPool> ThreadPool::create(int count) {
  ThreadPool result;
  result.threads_ = std::make_unique<ops::Threads>();
  if (count <= 1) return result;
  result.pool_.reset(pthreadpool_create(static_cast<std::size_t>(count)));
  if (!result.pool_)
    return fail(StatusCode::kIo, fmt::format("the system refused to start {} threads", count), "use fewer threads");
  *result.threads_ = {count, result.pool_.get(), run_tasks};
  return result;
}

}  // namespace bantam
