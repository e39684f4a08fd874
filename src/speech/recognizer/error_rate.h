// Character error rate: how far transcripts are from what was said. Host only; pure functions.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "bantam/error.h"

namespace bantam::speech {

struct ErrorCount {
  std::size_t edits = 0;       ///< fewest characters inserted, deleted or replaced
  std::size_t characters = 0;  ///< of the reference

  /// Edits per character; of an empty reference 0 when nothing was recognised either, else 1 per character.
  double rate() const noexcept {
    return static_cast<double>(edits) / static_cast<double>(characters > 0 ? characters : 1);
  }
  ErrorCount& operator+=(const ErrorCount& other) noexcept {
    edits += other.edits;
    characters += other.characters;
    return *this;
  }
};

/// Compares code points of UTF-8 text; ASCII case does not count, and any white space is one space between words.
ErrorCount count_errors(std::string_view recognised, std::string_view reference);

/// Reads lines "key transcript".
Result<std::map<std::string, std::string>> read_references(const std::filesystem::path& path);

}  // namespace bantam::speech
