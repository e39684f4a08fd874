// The kernels of lookup8 behind its variants table in lookup8.cpp.
#pragma once

#include "ops/elementwise/lookup8/line.h"
#include "ops/op.h"

namespace bantam::ops {

/// The table as the variant with vectors packs it.
struct PackedTable {
  std::uint8_t entries[256];
  Line line;
};

/// Contiguous rows.
bool supports_lookup8_simd(const OpCall& call);
std::int64_t packed_bytes_lookup8_simd(const OpCall& call, int input);
void pack_lookup8_simd(const OpCall& call, int input, std::byte* destination);
Status run_lookup8_simd(const Invocation& invocation);

}  // namespace bantam::ops
