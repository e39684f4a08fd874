#include "ops/nn/pool2d/pool2d.h"

#include "ops/common/dispatch.h"
#include "ops/common/params.h"
#include "ops/nn/pool2d/geometry.h"
#include "ops/nn/pool2d/kernels.h"

namespace bantam::ops {
namespace {

constexpr std::string_view kKinds[] = {"max", "average"};

constexpr ParamField kFields[] = {
    enum_field("kind", offsetof(Pool2dParams, kind), kKinds),
    i32_field("kernel_h", offsetof(Pool2dParams, kernel_h)),
    i32_field("kernel_w", offsetof(Pool2dParams, kernel_w)),
    i32_field("stride_h", offsetof(Pool2dParams, stride_h)),
    i32_field("stride_w", offsetof(Pool2dParams, stride_w)),
    i32_field("dilation_h", offsetof(Pool2dParams, dilation_h)),
    i32_field("dilation_w", offsetof(Pool2dParams, dilation_w)),
    i32_field("pad_top", offsetof(Pool2dParams, pad_top)),
    i32_field("pad_left", offsetof(Pool2dParams, pad_left)),
    i32_field("pad_bottom", offsetof(Pool2dParams, pad_bottom)),
    i32_field("pad_right", offsetof(Pool2dParams, pad_right)),
    bool_field("ceil_mode", offsetof(Pool2dParams, ceil_mode)),
    bool_field("count_include_pad", offsetof(Pool2dParams, count_include_pad)),
    enum_field("activation", offsetof(Pool2dParams, activation.function), kUnaryFunctionNames),
    f32_field("activation_a", offsetof(Pool2dParams, activation.a)),
    f32_field("activation_b", offsetof(Pool2dParams, activation.b)),
    i32_field("minimum", offsetof(Pool2dParams, minimum)),
    i32_field("maximum", offsetof(Pool2dParams, maximum)),
};

constexpr Pool2dParams kDefaults{};

Status check_result_range(const Pool2dParams& p, ElementType type) {
  if (type == ElementType::kF32) return check_activation(p.activation);
  const std::int32_t lowest = type == ElementType::kI16 ? -32768 : type == ElementType::kI8 ? -128 : 0;
  const std::int32_t extent = type == ElementType::kI16 ? 65535 : 255;
  if (p.minimum < lowest || p.maximum > lowest + extent || p.minimum > p.maximum)
    return failure(StatusCode::kInvalidModel, "minimum and maximum are no range of the element type", p.minimum,
                   p.maximum);
  return ok_status();
}

Status infer_pool2d(const void* params, std::span<const Tensor> inputs, std::span<TensorDesc> outputs) {
  const auto& p = *static_cast<const Pool2dParams*>(params);
  const TensorDesc& x = *inputs[0].desc;
  if (!is_one_of<float, std::int8_t, std::uint8_t, std::int16_t>(x.type))
    return failure(StatusCode::kUnsupported, "pooling takes f32, i8, u8 or i16", static_cast<std::int64_t>(x.type),
                   static_cast<std::int64_t>(ElementType::kF32))
        .at(0);
  if (x.rank != 4) return failure(StatusCode::kInvalidModel, "operand must be [N,H,W,C]", x.rank, 4).at(0);
  if (!is_enumerator(p.kind))
    return failure(StatusCode::kInvalidModel, "unknown kind of pooling", static_cast<std::int64_t>(p.kind));
  if (!is_flag(p.ceil_mode) || !is_flag(p.count_include_pad))
    return failure(StatusCode::kInvalidModel, "ceil_mode and count_include_pad must be 0 or 1");
  BANTAM_RETURN_IF_ERROR(check_result_range(p, x.type));
  const PoolGeometry g = pool_geometry(p, x, x);
  std::int64_t dims[4] = {x.dims[0], 0, 0, x.dims[3]};
  BANTAM_RETURN_IF_ERROR(window_positions(g.vertical, x.dims[1], p.ceil_mode != 0, &dims[1]).at(1));
  BANTAM_RETURN_IF_ERROR(window_positions(g.horizontal, x.dims[2], p.ceil_mode != 0, &dims[2]).at(2));
  return make_desc(x.type, dims, 4, &outputs[0]);
}

std::int64_t work(const OpCall& call) {
  const auto& p = call.as<Pool2dParams>();
  const TensorDesc& x = call.in(0);
  // Taps outside the image cost nothing, so a window counts at most the image; both factors are below 2^31.
  return call.out().elements() * std::min(p.kernel_h, x.dims[1]) * std::min(p.kernel_w, x.dims[2]);
}

constexpr KernelVariant kVariants[] = {
#if BANTAM_SIMD
    {.name = "any_planes__simd",
     .supports = pool::planes_supports,
     .footprint = pool_footprint,
     .run = pool::run_planes,
     .accuracy = {Accuracy::Kind::kRelative, 2e-6F}},
    {.name = "any_channels__simd",
     .supports = pool::channels_supports,
     .footprint = pool_footprint,
     .run = pool::run_channels,
     .accuracy = {Accuracy::Kind::kRelative, 2e-6F}},
#endif
    {.name = "any__ref", .footprint = pool_footprint, .run = pool::run_reference},
};

}  // namespace

constexpr OpDef kPool2d{.name = "pool2d",
                        .params_bytes = sizeof(Pool2dParams),
                        .default_params = &kDefaults,
                        .fields = kFields,
                        .infer = infer_pool2d,
                        .work = work,
                        .variants = kVariants};

}  // namespace bantam::ops
