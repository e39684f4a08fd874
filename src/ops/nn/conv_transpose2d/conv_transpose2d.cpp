#include "ops/nn/conv_transpose2d/conv_transpose2d.h"

#include <algorithm>

#include "ops/common/operands.h"
#include "ops/common/params.h"
#include "ops/nn/conv2d/geometry.h"
#include "ops/nn/conv_transpose2d/geometry.h"
#include "ops/nn/conv_transpose2d/kernels.h"

namespace bantam::ops {
namespace {

Status infer_conv_transpose2d(const void* params, std::span<const Tensor> inputs, std::span<TensorDesc> outputs) {
  const auto& p = *static_cast<const ConvTranspose2dParams*>(params);
  const TensorDesc& x = desc_of(inputs, 0);
  const TensorDesc& w = desc_of(inputs, 1);
  BANTAM_RETURN_IF_ERROR(check_grouped_weights(x, w, p.groups));
  LinearForm form{};
  BANTAM_RETURN_IF_ERROR(infer_linear_form(inputs, w.dims[0], p.activation, conv_transpose2d::int8_range(p), &form));
  if (form == LinearForm::kHybrid)
    return failure(StatusCode::kUnsupported, "weights must be f32 where the operand is",
                   static_cast<std::int64_t>(w.type), static_cast<std::int64_t>(x.type))
        .at(1);
  return conv_transpose2d::infer_image(p, x, w, x.type, &outputs[0]);
}

std::int64_t work(const OpCall& call) {
  const TensorDesc& w = call.in(1);
  // Each input meets every tap and every output channel of its group. The product of two element counts below 2^31.
  return call.in(0).elements() *
         (w.elements() / std::max<std::int32_t>(w.dims[3], 1) / call.as<ConvTranspose2dParams>().groups);
}

constexpr ConvTranspose2dParams kDefaults{};
constexpr ParamField kFields[] = {
    i32_field("stride_h", offsetof(ConvTranspose2dParams, stride_h)),
    i32_field("stride_w", offsetof(ConvTranspose2dParams, stride_w)),
    i32_field("dilation_h", offsetof(ConvTranspose2dParams, dilation_h)),
    i32_field("dilation_w", offsetof(ConvTranspose2dParams, dilation_w)),
    i32_field("pad_top", offsetof(ConvTranspose2dParams, pad_top)),
    i32_field("pad_left", offsetof(ConvTranspose2dParams, pad_left)),
    i32_field("pad_bottom", offsetof(ConvTranspose2dParams, pad_bottom)),
    i32_field("pad_right", offsetof(ConvTranspose2dParams, pad_right)),
    i32_field("output_pad_h", offsetof(ConvTranspose2dParams, output_pad_h)),
    i32_field("output_pad_w", offsetof(ConvTranspose2dParams, output_pad_w)),
    i32_field("groups", offsetof(ConvTranspose2dParams, groups)),
    enum_field("activation", offsetof(ConvTranspose2dParams, activation.function), kUnaryFunctionNames),
    f32_field("activation_a", offsetof(ConvTranspose2dParams, activation.a)),
    f32_field("activation_b", offsetof(ConvTranspose2dParams, activation.b)),
    i32_field("input_zero_point", offsetof(ConvTranspose2dParams, input_zero_point)),
    i32_field("output_zero_point", offsetof(ConvTranspose2dParams, output_zero_point)),
    i32_field("minimum", offsetof(ConvTranspose2dParams, minimum)),
    i32_field("maximum", offsetof(ConvTranspose2dParams, maximum)),
};
constexpr KernelVariant kVariants[] = {
#if BANTAM_SIMD
    constant_variant<conv_transpose2d::kDepthwise>("f32_depthwise__simd"),
    computed_variant<conv_transpose2d::kDepthwise>("f32_depthwise_dynamic__simd"),
    constant_variant<conv_transpose2d::kGemm>("f32_gemm__simd"),
    computed_variant<conv_transpose2d::kGemm>("f32_gemm_dynamic__simd"),
    constant_variant<conv_transpose2d::kColumns>("f32_columns__simd"),
    computed_variant<conv_transpose2d::kColumns>("f32_columns_dynamic__simd"),
    {.name = "i8_columns__simd",
     .supports = conv_transpose2d::integer_columns_supports,
     .footprint = conv_transpose2d::integer_columns_footprint,
     .packed_bytes = conv_transpose2d::integer_columns_packed_bytes,
     .pack = conv_transpose2d::integer_columns_pack,
     .run = conv_transpose2d::run_integer_columns},
    {.name = "i8_gemm__simd",
     .supports = conv_transpose2d::integer_supports,
     .footprint = conv_transpose2d::integer_footprint,
     .packed_bytes = conv_transpose2d::integer_packed_bytes,
     .pack = conv_transpose2d::integer_pack,
     .run = conv_transpose2d::run_integer},
#endif
    {.name = "any__ref", .supports = all_dense, .run = conv_transpose2d::run_reference},
};

}  // namespace

constexpr OpDef kConvTranspose2d{.name = "conv_transpose2d",
                                 .params_bytes = sizeof(ConvTranspose2dParams),
                                 .default_params = &kDefaults,
                                 .fields = kFields,
                                 .min_inputs = 2,
                                 .max_inputs = 5,
                                 .infer = infer_conv_transpose2d,
                                 .work = work,
                                 .variants = kVariants};

}  // namespace bantam::ops
