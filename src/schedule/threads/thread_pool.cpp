#include "schedule/threads/thread_pool.h"

#include <fmt/format.h>
#include <pthread.h>
#include <pthreadpool.h>
#include <sched.h>
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>

namespace bantam {
namespace {

/// "0, 1, 5": what the calling thread may run on.
std::string usable_cpus(const cpu_set_t& set) {
  std::string text;
  for (std::size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &set)) text += fmt::format("{}{}", text.empty() ? "" : ", ", cpu);
  return text;
}

Result<void> check_cpus(std::span<const int> cpus) {
  cpu_set_t usable;
  CPU_ZERO(&usable);
  sched_getaffinity(0, sizeof(usable), &usable);
  for (const int cpu : cpus)
    if (cpu < 0 || cpu >= CPU_SETSIZE || !CPU_ISSET(static_cast<std::size_t>(cpu), &usable))
      return fail(StatusCode::kInvalidArgument, fmt::format("this process may not run on processor {}", cpu),
                  fmt::format("use some of: {}", usable_cpus(usable)));
  return {};
}

/// Binds every thread of a pool, each to its own processor.
class Binding {
 public:
  Binding(int count, std::span<const int> cpus) : count_(static_cast<std::size_t>(count)), cpus_(cpus) {}

  void bind_one(std::size_t index) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(static_cast<std::size_t>(cpus_[index % cpus_.size()]), &set);
    if (pthread_setaffinity_np(pthread_self(), sizeof(set), &set) != 0) failed_ = true;
    // A thread that went on at once could take the task of one that has not begun yet.
    ++arrived_;
    while (arrived_ < count_) std::this_thread::yield();
  }

  bool failed() const { return failed_; }

 private:
  std::size_t count_;
  std::span<const int> cpus_;
  std::atomic<std::size_t> arrived_ = 0;
  std::atomic<bool> failed_ = false;
};

#if defined(__SANITIZE_THREAD__)
/// pthreadpool comes uninstrumented, so ThreadSanitizer has to be told what it orders: what was written before the
/// tasks is seen by them, and what they wrote is seen after them. Races between tasks still show.
void run_tasks(void* pool, void (*task)(void* argument, std::size_t index), void* argument, std::size_t n) {
  struct Job {
    void (*task)(void* argument, std::size_t index);
    void* argument;
  } job{task, argument};
  __tsan_release(&job);
  pthreadpool_parallelize_1d(
      static_cast<pthreadpool_t>(pool),
      [](void* context, std::size_t index) {
        __tsan_acquire(context);
        const Job& j = *static_cast<const Job*>(context);
        j.task(j.argument, index);
        __tsan_release(context);
      },
      &job, n, 0);
  __tsan_acquire(&job);
}
#else
void run_tasks(void* pool, void (*task)(void* argument, std::size_t index), void* argument, std::size_t n) {
  pthreadpool_parallelize_1d(static_cast<pthreadpool_t>(pool), task, argument, n, 0);
}
#endif

}  // namespace

void ThreadPool::Destroy::operator()(void* pool) const noexcept {
  pthreadpool_destroy(static_cast<pthreadpool_t>(pool));
}

Result<ThreadPool> ThreadPool::create(int count, std::span<const int> cpus) {
  if (auto usable = check_cpus(cpus); !usable) return fail(std::move(usable.error()));
  ThreadPool result;
  result.threads_ = std::make_unique<ops::Threads>();
  if (count > 1) {
    if (auto started = result.start(count); !started) return fail(std::move(started.error()));
  }
  if (!cpus.empty()) {
    // pthreadpool gives the calling thread the first task.
    Binding binding(std::max(count, 1), cpus);
    result.threads_->parallel_for(
        static_cast<std::size_t>(std::max(count, 1)),
        [](void* argument, std::size_t index) { static_cast<Binding*>(argument)->bind_one(index); }, &binding);
    if (binding.failed())
      return fail(StatusCode::kIo, "the system refused to bind threads to processors",
                  "leave the choice to the system");
  }
  return result;
}

Result<void> ThreadPool::start(int count) {
  pool_.reset(pthreadpool_create(static_cast<std::size_t>(count)));
  if (!pool_)
    return fail(StatusCode::kIo, fmt::format("the system refused to start {} threads", count), "use fewer threads");
  *threads_ = {count, pool_.get(), run_tasks};
  return {};
}

}  // namespace bantam
