#include "ops/signal/rounded_root/rounded_root.h"

#include "ops/common/operands.h"
#include "signal/fixed_point_levels.h"

namespace bantam::ops {
namespace {

Status infer_rounded_root(const void*, std::span<const Tensor> inputs, std::span<TensorDesc> outputs) {
  BANTAM_RETURN_IF_ERROR(check_type(desc_of(inputs, 0), ElementType::kU64, 0));
  BANTAM_RETURN_IF_ERROR(check_type(desc_of(inputs, 1), ElementType::kI32, 1));
  if (desc_of(inputs, 1).elements() != 1)
    return failure(StatusCode::kInvalidModel, "rounded_root: the shift is not one element",
                   desc_of(inputs, 1).elements(), 1)
        .at(1);
  outputs[0] = desc_of(inputs, 0);
  outputs[0].type = ElementType::kU32;
  outputs[0].set_dense_strides();
  return ok_status();
}

Status run_rounded_root(const Invocation& call) {
  const std::int32_t shift = *call.input<std::int32_t>(1);
  if (shift < 0 || shift > 31)
    return failure(StatusCode::kOutOfRange, "rounded_root: the shift is out of range", shift, 31).at(1);
  const auto* x = call.input<std::uint64_t>(0);
  auto* y = call.output<std::uint32_t>();
  for (std::int64_t i = 0; i < call.in(0).elements(); ++i) y[i] = signal::rounded_square_root(x[i]) >> shift;
  return ok_status();
}

constexpr KernelVariant kVariants[] = {{.name = "u64__ref", .supports = all_dense, .run = run_rounded_root}};

}  // namespace

constexpr OpDef kRoundedRoot{
    .name = "rounded_root",
    .min_inputs = 2,
    .max_inputs = 2,
    .infer = infer_rounded_root,
    .variants = kVariants,
};

}  // namespace bantam::ops
