// The operator test harness: runs an operator by any of its kernel variants in guarded memory and compares variants
// with the reference. Tests say what to compute, never which implementation:
//
//   TEST(Softmax, VariantsMatchReference) {
//     expect_variants_match_reference([](Random& random) {
//       const auto dims = random_dims(random, 3, 0, 9);
//       return make_case(kSoftmax, SoftmaxParams{.axis = 1}, {random_tensor(ElementType::kF32, dims, random)});
//     });
//   }
//   TEST(Softmax, SumsToOne) {
//     const Outcome y = run_reference(make_case(kSoftmax, SoftmaxParams{}, {tensor_of<float>({2}, {0, 0})}));
//     EXPECT_EQ(y.outputs[0].values<float>(), (std::vector<float>{0.5F, 0.5F}));
//   }
//
// The harness verifies for every run: scratch exactly as large as the footprint says, canaries and guard pages around
// every buffer, gaps of strided tensors and inputs unchanged. Failures are reported through GoogleTest.
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "ops/op.h"
#include "ops/testing/test_tensor.h"

namespace bantam::ops::testing {

/// An operand of a case. Constants are visible to infer and supports, and may be packed.
struct Operand {
  TestTensor tensor;
  bool constant = false;

  Operand(TestTensor t) : tensor(std::move(t)) {}  // NOLINT: a plain conversion keeps cases short
  Operand(TestTensor t, bool is_constant) : tensor(std::move(t)), constant(is_constant) {}
};

inline Operand constant(TestTensor tensor) { return {std::move(tensor), true}; }
inline Operand absent() { return {TestTensor(), false}; }

/// One application of an operator with data.
struct OpCase {
  const OpDef* op = nullptr;
  std::vector<std::byte> params;
  std::vector<Operand> inputs;
};

OpCase make_case(const OpDef& op, std::vector<Operand> inputs);

template <typename Params>
OpCase make_case(const OpDef& op, const Params& params, std::vector<Operand> inputs) {
  OpCase result = make_case(op, std::move(inputs));
  result.params.resize(sizeof(Params));
  std::memcpy(result.params.data(), &params, sizeof(Params));
  return result;
}

/// A list parameter; at most kMaxRank values.
IntList int_list(const std::vector<std::int32_t>& values);

/// The descs infer gives, or its failure.
Status infer_case(const OpCase& op_case, std::vector<TensorDesc>* outputs);

/// How a run executes the tasks of a kernel.
enum class Threading {
  kSerial,    ///< one thread, no pool
  kPermuted,  ///< claims seven threads; tasks run one after another in a shuffled order
  kThreads,   ///< three std::threads
};

struct RunOptions {
  Threading threading = Threading::kSerial;
  std::uint64_t seed = 0;  ///< of the permutation
  /// Descs of the outputs, where they shall differ from what infer gives (strides); empty: dense.
  std::vector<TensorDesc> outputs{};
  /// Output `in_place_output` is computed in the storage of input `in_place_input`; -1: nowhere.
  int in_place_input = -1;
  int in_place_output = 0;
  /// Output 0 overlaps input 0 with exactly the lead of the footprint.
  bool overlapping = false;
  /// This input lies in its place within output 0, with the strides that it must have there; -1: none does.
  int within_input = -1;
  /// The useful scratch of the footprint instead of the least.
  bool useful_scratch = false;
};

struct Outcome {
  Status status;
  std::vector<TestTensor> outputs;
};

/// Runs the variant, which must support the case.
Outcome run_variant(const OpCase& op_case, const KernelVariant& variant, const RunOptions& options = {});

/// Runs the reference variant; a failing infer is returned as the status.
Outcome run_reference(const OpCase& op_case);

/// Whether the variant supports the case with dense results.
bool variant_supports(const OpCase& op_case, const KernelVariant& variant);

/// What the variant, which must support the case, packs of constant operand `input`; empty where it uses it as it is.
std::vector<std::byte> packed_operand(const OpCase& op_case, const KernelVariant& variant, int input);

/// Makes one random case; everything random comes from the argument.
using CaseGenerator = std::function<OpCase(Random&)>;

struct CompareOptions {
  int cases = 100;  ///< in a sanitized build a fifth, and more until all of must_cover were compared
  std::uint64_t seed = 1;
  /// Names of variants that must have been compared at least once (so that a test cannot pass by supporting nothing).
  std::vector<std::string_view> must_cover{};
};

/// Runs random cases through every variant that supports them, dense and strided, in place where the footprint allows
/// it, with one and with several threads, and compares with the reference as the variant's Accuracy demands. Results
/// with several threads must equal those with one bit for bit. infer must accept every case. Failures print the seed of
/// the case.
void expect_variants_match_reference(const CaseGenerator& generate, const CompareOptions& options = {});

/// The same of both variants of a kernel that packs its weights (ops/packed_weights.h): of "KERNEL__simd" with the
/// constants of the cases, and of "KERNEL_dynamic__simd" with all operands computed. Both must be covered.
void expect_packing_variants_match_reference(const CaseGenerator& generate, std::string_view kernel, int cases);

/// Empty when `actual` is as close to `expected` as `accuracy` demands; otherwise the first or worst difference.
/// NaN equals NaN; infinities must be equal.
std::string compare(const TestTensor& actual, const TestTensor& expected, const Accuracy& accuracy);

}  // namespace bantam::ops::testing
