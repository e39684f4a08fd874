// Every operator planned at the bound of a dimension and asked again at smaller sizes, as sessions ask their kernels:
// they must support each, with no more scratch than was planned.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/testing/sanitizers.h"
#include "ops/nn/resize/resize.h"
#include "ops/nn/resize_affine/resize_affine.h"
#include "ops/testing/sampling.h"

namespace bantam::ops::testing {
namespace {

/// Stands for the dimension that has a bound where operands are drawn.
constexpr std::int32_t kSymbol = 19;
constexpr std::int64_t kLargestBound = 400;
constexpr std::int64_t kLargestTensor = std::int64_t{1} << 20;  // bytes
/// The compiler looks at sizes up to here and so far below the bound (compiler/sized_model.cpp), plans for all of these
/// and chooses a kernel that supports them.
constexpr std::int64_t kNeighbours = 8;

/// What a variant says of an application.
struct Needs {
  bool accepted = false;  ///< the application, by infer
  bool supported = false;
  std::int64_t scratch_bytes = 0;
};

/// An application whose computed operands follow the size of one dimension.
class SizedCase {
 public:
  SizedCase(const OpDef& op, const Sampling& drawn) : op_(op), drawn_(drawn) {}

  /// Does an operand have the dimension?
  bool varies() const {
    return std::ranges::any_of(drawn_.operands, [](const SampledOperand& operand) {
      const std::int32_t* end = operand.desc.dims + operand.desc.rank;
      return is_computed(operand) && std::find(operand.desc.dims, end, kSymbol) != end;
    });
  }

  /// At a size with a result to compute, as sessions skip steps without.
  Needs needs(const KernelVariant& variant, int threads, std::int64_t size) const {
    std::vector<SampledOperand> operands = drawn_.operands;
    std::vector<Tensor> inputs;
    for (SampledOperand& operand : operands) {
      resize(operand, size);
      if (operand.desc.bytes() > kLargestTensor) return {};
      inputs.push_back({operand.tensor.data(), &operand.desc});
    }
    std::vector<TensorDesc> descs(static_cast<std::size_t>(op_.outputs));
    if (!infer(op_, drawn_.params.data(), inputs, descs).ok()) return {};
    if (std::ranges::all_of(descs, [](const TensorDesc& desc) { return desc.elements() == 0; })) return {};
    std::vector<Tensor> outputs;
    for (const TensorDesc& desc : descs) outputs.push_back({nullptr, &desc});
    const OpCall call{drawn_.params.data(), inputs, outputs};
    if (!supports(variant, call)) return {.accepted = true};
    return {true, true, footprint(variant, call, threads).scratch_bytes};
  }

 private:
  static bool is_computed(const SampledOperand& operand) {
    return operand.kind == SampledOperand::Kind::kFresh || operand.kind == SampledOperand::Kind::kPool;
  }

  static void resize(SampledOperand& operand, std::int64_t size) {
    if (!is_computed(operand)) return;
    std::replace(operand.desc.dims, operand.desc.dims + operand.desc.rank, kSymbol, static_cast<std::int32_t>(size));
    operand.desc.set_dense_strides();
  }

  const OpDef& op_;
  const Sampling& drawn_;
};

void expect_same_below(const SizedCase& sized, const KernelVariant& variant, int threads, std::int64_t bound) {
  if (!sized.needs(variant, threads, bound).supported) return;
  std::int64_t planned = 0;
  for (std::int64_t i = 0; i <= kNeighbours; ++i)
    for (const std::int64_t size : {i, bound - i}) {
      const Needs needs = sized.needs(variant, threads, size);
      if (needs.accepted && !needs.supported) return;
      planned = std::max(planned, needs.scratch_bytes);
    }
  for (std::int64_t size = kNeighbours + 1; size < bound - kNeighbours; ++size) {
    const Needs needs = sized.needs(variant, threads, size);
    if (!needs.accepted) continue;
    ASSERT_TRUE(needs.supported) << variant.name << ", bound " << bound << ", size " << size;
    ASSERT_LE(needs.scratch_bytes, planned)
        << variant.name << ", threads " << threads << ", bound " << bound << ", size " << size;
  }
}

/// All but those whose parameters hold sizes: they follow a dimension by their scales only, which no sampler draws.
std::vector<const OpDef*> followed_ops() {
  std::vector<const OpDef*> ops(all_ops().begin(), all_ops().end());
  std::erase_if(ops, [](const OpDef* op) { return op == &kResize || op == &kResizeAffine; });
  return ops;
}

class Bounds : public ::testing::TestWithParam<const OpDef*> {};

TEST_P(Bounds, KernelsDoAtEverySizeBelow) {
  const OpDef& op = *GetParam();
  const std::uint64_t cases = bantam::testing::kSanitized ? 20 : 100;
  for (std::uint64_t seed = 1; seed <= cases && !HasFailure(); ++seed) {
    SCOPED_TRACE(std::string(op.name) + ", case seed " + std::to_string(seed));
    Random random(seed);
    Sampling sampling(random);
    sampling.prefer_dim(kSymbol);
    if (!sample(op, sampling)) continue;
    const SizedCase sized(op, sampling);
    if (!sized.varies()) continue;
    const std::int64_t bound = random_int(random, kNeighbours, kLargestBound);
    for (const KernelVariant& variant : op.variants)
      for (const int threads : {1, 4}) expect_same_below(sized, variant, threads, bound);
  }
}

INSTANTIATE_TEST_SUITE_P(AllOps, Bounds, ::testing::ValuesIn(followed_ops()),
                         [](const auto& suite) { return std::string(suite.param->name); });

}  // namespace
}  // namespace bantam::ops::testing
