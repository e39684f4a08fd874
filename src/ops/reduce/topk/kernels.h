// The vector kernel of topk, for its table of variants.
#pragma once

#include <cstdint>

#include "ops/op.h"

namespace bantam::ops {

/// Of the heap that each thread has in its scratch.
constexpr std::int64_t heap_bytes(std::int64_t k) noexcept {
  constexpr auto kUnit = static_cast<std::int64_t>(kAlignment);
  return (k * static_cast<std::int64_t>(sizeof(std::uint64_t)) + kUnit - 1) / kUnit * kUnit;
}

/// f32 along the innermost axis, dense.
bool supports_topk_f32_simd(const OpCall& call);
Footprint topk_f32_footprint(const OpCall& call, int threads);
Status run_topk_f32_simd(const Invocation& invocation);

}  // namespace bantam::ops
