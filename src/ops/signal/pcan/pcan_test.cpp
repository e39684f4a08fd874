#include "ops/signal/pcan/pcan.h"

#include <gtest/gtest.h>

#include "ops/testing/harness.h"

namespace bantam::ops {
namespace {

using namespace testing;  // NOLINT: the harness is this file's vocabulary

// The numbers of TensorFlow Lite Micro's pcan_test.cc.
TEST(Pcan, NormalisesLevels) {
  const std::vector<std::int16_t> table{
      32636, 32633,  32630, -6,    0,    -21589, 32624, -12,   0,    -21589, 32612, -23,   -2,   -21589, 32587, -48,
      0,     -21589, 32539, -96,   0,    -21589, 32443, -190,  0,    -21589, 32253, -378,  4,    -21589, 31879, -739,
      18,    -21589, 31158, -1409, 62,   -21589, 29811, -2567, 202,  -21589, 27446, -4301, 562,  -21589, 23707, -6265,
      1230,  -21589, 18672, -7458, 1952, -21589, 13166, -7030, 2212, -21589, 8348,  -5342, 1868, -21589, 4874,  -3459,
      1282,  -21589, 2697,  -2025, 774,  -21589, 1446,  -1120, 436,  -21589, 762,   -596,  232,  -21589, 398,   -313,
      122,   -21589, 207,   -164,  64,   -21589, 107,   -85,   34,   -21589, 56,    -45,   18,   -21589, 29,    -22,
      8,     -21589, 15,    -13,   6,    -21589, 8,     -8,    4,    -21589, 4,     -2,    0,    -21589, 2,     -3,
      2,     -21589, 1,     0,     0,    -21589, 1,     -3,    2,    -21589, 0,     0,     0};
  const auto y = run_reference(make_case(
      kPcan, PcanParams{6},
      {tensor_of<std::uint32_t>({6}, {286, 298, 305, 64, 72, 304}),
       tensor_of<std::uint32_t>({6}, {7310, 18308, 7796, 1636, 4423, 18677}), constant(tensor_of({125}, table))}));
  EXPECT_EQ(y.outputs[0].values<std::uint32_t>(), (std::vector<std::uint32_t>{1301, 836, 1354, 378, 344, 843}));
}

TEST(Pcan, RefusesShortTablesAndWrongShifts) {
  const auto code = [](std::int64_t entries, std::int32_t shift) {
    std::vector<TensorDesc> outputs;
    const auto u32 = [] { return TestTensor(dense_desc(ElementType::kU32, {3})); };
    return infer_case(make_case(kPcan, PcanParams{shift},
                                {u32(), u32(), TestTensor(dense_desc(ElementType::kI16, {entries}))}),
                      &outputs)
        .code;
  };
  EXPECT_EQ(code(125, 6), StatusCode::kOk);
  EXPECT_EQ(code(124, 6), StatusCode::kInvalidModel);
  EXPECT_EQ(code(125, 64), StatusCode::kInvalidModel);
}

TEST(Pcan, RunsInPlaceWithAnyTable) {
  expect_variants_match_reference(
      [](Random& random) {
        const auto dims = random_dims(random, 1, 0, 20);
        return make_case(kPcan, PcanParams{static_cast<std::int32_t>(random_int(random, 0, 40))},
                         {random_tensor(ElementType::kU32, dims, random, 0, 4e9),
                          random_tensor(ElementType::kU32, dims, random, 0, 4e9),
                          random_tensor(ElementType::kI16, {125}, random, -32768, 32767)});
      },
      {.cases = 20});
}

}  // namespace
}  // namespace bantam::ops
