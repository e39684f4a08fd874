// From reset to the program on an Armv7-M or Armv8-M core: vectors, floating point, initial data. There are no
// constructors to run (the linker script refuses them) and the program ends with its exit code.
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "firmware.h"
#include "interrupts.h"
#include "semihosting.h"

#ifndef BANTAM_STACK_BYTES
#error "BANTAM_STACK_BYTES must be defined"
#endif

extern "C" {

extern std::uint32_t stack_begin[];
extern std::uint32_t stack_end[];
extern std::byte data_begin[];
extern std::byte data_end[];
extern const std::byte data_contents[];
extern std::byte bss_begin[];
extern std::byte bss_end[];

[[gnu::section(".stack"), gnu::used]] alignas(8) static std::byte stack[BANTAM_STACK_BYTES];

/// newlib's mathematical functions report errors here.
int* __errno() {  // NOLINT: newlib's name
  static int number = 0;
  return &number;
}

[[noreturn]] void reset();
void fault();
void systick();

}  // extern "C"

namespace {

using Handler = void (*)();

struct VectorTable {
  std::uint32_t* stack;
  Handler handlers[15];
};

[[gnu::section(".vectors"), gnu::used]] constinit const VectorTable kVectors = {
    stack_end,
    {reset, fault, fault, fault, fault, fault, fault, nullptr, nullptr, nullptr, fault, fault, nullptr, fault,
     systick}};

volatile std::uint32_t& system_register(std::uint32_t address) {
  return *reinterpret_cast<volatile std::uint32_t*>(address);
}
constexpr std::uint32_t kVectorTableOffset = 0xe000ed08;
constexpr std::uint32_t kCoprocessorAccess = 0xe000ed88;
constexpr std::uint32_t kFloatingPoint = 0xfU << 20;  // coprocessors 10 and 11: floating point and, on Armv8.1-M, MVE

/// Makes a push below the stack fault. It lies at the start of the RAM, but not every bus reports what goes beyond.
#if __ARM_ARCH >= 8
void guard_stack() { asm volatile("msr msplim, %0" ::"r"(stack_begin)); }
#else
constexpr std::uint32_t kMpuControl = 0xe000ed94;
constexpr std::uint32_t kMpuRegion = 0xe000ed98;
constexpr std::uint32_t kMpuBase = 0xe000ed9c;
constexpr std::uint32_t kMpuAttributes = 0xe000eda0;

void guard_stack() {
  constexpr std::uint32_t kGuardBits = 16;  // 64 KiB, to which the start of the RAM is aligned
  constexpr std::uint32_t kNoAccess = 1U << 28 | (kGuardBits - 1) << 1 | 1U;
  constexpr std::uint32_t kEnableWithDefaultMap = 1U << 2 | 1U;
  system_register(kMpuRegion) = 0;
  system_register(kMpuBase) = reinterpret_cast<std::uint32_t>(stack_begin) - (1U << kGuardBits);
  system_register(kMpuAttributes) = kNoAccess;
  system_register(kMpuControl) = kEnableWithDefaultMap;
  asm volatile("dsb\nisb" ::: "memory");
}
#endif

constexpr std::uint32_t kConfigurableFaultStatus = 0xe000ed28;
/// Below the stack limit, or a memory management fault: the guard is the only protected region.
constexpr std::uint32_t kStackFaults = 1U << 20 | 0xffU;
constexpr std::uint32_t kBusFaultAddress = 0xe000ed38;

}  // namespace

void reset() {
  system_register(kCoprocessorAccess) = system_register(kCoprocessorAccess) | kFloatingPoint;
  asm volatile("dsb\nisb" ::: "memory");
  system_register(kVectorTableOffset) = reinterpret_cast<std::uint32_t>(&kVectors);
  guard_stack();
  std::memcpy(data_begin, data_contents, static_cast<std::size_t>(data_end - data_begin));
  std::memset(bss_begin, 0, static_cast<std::size_t>(bss_end - bss_begin));
  semihosting::exit(run_firmware());
}

/// Every fault ends the program. An overflowing stack comes here too; the handler then begins at its top again.
[[gnu::naked]] void fault() {
  asm volatile(
      "ldr r0, =stack_end\n"
      "mov sp, r0\n"
      "b report_fault\n");
}

extern "C" [[gnu::used]] void report_fault() {
  const std::uint32_t status = system_register(kConfigurableFaultStatus);
  if ((status & kStackFaults) != 0) {
    semihosting::print("fault: the stack overflowed\n");
  } else {
    semihosting::print_all("fault: the core stopped, status ", status, ", address ",
                           std::uint32_t{system_register(kBusFaultAddress)}, "\n");
  }
  semihosting::exit(70);
}

void systick() { core::count_wrap(); }
