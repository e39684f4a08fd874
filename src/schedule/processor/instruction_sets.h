// The instruction sets that vector kernels are compiled for, and which of them is in use. Kernels are chosen per call
// by Highway's dynamic dispatch: the best set that this build and the processor have, unless it is limited here, which
// a benchmark or the search for a fault may want. Results of integer kernels and of those called consistent do not
// depend on it. Host only; not while kernels run in another thread.
#pragma once

#include <string_view>
#include <vector>

#include "bantam/error.h"

namespace bantam::schedule {

struct InstructionSet {
  std::string_view name;  ///< "avx2"
  std::string_view meaning;
  bool available = false;  ///< on this processor
  bool used = false;
};

/// Those of this build, best first.
std::vector<InstructionSet> instruction_sets();

/// Does this processor compute with vectors of 64 bytes in two halves, so that they multiply no more numbers at a time
/// than those of 32 bytes do? Such are AMD's of family 19h with AVX-512.
bool halves_wide_vectors() noexcept;

/// Did AMD make it?
bool is_amd() noexcept;

/// From now on no better set than `name` is used; "best" takes a limit back.
Result<void> limit_instruction_set(std::string_view name);

/// The same by the environment variable BANTAM_CPU, where it is set and not empty.
Result<void> limit_instruction_set_by_environment();

}  // namespace bantam::schedule
