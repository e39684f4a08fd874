#include "compiler/fleet_file.h"
#include "support.h"
#include "targets.h"

namespace bantam::fuzz {

void fuzz_fleet_file(std::span<const std::byte> bytes) {
  const auto file = parse_fleet_file(text_of(bytes), "fleet.toml", "folder");
  if (!file) {
    require_message(file.error());
    return;
  }
  const FleetSpec& spec = file->spec;
  require(!spec.models.empty(), "a fleet without a model was accepted");
  require(file->feeds.size() == (spec.sessions.empty() ? spec.models.size() : spec.sessions.size()),
          "feeds and sessions differ in number");
}

}  // namespace bantam::fuzz
