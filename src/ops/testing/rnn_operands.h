// Random sizes and operands of recurrent layers, for the tests of lstm, gru and simple_rnn.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "ops/testing/harness.h"

namespace bantam::ops::testing {

struct RnnSizes {
  std::int64_t steps, batch, input, hidden;
};

/// Any units, or as many as make up several blocks (nn/lstm/units.h).
inline std::int64_t random_units(Random& random, std::int64_t least, std::int64_t most) {
  constexpr std::int64_t kBlock = 16;
  if (random_int(random, 0, 1) == 0) return random_int(random, least, most);
  return random_int(random, std::max<std::int64_t>(least / kBlock, 2), std::max<std::int64_t>(most / kBlock, 3)) *
         kBlock;
}

inline RnnSizes random_rnn_sizes(Random& random) {
  return {random_int(random, 0, 40), random_int(random, 1, 3), random_int(random, 0, 9), random_units(random, 1, 21)};
}

/// So much work that threads share it: by direction, in batches, or product by product.
inline RnnSizes random_shared_rnn_sizes(Random& random) {
  const bool has_large_products = random_int(random, 0, 3) == 0;
  return {random_int(random, 1, 5), random_int(random, 1, has_large_products ? 2 : 20), random_int(random, 1, 40),
          has_large_products ? random_units(random, 240, 300) : random_units(random, 30, 90)};
}

/// Small numbers, so that rounding does not grow much from step to step.
inline TestTensor random_rnn_tensor(Random& random, const std::vector<std::int64_t>& dims) {
  return random_tensor(ElementType::kF32, dims, random, -0.6, 0.6);
}

/// The operand, or none.
inline Operand maybe_absent(Random& random, Operand operand) {
  return random_int(random, 0, 1) == 0 ? absent() : std::move(operand);
}

/// x, w, r, bias, lengths and the initial state of a layer of so many directions and gates; the last three may be
/// absent.
inline std::vector<Operand> random_rnn_operands(Random& random, const RnnSizes& sizes, std::int64_t directions,
                                                std::int64_t gates) {
  const auto [t, b, i, h] = sizes;
  const auto tensor = [&](const std::vector<std::int64_t>& dims) { return random_rnn_tensor(random, dims); };
  std::vector<Operand> operands;
  operands.emplace_back(tensor({t, b, i}));
  operands.push_back(constant(tensor({directions, gates * h, i})));
  // Smaller where they are many, or rounding would grow from step to step.
  const double limit = 0.6 * std::sqrt(10.0 / static_cast<double>(std::max<std::int64_t>(h, 10)));
  operands.push_back(constant(random_tensor(ElementType::kF32, {directions, gates * h, h}, random, -limit, limit)));
  operands.push_back(maybe_absent(random, constant(tensor({directions, 2 * gates * h}))));
  operands.push_back(maybe_absent(random, random_tensor(ElementType::kI32, {b}, random, 0, static_cast<double>(t))));
  operands.push_back(maybe_absent(random, tensor({directions, b, h})));
  return operands;
}

}  // namespace bantam::ops::testing
