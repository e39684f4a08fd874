#include "core.h"

#include "interrupts.h"

extern "C" {
extern std::uint32_t stack_begin[];
extern std::uint32_t stack_end[];
}

namespace core {
namespace {

constexpr std::uint32_t kPaint = 0xa5c35a3c;
constexpr std::uint32_t kReload = 0xffffff;  // the timer has 24 bits

/// The Armv7-M and Armv8-M system timer.
struct SysTick {
  std::uint32_t control;
  std::uint32_t reload;
  std::uint32_t current;
};
constexpr std::uint32_t kEnable = 1U << 0;
constexpr std::uint32_t kInterrupt = 1U << 1;
constexpr std::uint32_t kCoreClock = 1U << 2;

volatile SysTick& timer() noexcept { return *reinterpret_cast<volatile SysTick*>(0xe000e010); }

volatile std::uint32_t wraps = 0;
std::int64_t instructions_per_1024_ticks = 0;

/// Executes 2 * rounds instructions, give or take a few.
void spin(std::uint32_t rounds) noexcept {
  asm volatile(
      "1: subs %0, %0, #1\n"
      "   bne 1b\n"
      : "+r"(rounds)
      :
      : "cc");
}

std::uint32_t* stack_pointer() noexcept {
  std::uint32_t* sp = nullptr;
  asm volatile("mov %0, sp" : "=r"(sp));
  return sp;
}

}  // namespace

void count_wrap() noexcept { wraps = wraps + 1; }

void start_clock() noexcept {
  timer().reload = kReload;
  timer().current = 0;
  timer().control = kEnable | kInterrupt | kCoreClock;
  while (timer().current == 0) {  // it takes its first value from the reload register a little later
  }
  constexpr std::uint32_t kRounds = 1U << 20;
  const std::uint64_t start = ticks();
  spin(kRounds);
  const auto taken = static_cast<std::int64_t>(ticks() - start);
  instructions_per_1024_ticks = taken == 0 ? 0 : (std::int64_t{2} * kRounds * 1024 + taken / 2) / taken;
}

std::uint64_t ticks() noexcept {
  // A wrap between the reads shows as a changed count.
  for (;;) {
    const std::uint32_t before = wraps;
    const std::uint32_t left = timer().current;
    if (wraps == before) return (std::uint64_t{before} << 24) + (kReload - left);
  }
}

std::int64_t instructions(std::int64_t ticks) noexcept { return ticks * instructions_per_1024_ticks / 1024; }

void paint_stack() noexcept {
  // A margin below the stack pointer stays as it is: this function's own frame.
  constexpr std::ptrdiff_t kMargin = 16;
  for (volatile std::uint32_t* word = stack_begin; word < stack_pointer() - kMargin; word = word + 1) *word = kPaint;
}

std::size_t stack_high_water() noexcept {
  const volatile std::uint32_t* word = stack_begin;
  while (word < stack_end && *word == kPaint) word = word + 1;
  return static_cast<std::size_t>(stack_end - word) * sizeof *word;
}

std::size_t stack_size() noexcept { return static_cast<std::size_t>(stack_end - stack_begin) * sizeof *stack_end; }

}  // namespace core
