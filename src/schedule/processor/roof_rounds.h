// The loops that measure_roof times, per instruction set.
#pragma once

#include <cstdint>

namespace bantam::schedule {

/// Run `rounds` rounds of independent multiply-accumulates and return how many these were. `seed` is any number; what
/// is computed goes to `*sink`, so that nothing is left out.
std::int64_t float_rounds(std::int64_t rounds, float seed, float* sink);
/// Of 16-bit floats; only where ops::gemm::half_products().
std::int64_t half_rounds(std::int64_t rounds, float seed, float* sink);
/// Of bytes; with AVX-512 not as matrices.
std::int64_t integer_rounds(std::int64_t rounds, int seed, std::int32_t* sink);

}  // namespace bantam::schedule
