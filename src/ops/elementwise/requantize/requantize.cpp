#include "ops/elementwise/requantize/requantize.h"

#include <limits>

#include "ops/built.h"
#include "ops/common/dispatch.h"
#include "ops/common/elementwise.h"
#include "ops/common/params.h"
#include "ops/elementwise/requantize/kernels.h"

namespace bantam::ops {
namespace {

constexpr ParamField kFields[] = {
    type_field("to", offsetof(RequantizeParams, to)),
    i32_field("input_zero_point", offsetof(RequantizeParams, input_zero_point)),
    i32_field("output_zero_point", offsetof(RequantizeParams, output_zero_point)),
    i32_field("multiplier", offsetof(RequantizeParams, multiplier)),
    i32_field("shift", offsetof(RequantizeParams, shift)),
    bool_field("leaky", offsetof(RequantizeParams, leaky)),
    i32_field("negative_multiplier", offsetof(RequantizeParams, negative_multiplier)),
    i32_field("negative_shift", offsetof(RequantizeParams, negative_shift)),
};

constexpr RequantizeParams kDefaults{};

bool is_quantized(ElementType type) { return is_one_of<std::int8_t, std::uint8_t, std::int16_t, std::int32_t>(type); }

Status infer_requantize(const void* params, std::span<const Tensor> inputs, std::span<TensorDesc> outputs) {
  const auto& p = *static_cast<const RequantizeParams*>(params);
  const TensorDesc& x = *inputs[0].desc;
  const ElementType to = p.to;
  if (!is_quantized(x.type))
    return failure(StatusCode::kUnsupported, "requantize: operand is not i8, u8, i16 or i32",
                   static_cast<std::int64_t>(x.type), static_cast<std::int64_t>(ElementType::kI8))
        .at(0);
  if (!is_quantized(to))
    return failure(StatusCode::kUnsupported, "requantize: result type is not i8, u8, i16 or i32",
                   static_cast<std::int64_t>(to), static_cast<std::int64_t>(ElementType::kI8));
  if (p.multiplier < 0)
    return failure(StatusCode::kInvalidModel, "requantize: the multiplier is negative", p.multiplier, 0);
  if (p.shift < -31 || p.shift > 30)
    return failure(StatusCode::kInvalidModel, "requantize: the shift is out of range", p.shift, 0);
  if (!is_flag(p.leaky)) return failure(StatusCode::kInvalidModel, "requantize: leaky is neither 0 nor 1", p.leaky, 1);
  if (p.negative_multiplier == std::numeric_limits<std::int32_t>::min())
    return failure(StatusCode::kInvalidModel, "requantize: the multiplier of negative numbers has no magnitude");
  if (p.negative_shift < -31 || p.negative_shift > 30)
    return failure(StatusCode::kInvalidModel, "requantize: the shift of negative numbers is out of range",
                   p.negative_shift, 0);
  outputs[0] = x;
  outputs[0].type = to;
  outputs[0].set_dense_strides();
  return ok_status();
}

constexpr KernelVariant kVariants[] = {
#if BANTAM_SIMD
    {.name = "i8__simd",
     .supports = supports_requantize_i8_simd,
     .footprint = overwrite_same_layout,
     .run = run_requantize_i8_simd},
#endif
    {.name = "i8__portable",
     .supports = supports_requantize_i8_portable,
     .footprint = overwrite_same_layout,
     .run = run_requantize_i8_portable},
    {.name = "any__ref", .footprint = overwrite_same_layout, .run = run_requantize_ref},
};

constexpr auto kBuilt = built_variants("requantize", kVariants);

}  // namespace

constexpr OpDef kRequantize{
    .name = "requantize",
    .params_bytes = sizeof(RequantizeParams),
    .default_params = &kDefaults,
    .fields = kFields,
    .infer = infer_requantize,
    .variants = kBuilt,
};

}  // namespace bantam::ops
