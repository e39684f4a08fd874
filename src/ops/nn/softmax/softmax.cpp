#include "ops/nn/softmax/softmax.h"

#include "ops/common/float_types.h"
#include "ops/common/operands.h"
#include "ops/common/params.h"
#include "ops/nn/softmax/kernels.h"

namespace bantam::ops {
namespace {

Status infer_softmax(const void* params, std::span<const Tensor> inputs, std::span<TensorDesc> outputs) {
  const auto& p = *static_cast<const SoftmaxParams*>(params);
  const TensorDesc& x = desc_of(inputs, 0);
  BANTAM_RETURN_IF_ERROR(check_float_type(x, 0));
  if (normalize_axis(p.axis, x.rank) < 0)
    return failure(StatusCode::kInvalidModel, "axis is outside the tensor", p.axis, x.rank - 1);
  if (!is_flag(p.log)) return failure(StatusCode::kInvalidModel, "log is neither 0 nor 1", p.log, 1);
  outputs[0] = x;
  outputs[0].set_dense_strides();
  return ok_status();
}

#if BANTAM_SIMD
bool is_dense_f32(const OpCall& call) { return call.in(0).type == ElementType::kF32 && all_dense(call); }
#endif

Footprint softmax_footprint(const OpCall& /*call*/, int /*threads*/) {
  Footprint footprint;
  footprint.overwrites[0] = 1;
  return footprint;
}

constexpr SoftmaxParams kDefaults{};
constexpr ParamField kFields[] = {
    i32_field("axis", offsetof(SoftmaxParams, axis)),
    bool_field("log", offsetof(SoftmaxParams, log)),
};
constexpr KernelVariant kVariants[] = {
#if BANTAM_SIMD
    {.name = "f32__simd",
     .supports = is_dense_f32,
     .footprint = softmax_footprint,
     .run = softmax::run_simd,
     // Sums of up to 2^31 terms in another order; in the logarithm the terms' own rounding dominates.
     .accuracy = {Accuracy::Kind::kRelative, 4e-6F}},
#endif
    {.name = "any__ref", .supports = all_dense, .footprint = softmax_footprint, .run = softmax::run_reference},
};

}  // namespace

constexpr OpDef kSoftmax{.name = "softmax",
                         .params_bytes = sizeof(SoftmaxParams),
                         .default_params = &kDefaults,
                         .fields = kFields,
                         .infer = infer_softmax,
                         .variants = kVariants};

}  // namespace bantam::ops
