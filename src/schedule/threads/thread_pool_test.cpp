#include "schedule/threads/thread_pool.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <set>
#include <vector>

namespace bantam {
namespace {

std::vector<int> usable() {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof(set), &set);
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(static_cast<std::size_t>(cpu), &set)) cpus.push_back(cpu);
  return cpus;
}

/// Gives the calling thread back the processors that it had.
class KeepAffinity {
 public:
  KeepAffinity() { sched_getaffinity(0, sizeof(set_), &set_); }
  ~KeepAffinity() { sched_setaffinity(0, sizeof(set_), &set_); }

 private:
  cpu_set_t set_{};
};

TEST(ThreadPool, RunsEveryTaskOnce) {
  for (const int count : {1, 2, 5}) {
    const auto pool = ThreadPool::create(count);
    ASSERT_TRUE(pool) << pool.error().message;
    std::vector<std::atomic<int>> runs(100);
    pool->threads()->parallel_for(
        runs.size(),
        [](void* argument, std::size_t i) { ++(*static_cast<std::vector<std::atomic<int>>*>(argument))[i]; }, &runs);
    for (const auto& n : runs) EXPECT_EQ(n, 1) << count << " threads";
  }
}

TEST(ThreadPool, BindsEachThreadToOneProcessorInTurn) {
  const KeepAffinity keep;
  std::vector<int> cpus = usable();
  cpus.resize(std::min<std::size_t>(cpus.size(), 2));
  const auto pool = ThreadPool::create(3, cpus);
  ASSERT_TRUE(pool) << pool.error().message;
  EXPECT_EQ(usable(), std::vector<int>{cpus.front()}) << "the calling thread has the first";
  struct Seen {
    std::vector<int> cpus;
    std::atomic<int> elsewhere = 0;
  } seen{cpus};
  pool->threads()->parallel_for(
      1000,
      [](void* argument, std::size_t) {
        auto& s = *static_cast<Seen*>(argument);
        const std::vector<int> mine = usable();
        if (mine.size() != 1 || std::ranges::find(s.cpus, mine.front()) == s.cpus.end()) ++s.elsewhere;
      },
      &seen);
  EXPECT_EQ(seen.elsewhere, 0);
}

TEST(ThreadPool, RefusesProcessorsThatTheProcessMayNotUse) {
  for (const int cpu : {-1, 1 << 20}) {
    const auto pool = ThreadPool::create(2, std::vector<int>{cpu});
    ASSERT_FALSE(pool);
    EXPECT_NE(pool.error().message.find(std::to_string(cpu)), std::string::npos) << pool.error().message;
    EXPECT_NE(pool.error().remedy.find(std::to_string(usable().front())), std::string::npos) << pool.error().remedy;
  }
}

}  // namespace
}  // namespace bantam
