#include "ops/nn/depthwise_conv2d/flat_plan.h"

#include <gtest/gtest.h>

#include "ops/testing/samplers.h"

namespace bantam::ops::depthwise {
namespace {

using testing::Random;
using testing::random_int;

ConvGeometry random_geometry(Random& random) {
  const auto some = [&](std::int64_t low, std::int64_t high) {
    return static_cast<std::int32_t>(random_int(random, low, high));
  };
  const auto axis = [&] {
    return WindowAxis{some(1, some(0, 9) == 0 ? 200 : 7), some(1, 3), some(0, 3) == 0 ? some(2, 900) : 1, some(0, 3),
                      some(0, 3)};
  };
  ConvGeometry g;
  g.vertical = axis();
  g.horizontal = axis();
  g.x.c = g.y.c = some(1, some(0, 1) == 0 ? 2000 : 70);
  g.y.h = some(1, 40);
  g.y.w = some(1, some(0, 3) == 0 ? 100000 : 120);
  return g;
}

/// As with AVX-512, AVX2 and Arm's dot products.
constexpr FlatPlan::Vectors kAllVectors[] = {{4, 16, true}, {2, 8, false}, {4, 8, false, 64, 4096, true}};

// What the kernels write into their buffers is bounded by these.
TEST(FlatPlan, WhatFitsStaysWithinTheBuffers) {
  int fitting = 0;
  for (std::uint64_t seed = 1; seed <= 3000; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const ConvGeometry g = random_geometry(random);
    for (const FlatPlan::Vectors& vectors : kAllVectors)
      for (const auto order : {FlatPlan::Order::kRows, FlatPlan::Order::kRow, FlatPlan::Order::kRowOfAll}) {
        const FlatPlan plan(g, vectors, order);
        if (!plan.fits()) continue;
        ++fitting;
        const bool all = order == FlatPlan::Order::kRowOfAll;
        EXPECT_LE(plan.block_room() * (all ? plan.blocks : 1), vectors.room);
        EXPECT_GE(plan.pitch, plan.columns(plan.strip) * plan.block + FlatPlan::kSlack);
        EXPECT_LE(plan.rows * g.horizontal.kernel * plan.groups * (plan.block + vectors.lanes), FlatPlan::kMostWeights);
        EXPECT_LE(g.horizontal.kernel * plan.groups, FlatPlan::kMostTaps);
        EXPECT_LE(plan.block, vectors.most_channels);
        EXPECT_GE(plan.blocks * plan.block, g.x.c);
        EXPECT_LT((plan.blocks - 1) * plan.block, g.x.c);
        EXPECT_TRUE(plan.blocks == 1 || plan.block % vectors.lanes == 0);
        const std::int64_t last = g.x.c - (plan.blocks - 1) * plan.block;
        EXPECT_TRUE(plan.blocks == 1 || vectors.stores_parts || last >= vectors.lanes);
        // A batch sees its groups only, and the next begins with a group.
        EXPECT_LE((plan.rows - 1) * g.vertical.stride + g.vertical.kernel, plan.groups * vectors.group_rows);
        const bool begins = plan.rows * g.vertical.stride == plan.batch_step * vectors.group_rows;
        const bool is_apart = vectors.joins_batches && plan.batch_step == plan.groups;
        EXPECT_TRUE(plan.batches == 1 || ((begins || is_apart) && plan.strip == g.y.w));
        EXPECT_TRUE(order == FlatPlan::Order::kRows || plan.rows * plan.batches == 1);
      }
  }
  EXPECT_GT(fitting, 13000);
}

// A row of all blocks need not fit where a row of one does; and one does where several do.
TEST(FlatPlan, ARowFitsWhereRowsDo) {
  for (std::uint64_t seed = 1; seed <= 3000; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const ConvGeometry g = random_geometry(random);
    for (const FlatPlan::Vectors& vectors : kAllVectors) {
      const bool rows_fit = FlatPlan(g, vectors, FlatPlan::Order::kRows).fits();
      EXPECT_TRUE(!rows_fit || FlatPlan(g, vectors, FlatPlan::Order::kRow).fits());
    }
  }
}

}  // namespace
}  // namespace bantam::ops::depthwise
