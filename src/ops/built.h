// Which kernels this build contains. Normally all of them; a firmware names those that its package calls, so that the
// linker drops the rest: BANTAM_KERNELS is then a file of rows {"operator", "variant"}, as `bantam pack --kernels`
// writes it. Included by the registry and by operators with more than one variant on a target without SIMD.
//
// Freestanding; everything here is decided while compiling.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "ops/op.h"

namespace bantam::ops {

struct KernelName {
  std::string_view op;
  std::string_view variant;
};

#ifdef BANTAM_KERNELS
inline constexpr bool kAllKernels = false;
inline constexpr KernelName kKernelNames[] = {
#include BANTAM_KERNELS
};
#else
inline constexpr bool kAllKernels = true;
inline constexpr KernelName kKernelNames[] = {{}};
#endif

constexpr bool is_kernel_built(std::string_view op, std::string_view variant) noexcept {
  for (const KernelName& kernel : kKernelNames)
    if (kernel.op == op && kernel.variant == variant) return true;
  return kAllKernels;
}

/// True when `symbol` is the C++ name of the operator called `name`: "kConv2d" of "conv2d", "kGatherNd" of "gather_nd".
constexpr bool is_symbol_of(std::string_view symbol, std::string_view name) noexcept {
  if (!symbol.starts_with('k')) return false;
  std::size_t at = 1;
  bool capital = true;
  for (const char c : name) {
    if (c == '_') {
      capital = true;
      continue;
    }
    const char expected = capital && c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    if (at == symbol.size() || symbol[at++] != expected) return false;
    capital = false;
  }
  return at == symbol.size();
}

constexpr bool is_op_built(std::string_view symbol) noexcept {
  for (const KernelName& kernel : kKernelNames)
    if (is_symbol_of(symbol, kernel.op)) return true;
  return kAllKernels;
}

/// Those rows of an operator's variants that the build contains, in their order.
template <std::size_t N>
struct BuiltVariants {
  KernelVariant rows[N]{};
  std::size_t count = 0;

  constexpr operator std::span<const KernelVariant>() const noexcept { return {rows, count}; }  // NOLINT: a view
};

template <std::size_t N>
consteval BuiltVariants<N> built_variants(std::string_view op, const KernelVariant (&all)[N]) {
  BuiltVariants<N> built;
  for (const KernelVariant& variant : all)
    if (is_kernel_built(op, variant.name)) built.rows[built.count++] = variant;
  return built;
}

}  // namespace bantam::ops
