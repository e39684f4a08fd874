// The options of a custom operator: a FlexBuffers map of scalars, as files carry it in `custom_options`.
//
//   auto options = CustomOptions::parse(bytes);                 // Result; nothing outside the bytes is ever read
//   const std::optional<double> scale = options->number("y_scale");
//   for (const std::string& name : options->names()) ...        // to refuse what nobody reads
//
// Format: the public FlexBuffers specification. Values that are no numbers are known by name only. The library's own
// verifier is not used: it accepts keys that do not end inside the buffer. Thread rule: immutable once parsed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bantam/error.h"

namespace bantam::import::tflite {

class CustomOptions {
 public:
  /// No bytes are an empty map. Fails when the bytes are no map or reach outside themselves.
  static Result<CustomOptions> parse(std::span<const std::uint8_t> bytes);

  bool has(std::string_view name) const noexcept { return find(name) != nullptr; }
  /// The value of a number or truth value; nothing when it is absent or something else.
  std::optional<double> number(std::string_view name) const noexcept;
  std::vector<std::string> names() const;

 private:
  struct Entry {
    std::string name;
    std::optional<double> number;
  };

  const Entry* find(std::string_view name) const noexcept;

  std::vector<Entry> entries_;
};

}  // namespace bantam::import::tflite
