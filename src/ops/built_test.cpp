// The choice of kernels that a build contains: the convention that joins operator names and C++ symbols.
#include "ops/built.h"

#include <gtest/gtest.h>

#include <cstddef>

namespace bantam::ops {
namespace {

constexpr std::string_view kSymbols[] = {
#define BANTAM_OP(symbol) #symbol,
#include "ops/ops.inc"
#undef BANTAM_OP
};

TEST(BuiltKernels, SymbolsOfAllOperatorsFollowFromTheirNames) {
  ASSERT_EQ(all_ops().size(), std::size(kSymbols));
  for (std::size_t i = 0; i < std::size(kSymbols); ++i)
    EXPECT_TRUE(is_symbol_of(kSymbols[i], all_ops()[i]->name)) << kSymbols[i] << " and " << all_ops()[i]->name;
}

TEST(BuiltKernels, OtherSymbolsAreNotTaken) {
  EXPECT_FALSE(is_symbol_of("kGatherNd", "gather"));
  EXPECT_FALSE(is_symbol_of("kGather", "gather_nd"));
  EXPECT_FALSE(is_symbol_of("kgather", "gather"));
  EXPECT_FALSE(is_symbol_of("Gather", "gather"));
  EXPECT_FALSE(is_symbol_of("", ""));
}

TEST(BuiltKernels, BuildWithoutAListHasAll) {
  EXPECT_TRUE(is_kernel_built("conv2d", "any__ref"));
  EXPECT_TRUE(is_op_built("kConv2d"));
}

}  // namespace
}  // namespace bantam::ops
