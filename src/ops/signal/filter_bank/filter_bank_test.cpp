#include "ops/signal/filter_bank/filter_bank.h"

#include <gtest/gtest.h>

#include "ops/testing/harness.h"

namespace bantam::ops {
namespace {

using namespace testing;  // NOLINT: the harness is this file's vocabulary

using Samples = std::vector<std::int16_t>;

Outcome bank(const Samples& first_bins, const Samples& first_weights, const Samples& widths) {
  const auto list = [](const Samples& values) { return tensor_of({static_cast<std::int64_t>(values.size())}, values); };
  return run_reference(make_case(
      kFilterBank, {tensor_of<std::uint32_t>({8}, {645050, 4644, 3653, 24262, 56660, 43260, 50584, 4000000000U}),
                    tensor_of<std::int16_t>({5}, {-2210, 1711, 3237, 1247, 2507}),
                    tensor_of<std::int16_t>({5}, {408, 3574, 1880, 2561, 2011}), list(first_bins), list(first_weights),
                    list(widths)}));
}

// Bands as in TensorFlow Lite Micro's filter_bank_test.cc: what rises in one slope falls in the next.
TEST(FilterBank, AddsRisingAndFallingParts) {
  const auto y = bank({5, 6, 2}, {0, 1, 2}, {1, 1, 3});
  const std::uint64_t first = 43260ULL * 408 + 50584ULL * 1711;
  const std::uint64_t second = 50584ULL * 3574 + 3653ULL * 3237 + 24262ULL * 1247 + 56660ULL * 2507;
  EXPECT_EQ(y.outputs[0].values<std::uint64_t>(), (std::vector<std::uint64_t>{first, second}));
}

TEST(FilterBank, ReportsSlopesOutsideTheBinsOrWeights) {
  EXPECT_EQ(bank({7, 0}, {0, 0}, {2, 1}).status.code, StatusCode::kOutOfRange);
  EXPECT_EQ(bank({-1, 0}, {0, 0}, {1, 1}).status.code, StatusCode::kOutOfRange);
  EXPECT_EQ(bank({0, 0}, {0, 4}, {1, 2}).status.code, StatusCode::kOutOfRange);
  EXPECT_EQ(bank({0, 0}, {0, -2}, {1, 1}).status.code, StatusCode::kOutOfRange);
  EXPECT_TRUE(bank({0, -5}, {0, 0}, {-3, 0}).status.ok()) << "a slope without bins reads nothing";
}

TEST(FilterBank, RefusesListsOfDifferentLength) {
  EXPECT_EQ(bank({0, 1}, {0}, {1, 1}).status.code, StatusCode::kInvalidModel);
  EXPECT_EQ(bank({}, {}, {}).status.code, StatusCode::kInvalidModel);
}

}  // namespace
}  // namespace bantam::ops
