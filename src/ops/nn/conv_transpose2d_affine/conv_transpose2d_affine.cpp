#include "ops/nn/conv_transpose2d_affine/conv_transpose2d_affine.h"

#include "ops/common/operands.h"
#include "ops/common/params.h"
#include "ops/nn/conv2d/geometry.h"
#include "ops/nn/conv_transpose2d/geometry.h"
#include "ops/nn/conv_transpose2d_affine/kernels.h"

namespace bantam::ops {
namespace {

constexpr ConvTranspose2dAffineParams kDefaults{};
constexpr std::array<ParamField, 11> kWindowFields = {{
    i32_field("stride_h", offsetof(ConvTranspose2dAffineParams, stride_h)),
    i32_field("stride_w", offsetof(ConvTranspose2dAffineParams, stride_w)),
    i32_field("dilation_h", offsetof(ConvTranspose2dAffineParams, dilation_h)),
    i32_field("dilation_w", offsetof(ConvTranspose2dAffineParams, dilation_w)),
    i32_field("pad_top", offsetof(ConvTranspose2dAffineParams, pad_top)),
    i32_field("pad_left", offsetof(ConvTranspose2dAffineParams, pad_left)),
    i32_field("pad_bottom", offsetof(ConvTranspose2dAffineParams, pad_bottom)),
    i32_field("pad_right", offsetof(ConvTranspose2dAffineParams, pad_right)),
    i32_field("output_pad_h", offsetof(ConvTranspose2dAffineParams, output_pad_h)),
    i32_field("output_pad_w", offsetof(ConvTranspose2dAffineParams, output_pad_w)),
    i32_field("groups", offsetof(ConvTranspose2dAffineParams, groups)),
}};
constexpr auto kFields = join_fields(kWindowFields, affine_form_fields(offsetof(ConvTranspose2dAffineParams, form)));

Status infer_conv_transpose2d_affine(const void* params, std::span<const Tensor> inputs,
                                     std::span<TensorDesc> outputs) {
  const auto& p = *static_cast<const ConvTranspose2dAffineParams*>(params);
  const TensorDesc& x = desc_of(inputs, 0);
  const TensorDesc& w = desc_of(inputs, 1);
  BANTAM_RETURN_IF_ERROR(check_grouped_weights(x, w, p.groups));
  BANTAM_RETURN_IF_ERROR(infer_affine_form(inputs, p.form, w.dims[0], 1));
  return conv_transpose2d::infer_image(p, x, w, p.form.to, &outputs[0]);
}

std::int64_t work(const OpCall& call) {
  const TensorDesc& w = call.in(1);
  // Each input meets every tap and every output channel of its group. The product of two element counts below 2^31.
  return call.in(0).elements() *
         (w.elements() / std::max<std::int32_t>(w.dims[3], 1) / call.as<ConvTranspose2dAffineParams>().groups);
}

constexpr KernelVariant kVariants[] = {
#if BANTAM_SIMD
    {.name = "i8_columns__simd",
     .supports = conv_transpose2d_affine::columns_supports,
     .footprint = conv_transpose2d_affine::columns_footprint,
     .packed_bytes = conv_transpose2d_affine::columns_packed_bytes,
     .pack = conv_transpose2d_affine::columns_pack,
     .run = conv_transpose2d_affine::run_columns,
     .accuracy = {Accuracy::Kind::kRelative, 1e-6F}},  // exact for integer results
    {.name = "i8_gemm__simd",
     .supports = conv_transpose2d_affine::gemm_supports,
     .footprint = conv_transpose2d_affine::gemm_footprint,
     .packed_bytes = conv_transpose2d_affine::gemm_packed_bytes,
     .pack = conv_transpose2d_affine::gemm_pack,
     .run = conv_transpose2d_affine::run_gemm,
     .accuracy = {Accuracy::Kind::kRelative, 1e-6F}},  // exact for integer results
#endif
    {.name = "i8__ref", .supports = all_dense, .run = conv_transpose2d_affine::run_reference},
};

}  // namespace

constexpr OpDef kConvTranspose2dAffine{.name = "conv_transpose2d_affine",
                                       .params_bytes = sizeof(ConvTranspose2dAffineParams),
                                       .default_params = &kDefaults,
                                       .fields = kFields,
                                       .min_inputs = 2,
                                       .max_inputs = 6,
                                       .infer = infer_conv_transpose2d_affine,
                                       .work = work,
                                       .variants = kVariants};

}  // namespace bantam::ops
