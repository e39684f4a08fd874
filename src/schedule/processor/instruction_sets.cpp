#include "schedule/processor/instruction_sets.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "ops/common/byte_products.h"
#include "ops/nn/gemm/half_products.h"

#if BANTAM_SIMD
#include "hwy/highway.h"
#endif

namespace bantam::schedule {
namespace {

#if BANTAM_SIMD
constexpr bool kVectors = true;
#else
constexpr bool kVectors = false;
#endif

struct Row {
  std::string_view name;
  std::string_view meaning;
  std::int64_t target;                                    ///< Highway's bit: the lower, the better
  ops::ByteProducts products = ops::ByteProducts::kNone;  ///< what it has besides
  enum class Halves { kNone, kIfThere, kRequired } halves = Halves::kNone;
};
using Halves = Row::Halves;

/// Best first.
constexpr Row kRows[] = {
#if BANTAM_SIMD && HWY_ARCH_X86
    {"avx512-amx", "AVX-512 with VNNI and products of matrices of bytes", HWY_AVX3_DL, ops::ByteProducts::kMatrices,
     Halves::kIfThere},
    {"avx512-fp16", "AVX-512 with VNNI and 16-bit floats", HWY_AVX3_DL, ops::ByteProducts::kNone, Halves::kRequired},
    {"avx512", "AVX-512 with VNNI", HWY_AVX3_DL},
    {"avx2-vnni", "AVX2 with AVX-VNNI", HWY_AVX2, ops::ByteProducts::kDot},
    {"avx2", "AVX2 with FMA", HWY_AVX2},
    {"sse4", "SSE4.2", HWY_SSE4},
#elif BANTAM_SIMD && HWY_ARCH_ARM
    {"neon-i8mm", "NEON with products of matrices of bytes", HWY_NEON, ops::ByteProducts::kMatrices, Halves::kIfThere},
    {"neon-dotprod", "NEON with dot products of bytes", HWY_NEON, ops::ByteProducts::kDot, Halves::kIfThere},
    {"neon-f16", "NEON with 16-bit floats", HWY_NEON, ops::ByteProducts::kNone, Halves::kRequired},
    {"neon", "NEON", HWY_NEON},
#endif
    {"plain", "no vector instructions", 0},  // of builds without vector kernels
};

std::int64_t supported_targets() {
#if BANTAM_SIMD
  const std::int64_t targets = hwy::SupportedTargets();
  // Asking makes Highway choose among all targets of the processor, whatever is disabled.
  hwy::GetChosenTarget().Update(targets);
  return HWY_TARGETS & targets;
#else
  return 0;
#endif
}

/// What is supported without a limit.
std::int64_t processor_targets() {
#if BANTAM_SIMD
  static const std::int64_t targets = HWY_TARGETS & hwy::SupportedTargets();
  return targets;
#else
  return 0;
#endif
}

bool has(const Row& row, std::int64_t targets, ops::ByteProducts products, bool halves) {
  if (row.target == 0) return true;
  return (targets & row.target) != 0 && row.products <= products && (row.halves != Halves::kRequired || halves);
}

std::string available_names() {
  std::string names;
  for (const InstructionSet& set : instruction_sets())
    if (set.available) names += (names.empty() ? "" : ", ") + std::string(set.name);
  return names;
}

}  // namespace

std::vector<InstructionSet> instruction_sets() {
  const std::int64_t available = processor_targets();
  const std::int64_t usable = supported_targets();
  std::vector<InstructionSet> sets;
  bool found = false;
  for (const Row& row : kRows) {
    if (row.target == 0 && kVectors) continue;
    const bool used = !found && has(row, usable, ops::byte_products(), ops::gemm::half_products());
    found = found || used;
    sets.push_back(
        {row.name, row.meaning, has(row, available, ops::best_byte_products(), ops::gemm::has_half_products()), used});
  }
  return sets;
}

bool halves_wide_vectors() noexcept {
#if BANTAM_SIMD && HWY_ARCH_X86
  return __builtin_cpu_is("amdfam19h") && (processor_targets() & HWY_AVX3_DL) != 0;
#else
  return false;
#endif
}

bool is_amd() noexcept {
#if BANTAM_SIMD && HWY_ARCH_X86
  return __builtin_cpu_is("amd");
#else
  return false;
#endif
}

Result<void> limit_instruction_set(std::string_view name) {
  const std::int64_t available = processor_targets();
  const bool best = name == "best";
  const auto* row = std::ranges::find(kRows, name, &Row::name);
  const bool known =
      row != std::end(kRows) &&
      (row->target == 0 ? !kVectors : has(*row, available, ops::best_byte_products(), ops::gemm::has_half_products()));
  if (!best && !known)
    return fail(StatusCode::kInvalidArgument,
                fmt::format("instruction set '{}' is not known, or this processor does not have it", name),
                fmt::format("use one of: best, {}", available_names()));
#if BANTAM_SIMD
  hwy::DisableTargets(best ? 0 : row->target - 1);
  ops::limit_byte_products(best ? ops::best_byte_products() : row->products);
  ops::gemm::allow_half_products(best || row->halves != Halves::kNone);
#endif
  return {};
}

Result<void> limit_instruction_set_by_environment() {
  const char* name = std::getenv("BANTAM_CPU");
  if (name == nullptr || *name == '\0') return {};
  auto limited = limit_instruction_set(name);
  return limited ? limited : fail(std::move(limited.error()).in("BANTAM_CPU"));
}

}  // namespace bantam::schedule
