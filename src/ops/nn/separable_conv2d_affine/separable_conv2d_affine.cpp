#include "ops/nn/separable_conv2d_affine/separable_conv2d_affine.h"

#include <array>

#include "ops/nn/conv2d_affine/kernels.h"
#include "ops/nn/separable_conv2d/bands.h"

namespace bantam::ops {
namespace {

constexpr SeparableConv2dAffineParams kDefaults{};

constexpr std::size_t pointwise_offset(std::size_t member) {
  return offsetof(SeparableConv2dAffineParams, pointwise) + member;
}

constexpr std::array<ParamField, 10> kPointwiseFields = {{
    type_field("pointwise_to", pointwise_offset(offsetof(AffineForm, to))),
    i32_field("pointwise_input_zero_point", pointwise_offset(offsetof(AffineForm, input_zero_point))),
    i32_field("pointwise_weights_zero_point", pointwise_offset(offsetof(AffineForm, weights_zero_point))),
    i32_field("pointwise_output_zero_point", pointwise_offset(offsetof(AffineForm, output_zero_point))),
    i32_field("pointwise_minimum", pointwise_offset(offsetof(AffineForm, minimum))),
    i32_field("pointwise_maximum", pointwise_offset(offsetof(AffineForm, maximum))),
    enum_field("pointwise_activation", pointwise_offset(offsetof(AffineForm, activation.function)),
               kUnaryFunctionNames),
    f32_field("pointwise_activation_a", pointwise_offset(offsetof(AffineForm, activation.a))),
    f32_field("pointwise_activation_b", pointwise_offset(offsetof(AffineForm, activation.b))),
    f32_field("pointwise_output_scale", pointwise_offset(offsetof(AffineForm, output_scale))),
}};
static_assert(offsetof(SeparableConv2dAffineParams, depthwise) == 0, "the fields of Conv2dAffineParams are its own");
constexpr auto kFields = join_fields(conv2d_affine::kFields, kPointwiseFields);

/// See separable_conv2d/halves.h.
struct Form {
  using Params = SeparableConv2dAffineParams;
  using Half = Conv2dAffineParams;
  static constexpr int kOperands = 6;

  static void split(const Params& params, Half* first, Half* second) {
    *first = params.depthwise;
    *second = Half{.form = params.pointwise};
  }
  static std::int32_t middle_channels(const TensorDesc& w) { return w.dims[0]; }
  static std::int32_t kernel_height(const TensorDesc& w) { return w.dims[1]; }
  static ElementType middle_type(const TensorDesc& /*x*/, const Half& first) { return first.form.to; }

  static std::int64_t work(const OpCall& call) {
    const separable::Halves<Form> halves(call.params, call.inputs, call.out());
    return kConv2dAffine.work(halves.first()) + kConv2dAffine.work(halves.second());
  }
};
using Halves = separable::Halves<Form>;

Status infer_separable(const void* params, std::span<const Tensor> inputs, std::span<TensorDesc> outputs) {
  return separable::infer_halves<Form>(kConv2dAffine, kConv2dAffine, params, inputs, outputs);
}

constexpr separable::Pair kReference = {
    {.name = "depthwise", .footprint = conv2d_affine::reference_footprint, .run = conv2d_affine::run_reference},
    {.name = "pointwise", .footprint = conv2d_affine::reference_footprint, .run = conv2d_affine::run_reference},
};
#if BANTAM_SIMD
constexpr separable::Pair kInt8 = {
    {.name = "depthwise",
     .supports = conv2d_affine::depthwise_supports,
     .footprint = conv2d_affine::depthwise_footprint,
     .packed_bytes = conv2d_affine::depthwise_packed_bytes,
     .pack = conv2d_affine::depthwise_pack,
     .run = conv2d_affine::run_depthwise},
    {.name = "pointwise",
     .supports = conv2d_affine::gemm_supports,
     .footprint = conv2d_affine::gemm_footprint,
     .packed_bytes = conv2d_affine::gemm_packed_bytes,
     .pack = conv2d_affine::gemm_pack,
     .run = conv2d_affine::run_gemm},
};
#endif

constexpr KernelVariant kVariants[] = {
#if BANTAM_SIMD
    separable::band_variant<Form, kInt8>("i8_rows__simd", {Accuracy::Kind::kRelative, 1e-6F}),  // exact for integers
#endif
    separable::band_variant<Form, kReference>("i8_rows__ref"),
};

}  // namespace

constexpr OpDef kSeparableConv2dAffine{.name = "separable_conv2d_affine",
                                       .params_bytes = sizeof(SeparableConv2dAffineParams),
                                       .default_params = &kDefaults,
                                       .fields = kFields,
                                       .min_inputs = 3,
                                       .max_inputs = Halves::kInputs,
                                       .outputs = 1,
                                       .infer = infer_separable,
                                       .work = Form::work,
                                       .variants = kVariants};

}  // namespace bantam::ops
