#include "ops/signal/scaled_log/scaled_log.h"

#include <algorithm>

#include "ops/common/operands.h"
#include "ops/common/params.h"
#include "signal/fixed_point_levels.h"

namespace bantam::ops {
namespace {

constexpr ParamField kFields[] = {
    i32_field("scale", offsetof(ScaledLogParams, scale)),
    i32_field("shift", offsetof(ScaledLogParams, shift)),
};

constexpr ScaledLogParams kDefaults{};

Status infer_scaled_log(const void* params, std::span<const Tensor> inputs, std::span<TensorDesc> outputs) {
  const auto& p = *static_cast<const ScaledLogParams*>(params);
  BANTAM_RETURN_IF_ERROR(check_type(desc_of(inputs, 0), ElementType::kU32, 0));
  if (p.scale < 0) return failure(StatusCode::kInvalidModel, "scaled_log: scale is negative", p.scale, 0);
  if (p.shift < 0 || p.shift > 31)
    return failure(StatusCode::kInvalidModel, "scaled_log: shift is out of range", p.shift, 31);
  outputs[0] = desc_of(inputs, 0);
  outputs[0].type = ElementType::kI16;
  outputs[0].set_dense_strides();
  return ok_status();
}

Status run_scaled_log(const Invocation& call) {
  constexpr std::uint32_t kLargest = 32767;
  const auto& p = call.as<ScaledLogParams>();
  const auto* x = call.input<std::uint32_t>(0);
  auto* y = call.output<std::int16_t>();
  for (std::int64_t i = 0; i < call.in(0).elements(); ++i) {
    const std::uint32_t level = x[i] << p.shift;
    const std::uint32_t log = level > 1 ? signal::scaled_log(level, static_cast<std::uint32_t>(p.scale)) : 0;
    y[i] = static_cast<std::int16_t>(std::min(log, kLargest));
  }
  return ok_status();
}

constexpr KernelVariant kVariants[] = {{.name = "u32__ref", .supports = all_dense, .run = run_scaled_log}};

}  // namespace

constexpr OpDef kScaledLog{
    .name = "scaled_log",
    .params_bytes = sizeof(ScaledLogParams),
    .default_params = &kDefaults,
    .fields = kFields,
    .infer = infer_scaled_log,
    .variants = kVariants,
};

}  // namespace bantam::ops
