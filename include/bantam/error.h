// Errors of host code: a message for a person, with the remedy, carried as a value.
//
// Message form: what failed, on which object, what was found, what was expected; the remedy says what to do. Host
// functions return Result<T>; several findings about one input (an import, a fleet file) travel in one Error whose
// message has one line per finding. No exceptions anywhere.
#pragma once

#include <string>
#include <utility>

#include "bantam/status.h"
#include "tl/expected.hpp"

namespace bantam {

struct Error {
  StatusCode code = StatusCode::kInvalidArgument;
  std::string message;  ///< one line per finding, no trailing newline
  std::string remedy;   ///< one line; empty when there is nothing useful to say

  /// The same error with "context: " before its message.
  Error in(const std::string& context) && {
    message = context + ": " + message;
    return std::move(*this);
  }
};

template <typename T>
using Result = tl::expected<T, Error>;

/// An Error to return: `return fail(StatusCode::kIo, "...", "...");`
inline tl::unexpected<Error> fail(StatusCode code, std::string message, std::string remedy = {}) {
  return tl::unexpected<Error>(Error{code, std::move(message), std::move(remedy)});
}

inline tl::unexpected<Error> fail(Error error) { return tl::unexpected<Error>(std::move(error)); }

/// The Error that a failed freestanding call amounts to.
inline Error error_from(const Status& status, std::string remedy = {}) {
  char text[256];
  format_status(status, text, sizeof text);
  return {status.code, text, std::move(remedy)};
}

}  // namespace bantam
