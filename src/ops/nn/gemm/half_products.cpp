#include "ops/nn/gemm/half_products.h"

#include <atomic>

#include "ops/nn/gemm/gemm_f16_tile.h"

#if BANTAM_SIMD && defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif
#if BANTAM_SIMD && defined(__x86_64__)
#include <cpuid.h>
#endif

namespace bantam::ops::gemm {
namespace {

bool detect() noexcept {
#if BANTAM_SIMD && defined(__aarch64__) && defined(__linux__)
  constexpr unsigned long kVectorsOfHalves = 1UL << 10;  // Linux's HWCAP_ASIMDHP
  return (getauxval(AT_HWCAP) & kVectorsOfHalves) != 0;
#elif BANTAM_SIMD && defined(__x86_64__)
  constexpr unsigned kAvx512Fp16 = 1U << 23;  // of EDX of leaf 7
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  // The compiler's own test asks whether the operating system keeps the wide registers too.
  return __builtin_cpu_supports("avx512vl") && __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 &&
         (edx & kAvx512Fp16) != 0;
#else
  return false;
#endif
}

enum class Found : int { kUnknown, kNo, kYes };
std::atomic<Found> found{Found::kUnknown};
std::atomic<bool> allowed_now{true};

}  // namespace

bool has_half_products() noexcept {
  Found answer = found.load(std::memory_order_relaxed);
  if (answer == Found::kUnknown) {
    answer = half_tile_function() != nullptr && detect() ? Found::kYes : Found::kNo;
    found.store(answer, std::memory_order_relaxed);
  }
  return answer == Found::kYes;
}

bool half_products() noexcept { return allowed_now.load(std::memory_order_relaxed) && has_half_products(); }

void allow_half_products(bool allowed) noexcept { allowed_now.store(allowed, std::memory_order_relaxed); }

}  // namespace bantam::ops::gemm
