#include "ops/data/tile/tile.h"

#include <gtest/gtest.h>

#include "ops/testing/harness.h"

namespace bantam::ops {
namespace {

using namespace testing;  // NOLINT: the harness is the vocabulary of operator tests

TileParams repeats(std::initializer_list<std::int32_t> counts) {
  TileParams params;
  for (const std::int32_t n : counts) params.repeats.v[params.repeats.size++] = n;
  return params;
}

TEST(Tile, RepeatsEveryAxis) {
  const auto tile = [](const TestTensor& x, const TileParams& p) {
    return run_reference(make_case(kTile, p, {x})).outputs[0].values<std::uint8_t>();
  };
  const TestTensor x = tensor_of<std::uint8_t>({2, 2}, {1, 2, 3, 4});
  EXPECT_EQ(tile(x, repeats({1, 2})), (std::vector<std::uint8_t>{1, 2, 1, 2, 3, 4, 3, 4}));
  EXPECT_EQ(tile(x, repeats({2, 1})), (std::vector<std::uint8_t>{1, 2, 3, 4, 1, 2, 3, 4}));
  EXPECT_EQ(tile(x, repeats({0, 3})), std::vector<std::uint8_t>{});
  EXPECT_EQ(tile(tensor_of<std::uint8_t>({1}, {9}), repeats({5})), (std::vector<std::uint8_t>(5, 9)));
  EXPECT_EQ(tile(tensor_of<std::uint8_t>({}, {9}), repeats({})), (std::vector<std::uint8_t>{9}));
}

TEST(Tile, RefusesHostileCounts) {
  std::vector<TensorDesc> outputs;
  const TestTensor x = tensor_of<float>({2, 1}, {1, 2});
  for (const TileParams& p :
       {repeats({1}), repeats({-1, 1}), repeats({0x7fffffff, 1}), repeats({1, 1, 1}), repeats({0x10000, 0x10000})})
    EXPECT_FALSE(infer_case(make_case(kTile, p, {x}), &outputs).ok());
}

}  // namespace
}  // namespace bantam::ops
