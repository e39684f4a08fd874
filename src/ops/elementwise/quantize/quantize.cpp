#include "ops/elementwise/quantize/quantize.h"

#include "ops/common/params.h"
#include "ops/common/quantization_operands.h"
#include "ops/elementwise/quantize/kernels.h"

namespace bantam::ops {
namespace {

constexpr ParamField kFields[] = {
    type_field("to", offsetof(QuantizeParams, to)),
    i32_field("axis", offsetof(QuantizeParams, axis)),
    bool_field("round_half_away", offsetof(QuantizeParams, round_half_away)),
};

constexpr QuantizeParams kDefaults{};

Status infer_quantize(const void* params, std::span<const Tensor> inputs, std::span<TensorDesc> outputs) {
  const auto& p = *static_cast<const QuantizeParams*>(params);
  const TensorDesc& x = *inputs[0].desc;
  const ElementType to = p.to;
  if (x.type != ElementType::kF32)
    return failure(StatusCode::kUnsupported, "quantize: operand is not f32", static_cast<std::int64_t>(x.type),
                   static_cast<std::int64_t>(ElementType::kF32))
        .at(0);
  if (!is_quantized_type(to))
    return failure(StatusCode::kUnsupported, "quantize: no such quantised type", static_cast<std::int64_t>(to),
                   static_cast<std::int64_t>(ElementType::kI8));
  if (!is_flag(p.round_half_away))
    return failure(StatusCode::kInvalidModel, "quantize: round_half_away is not 0 or 1", p.round_half_away, 1);
  BANTAM_RETURN_IF_ERROR(check_scale_operands(inputs, p.axis, to));
  outputs[0] = x;
  outputs[0].type = to;
  outputs[0].set_dense_strides();
  return ok_status();
}

constexpr KernelVariant kVariants[] = {
#if BANTAM_SIMD
    {.name = "f32_i8__simd", .supports = supports_quantize_i8_simd, .run = run_quantize_i8_simd},
#endif
    {.name = "f32__ref", .run = run_quantize_ref},
};

}  // namespace

constexpr OpDef kQuantize{
    .name = "quantize",
    .params_bytes = sizeof(QuantizeParams),
    .default_params = &kDefaults,
    .fields = kFields,
    .min_inputs = 2,
    .max_inputs = 3,
    .infer = infer_quantize,
    .variants = kVariants,
};

}  // namespace bantam::ops
