// The kernels of conv2d_affine behind its variants table in conv2d_affine.cpp.
#pragma once

#include "ops/nn/conv2d/geometry.h"
#include "ops/nn/conv2d_affine/conv2d_affine.h"

namespace bantam::ops::conv2d_affine {

inline constexpr std::array<ParamField, 9> kWindowFields = {{
    i32_field("stride_h", offsetof(Conv2dAffineParams, stride_h)),
    i32_field("stride_w", offsetof(Conv2dAffineParams, stride_w)),
    i32_field("dilation_h", offsetof(Conv2dAffineParams, dilation_h)),
    i32_field("dilation_w", offsetof(Conv2dAffineParams, dilation_w)),
    i32_field("pad_top", offsetof(Conv2dAffineParams, pad_top)),
    i32_field("pad_left", offsetof(Conv2dAffineParams, pad_left)),
    i32_field("pad_bottom", offsetof(Conv2dAffineParams, pad_bottom)),
    i32_field("pad_right", offsetof(Conv2dAffineParams, pad_right)),
    i32_field("groups", offsetof(Conv2dAffineParams, groups)),
}};
/// The fields of Conv2dAffineParams.
inline constexpr auto kFields = join_fields(kWindowFields, affine_form_fields(offsetof(Conv2dAffineParams, form)));

/// The window as the helpers of conv2d take it.
inline Conv2dParams window_of(const Conv2dAffineParams& p) noexcept {
  Conv2dParams window;
  window.stride_h = p.stride_h;
  window.stride_w = p.stride_w;
  window.dilation_h = p.dilation_h;
  window.dilation_w = p.dilation_w;
  window.pad_top = p.pad_top;
  window.pad_left = p.pad_left;
  window.pad_bottom = p.pad_bottom;
  window.pad_right = p.pad_right;
  window.groups = p.groups;
  return window;
}

inline ConvGeometry geometry_of(const Conv2dAffineParams& p, const TensorDesc& x, const TensorDesc& w,
                                const TensorDesc& y) noexcept {
  return conv_geometry(window_of(p), x, y, w.dims[1], w.dims[2]);
}

Footprint reference_footprint(const OpCall& call, int threads);
Status run_reference(const Invocation& call);

/// Constant weights, one output channel per input channel and group, four channels or more.
bool depthwise_supports(const OpCall& call);
Footprint depthwise_footprint(const OpCall& call, int threads);
std::int64_t depthwise_packed_bytes(const OpCall& call, int input);
void depthwise_pack(const OpCall& call, int input, std::byte* destination);
Status run_depthwise(const Invocation& call);

/// 3x3, strides 1, one group, whole panels of channels; constant weights, zero points known (conv2d/winograd_i8.h).
bool winograd_supports(const OpCall& call);
Footprint winograd_footprint(const OpCall& call, int threads);
std::int64_t winograd_packed_bytes(const OpCall& call, int input);
void winograd_pack(const OpCall& call, int input, std::byte* destination);
Status run_winograd(const Invocation& call);

/// Several narrow groups; constant weights without a zero point (conv2d/narrow_groups.h).
bool narrow_groups_supports(const OpCall& call);
Footprint narrow_groups_footprint(const OpCall& call, int threads);
std::int64_t narrow_groups_packed_bytes(const OpCall& call, int input);
void narrow_groups_pack(const OpCall& call, int input, std::byte* destination);
Status run_narrow_groups(const Invocation& call);

/// One group, few outputs, weights without a zero point (conv2d/few_outputs.h).
bool few_outputs_supports(const OpCall& call);
Footprint few_outputs_footprint(const OpCall& call, int threads);
Status run_few_outputs(const Invocation& call);

/// Constant weights.
bool gemm_supports(const OpCall& call);
Footprint gemm_footprint(const OpCall& call, int threads);
std::int64_t gemm_packed_bytes(const OpCall& call, int input);
void gemm_pack(const OpCall& call, int input, std::byte* destination);
Status run_gemm(const Invocation& call);

}  // namespace bantam::ops::conv2d_affine
