#include "ops/common/byte_products.h"

#include <algorithm>
#include <atomic>

#if BANTAM_SIMD && defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif
#if BANTAM_SIMD && defined(__x86_64__)
#include <cpuid.h>
#endif

namespace bantam::ops {
namespace {

ByteProducts detect() noexcept {
#if BANTAM_SIMD && defined(__aarch64__) && defined(__linux__)
  // From Linux's asm/hwcap.h, which may be older than the processor.
  constexpr unsigned long kDotProducts = 1UL << 20;     // of AT_HWCAP
  constexpr unsigned long kMatrixProducts = 1UL << 13;  // of AT_HWCAP2
  if ((getauxval(AT_HWCAP) & kDotProducts) == 0) return ByteProducts::kNone;
  return (getauxval(AT_HWCAP2) & kMatrixProducts) == 0 ? ByteProducts::kDot : ByteProducts::kMatrices;
#elif BANTAM_SIMD && defined(__x86_64__)
  constexpr unsigned kAvxVnni = 1U << 4;  // of EAX of leaf 7, part 1
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  const bool known = __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) != 0;
  return known && (eax & kAvxVnni) != 0 ? ByteProducts::kDot : ByteProducts::kNone;
#else
  return ByteProducts::kNone;
#endif
}

constexpr int kUnknown = -1;
std::atomic<int> detected{kUnknown};
std::atomic<int> limit{static_cast<int>(ByteProducts::kMatrices)};

}  // namespace

ByteProducts best_byte_products() noexcept {
  int best = detected.load(std::memory_order_relaxed);
  if (best == kUnknown) {
    best = static_cast<int>(detect());
    detected.store(best, std::memory_order_relaxed);
  }
  return static_cast<ByteProducts>(best);
}

ByteProducts byte_products() noexcept {
  return std::min(best_byte_products(), static_cast<ByteProducts>(limit.load(std::memory_order_relaxed)));
}

void limit_byte_products(ByteProducts most) noexcept { limit.store(static_cast<int>(most), std::memory_order_relaxed); }

}  // namespace bantam::ops
