#include "ops/nn/depthwise_conv2d/depthwise_conv2d.h"

#include "ops/built.h"
#include "ops/nn/conv2d/geometry.h"
#include "ops/nn/depthwise_conv2d/kernels.h"

namespace bantam::ops {
namespace {

constexpr Conv2dParams kDefaults{};

Status infer_depthwise(const void* params, std::span<const Tensor> inputs, std::span<TensorDesc> outputs) {
  const auto& p = *static_cast<const Conv2dParams*>(params);
  const TensorDesc& x = *inputs[0].desc;
  const TensorDesc& w = *inputs[1].desc;
  if (x.rank != 4) return failure(StatusCode::kInvalidModel, "operand must be [N,H,W,C]", x.rank, 4).at(0);
  if (w.rank != 3) return failure(StatusCode::kInvalidModel, "weights must be [KH,KW,C*M]", w.rank, 3).at(1);
  if (p.groups != 1)
    return failure(StatusCode::kInvalidModel, "groups must be 1 in a depthwise convolution", p.groups, 1);
  const bool multiple = x.dims[3] == 0 ? w.dims[2] == 0 : w.dims[2] % x.dims[3] == 0;
  if (!multiple)
    return failure(StatusCode::kInvalidModel, "weights are not a multiple of the operand's channels", w.dims[2],
                   x.dims[3])
        .at(1);
  return infer_convolution(p, inputs, w.dims[0], w.dims[1], w.dims[2], &outputs[0]);
}

std::int64_t work(const OpCall& call) {
  // The product of two element counts below 2^31.
  return call.out().elements() * call.in(1).dims[0] * call.in(1).dims[1];
}

constexpr KernelVariant kVariants[] = {
#if BANTAM_SIMD
    {.name = "f32_channels__simd",
     .supports = depthwise::float_supports,
     .footprint = depthwise::channels_footprint,
     .run = depthwise::run_float,
     .accuracy = {Accuracy::Kind::kRelative, 1e-5F}},
    constant_variant<depthwise::kMultiplied>("f32_multiplied__simd"),
    computed_variant<depthwise::kMultiplied>("f32_multiplied_dynamic__simd"),
    {.name = "i8_channels__simd",
     .supports = depthwise::int8_supports,
     .footprint = depthwise::int8_footprint,
     .run = depthwise::run_int8},
    {.name = "i8_multiplied__simd",
     .supports = depthwise::int8_multiplied_supports,
     .footprint = depthwise::int8_multiplied_footprint,
     .packed_bytes = depthwise::int8_multiplied_packed_bytes,
     .pack = depthwise::int8_multiplied_pack,
     .run = depthwise::run_int8_multiplied},
#endif
    {.name = "i8__portable",
     .supports = depthwise::portable_supports,
     .footprint = depthwise::portable_footprint,
     .run = depthwise::run_portable},
    {.name = "any__ref", .footprint = depthwise::reference_footprint, .run = depthwise::run_reference},
};

constexpr auto kBuilt = built_variants("depthwise_conv2d", kVariants);

}  // namespace

constexpr OpDef kDepthwiseConv2d{.name = "depthwise_conv2d",
                                 .params_bytes = sizeof(Conv2dParams),
                                 .default_params = &kDefaults,
                                 .fields = kConv2dFields,
                                 .min_inputs = 2,
                                 .max_inputs = 5,
                                 .outputs = 1,
                                 .infer = infer_depthwise,
                                 .work = work,
                                 .variants = kBuilt};

}  // namespace bantam::ops
