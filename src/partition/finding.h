// What the readers of this layer find: a list of faults and remarks, collected in one pass instead of ending at the
// first.
//
// A Finding names the object, what was found, what was expected and what to do. Text from untrusted bytes is quoted, so
// messages are printable. Values, no shared state; at most kMaxFindings are kept, the rest is counted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "bantam/error.h"

namespace bantam::partition {

enum class Severity : std::uint8_t {
  kNote,     ///< nothing is wrong
  kWarning,  ///< works, but somebody should know
  kError,    ///< a loader would misread, crash or find nothing
};

/// "note", "warning", "error".
const char* severity_name(Severity severity) noexcept;

struct Finding {
  Severity severity = Severity::kError;
  std::string object;        ///< "model 2 'wn9_hilexin', file 1 'wn9_data'", "line 4 'model'"
  std::string message;       ///< what was found, what was expected
  std::string remedy;        ///< one line; may be empty
  std::int64_t offset = -1;  ///< byte of the image concerned; -1 when none
};

/// "object: message".
std::string describe(const Finding& finding);

class Findings {
 public:
  static constexpr std::size_t kMaxFindings = 200;

  void add(Finding finding);
  void error(std::string object, std::int64_t offset, std::string message, std::string remedy = {});
  void warning(std::string object, std::int64_t offset, std::string message, std::string remedy = {});
  void note(std::string object, std::int64_t offset, std::string message, std::string remedy = {});

  const std::vector<Finding>& list() const noexcept { return list_; }
  /// Findings of that severity, those not kept included.
  std::size_t count(Severity severity) const noexcept { return counts_[static_cast<std::size_t>(severity)]; }
  std::size_t dropped() const noexcept { return dropped_; }
  bool ok() const noexcept { return count(Severity::kError) == 0; }

  /// All errors as one Error, a line each. Requires !ok().
  Error to_error(StatusCode code) const;

 private:
  std::vector<Finding> list_;
  std::size_t counts_[3] = {};
  std::size_t dropped_ = 0;
};

/// The text in quotation marks, at most `limit` bytes of it, with bytes that are no printable ASCII written \xNN.
std::string quote(std::string_view text, std::size_t limit = 64);

}  // namespace bantam::partition
