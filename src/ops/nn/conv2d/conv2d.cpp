#include "ops/nn/conv2d/conv2d.h"

#include "ops/built.h"
#include "ops/nn/conv2d/geometry.h"
#include "ops/nn/conv2d/kernels.h"
#include "ops/nn/conv2d/winograd.h"
#include "ops/stored_variant.h"

namespace bantam::ops {
namespace {

constexpr Conv2dParams kDefaults{};

Status infer_conv2d(const void* params, std::span<const Tensor> inputs, std::span<TensorDesc> outputs) {
  const auto& p = *static_cast<const Conv2dParams*>(params);
  const TensorDesc& x = *inputs[0].desc;
  const TensorDesc& w = *inputs[1].desc;
  BANTAM_RETURN_IF_ERROR(check_grouped_weights(x, w, p.groups));
  return infer_convolution(p, inputs, w.dims[1], w.dims[2], w.dims[0], &outputs[0]);
}

std::int64_t work(const OpCall& call) {
  const TensorDesc& w = call.in(1);
  // The product of two element counts below 2^31.
  return call.out().elements() * w.dims[1] * w.dims[2] * w.dims[3];
}

#if BANTAM_SIMD
/// The matrix kernel on weights that are narrowed to a type.
constexpr StoringKernel kNarrow = {.supports = packed_weights::supports_constant<conv2d::kGemm>,
                                   .footprint = conv2d::narrow_footprint,
                                   .packed_bytes = conv2d::narrow_packed_bytes,
                                   .pack = conv2d::narrow_pack,
                                   .run = conv2d::run_narrow,
                                   .accuracy = {Accuracy::Kind::kRelative, 1e-5F}};

/// The same in 16-bit arithmetic.
constexpr StoringKernel kHalf = {.supports = packed_weights::supports_constant<conv2d::kGemm>,
                                 .footprint = conv2d::half_footprint,
                                 .packed_bytes = conv2d::narrow_packed_bytes,
                                 .pack = conv2d::narrow_pack,
                                 .run = conv2d::run_half,
                                 .accuracy = {Accuracy::Kind::kRelative, 5e-2F}};
#endif

constexpr KernelVariant kVariants[] = {
#if BANTAM_SIMD
    constant_variant<conv2d::kNarrowGroups>("f32_narrow_groups__simd"),
    computed_variant<conv2d::kNarrowGroups>("f32_narrow_groups_dynamic__simd"),
    constant_variant<conv2d::kFewInputs>("f32_few_inputs__simd"),
    computed_variant<conv2d::kFewInputs>("f32_few_inputs_dynamic__simd"),
    {.name = "f32_few_outputs__simd",
     .supports = conv2d::few_outputs_supports,
     .footprint = conv2d::few_outputs_footprint,
     .run = conv2d::run_few_outputs,
     .accuracy = {Accuracy::Kind::kRelative, 1e-5F}},
    conv2d::winograd_variant<conv2d::winograd::kResults>("f32_winograd__simd"),
    conv2d::winograd_variant<conv2d::winograd::kFewResults>("f32_winograd_2x2__simd"),
    constant_variant<conv2d::kGemm>("f32_gemm__simd"),
    computed_variant<conv2d::kGemm>("f32_gemm_dynamic__simd"),
    stored_variant<kHalf, ElementType::kF16>("f16_gemm__simd"),
    stored_variant<kNarrow, ElementType::kF16>("f32_gemm_f16__simd"),
    stored_variant<kNarrow, ElementType::kBF16>("f32_gemm_bf16__simd"),
    stored_variant<kNarrow, ElementType::kI8>("f32_gemm_i8__simd"),
    stored_variant<kNarrow, ElementType::kI4>("f32_gemm_i4__simd"),
    {.name = "i8_few_outputs__simd",
     .supports = conv2d::int8_few_outputs_supports,
     .footprint = conv2d::few_outputs_footprint,
     .run = conv2d::run_int8_few_outputs},
    {.name = "i8_narrow_groups__simd",
     .supports = conv2d::int8_narrow_groups_supports,
     .footprint = conv2d::int8_narrow_groups_footprint,
     .packed_bytes = conv2d::int8_narrow_groups_packed_bytes,
     .pack = conv2d::int8_narrow_groups_pack,
     .run = conv2d::run_int8_narrow_groups},
    {.name = "i8_winograd__simd",
     .supports = conv2d::int8_winograd_supports,
     .footprint = conv2d::int8_winograd_footprint,
     .packed_bytes = conv2d::int8_winograd_packed_bytes,
     .pack = conv2d::int8_winograd_pack,
     .run = conv2d::run_int8_winograd},
    {.name = "i8_gemm__simd",
     .supports = conv2d::int8_supports,
     .footprint = conv2d::int8_footprint,
     .packed_bytes = conv2d::int8_packed_bytes,
     .pack = conv2d::int8_pack,
     .run = conv2d::run_int8,
     .accuracy = {Accuracy::Kind::kRelative, 1e-6F}},  // exact in the int8 form
#endif
    {.name = "i8__portable",
     .supports = conv2d::portable_supports,
     .footprint = conv2d::portable_footprint,
     .run = conv2d::run_portable},
    {.name = "any__ref", .footprint = conv2d::reference_footprint, .run = conv2d::run_reference},
};

constexpr auto kBuilt = built_variants("conv2d", kVariants);

}  // namespace

constexpr OpDef kConv2d{.name = "conv2d",
                        .params_bytes = sizeof(Conv2dParams),
                        .default_params = &kDefaults,
                        .fields = kConv2dFields,
                        .min_inputs = 2,
                        .max_inputs = 5,
                        .outputs = 1,
                        .infer = infer_conv2d,
                        .work = work,
                        .variants = kBuilt};

}  // namespace bantam::ops
