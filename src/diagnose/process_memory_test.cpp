// What the process uses, measured where the answer is known.
#include "diagnose/process_memory.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

namespace bantam::diagnose {
namespace {

template <std::size_t kBytes>
[[gnu::noinline]] void use_stack() {
  volatile unsigned char buffer[kBytes];
  for (std::size_t i = 0; i < kBytes; ++i) buffer[i] = static_cast<unsigned char>(i);
  EXPECT_EQ(buffer[kBytes - 1], static_cast<unsigned char>(kBytes - 1));
}

TEST(ProcessMemory, StackIsMeasuredToWithinAFewFrames) {
  const auto small = stack_high_water(use_stack<std::size_t{16} << 10>);
  const auto large = stack_high_water(use_stack<std::size_t{256} << 10>);
  ASSERT_TRUE(small && large);
  EXPECT_GE(*small, 16U << 10);
  EXPECT_GE(*large, 256U << 10);
  EXPECT_LT(*large, 320U << 10);
  EXPECT_GT(*large - *small, 200U << 10);
}

TEST(ProcessMemory, HeapGrowsByWhatIsAllocated) {
  const auto before = process_memory();
  if (!before) GTEST_SKIP() << "the system does not tell";
  EXPECT_GT(before->resident_bytes, 0U);
  EXPECT_LE(before->proportional_bytes, before->resident_bytes);
  constexpr std::size_t kBytes = std::size_t{32} << 20;
  void* const memory = std::malloc(kBytes);
  ASSERT_NE(memory, nullptr);
  std::memset(memory, 1, kBytes);
  const auto after = process_memory();
  ASSERT_TRUE(after);
  EXPECT_GE(after->resident_bytes, before->resident_bytes + kBytes / 2);
  // Sanitizers bring a heap of their own, of which malloc's accounts know nothing.
  if (before->heap_bytes > 0) {
    EXPECT_GE(after->heap_bytes, before->heap_bytes + kBytes);
  }
  std::free(memory);
}

}  // namespace
}  // namespace bantam::diagnose
