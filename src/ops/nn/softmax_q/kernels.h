// What the kernels of softmax_q share, behind its variants table in softmax_q.cpp.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "ops/fixed_point_math.h"
#include "ops/nn/softmax_q/softmax_q.h"

namespace bantam::ops::softmax_q {

/// Differences of bytes: 0 to 255.
constexpr int kDifferences = 256;

/// exp(-difference) in Q0 for an input `difference` below the row's maximum. In [0, 2^31), of 0 the largest.
inline std::int32_t exp_below_maximum(const SoftmaxQParams& p, int difference) {
  if (-difference < p.diff_min) return 0;
  return exp_of_negative<5>(
      std::min<std::int32_t>(multiply_by_quantized_multiplier(-difference, p.input_multiplier, p.input_left_shift), 0));
}

/// exp_below_maximum of every difference: worth its making for tensors of more elements than it has.
class ExpTable {
 public:
  explicit ExpTable(const SoftmaxQParams& p) {
    for (int i = 0; i < kDifferences; ++i) values_[i] = exp_below_maximum(p, i);
  }

  std::int32_t operator()(int difference) const { return values_[difference]; }

 private:
  std::int32_t values_[kDifferences];
};

/// The sum of exponentials is in Q12.
constexpr int kSumIntegerBits = 12;

/// What takes an exponential to its share of the row's sum: its high product with the multiplier, divided by a power.
struct Share {
  std::int32_t multiplier = 0;  ///< Q0, not negative
  int exponent = 0;             ///< in [0, 31]
};

/// Shares in 1/2^result_bits. The sum has the exponential of 0 in it. Rows whose sum leaves Q12 are outside the
/// definition; it saturates.
inline Share share_of(std::int64_t sum, int result_bits) {
  const FixedPointReciprocal reciprocal = fixed_point_reciprocal(
      static_cast<std::int32_t>(std::min<std::int64_t>(sum, std::numeric_limits<std::int32_t>::max())),
      kSumIntegerBits);
  const int exponent = reciprocal.exponent + 31 - result_bits;
  // Beyond 31 the quotient of any 31-bit number rounds to zero.
  return exponent > 31 ? Share{0, 31} : Share{reciprocal.mantissa, exponent};
}

/// Elements whose exponentials run_bytes keeps on the stack, until their sum is known.
constexpr std::int64_t kLongestRow = 1024;

/// Vectors of exponentials that were looked up. Operands of i8 and u8 that are worth a table, with rows of 2 to
/// kLongestRow elements.
bool supports_bytes(const OpCall& call);
Status run_bytes(const Invocation& call);

}  // namespace bantam::ops::softmax_q
