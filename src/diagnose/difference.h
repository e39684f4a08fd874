// How far a tensor is from what is expected: the one measure behind `bantam verify` and `bantam compare`.
//
// Host only; plain functions, re-entrant.
#pragma once

#include <cstdint>

#include "bantam/tensor.h"

namespace bantam::diagnose {

struct Difference {
  std::int64_t elements = 0;
  std::int64_t mismatches = 0;  ///< elements that differ at all
  double absolute = 0;          ///< largest difference, in stored units; infinite where only one side is a number
  double relative = 0;          ///< the same over the largest finite magnitude expected
};

/// `expected_strides` (elements, by axis of `actual`) allow the expected elements to lie in another order of axes; its
/// desc matters for the type only, which must be that of `actual`.
Difference difference(const Tensor& actual, const Tensor& expected, const std::int64_t* expected_strides);

/// The same for tensors of equal shape.
Difference difference(const Tensor& actual, const Tensor& expected);

/// What may differ. Floats: relative to the largest magnitude, or absolutely up to the floor: sigmoids and softmaxes of
/// other engines are four units in the last place of 1 from exact for results near zero, so that a tensor of such
/// results has no meaningful relative error. Integers: largest difference in steps.
struct Tolerance {
  double floats = 1e-4;
  double integers = 0;
  double float_floor = 4 * 0x1p-23;

  bool allows(const Difference& difference, ElementType type) const;
};

}  // namespace bantam::diagnose
