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

TEST(Tile, EveryElementIsTheOneAtItsPlaceModuloTheOperandsSizes) {
  Random random(5);
  for (int round = 0; round < 50; ++round) {
    const auto dims = random_dims(random, 3, 1, 5);
    const auto count = [&] { return static_cast<std::int32_t>(random_int(random, 1, 4)); };
    const TileParams p = repeats({count(), count(), count()});
    const TestTensor x = random_tensor(ElementType::kI16, dims, random, -999, 999);
    const std::vector<double> from = x.to_doubles();
    const Outcome y = run_reference(make_case(kTile, p, {x}));
    const std::vector<double> to = y.outputs[0].to_doubles();
    const TensorDesc& out = y.outputs[0].desc();
    for (std::int64_t i = 0; i < out.elements(); ++i) {
      const std::int64_t a = i / out.strides[0] % dims[0];
      const std::int64_t b = i / out.strides[1] % out.dims[1] % dims[1];
      const std::int64_t c = i % out.dims[2] % dims[2];
      EXPECT_EQ(to[static_cast<std::size_t>(i)], from[static_cast<std::size_t>((a * dims[1] + b) * dims[2] + c)]);
    }
  }
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
