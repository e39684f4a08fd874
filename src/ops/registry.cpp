#include <array>

#include "ops/built.h"
#include "ops/op.h"

namespace bantam::ops {

#define BANTAM_OP(symbol) extern const OpDef symbol;
#include "ops/ops.inc"
#undef BANTAM_OP

namespace {

constexpr bool kIsBuilt[] = {
#define BANTAM_OP(symbol) is_op_built(#symbol),
#include "ops/ops.inc"
#undef BANTAM_OP
};

constexpr std::size_t count_built() {
  std::size_t count = 0;
  for (const bool built : kIsBuilt) count += built ? 1 : 0;
  return count;
}

/// Names nothing that is not built: the linker needs a definition for every name it meets.
constexpr std::array<const OpDef*, count_built()> kOps = [] {
  constexpr const OpDef* rows[] = {
#define BANTAM_OP(symbol) is_op_built(#symbol) ? &(symbol) : nullptr,
#include "ops/ops.inc"
#undef BANTAM_OP
  };
  std::array<const OpDef*, count_built()> built{};
  std::size_t next = 0;
  for (std::size_t i = 0; i < std::size(rows); ++i)
    if (kIsBuilt[i]) built[next++] = rows[i];
  return built;
}();

}  // namespace

std::span<const OpDef* const> all_ops() noexcept { return kOps; }

const OpDef* find_op(std::string_view name) noexcept {
  for (const OpDef* op : kOps)
    if (op->name == name) return op;
  return nullptr;
}

const KernelVariant* find_variant(const OpDef& op, std::string_view name) noexcept {
  for (const KernelVariant& variant : op.variants)
    if (variant.name == name) return &variant;
  return nullptr;
}

Status infer(const OpDef& op, const void* params, std::span<const Tensor> inputs, std::span<TensorDesc> outputs) {
  const auto count = static_cast<std::int64_t>(inputs.size());
  if (count < op.min_inputs) return failure(StatusCode::kInvalidModel, "too few operands", count, op.min_inputs);
  if (count > op.max_inputs) return failure(StatusCode::kInvalidModel, "too many operands", count, op.max_inputs);
  if (static_cast<std::int64_t>(outputs.size()) != op.outputs)
    return failure(StatusCode::kInvalidModel, "wrong number of results", static_cast<std::int64_t>(outputs.size()),
                   op.outputs);
  for (std::int32_t i = 0; i < op.min_inputs; ++i)
    if (!inputs[static_cast<std::size_t>(i)].desc->present())
      return failure(StatusCode::kInvalidModel, "mandatory operand is absent").at(i);
  return op.infer(params, inputs, outputs);
}

}  // namespace bantam::ops
