#include "semihosting.h"

namespace semihosting {
namespace {

// Numbers of the Arm semihosting specification, version 2.
enum class Call : std::uint32_t {
  kOpen = 0x01,
  kWrite = 0x05,
  kRead = 0x06,
  kSeek = 0x0a,
  kLength = 0x0c,
  kExitExtended = 0x20,
};

constexpr std::uint32_t kReadBinary = 1;
constexpr std::uint32_t kWriteBinary = 5;
constexpr std::uint32_t kApplicationExit = 0x20026;

int call(Call number, const std::uint32_t* arguments) noexcept {
  register std::uint32_t r0 asm("r0") = static_cast<std::uint32_t>(number);
  register const std::uint32_t* r1 asm("r1") = arguments;
  asm volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
  return static_cast<int>(r0);
}

std::uint32_t address(const void* pointer) noexcept { return reinterpret_cast<std::uint32_t>(pointer); }

int open(const char* name, std::uint32_t mode) noexcept {
  const std::uint32_t arguments[] = {address(name), mode, static_cast<std::uint32_t>(std::string_view(name).size())};
  return call(Call::kOpen, arguments);
}

/// The name of the console among files.
constexpr const char* kConsole = ":tt";

}  // namespace

File File::for_reading(const char* name) noexcept { return File(open(name, kReadBinary)); }

File File::for_writing(const char* name) noexcept { return File(open(name, kWriteBinary)); }

bool File::read(void* destination, std::size_t bytes) noexcept {
  const std::uint32_t arguments[] = {static_cast<std::uint32_t>(handle_), address(destination), bytes};
  position_ += bytes;
  return call(Call::kRead, arguments) == 0;  // the call answers how many bytes it did not transfer
}

bool File::write(const void* source, std::size_t bytes) noexcept {
  const std::uint32_t arguments[] = {static_cast<std::uint32_t>(handle_), address(source), bytes};
  position_ += bytes;
  return call(Call::kWrite, arguments) == 0;
}

bool File::at_end() noexcept {
  const std::uint32_t arguments[] = {static_cast<std::uint32_t>(handle_)};
  return position_ >= static_cast<std::size_t>(call(Call::kLength, arguments));
}

bool File::skip(std::size_t bytes) noexcept {
  position_ += bytes;
  const std::uint32_t arguments[] = {static_cast<std::uint32_t>(handle_), position_};
  return call(Call::kSeek, arguments) == 0;
}

void print(std::string_view text) noexcept {
  static File console = File::for_writing(kConsole);
  console.write(text.data(), text.size());
}

void print(std::uint64_t number) noexcept {
  char digits[20];
  std::size_t first = sizeof digits;
  do {
    digits[--first] = static_cast<char>('0' + number % 10);
    number /= 10;
  } while (number != 0);
  print(std::string_view(digits + first, sizeof digits - first));
}

void print(std::int64_t number) noexcept {
  if (number < 0) print("-");
  print(number < 0 ? std::uint64_t{0} - static_cast<std::uint64_t>(number) : static_cast<std::uint64_t>(number));
}

void exit(int code) noexcept {
  const std::uint32_t arguments[] = {kApplicationExit, static_cast<std::uint32_t>(code)};
  call(Call::kExitExtended, arguments);
  for (;;) {
  }
}

}  // namespace semihosting
