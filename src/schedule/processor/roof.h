// What one thread of this processor can compute at most: the roof that benchmarks set their figures against.
// Host only. Measuring takes some 20 ms on a quiet machine; the thread should have a core to itself.
#pragma once

namespace bantam::schedule {

/// Multiply-accumulates per second of independent sums in registers, with the best instructions that the instruction
/// set in use has for them. Nothing is loaded or stored, so no kernel is faster. 0 in builds without vector kernels.
struct Roof {
  double float_macs = 0;    ///< of two f32
  double half_macs = 0;     ///< of two 16-bit floats, summed in 16 bits; 0 without such arithmetic
  double integer_macs = 0;  ///< of two bytes, of which one has a sign, or both, summed in 32 bits
};

Roof measure_roof();

}  // namespace bantam::schedule
