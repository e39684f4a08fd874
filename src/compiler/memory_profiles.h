// Memories of well-known devices, by name, and memories as a command line writes them.
//
// Called by the command (--profile, --memory). Host only; no shared state.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bantam/compiler.h"

namespace bantam::compiler {

struct MemoryProfile {
  std::string_view name;
  std::string_view summary;
  std::vector<MemorySpec> memories;
  std::string weights;  ///< the one that holds the package
};

std::span<const MemoryProfile> memory_profiles();

/// Fails with the known ones.
Result<MemoryProfile> find_memory_profile(std::string_view name);

/// "sram=512KiB:1", or "flash:24" for one that only holds the package. The cost is 1 when it is left out.
Result<MemorySpec> parse_memory(std::string_view text);

}  // namespace bantam::compiler
