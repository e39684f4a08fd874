// Every operator against descriptions from outside: infer must survive whatever a damaged package could say, and what
// it accepts must run without touching a byte beyond the operands. Meant to run under the sanitizers, useful without.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "base/shape.h"
#include "ops/testing/harness.h"

namespace bantam::ops::testing {
namespace {

constexpr std::int64_t kLargestResult = std::int64_t{1} << 18;  // bytes; larger ones are inferred but not run
constexpr std::int64_t kLargestScratch = std::int64_t{1} << 24;

std::int32_t hostile_int(Random& random) {
  constexpr std::int32_t kExtremes[] = {std::numeric_limits<std::int32_t>::min(),
                                        std::numeric_limits<std::int32_t>::max(),
                                        std::numeric_limits<std::int32_t>::min() + 1,
                                        -1,
                                        0x40000000,
                                        0x10000,
                                        -0x10000,
                                        255,
                                        256};
  switch (random_int(random, 0, 9)) {
    case 0: return kExtremes[random_int(random, 0, std::size(kExtremes) - 1)];
    case 1: return static_cast<std::int32_t>(random());
    case 2: return static_cast<std::int32_t>(random_int(random, -8, 8));
    default: return static_cast<std::int32_t>(random_int(random, 0, 3));
  }
}

float hostile_float(Random& random) {
  constexpr float kExtremes[] = {std::numeric_limits<float>::quiet_NaN(),
                                 std::numeric_limits<float>::infinity(),
                                 -std::numeric_limits<float>::infinity(),
                                 std::numeric_limits<float>::max(),
                                 0.0F,
                                 -1.0F};
  if (random_int(random, 0, 2) == 0) return kExtremes[random_int(random, 0, std::size(kExtremes) - 1)];
  return std::uniform_real_distribution<float>(-4.0F, 4.0F)(random);
}

void put(std::vector<std::byte>& params, std::size_t offset, const auto& value) {
  std::memcpy(params.data() + offset, &value, sizeof(value));
}

void put_hostile_list(std::vector<std::byte>& params, std::size_t offset, Random& random) {
  IntList list;
  list.size = random_int(random, 0, 9) == 0 ? hostile_int(random) : static_cast<std::int32_t>(random_int(random, 0, 4));
  for (std::int32_t i = 0; i < kMaxRank; ++i) {
    const bool ascending = random_int(random, 0, 1) == 0;
    list.v[i] = ascending ? i : hostile_int(random);
  }
  put(params, offset, list);
}

void put_hostile(std::vector<std::byte>& params, const ParamField& field, Random& random) {
  for (std::uint32_t k = 0; k < field.count; ++k) {
    switch (field.kind) {
      case ParamField::Kind::kIntList: put_hostile_list(params, field.offset + k * sizeof(IntList), random); break;
      case ParamField::Kind::kF32: put(params, field.offset + 4 * k, hostile_float(random)); break;
      case ParamField::Kind::kEnum:
      case ParamField::Kind::kElementType: {
        const std::int64_t count = field.kind == ParamField::Kind::kEnum
                                       ? static_cast<std::int64_t>(field.enumerators.size())
                                       : static_cast<std::int64_t>(ElementType::kCount);
        const bool valid = random_int(random, 0, 7) != 0;
        put(params, field.offset + 4 * k,
            valid ? static_cast<std::int32_t>(random_int(random, 0, std::max<std::int64_t>(count - 1, 0)))
                  : hostile_int(random));
        break;
      }
      case ParamField::Kind::kI32:
      case ParamField::Kind::kBool: put(params, field.offset + 4 * k, hostile_int(random)); break;
    }
  }
}

void make_params_hostile(OpCase& op_case, Random& random) {
  if (random_int(random, 0, 19) == 0) {
    for (std::byte& b : op_case.params) b = static_cast<std::byte>(random() & 0xff);
    return;
  }
  const std::int64_t keep_one_in = random_int(random, 1, 4);
  for (const ParamField& field : op_case.op->fields)
    if (random_int(random, 0, 3) >= keep_one_in) put_hostile(op_case.params, field, random);
}

ElementType random_type(Random& random) {
  constexpr ElementType kCommon[] = {ElementType::kF32, ElementType::kF32, ElementType::kI8, ElementType::kI32};
  if (random_int(random, 0, 1) == 0) return kCommon[random_int(random, 0, std::size(kCommon) - 1)];
  return static_cast<ElementType>(random_int(random, 1, static_cast<std::int64_t>(ElementType::kCount) - 1));
}

/// Operands of a case resemble one another often enough for infer to accept some.
std::vector<Operand> random_operands(const OpDef& op, Random& random) {
  const std::int64_t most = std::min<std::int64_t>(op.max_inputs, op.min_inputs + 6);
  const std::int64_t count =
      random_int(random, 0, 9) == 0 ? random_int(random, 0, most) : random_int(random, op.min_inputs, most);
  const ElementType main_type = random_type(random);
  const int main_rank = static_cast<int>(random_int(random, 0, random_int(random, 0, 9) == 0 ? kMaxRank : 4));
  const std::int64_t low = random_int(random, 0, 4) == 0 ? 0 : 1;
  const auto main_dims = random_dims(random, main_rank, low, main_rank > 4 ? 2 : 5);
  std::vector<Operand> operands;
  for (std::int64_t i = 0; i < count; ++i) {
    if (i > 0 && random_int(random, 0, 9) == 0) {
      operands.push_back(absent());
      continue;
    }
    std::vector<std::int64_t> dims = main_dims;
    if (i > 0) {
      switch (random_int(random, 0, 4)) {
        case 0: dims = random_dims(random, static_cast<int>(random_int(random, 0, 4)), low, 5); break;
        case 1: dims.assign(1, main_rank > 0 ? main_dims.back() : 1); break;
        case 2: dims.clear(); break;
        default: break;
      }
    }
    const ElementType type = random_int(random, 0, 2) == 0 ? random_type(random) : main_type;
    TestTensor tensor(dense_desc(type, dims));
    if (random_int(random, 0, 1) == 0)
      fill_garbage(tensor, random);
    else
      fill_random(tensor, random, -4.0, 4.0);
    operands.emplace_back(std::move(tensor), random_int(random, 0, 1) == 0);
  }
  return operands;
}

void check_views(const OpDef& op, const OpCall& call) {
  TensorDesc view = call.out();
  std::int64_t offset = 0;
  if (op.output_view != nullptr && op.output_view(call, &view, &offset)) {
    const std::int64_t storage = storage_span(call.in(0));
    EXPECT_TRUE(same_shape_and_type(view, call.out())) << op.name;
    EXPECT_GE(offset, 0) << op.name;
    EXPECT_LE(offset, storage) << op.name;
    EXPECT_TRUE(check_strides(view, storage - offset).ok()) << op.name << " views beyond its operand";
  }
  if (op.input_view == nullptr) return;
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    TensorDesc part = call.in(static_cast<int>(i));
    if (!op.input_view(call, static_cast<int>(i), &part, &offset)) continue;
    const std::int64_t storage = storage_span(call.out());
    EXPECT_GE(offset, 0) << op.name;
    EXPECT_LE(offset, storage) << op.name;
    EXPECT_TRUE(check_strides(part, storage - offset).ok()) << op.name << " places an operand beyond its result";
  }
}

/// True when no variant would need more memory than a test should use.
bool is_small(const KernelVariant& variant, const OpCall& call) {
  if (footprint(variant, call, 7).scratch_bytes > kLargestScratch) return false;
  for (std::size_t i = 0; i < call.inputs.size(); ++i)
    if (packed_bytes(variant, call, static_cast<int>(i)) > kLargestScratch) return false;
  return true;
}

/// Runs the case by every variant that supports it; true when infer accepted it.
bool run_hostile_case(const OpCase& op_case) {
  std::vector<TensorDesc> descs;
  if (!infer_case(op_case, &descs).ok()) return false;
  std::vector<Tensor> inputs;
  for (const Operand& operand : op_case.inputs)
    inputs.push_back(operand.constant ? operand.tensor.tensor() : operand.tensor.shape_only());
  std::vector<Tensor> outputs;
  std::int64_t bytes = 0;
  for (const TensorDesc& desc : descs) {
    if (!desc.present()) continue;
    EXPECT_TRUE(check_shape(desc).ok()) << op_case.op->name << " infers an invalid shape";
    EXPECT_TRUE(desc.is_dense()) << op_case.op->name << " infers a strided result";
    bytes += desc.bytes();
  }
  for (const TensorDesc& desc : descs) outputs.push_back({nullptr, &desc});
  const OpCall call{op_case.params.data(), inputs, outputs};
  if (op_case.op->work != nullptr) {
    EXPECT_GE(op_case.op->work(call), 0) << op_case.op->name;
  }
  check_views(*op_case.op, call);
  EXPECT_TRUE(supports(reference_variant(*op_case.op), call))
      << op_case.op->name << ": the reference does not support what infer accepts";
  if (bytes > kLargestResult) return true;
  for (const KernelVariant& variant : op_case.op->variants) {
    if (!supports(variant, call) || !is_small(variant, call)) continue;
    (void)run_variant(op_case, variant, {.threading = Threading::kPermuted});
  }
  return true;
}

class HostileParams : public ::testing::TestWithParam<const OpDef*> {};

TEST_P(HostileParams, NeverReachBeyondMemory) {
  const OpDef& op = *GetParam();
  int accepted = 0;
  for (std::uint64_t seed = 1; seed <= 3000 && !HasFailure(); ++seed) {
    SCOPED_TRACE(std::string(op.name) + ", case seed " + std::to_string(seed));
    Random random(seed);
    OpCase op_case = make_case(op, random_operands(op, random));
    make_params_hostile(op_case, random);
    accepted += run_hostile_case(op_case) ? 1 : 0;
  }
  RecordProperty("accepted", accepted);
}

TEST_P(HostileParams, HugeShapesAreInferredWithoutOverflow) {
  const OpDef& op = *GetParam();
  for (std::uint64_t seed = 1; seed <= 3000 && !HasFailure(); ++seed) {
    SCOPED_TRACE(std::string(op.name) + ", case seed " + std::to_string(seed));
    Random random(seed);
    OpCase op_case = make_case(op, {});
    make_params_hostile(op_case, random);
    const auto count =
        static_cast<std::size_t>(random_int(random, op.min_inputs, std::min(op.max_inputs, op.min_inputs + 4)));
    const ElementType type = random_type(random);
    std::vector<TensorDesc> descs(count);
    std::vector<Tensor> inputs;
    for (TensorDesc& desc : descs) {
      desc.type = type;
      desc.rank = static_cast<std::uint8_t>(random_int(random, 0, 4));
      for (int i = 0; i < desc.rank; ++i)
        desc.dims[i] = static_cast<std::int32_t>(random_int(random, 0, std::int64_t{1} << random_int(random, 0, 30)));
      if (!check_shape(desc).ok()) desc.rank = 0;
      desc.set_dense_strides();
      inputs.push_back({nullptr, &desc});
    }
    std::vector<TensorDesc> results(static_cast<std::size_t>(op.outputs));
    if (!infer(op, op_case.params.data(), inputs, results).ok()) continue;
    std::vector<Tensor> outputs;
    for (const TensorDesc& desc : results) {
      EXPECT_TRUE(!desc.present() || check_shape(desc).ok());
      outputs.push_back({nullptr, &desc});
    }
    const OpCall call{op_case.params.data(), inputs, outputs};
    for (const KernelVariant& variant : op.variants)
      if (supports(variant, call)) {
        EXPECT_GE(footprint(variant, call, 4).scratch_bytes, 0) << op.name << " " << variant.name;
      }
    if (op.work != nullptr) {
      EXPECT_GE(op.work(call), 0) << op.name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(AllOps, HostileParams, ::testing::ValuesIn(all_ops().begin(), all_ops().end()),
                         [](const auto& suite) { return std::string(suite.param->name); });

}  // namespace
}  // namespace bantam::ops::testing
