#include "bantam/status.h"

namespace bantam {
namespace {

/// Appends to a bounded buffer, counting only what fits.
struct Writer {
  char* buffer;
  std::size_t capacity;
  std::size_t length = 0;

  void put(char c) {
    if (length + 1 < capacity) buffer[length++] = c;
  }
  void put(const char* text) {
    while (*text != '\0') put(*text++);
  }
  void put(std::int64_t value) {
    // 20 digits hold any 64-bit magnitude.
    char digits[20];
    int n = 0;
    auto magnitude = value < 0 ? ~static_cast<std::uint64_t>(value) + 1 : static_cast<std::uint64_t>(value);
    do {
      digits[n++] = static_cast<char>('0' + magnitude % 10);
      magnitude /= 10;
    } while (magnitude != 0);
    if (value < 0) put('-');
    while (n > 0) put(digits[--n]);
  }
};

}  // namespace

const char* status_code_name(StatusCode code) noexcept {
  switch (code) {
    case StatusCode::kOk: return "ok";
    case StatusCode::kInvalidArgument: return "invalid argument";
    case StatusCode::kInvalidModel: return "invalid model";
    case StatusCode::kInvalidPackage: return "invalid package";
    case StatusCode::kUnsupported: return "unsupported";
    case StatusCode::kArenaTooSmall: return "arena too small";
    case StatusCode::kMisaligned: return "misaligned address";
    case StatusCode::kOutOfRange: return "index out of range";
    case StatusCode::kNotFound: return "not found";
    case StatusCode::kIo: return "input/output error";
  }
  return "unknown status";
}

std::size_t format_status(const Status& status, char* buffer, std::size_t capacity) noexcept {
  if (capacity == 0) return 0;
  Writer writer{buffer, capacity};
  writer.put(status_code_name(status.code));
  if (status.message[0] != '\0') {
    writer.put(": ");
    writer.put(status.message);
  }
  if (status.index >= 0) {
    writer.put(", at index ");
    writer.put(static_cast<std::int64_t>(status.index));
  }
  if (status.found != status.expected) {
    writer.put(" (found ");
    writer.put(status.found);
    writer.put(", expected ");
    writer.put(status.expected);
    writer.put(")");
  }
  buffer[writer.length] = '\0';
  return writer.length;
}

}  // namespace bantam
