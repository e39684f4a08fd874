#include "ops/nn/deform_conv2d/deform_conv2d.h"

#include <algorithm>

#include "ops/common/operands.h"
#include "ops/common/params.h"
#include "ops/common/window.h"
#include "ops/nn/deform_conv2d/kernels.h"

namespace bantam::ops {
namespace {

Status check_channels(const DeformConv2dParams& p, std::span<const Tensor> inputs) {
  const TensorDesc& x = desc_of(inputs, 0);
  const TensorDesc& w = desc_of(inputs, 1);
  if (p.groups < 1 || p.offset_groups < 1)
    return failure(StatusCode::kInvalidModel, "groups must be positive", std::min(p.groups, p.offset_groups), 1);
  if (static_cast<std::int64_t>(w.dims[3]) * p.groups != x.dims[3])
    return failure(StatusCode::kInvalidModel, "weights do not fit the operand's channels",
                   static_cast<std::int64_t>(w.dims[3]) * p.groups, x.dims[3])
        .at(1);
  if (w.dims[0] % p.groups != 0)
    return failure(StatusCode::kInvalidModel, "output channels are not a multiple of groups", w.dims[0], p.groups)
        .at(1);
  if (x.dims[3] % p.offset_groups != 0)
    return failure(StatusCode::kInvalidModel, "channels are not a multiple of offset groups", x.dims[3],
                   p.offset_groups);
  if (!is_given(inputs, 3)) return ok_status();
  BANTAM_RETURN_IF_ERROR(check_type(desc_of(inputs, 3), ElementType::kF32, 3));
  BANTAM_RETURN_IF_ERROR(check_rank(desc_of(inputs, 3), 1, 3));
  if (desc_of(inputs, 3).dims[0] != w.dims[0])
    return failure(StatusCode::kInvalidModel, "bias does not have one value per output channel",
                   desc_of(inputs, 3).dims[0], w.dims[0])
        .at(3);
  return ok_status();
}

/// Offsets and mask have `values` numbers for every offset group, tap and position.
Status check_per_tap(const DeformConv2dParams& p, const TensorDesc& given, const TensorDesc& y,
                     const TensorDesc& weights, std::int64_t values, int operand) {
  BANTAM_RETURN_IF_ERROR(check_type(given, ElementType::kF32, operand));
  BANTAM_RETURN_IF_ERROR(check_rank(given, 4, operand));
  for (int i = 0; i < 3; ++i)
    if (given.dims[i] != y.dims[i])
      return failure(StatusCode::kInvalidModel, "offsets or mask do not have the result's shape", given.dims[i],
                     y.dims[i])
          .at(operand);
  // Taps fit int32 unless there are no channels; an offset group has at least one.
  const auto taps = checked_multiply(elements_between(weights, 1, 3), values * p.offset_groups);
  if (!taps || given.dims[3] != *taps)
    return failure(StatusCode::kInvalidModel, "offsets or mask do not have one entry per tap", given.dims[3],
                   taps.value_or(-1))
        .at(operand);
  return ok_status();
}

Status infer_deform_conv2d(const void* params, std::span<const Tensor> inputs, std::span<TensorDesc> outputs) {
  const auto& p = *static_cast<const DeformConv2dParams*>(params);
  const TensorDesc& x = desc_of(inputs, 0);
  const TensorDesc& w = desc_of(inputs, 1);
  for (int i = 0; i < 2; ++i) {
    BANTAM_RETURN_IF_ERROR(check_type(desc_of(inputs, i), ElementType::kF32, i));
    BANTAM_RETURN_IF_ERROR(check_rank(desc_of(inputs, i), 4, i));
  }
  BANTAM_RETURN_IF_ERROR(check_channels(p, inputs));
  std::int64_t dims[4] = {x.dims[0], 0, 0, w.dims[0]};
  const WindowAxis vertical{w.dims[1], p.stride_h, p.dilation_h, p.pad_top, p.pad_bottom};
  const WindowAxis horizontal{w.dims[2], p.stride_w, p.dilation_w, p.pad_left, p.pad_right};
  BANTAM_RETURN_IF_ERROR(window_positions(vertical, x.dims[1], false, &dims[1]).at(1));
  BANTAM_RETURN_IF_ERROR(window_positions(horizontal, x.dims[2], false, &dims[2]).at(2));
  BANTAM_RETURN_IF_ERROR(make_desc(x.type, dims, 4, &outputs[0]));
  BANTAM_RETURN_IF_ERROR(check_per_tap(p, desc_of(inputs, 2), outputs[0], w, 2, 2));
  return is_given(inputs, 4) ? check_per_tap(p, desc_of(inputs, 4), outputs[0], w, 1, 4) : ok_status();
}

std::int64_t work(const OpCall& call) {
  const TensorDesc& w = call.in(1);
  // Products and, per channel, four elements to interpolate. Each factor is below 2^31.
  return call.out().elements() * elements_between(w, 1, 4) +
         elements_between(call.out(), 0, 3) * std::min(elements_between(w, 1, 3) * call.in(0).dims[3], kMaxElements) *
             4;
}

constexpr DeformConv2dParams kDefaults{};
constexpr ParamField kFields[] = {
    i32_field("stride_h", offsetof(DeformConv2dParams, stride_h)),
    i32_field("stride_w", offsetof(DeformConv2dParams, stride_w)),
    i32_field("dilation_h", offsetof(DeformConv2dParams, dilation_h)),
    i32_field("dilation_w", offsetof(DeformConv2dParams, dilation_w)),
    i32_field("pad_top", offsetof(DeformConv2dParams, pad_top)),
    i32_field("pad_left", offsetof(DeformConv2dParams, pad_left)),
    i32_field("pad_bottom", offsetof(DeformConv2dParams, pad_bottom)),
    i32_field("pad_right", offsetof(DeformConv2dParams, pad_right)),
    i32_field("groups", offsetof(DeformConv2dParams, groups)),
    i32_field("offset_groups", offsetof(DeformConv2dParams, offset_groups)),
};
constexpr KernelVariant kVariants[] = {
#if BANTAM_SIMD
    {.name = "f32_gemm__simd",
     .supports = deform_conv2d::gemm_supports,
     .footprint = deform_conv2d::gemm_footprint,
     .packed_bytes = deform_conv2d::gemm_packed_bytes,
     .pack = deform_conv2d::gemm_pack,
     .run = deform_conv2d::run_gemm,
     .accuracy = {Accuracy::Kind::kRelative, 1e-5F}},
#endif
    {.name = "f32__ref",
     .supports = all_dense,
     .footprint = deform_conv2d::footprint,
     .run = deform_conv2d::run_reference},
};

}  // namespace

constexpr OpDef kDeformConv2d{.name = "deform_conv2d",
                              .params_bytes = sizeof(DeformConv2dParams),
                              .default_params = &kDefaults,
                              .fields = kFields,
                              .min_inputs = 3,
                              .max_inputs = 5,
                              .infer = infer_deform_conv2d,
                              .work = work,
                              .variants = kVariants};

}  // namespace bantam::ops
