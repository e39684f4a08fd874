#include "ops/nn/norm/norm.h"

#include <cmath>

#include "ops/common/float_types.h"
#include "ops/common/operands.h"
#include "ops/common/params.h"
#include "ops/nn/norm/kernels.h"

namespace bantam::ops {
namespace {

Status check_axes(const IntList& axes, int rank) {
  if (axes.size < 0 || axes.size > rank)
    return failure(StatusCode::kInvalidModel, "too many axes to normalise over", axes.size, rank);
  for (int i = 0; i < axes.size; ++i) {
    BANTAM_RETURN_IF_ERROR(check_axis(axes[i], rank));
    if (i > 0 && axes[i] <= axes[i - 1])
      return failure(StatusCode::kInvalidModel, "axes are not ascending", axes[i], axes[i - 1]);
  }
  return ok_status();
}

Status infer_norm(const void* params, std::span<const Tensor> inputs, std::span<TensorDesc> outputs) {
  const auto& p = *static_cast<const NormParams*>(params);
  const TensorDesc& x = desc_of(inputs, 0);
  BANTAM_RETURN_IF_ERROR(check_float_type(x, 0));
  BANTAM_RETURN_IF_ERROR(check_axes(p.axes, x.rank));
  if (!is_flag(p.rms)) return failure(StatusCode::kInvalidModel, "rms is neither 0 nor 1", p.rms, 1);
  if (!(p.epsilon >= 0) || !std::isfinite(p.epsilon))
    return failure(StatusCode::kInvalidModel, "epsilon is negative or not a number");
  for (int i = 1; i <= 2; ++i) {
    if (!is_given(inputs, i)) continue;
    BANTAM_RETURN_IF_ERROR(check_type(desc_of(inputs, i), x.type, i));
    TensorDesc joint;
    if (!broadcast(x, desc_of(inputs, i), x.type, &joint) || !same_shape_and_type(joint, x))
      return failure(StatusCode::kInvalidModel, "scale or bias does not broadcast to the operand").at(i);
  }
  outputs[0] = x;
  outputs[0].set_dense_strides();
  return ok_status();
}

Footprint norm_footprint(const OpCall& /*call*/, int /*threads*/) {
  Footprint footprint;
  footprint.overwrites[0] = 1;
  return footprint;
}

constexpr NormParams kDefaults{};
constexpr ParamField kFields[] = {
    list_field("axes", offsetof(NormParams, axes)),
    f32_field("epsilon", offsetof(NormParams, epsilon)),
    bool_field("rms", offsetof(NormParams, rms)),
};
constexpr KernelVariant kVariants[] = {
#if BANTAM_SIMD
    {.name = "f32_groups__simd",
     .supports = norm::prefers_groups,
     .footprint = norm::groups_footprint,
     .run = norm::run_groups,
     .accuracy = {Accuracy::Kind::kRelative, 2e-5F}},
    {.name = "f32_blocks__simd",
     .supports = norm::supports_blocks,
     .footprint = norm_footprint,
     .run = norm::run_blocks,
     // Means of float sums of up to 2^31 terms, against sums in double.
     .accuracy = {Accuracy::Kind::kRelative, 2e-5F}},
    // For sizes that change: one kernel must do for all of them.
    {.name = "f32_groups_of_any_size__simd",
     .supports = norm::supports_groups,
     .footprint = norm::groups_footprint,
     .run = norm::run_groups,
     .accuracy = {Accuracy::Kind::kRelative, 2e-5F}},
#endif
    {.name = "any__ref", .supports = all_dense, .footprint = norm_footprint, .run = norm::run_reference},
};

}  // namespace

constexpr OpDef kNorm{.name = "norm",
                      .params_bytes = sizeof(NormParams),
                      .default_params = &kDefaults,
                      .fields = kFields,
                      .min_inputs = 1,
                      .max_inputs = 3,
                      .infer = infer_norm,
                      .variants = kVariants};

}  // namespace bantam::ops
