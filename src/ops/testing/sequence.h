// Tensors of numbers that another program can make as easily: the expectations of a test that come from another
// implementation were computed for these.
#pragma once

#include "ops/testing/harness.h"

namespace bantam::ops::testing {

/// Element i is (step * i + first) mod modulus - offset.
template <typename T>
TestTensor sequence_of(const std::vector<std::int64_t>& dims, std::int64_t step, std::int64_t first,
                       std::int64_t modulus, std::int64_t offset) {
  TestTensor tensor(dense_desc(kElementTypeOf<T>, dims));
  std::vector<T> values(static_cast<std::size_t>(tensor.desc().elements()));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<T>((step * static_cast<std::int64_t>(i) + first) % modulus - offset);
  tensor.set_values(values);
  return tensor;
}

/// The sequences that stand for int16 activations and for int8 weights.
inline TestTensor sequence_i16(const std::vector<std::int64_t>& dims) {
  return sequence_of<std::int16_t>(dims, 7919, 5, 65536, 32768);
}
inline TestTensor sequence_weights(const std::vector<std::int64_t>& dims) {
  return sequence_of<std::int8_t>(dims, 53, 11, 255, 127);
}

}  // namespace bantam::ops::testing
