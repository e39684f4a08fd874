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

#if BANTAM_SIMD && defined(__x86_64__)
#if defined(__linux__)
/// arch_prctl(ARCH_REQ_XCOMP_PERM, 18) of Linux's asm/prctl.h: for the whole process, and as often as one likes.
bool request_tile_data() noexcept {
  constexpr long kArchPrctl = 158;
  constexpr long kRequestPermission = 0x1023;
  constexpr long kTileData = 18;
  long result = kArchPrctl;
  asm volatile("syscall" : "+a"(result) : "D"(kRequestPermission), "S"(kTileData) : "rcx", "r11", "memory");
  return result == 0;
}
#endif

/// Has the processor AMX-INT8, does the operating system keep its registers, and may this process use them?
bool may_use_amx() noexcept {
#if defined(__linux__)
  constexpr unsigned kTilesOfBytes = (1U << 24) | (1U << 25);  // of EDX of leaf 7: AMX-TILE, AMX-INT8
  constexpr unsigned kKeepsState = 1U << 27;                   // of ECX of leaf 1: OSXSAVE
  constexpr unsigned kTileState = (1U << 17) | (1U << 18);     // of XCR0
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) == 0 || (edx & kTilesOfBytes) != kTilesOfBytes) return false;
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) == 0 || (ecx & kKeepsState) == 0) return false;
  asm volatile("xgetbv" : "=a"(eax), "=d"(edx) : "c"(0));
  return (eax & kTileState) == kTileState && request_tile_data();
#else
  return false;
#endif
}
#endif

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
  if (!known || (eax & kAvxVnni) == 0) return ByteProducts::kNone;
  return __builtin_cpu_supports("avx512vnni") && may_use_amx() ? ByteProducts::kMatrices : ByteProducts::kDot;
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
