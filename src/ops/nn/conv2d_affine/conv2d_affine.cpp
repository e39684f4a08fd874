#include "ops/nn/conv2d_affine/conv2d_affine.h"

#include "ops/nn/conv2d/geometry.h"
#include "ops/nn/conv2d_affine/kernels.h"

namespace bantam::ops {
namespace {

constexpr Conv2dAffineParams kDefaults{};

Status infer_conv2d_affine(const void* params, std::span<const Tensor> inputs, std::span<TensorDesc> outputs) {
  const auto& p = *static_cast<const Conv2dAffineParams*>(params);
  const TensorDesc& x = *inputs[0].desc;
  const TensorDesc& w = *inputs[1].desc;
  BANTAM_RETURN_IF_ERROR(check_grouped_weights(x, w, p.groups));
  BANTAM_RETURN_IF_ERROR(infer_affine_form(inputs, p.form, w.dims[0], 1));
  const ConvGeometry g = conv_geometry(conv2d_affine::window_of(p), x, x, w.dims[1], w.dims[2]);
  std::int64_t dims[4] = {x.dims[0], 0, 0, w.dims[0]};
  BANTAM_RETURN_IF_ERROR(window_positions(g.vertical, x.dims[1], false, &dims[1]).at(1));
  BANTAM_RETURN_IF_ERROR(window_positions(g.horizontal, x.dims[2], false, &dims[2]).at(2));
  return make_desc(p.form.to, dims, 4, &outputs[0]);
}

std::int64_t work(const OpCall& call) {
  const TensorDesc& w = call.in(1);
  // The product of two element counts below 2^31.
  return call.out().elements() * w.dims[1] * w.dims[2] * w.dims[3];
}

constexpr KernelVariant kVariants[] = {
#if BANTAM_SIMD
    {.name = "i8_depthwise__simd",
     .supports = conv2d_affine::depthwise_supports,
     .footprint = conv2d_affine::depthwise_footprint,
     .packed_bytes = conv2d_affine::depthwise_packed_bytes,
     .pack = conv2d_affine::depthwise_pack,
     .run = conv2d_affine::run_depthwise,
     .accuracy = {Accuracy::Kind::kRelative, 1e-6F}},  // exact for integer results
    {.name = "i8_few_outputs__simd",
     .supports = conv2d_affine::few_outputs_supports,
     .footprint = conv2d_affine::few_outputs_footprint,
     .run = conv2d_affine::run_few_outputs,
     .accuracy = {Accuracy::Kind::kRelative, 1e-6F}},  // exact for integer results
    {.name = "i8_narrow_groups__simd",
     .supports = conv2d_affine::narrow_groups_supports,
     .footprint = conv2d_affine::narrow_groups_footprint,
     .packed_bytes = conv2d_affine::narrow_groups_packed_bytes,
     .pack = conv2d_affine::narrow_groups_pack,
     .run = conv2d_affine::run_narrow_groups,
     .accuracy = {Accuracy::Kind::kRelative, 1e-6F}},  // exact for integer results
    {.name = "i8_winograd__simd",
     .supports = conv2d_affine::winograd_supports,
     .footprint = conv2d_affine::winograd_footprint,
     .packed_bytes = conv2d_affine::winograd_packed_bytes,
     .pack = conv2d_affine::winograd_pack,
     .run = conv2d_affine::run_winograd,
     .accuracy = {Accuracy::Kind::kRelative, 1e-6F}},  // exact for integer results
    {.name = "i8_gemm__simd",
     .supports = conv2d_affine::gemm_supports,
     .footprint = conv2d_affine::gemm_footprint,
     .packed_bytes = conv2d_affine::gemm_packed_bytes,
     .pack = conv2d_affine::gemm_pack,
     .run = conv2d_affine::run_gemm,
     .accuracy = {Accuracy::Kind::kRelative, 1e-6F}},  // exact for integer results
#endif
    {.name = "i8__ref", .footprint = conv2d_affine::reference_footprint, .run = conv2d_affine::run_reference},
};

}  // namespace

constexpr OpDef kConv2dAffine{.name = "conv2d_affine",
                              .params_bytes = sizeof(Conv2dAffineParams),
                              .default_params = &kDefaults,
                              .fields = conv2d_affine::kFields,
                              .min_inputs = 2,
                              .max_inputs = 6,
                              .outputs = 1,
                              .infer = infer_conv2d_affine,
                              .work = work,
                              .variants = kVariants};

}  // namespace bantam::ops
