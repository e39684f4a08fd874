// What a process really uses, to set beside what a plan says: memory from the kernel's own accounts, and the stack that
// a call takes. Linux; elsewhere the figures are absent. Host only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>

namespace bantam::diagnose {

struct ProcessMemory {
  std::uint64_t resident_bytes = 0;      ///< pages in memory, those shared with other processes included
  std::uint64_t proportional_bytes = 0;  ///< the same, shared pages divided by their users
  std::uint64_t heap_bytes = 0;          ///< handed out by malloc and not freed
};

/// Nothing where the system does not tell.
std::optional<ProcessMemory> process_memory();

/// Bytes of stack that `call` takes on its own thread, at its deepest: it runs on a stack that was painted before, and
/// what it left unpainted is measured. Stacks of further threads are not seen. Nothing where there is no memory for it.
std::optional<std::uint64_t> stack_high_water(const std::function<void()>& call);

}  // namespace bantam::diagnose
