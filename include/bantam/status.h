// Status: how every freestanding function of Bantam reports success or failure.
//
// A Status is a plain value: a code, a message with static storage duration, the index of the object it concerns and
// the two numbers a reader needs (what was found, what was expected). It never allocates, so it can be returned from
// an interrupt-driven device as well as from a server. Host code turns it into an Error with names (base/error.h).
// Thread rule: values, no shared state.
#pragma once

#include <cstddef>
#include <cstdint>

namespace bantam {

enum class StatusCode : std::uint8_t {
  kOk = 0,
  kInvalidArgument,  ///< the caller passed something the contract excludes (index, size, name)
  kInvalidModel,     ///< a model or graph breaks the rules of its format or of the operator
  kInvalidPackage,   ///< package bytes are damaged, foreign or inconsistent
  kUnsupported,      ///< well formed, but outside what this build supports
  kArenaTooSmall,    ///< `expected` bytes are needed, `found` were given
  kMisaligned,       ///< an address is not a multiple of `expected`
  kOutOfRange,       ///< a data-dependent index is outside its tensor
  kNotFound,         ///< no object of that name or index
  kIo,               ///< the operating system refused a file operation
};

/// One line of meaning per code, for messages. Never null.
const char* status_code_name(StatusCode code) noexcept;

struct [[nodiscard]] Status {
  StatusCode code = StatusCode::kOk;
  std::int32_t index = -1;   ///< step, value or operand concerned; -1 when none
  const char* message = "";  ///< static storage; what failed
  std::int64_t found = 0;    ///< meaningful when found != expected
  std::int64_t expected = 0;

  constexpr bool ok() const noexcept { return code == StatusCode::kOk; }

  /// The same failure, attributed to object `i` unless a deeper layer already named one.
  constexpr Status at(std::int32_t i) const noexcept {
    Status s = *this;
    if (s.index < 0) s.index = i;
    return s;
  }
};

constexpr Status ok_status() noexcept { return {}; }

constexpr Status failure(StatusCode code, const char* message, std::int64_t found = 0,
                         std::int64_t expected = 0) noexcept {
  return {code, -1, message, found, expected};
}

/// Writes "code: message (found F, expected E)" into `buffer`, always zero-terminated when capacity > 0.
/// Returns the length written without the terminator.
std::size_t format_status(const Status& status, char* buffer, std::size_t capacity) noexcept;

}  // namespace bantam

/// Leaves the enclosing function with the failure of `expression`, a Status.
#define BANTAM_RETURN_IF_ERROR(expression)                                                                 \
  do {                                                                                                     \
    if (const ::bantam::Status bantam_status_ = (expression); !bantam_status_.ok()) return bantam_status_; \
  } while (false)
