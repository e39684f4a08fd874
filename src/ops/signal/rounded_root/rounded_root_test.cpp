#include "ops/signal/rounded_root/rounded_root.h"

#include <gtest/gtest.h>

#include "ops/testing/harness.h"

namespace bantam::ops {
namespace {

using namespace testing;  // NOLINT: the harness is this file's vocabulary

// The numbers of TensorFlow Lite Micro's filter_bank_square_root_test.cc; the last ones show the saturating 16-bit
// root.
TEST(RoundedRoot, RoundsAndShifts) {
  const std::vector<std::uint64_t> x{10528000193, 28362909357, 515262774, 55815334, 0, 0xFFFFFFFF, 0x100000000};
  const auto root = [&](std::int32_t shift) {
    return run_reference(make_case(kRoundedRoot, {tensor_of({7}, x), tensor_of<std::int32_t>({}, {shift})}));
  };
  using U = std::vector<std::uint32_t>;
  EXPECT_EQ(root(7).outputs[0].values<std::uint32_t>(), (U{801, 1315, 177, 58, 0, 511, 512}));
  EXPECT_EQ(root(0).outputs[0].values<std::uint32_t>(), (U{102606, 168413, 22699, 7471, 0, 65535, 65536}));
  EXPECT_EQ(root(32).status.code, StatusCode::kOutOfRange);
  EXPECT_EQ(root(-1).status.code, StatusCode::kOutOfRange);
}

}  // namespace
}  // namespace bantam::ops
