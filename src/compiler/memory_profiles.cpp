#include "compiler/memory_profiles.h"

#include <fmt/format.h>

#include <charconv>

#include "compiler/fleet_file.h"

namespace bantam::compiler {
namespace {

constexpr std::uint64_t kKiB = 1024;

const std::vector<MemoryProfile>& profiles() {
  // Costs are ratios of sequential bandwidth, from the data sheets: bytes that the processor's bus moves at full clock
  // over bytes that the memory's interface moves.
  static const std::vector<MemoryProfile> table = {
      // 4 bytes at 240 MHz; octal PSRAM, both edges of 80 MHz; quad flash at 80 MHz.
      {"esp32-s3",
       "512 KiB on chip, 8 MiB of PSRAM, flash",
       {{"sram", 512 * kKiB, 1}, {"psram", 8 * 1024 * kKiB, 6}, {"flash", 0, 24}},
       "flash"},
      // As on an STM32H743: 8 bytes at 480 MHz; 8 bytes at 240 MHz; flash of 32 bytes at four wait states of 240 MHz.
      {"cortex-m7",
       "128 KiB tightly coupled, 512 KiB of SRAM, flash",
       {{"dtcm", 128 * kKiB, 1}, {"sram", 512 * kKiB, 2}, {"flash", 0, 2.5}},
       "flash"},
  };
  return table;
}

tl::unexpected<Error> no_memory(std::string_view text) {
  return fail(StatusCode::kInvalidArgument, fmt::format("'{}' is no memory", text),
              "write NAME=SIZE:COST, such as sram=512KiB:1, or NAME:COST for one that only holds the package");
}

}  // namespace

std::span<const MemoryProfile> memory_profiles() { return profiles(); }

Result<MemoryProfile> find_memory_profile(std::string_view name) {
  std::string known;
  for (const MemoryProfile& profile : profiles()) {
    if (profile.name == name) return profile;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", profile.name);
  }
  return fail(StatusCode::kInvalidArgument, fmt::format("there is no profile '{}'; there are: {}", name, known),
              "use one of them, or name the memories with --memory");
}

Result<MemorySpec> parse_memory(std::string_view text) {
  MemorySpec memory;
  const std::size_t colon = text.rfind(':');
  const std::string_view place = text.substr(0, colon);
  if (colon != std::string_view::npos) {
    const std::string_view cost = text.substr(colon + 1);
    const auto [end, code] = std::from_chars(cost.data(), cost.data() + cost.size(), memory.cost);
    if (code != std::errc() || end != cost.data() + cost.size()) return no_memory(text);
  }
  const std::size_t equals = place.find('=');
  memory.name = place.substr(0, equals);
  if (memory.name.empty()) return no_memory(text);
  if (equals == std::string_view::npos) return memory;
  const auto bytes = parse_bytes(place.substr(equals + 1));
  if (!bytes) return no_memory(text);
  memory.bytes = *bytes;
  return memory;
}

}  // namespace bantam::compiler
