// Arm semihosting: the debugger or emulator prints and opens files for a core that has no peripherals. Files are those
// of the host, relative to the folder that the emulator runs in.
//
// Freestanding; no memory of its own; one thread. Without a debugger the first call halts the core.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace semihosting {

/// Prints text to the host's console.
void print(std::string_view text) noexcept;
void print(std::uint64_t number) noexcept;
void print(std::int64_t number) noexcept;
inline void print(std::uint32_t number) noexcept { print(std::uint64_t{number}); }

/// Prints all arguments one after the other: text and integers.
template <typename... Parts>
void print_all(const Parts&... parts) noexcept {
  (print(parts), ...);
}

/// An open file of the host. Never closed: the emulator does it when the program ends.
class File {
 public:
  /// Null-terminated names. `valid` tells whether it worked.
  static File for_reading(const char* name) noexcept;
  static File for_writing(const char* name) noexcept;

  bool valid() const noexcept { return handle_ >= 0; }
  /// True when all bytes were transferred; reading beyond the end is false.
  bool read(void* destination, std::size_t bytes) noexcept;
  bool write(const void* source, std::size_t bytes) noexcept;
  /// True when nothing is left to read.
  bool at_end() noexcept;
  /// Moves the reading position forward.
  bool skip(std::size_t bytes) noexcept;

 private:
  explicit File(int handle) noexcept : handle_(handle) {}

  int handle_;
  std::size_t position_ = 0;
};

/// Ends the program with that exit code.
[[noreturn]] void exit(int code) noexcept;

}  // namespace semihosting
