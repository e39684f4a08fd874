#include "ops/op.h"

namespace bantam::ops {

#define BANTAM_OP(symbol) extern const OpDef symbol;
#include "ops/ops.inc"
#undef BANTAM_OP

namespace {

constexpr const OpDef* kOps[] = {
#define BANTAM_OP(symbol) &(symbol),
#include "ops/ops.inc"
#undef BANTAM_OP
};

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
