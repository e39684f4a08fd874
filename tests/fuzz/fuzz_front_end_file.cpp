#include "bantam/audio.h"
#include "support.h"
#include "targets.h"

namespace bantam::fuzz {

void fuzz_front_end_file(std::span<const std::byte> bytes) {
  auto config = audio::parse_front_end_file(text_of(bytes), "front-end.toml", "folder");
  if (!config) {
    require_message(config.error());
    return;
  }
  const auto changes = audio::check(*config);
  if (!changes) {
    require_message(changes.error());
    return;
  }
  require(config->frame >= 64 && config->frame % 32 == 0, "a frame of no allowed size was left");
  require(config->input.format.find('M') != std::string::npos, "an input without a microphone was accepted");
  for (const audio::ConfigChange& change : *changes) require(!change.why.empty(), "a change was not explained");
}

}  // namespace bantam::fuzz
