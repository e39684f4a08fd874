#include "bantam/target.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "compiler/cost_model.h"

namespace bantam {
namespace {

/// Kernels in plain C++, which every target has: the references, and those written for small cores.
constexpr std::string_view kPlain[] = {"portable", "ref"};

/// Vector kernels are compiled for every instruction set of an architecture; the processor's is chosen when they run.
constexpr std::string_view kVectors[] = {"simd", "portable", "ref"};

constexpr Target kTargets[] = {
    {},
    {"x86-64-avx2", "x86-64 with AVX2", 8, kVectors, compiler::kAvx2Machine},
    {"x86-64-avx512", "x86-64 with AVX-512 and VNNI", 8, kVectors, compiler::kAvx512Machine},
    {"x86-64-zen4", "x86-64 with AVX-512 and VNNI in halves, as of AMD's Zen 4", 8, kVectors,
     compiler::kAvx512HalvesMachine},
    {"x86-64-zen5", "x86-64 with AVX-512 and VNNI, as of AMD's Zen 5", 8, kVectors, compiler::kAvx512AmdMachine},
    {"cortex-a53", "64-bit Arm Cortex-A53", 8, kVectors, {5, 8, 4, 1.5, 0.4, 4, 2, 300, 0, compiler::kMiB, 2}},
    {"cortex-a72", "64-bit Arm Cortex-A72", 8, kVectors, {7, 16, 6, 0.8, 0.8, 10, 4, 150, 0, 2 * compiler::kMiB, 4}},
    {"cortex-a76",
     "64-bit Arm Cortex-A76, with dot products",
     8,
     kVectors,
     {17, 70, 10, 0.5, 1.5, 20, 8, 80, 0, 4 * compiler::kMiB, 8, 34}},
    {"cortex-m4",
     "Arm Cortex-M4 with single-precision floating point",
     4,
     kPlain,
     {0.03, 0.08, 0.08, 100, 0.03, 0.3, 0.3, 2000}},
    {"cortex-m55", "Arm Cortex-M55", 4, kPlain, {0.06, 0.2, 0.2, 60, 0.06, 0.8, 0.5, 1500}},
};

}  // namespace

bool Target::has_kernel(std::string_view variant) const noexcept {
  if (instruction_sets.empty()) return true;
  const std::size_t mark = variant.rfind("__");
  return mark != std::string_view::npos &&
         std::ranges::find(instruction_sets, variant.substr(mark + 2)) != instruction_sets.end();
}

std::span<const Target> all_targets() noexcept { return kTargets; }

Result<Target> find_target(std::string_view name) {
  std::string names;
  for (const Target& target : kTargets) {
    if (target.name == name) return target;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", target.name);
  }
  return fail(StatusCode::kNotFound, fmt::format("there is no target '{}'; targets are {}", name, names),
              "use one of the names listed");
}

}  // namespace bantam
