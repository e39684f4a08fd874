#include "diagnose/process_memory.h"

#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <string>

namespace bantam::diagnose {
namespace {

constexpr std::size_t kStackBytes = std::size_t{4} << 20;
constexpr unsigned char kPaint = 0xa5;

/// A stack between an inaccessible page and whatever follows it.
class PaintedStack {
 public:
  PaintedStack() : page_(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))) {
    void* const memory =
        mmap(nullptr, page_ + kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (memory == MAP_FAILED) return;
    memory_ = static_cast<unsigned char*>(memory);
    mprotect(memory_, page_, PROT_NONE);
    std::memset(stack(), kPaint, kStackBytes);
  }
  PaintedStack(const PaintedStack&) = delete;
  PaintedStack& operator=(const PaintedStack&) = delete;
  ~PaintedStack() {
    if (memory_ != nullptr) munmap(memory_, page_ + kStackBytes);
  }

  bool ok() const { return memory_ != nullptr; }
  unsigned char* stack() const { return memory_ + page_; }
  /// Bytes from the deepest one that is not paint to `top`, an address on this stack. Stacks grow downwards.
  std::uint64_t used_below(const unsigned char* top) const {
    const auto* deepest = std::find_if(static_cast<const unsigned char*>(stack()), top,
                                       [](unsigned char byte) { return byte != kPaint; });
    return static_cast<std::uint64_t>(top - deepest);
  }

 private:
  std::size_t page_;
  unsigned char* memory_ = nullptr;
};

struct Job {
  const std::function<void()>* call;
  const PaintedStack* stack;
  std::uint64_t used;
};

/// Measures before the thread ends, which takes stack of its own.
void* run_job(void* argument) {
  auto* job = static_cast<Job*>(argument);
  const auto* const top = static_cast<const unsigned char*>(__builtin_frame_address(0));
  (*job->call)();
  job->used = job->stack->used_below(top);
  return nullptr;
}

}  // namespace

std::optional<ProcessMemory> process_memory() {
  std::ifstream file("/proc/self/smaps_rollup");
  ProcessMemory memory;
  bool found = false;
  for (std::string line; std::getline(file, line);) {
    const auto kilobytes = [&](const char* key) -> std::optional<std::uint64_t> {
      if (!line.starts_with(key)) return std::nullopt;
      return std::strtoull(line.c_str() + std::strlen(key), nullptr, 10) * 1024;
    };
    if (const auto rss = kilobytes("Rss:")) {
      memory.resident_bytes = *rss;
      found = true;
    }
    if (const auto pss = kilobytes("Pss:")) memory.proportional_bytes = *pss;
  }
  if (!found) return std::nullopt;
  const struct mallinfo2 heap = mallinfo2();
  memory.heap_bytes = heap.uordblks + heap.hblkhd;
  return memory;
}

std::optional<std::uint64_t> stack_high_water(const std::function<void()>& call) {
  const PaintedStack painted;
  if (!painted.ok()) return std::nullopt;
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return std::nullopt;
  Job job{&call, &painted, 0};
  pthread_t thread{};
  const bool started = pthread_attr_setstack(&attributes, painted.stack(), kStackBytes) == 0 &&
                       pthread_create(&thread, &attributes, run_job, &job) == 0;
  pthread_attr_destroy(&attributes);
  if (!started || pthread_join(thread, nullptr) != 0) return std::nullopt;
  return job.used;
}

}  // namespace bantam::diagnose
