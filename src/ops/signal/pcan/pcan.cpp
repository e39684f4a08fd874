#include "ops/signal/pcan/pcan.h"

#include "ops/common/operands.h"
#include "ops/common/params.h"
#include "signal/fixed_point_levels.h"

namespace bantam::ops {
namespace {

constexpr ParamField kFields[] = {i32_field("shift", offsetof(PcanParams, shift))};

constexpr PcanParams kDefaults{};

Status infer_pcan(const void* params, std::span<const Tensor> inputs, std::span<TensorDesc> outputs) {
  const auto& p = *static_cast<const PcanParams*>(params);
  const TensorDesc& x = desc_of(inputs, 0);
  BANTAM_RETURN_IF_ERROR(check_type(x, ElementType::kU32, 0));
  BANTAM_RETURN_IF_ERROR(check_type(desc_of(inputs, 1), ElementType::kU32, 1));
  BANTAM_RETURN_IF_ERROR(check_type(desc_of(inputs, 2), ElementType::kI16, 2));
  if (desc_of(inputs, 1).elements() != x.elements())
    return failure(StatusCode::kInvalidModel, "pcan: another number of noise estimates", desc_of(inputs, 1).elements(),
                   x.elements())
        .at(1);
  if (desc_of(inputs, 2).elements() < signal::kGainEntries)
    return failure(StatusCode::kInvalidModel, "pcan: the gain table is too short", desc_of(inputs, 2).elements(),
                   signal::kGainEntries)
        .at(2);
  if (p.shift < 0 || p.shift > 63)
    return failure(StatusCode::kInvalidModel, "pcan: shift is out of range", p.shift, 63);
  outputs[0] = x;
  outputs[0].set_dense_strides();
  return ok_status();
}

Footprint pcan_footprint(const OpCall&, int /*threads*/) {
  Footprint footprint;
  footprint.overwrites[0] = 0b11;
  return footprint;
}

Status run_pcan(const Invocation& call) {
  const int shift = call.as<PcanParams>().shift;
  const auto* x = call.input<std::uint32_t>(0);
  const auto* noise = call.input<std::uint32_t>(1);
  const auto* table = call.input<std::int16_t>(2);
  auto* y = call.output<std::uint32_t>();
  for (std::int64_t i = 0; i < call.in(0).elements(); ++i) {
    const auto gain = static_cast<std::uint32_t>(std::int32_t{signal::gain_at_level(noise[i], table)});
    y[i] = signal::shrink_ratio(static_cast<std::uint32_t>((std::uint64_t{x[i]} * gain) >> shift));
  }
  return ok_status();
}

constexpr KernelVariant kVariants[] = {
    {.name = "u32__ref", .supports = all_dense, .footprint = pcan_footprint, .run = run_pcan},
};

}  // namespace

constexpr OpDef kPcan{
    .name = "pcan",
    .params_bytes = sizeof(PcanParams),
    .default_params = &kDefaults,
    .fields = kFields,
    .min_inputs = 3,
    .max_inputs = 3,
    .infer = infer_pcan,
    .variants = kVariants,
};

}  // namespace bantam::ops
