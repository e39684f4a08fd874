// Random sizes of recurrent layers, for the tests of lstm, gru and simple_rnn.
#pragma once

#include "ops/testing/harness.h"

namespace bantam::ops::testing {

struct RnnSizes {
  std::int64_t steps, batch, input, hidden;
};

inline RnnSizes random_rnn_sizes(Random& random) {
  return {random_int(random, 0, 40), random_int(random, 1, 3), random_int(random, 0, 9), random_int(random, 1, 21)};
}

/// So much work that threads share it: by direction, in batches, or product by product.
inline RnnSizes random_shared_rnn_sizes(Random& random) {
  const bool has_large_products = random_int(random, 0, 3) == 0;
  return {random_int(random, 1, 5), random_int(random, 1, has_large_products ? 2 : 20), random_int(random, 1, 40),
          has_large_products ? random_int(random, 240, 300) : random_int(random, 30, 90)};
}

}  // namespace bantam::ops::testing
