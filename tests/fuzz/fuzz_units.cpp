// Lists of units: what is read joins to a text that fits its promise; and as transcripts, to a distance within bounds.
#include <algorithm>
#include <string>
#include <vector>

#include "bantam/speech.h"
#include "speech/recognizer/error_rate.h"
#include "support.h"
#include "targets.h"

namespace bantam::fuzz {

void fuzz_units(std::span<const std::byte> bytes) {
  const std::string text(text_of(bytes));
  constexpr std::size_t kMostCompared = 2000;  // the distance takes time that grows with the square
  const std::string_view part(text.data(), std::min(text.size(), kMostCompared));
  const speech::ErrorCount errors = speech::count_errors(part, "turn on the light");
  require(errors.edits <= std::max<std::size_t>(part.size(), errors.characters), "more edits than characters");

  std::int32_t count = 0;
  if (!speech::Units::count(text, &count).ok()) return;
  std::vector<speech::Units::Unit> table(static_cast<std::size_t>(count));
  speech::Units units;
  if (!speech::Units::place(text, table, &units).ok()) return;
  require(units.size() == table.size(), "a list has another size than it was counted");
  std::vector<std::int32_t> tokens;
  for (std::int32_t id = -1; id <= count && tokens.size() < kMostCompared; ++id) tokens.push_back(id);
  std::string joined(tokens.size() * units.longest(), '?');
  joined.resize(units.join(tokens, joined));
  require(!joined.starts_with(' ') && !joined.ends_with(' ') && joined.find("  ") == std::string::npos,
          "spaces are doubled, or at an end");
}

}  // namespace bantam::fuzz
