#include "ops/nn/separable_conv2d/separable_conv2d.h"

#include <array>

#include "ops/built.h"
#include "ops/common/params.h"
#include "ops/nn/conv2d/geometry.h"
#include "ops/nn/conv2d/kernels.h"
#include "ops/nn/depthwise_conv2d/depthwise_conv2d.h"
#include "ops/nn/depthwise_conv2d/kernels.h"
#include "ops/nn/separable_conv2d/bands.h"

namespace bantam::ops {
namespace {

constexpr SeparableConv2dParams kDefaults{};

constexpr std::array<ParamField, 6> kPointwiseFields = {{
    enum_field("pointwise_activation", offsetof(SeparableConv2dParams, activation.function), kUnaryFunctionNames),
    f32_field("pointwise_activation_a", offsetof(SeparableConv2dParams, activation.a)),
    f32_field("pointwise_activation_b", offsetof(SeparableConv2dParams, activation.b)),
    i32_field("pointwise_output_zero_point", offsetof(SeparableConv2dParams, output_zero_point)),
    i32_field("pointwise_minimum", offsetof(SeparableConv2dParams, minimum)),
    i32_field("pointwise_maximum", offsetof(SeparableConv2dParams, maximum)),
}};
static_assert(offsetof(SeparableConv2dParams, depthwise) == 0, "the fields of Conv2dParams are its own");
constexpr auto kFields = join_fields(kConv2dFields, kPointwiseFields);

/// See halves.h.
struct Form {
  using Params = SeparableConv2dParams;
  using Half = Conv2dParams;
  static constexpr int kOperands = 5;

  static void split(const Params& params, Half* first, Half* second) {
    *first = params.depthwise;
    *second = Half{.activation = params.activation,
                   .input_zero_point = params.depthwise.output_zero_point,
                   .output_zero_point = params.output_zero_point,
                   .minimum = params.minimum,
                   .maximum = params.maximum};
  }
  static std::int32_t middle_channels(const TensorDesc& w) { return w.dims[2]; }
  static std::int32_t kernel_height(const TensorDesc& w) { return w.dims[0]; }
  static ElementType middle_type(const TensorDesc& x, const Half& /*first*/) { return x.type; }

  static std::int64_t work(const OpCall& call) {
    const separable::Halves<Form> halves(call.params, call.inputs, call.out());
    return kDepthwiseConv2d.work(halves.first()) + kConv2d.work(halves.second());
  }
};
using Halves = separable::Halves<Form>;

Status infer_separable(const void* params, std::span<const Tensor> inputs, std::span<TensorDesc> outputs) {
  BANTAM_RETURN_IF_ERROR(separable::infer_halves<Form>(kDepthwiseConv2d, kConv2d, params, inputs, outputs));
  for (const int i : {1, 2})
    if (linear_form(*inputs[0].desc, *inputs[static_cast<std::size_t>(i)].desc) == LinearForm::kHybrid)
      return failure(StatusCode::kUnsupported, "weights must have the form of the operand").at(i);
  return ok_status();
}

constexpr separable::Pair kReference = {
    {.name = "depthwise", .footprint = depthwise::reference_footprint, .run = depthwise::run_reference},
    {.name = "pointwise", .footprint = conv2d::reference_footprint, .run = conv2d::run_reference},
};
constexpr separable::Pair kPortable = {
    {.name = "depthwise",
     .supports = depthwise::portable_supports,
     .footprint = depthwise::portable_footprint,
     .run = depthwise::run_portable},
    {.name = "pointwise",
     .supports = conv2d::portable_supports,
     .footprint = conv2d::portable_footprint,
     .run = conv2d::run_portable},
};
#if BANTAM_SIMD
constexpr separable::Pair kFloat = {
    {.name = "depthwise",
     .supports = depthwise::float_supports,
     .footprint = depthwise::channels_footprint,
     .run = depthwise::run_float},
    constant_variant<conv2d::kGemm>("pointwise"),
};
constexpr separable::Pair kInt8 = {
    {.name = "depthwise",
     .supports = depthwise::int8_supports,
     .footprint = depthwise::channels_footprint,
     .run = depthwise::run_int8},
    {.name = "pointwise",
     .supports = conv2d::int8_supports,
     .footprint = conv2d::int8_footprint,
     .packed_bytes = conv2d::int8_packed_bytes,
     .pack = conv2d::int8_pack,
     .run = conv2d::run_int8},
};
#endif

constexpr KernelVariant kVariants[] = {
#if BANTAM_SIMD
    separable::band_variant<Form, kFloat>("f32_rows__simd", {Accuracy::Kind::kRelative, 1e-5F}),
    separable::band_variant<Form, kInt8>("i8_rows__simd"),
#endif
    separable::band_variant<Form, kPortable>("i8_rows__portable"),
    separable::band_variant<Form, kReference>("any_rows__ref"),
};

constexpr auto kBuilt = built_variants("separable_conv2d", kVariants);

}  // namespace

constexpr OpDef kSeparableConv2d{.name = "separable_conv2d",
                                 .params_bytes = sizeof(SeparableConv2dParams),
                                 .default_params = &kDefaults,
                                 .fields = kFields,
                                 .min_inputs = 3,
                                 .max_inputs = Halves::kInputs,
                                 .outputs = 1,
                                 .infer = infer_separable,
                                 .work = Form::work,
                                 .variants = kBuilt};

}  // namespace bantam::ops
