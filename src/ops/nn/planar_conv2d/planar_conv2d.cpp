#include "ops/nn/planar_conv2d/planar_conv2d.h"

#include "ops/built.h"
#include "ops/common/operands.h"
#include "ops/nn/planar_conv2d/geometry.h"
#include "ops/nn/planar_conv2d/kernels.h"

namespace bantam::ops {
namespace {

constexpr Conv2dParams kDefaults{};
constexpr std::size_t kMostOperands = 3;

Status infer_planar_conv2d(const void* params, std::span<const Tensor> inputs, std::span<TensorDesc> outputs) {
  const TensorDesc& x = *inputs[0].desc;
  if (x.type != ElementType::kF32)
    return failure(StatusCode::kUnsupported, "operand must be f32", static_cast<std::int64_t>(x.type),
                   static_cast<std::int64_t>(ElementType::kF32))
        .at(0);
  if (x.rank != 4) return failure(StatusCode::kInvalidModel, "image must have 4 dimensions", x.rank, 4).at(0);
  if (inputs[1].desc->type != ElementType::kF32)
    return failure(StatusCode::kUnsupported, "weights must be f32", static_cast<std::int64_t>(inputs[1].desc->type),
                   static_cast<std::int64_t>(ElementType::kF32))
        .at(1);
  const std::int32_t groups = static_cast<const Conv2dParams*>(params)->groups;
  if (groups != 1) return failure(StatusCode::kUnsupported, "planes have no groups", groups, 1);
  const TensorDesc image = planar_conv2d::channels_last(x);
  Tensor operands[kMostOperands];
  std::copy_n(inputs.begin(), inputs.size(), operands);
  operands[0].desc = &image;
  return kConv2d.infer(params, {operands, inputs.size()}, outputs);
}

std::int64_t work(const OpCall& call) { return kConv2d.work(call); }

constexpr KernelVariant kVariants[] = {
#if BANTAM_SIMD
    {.name = "f32_few_inputs__simd",
     .supports = planar_conv2d::few_inputs_supports,
     .footprint = planar_conv2d::few_inputs_footprint,
     .packed_bytes = planar_conv2d::few_inputs_packed_bytes,
     .pack = planar_conv2d::few_inputs_pack,
     .run = planar_conv2d::run_few_inputs,
     .accuracy = {Accuracy::Kind::kRelative, 1e-5F}},
#endif
    {.name = "f32__ref", .run = planar_conv2d::run_reference},
};

constexpr auto kBuilt = built_variants("planar_conv2d", kVariants);

}  // namespace

/// One output at a time, over the taps inside the image.
Status planar_conv2d::run_reference(const Invocation& call) {
  const auto& params = call.as<Conv2dParams>();
  const TensorDesc& w = call.in(1);
  const ConvGeometry g = geometry(params, call.in(0), w, call.out());
  const std::int64_t channel = call.in(0).strides[1];
  const auto* x = call.input<float>(0);
  const auto* weights = call.input<float>(1);
  const auto* bias = optional_input<float>(call, 2);
  for (std::int32_t n = 0; n < g.y.n; ++n)
    for (std::int32_t oy = 0; oy < g.y.h; ++oy)
      for (std::int32_t ox = 0; ox < g.y.w; ++ox)
        for (std::int32_t oc = 0; oc < g.y.c; ++oc) {
          const std::int64_t y0 = window_origin(g.vertical, oy);
          const std::int64_t x0 = window_origin(g.horizontal, ox);
          const TapRange rows = taps_inside(g.vertical, y0, 0, g.x.h);
          const TapRange columns = taps_inside(g.horizontal, x0, 0, g.x.w);
          float sum = bias != nullptr ? bias[oc] : 0.0F;
          for (std::int32_t ky = rows.first; ky < rows.last; ++ky)
            for (std::int32_t kx = columns.first; kx < columns.last; ++kx) {
              const float* pixel = x + g.x.offset(n, y0 + std::int64_t{ky} * g.vertical.dilation,
                                                  x0 + std::int64_t{kx} * g.horizontal.dilation);
              const float* tap = weights + std::int64_t{oc} * w.strides[0] + std::int64_t{ky} * w.strides[1] +
                                 std::int64_t{kx} * w.strides[2];
              for (std::int32_t c = 0; c < g.x.c; ++c) sum += pixel[c * channel] * tap[c];
            }
          call.output<float>()[g.y.offset(n, oy, ox) + oc] = apply_activation(sum, params.activation);
        }
  return ok_status();
}

constexpr OpDef kPlanarConv2d{.name = "planar_conv2d",
                              .params_bytes = sizeof(Conv2dParams),
                              .default_params = &kDefaults,
                              .fields = kConv2dFields,
                              .min_inputs = 2,
                              .max_inputs = kMostOperands,
                              .outputs = 1,
                              .infer = infer_planar_conv2d,
                              .work = work,
                              .variants = kBuilt};

}  // namespace bantam::ops
