// What the firmware needs of the core itself: a count of instructions and the stack's high-water mark.
//
// Instructions are counted by the SysTick timer while the emulator ties its clock to them (`-icount shift=0`: one
// instruction is one nanosecond). A tick is some 30 to 40 instructions, which bounds the error of a reading; errors of
// sums of readings cancel out. Freestanding; one thread.
#pragma once

#include <cstddef>
#include <cstdint>

namespace core {

/// Starts the timer and measures its tick against a loop of known length.
void start_clock() noexcept;

/// Timer ticks since start_clock().
std::uint64_t ticks() noexcept;

/// Instructions in that many ticks, which may be the small difference of two sums.
std::int64_t instructions(std::int64_t ticks) noexcept;

/// Fills the unused part of the stack with a pattern.
void paint_stack() noexcept;

/// Bytes of stack used at the deepest point since it was last painted, the caller's own frames included.
std::size_t stack_high_water() noexcept;

/// Bytes that the image reserves for the stack.
std::size_t stack_size() noexcept;

}  // namespace core
