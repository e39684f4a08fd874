// Who answers the core's interrupts. Called by the vector table (startup.cpp) only.
#pragma once

namespace core {

/// The SysTick timer reached zero and starts again.
void count_wrap() noexcept;

}  // namespace core
