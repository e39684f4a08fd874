#include "ops/elementwise/dequantize/dequantize.h"

#include <type_traits>

#include "ops/common/elementwise.h"
#include "ops/common/params.h"
#include "ops/common/quantization_operands.h"
#include "ops/common/strides.h"
#include "ops/elementwise/dequantize/kernels.h"

namespace bantam::ops {
namespace {

constexpr ParamField kFields[] = {
    i32_field("axis", offsetof(DequantizeParams, axis)),
};

constexpr DequantizeParams kDefaults{};

Status infer_dequantize(const void* params, std::span<const Tensor> inputs, std::span<TensorDesc> outputs) {
  const auto& p = *static_cast<const DequantizeParams*>(params);
  const TensorDesc& x = *inputs[0].desc;
  if (!is_quantized_type(x.type))
    return failure(StatusCode::kUnsupported, "dequantize: no such quantised type", static_cast<std::int64_t>(x.type),
                   static_cast<std::int64_t>(ElementType::kI8))
        .at(0);
  BANTAM_RETURN_IF_ERROR(check_scale_operands(inputs, p.axis, x.type));
  outputs[0] = x;
  outputs[0].type = ElementType::kF32;
  outputs[0].set_dense_strides();
  return ok_status();
}

template <typename T>
float to_real(T x, T zero_point, float scale) {
  // The difference of two i32 may need 33 bits; for the narrower types it is exact in float, and vectors convert it.
  using Difference = std::conditional_t<sizeof(T) < sizeof(std::int32_t), std::int32_t, std::int64_t>;
  return static_cast<float>(static_cast<Difference>(x) - static_cast<Difference>(zero_point)) * scale;
}

/// One scale: a plain map, which compilers vectorise.
template <typename T>
void dequantize_tensor(const Invocation& invocation) {
  const float scale = *invocation.input<float>(1);
  const T zero_point = invocation.has(2) ? *invocation.input<T>(2) : T{0};
  map_elements<float, T>(invocation, [=](T x) { return to_real(x, zero_point, scale); });
}

template <typename T>
void dequantize_slices(const Invocation& invocation) {
  const TensorDesc& x_desc = invocation.in(0);
  const std::int64_t slices = invocation.in(1).elements();
  const std::int64_t inner = slice_length(x_desc, slices, invocation.as<DequantizeParams>().axis);
  const auto* scale = invocation.input<float>(1);
  const T* zero_point = invocation.has(2) ? invocation.input<T>(2) : nullptr;
  const auto* x = invocation.input<T>(0);
  auto* y = invocation.output<float>();
  std::int64_t index = 0;
  for_each_element(make_rows<2>(invocation.out(), {&invocation.out(), &x_desc}), [&](const auto& offsets) {
    const std::int64_t slice = index++ / inner % slices;
    y[offsets[0]] = to_real(x[offsets[1]], zero_point != nullptr ? zero_point[slice] : T{0}, scale[slice]);
  });
}

Status run_ref(const Invocation& invocation) {
  dispatch_type<std::int8_t, std::uint8_t, std::int16_t, std::uint16_t, std::int32_t>(
      invocation.in(0).type, [&](auto tag) {
        using T = typename decltype(tag)::type;
        if (invocation.in(1).elements() == 1) {
          dequantize_tensor<T>(invocation);
        } else {
          dequantize_slices<T>(invocation);
        }
      });
  return ok_status();
}

constexpr KernelVariant kVariants[] = {
#if BANTAM_SIMD
    {.name = "i8_f32__simd", .supports = supports_dequantize_i8_simd, .run = run_dequantize_i8_simd},
#endif
    {.name = "any__ref", .run = run_ref},
};

}  // namespace

constexpr OpDef kDequantize{
    .name = "dequantize",
    .params_bytes = sizeof(DequantizeParams),
    .default_params = &kDefaults,
    .fields = kFields,
    .min_inputs = 2,
    .max_inputs = 3,
    .infer = infer_dequantize,
    .variants = kVariants,
};

}  // namespace bantam::ops
