#include "ops/reduce/reduce_affine/reduce_affine.h"

#include <cmath>

#include "ops/common/affine_form.h"
#include "ops/common/dispatch.h"
#include "ops/common/params.h"
#include "ops/reduce/reduce_affine/kernels.h"
#include "ops/reduce/reduce_loops.h"

namespace bantam::ops {
namespace {

constexpr ParamField kFields[] = {
    enum_field("function", offsetof(ReduceAffineParams, function), kReduceFunctionNames),
    list_field("axes", offsetof(ReduceAffineParams, axes)),
    bool_field("keep_dims", offsetof(ReduceAffineParams, keep_dims)),
    f32_field("x_scale", offsetof(ReduceAffineParams, x_scale)),
    i32_field("x_zero_point", offsetof(ReduceAffineParams, x_zero_point)),
    type_field("to", offsetof(ReduceAffineParams, to)),
    f32_field("y_scale", offsetof(ReduceAffineParams, y_scale)),
    i32_field("y_zero_point", offsetof(ReduceAffineParams, y_zero_point)),
    i32_field("minimum", offsetof(ReduceAffineParams, minimum)),
    i32_field("maximum", offsetof(ReduceAffineParams, maximum)),
};

constexpr ReduceAffineParams kDefaults{};

Status infer_reduce_affine(const void* params, std::span<const Tensor> inputs, std::span<TensorDesc> outputs) {
  const auto& p = *static_cast<const ReduceAffineParams*>(params);
  const TensorDesc& x = *inputs[0].desc;
  const ElementType to = p.to;
  if (p.function != ReduceFunction::kSum && p.function != ReduceFunction::kMean)
    return failure(StatusCode::kUnsupported, "there is no quantised form of this function",
                   static_cast<std::int64_t>(p.function), static_cast<std::int64_t>(ReduceFunction::kMean));
  if (!is_one_of<std::int8_t, std::uint8_t>(x.type))
    return failure(StatusCode::kUnsupported, "operand must be i8 or u8", static_cast<std::int64_t>(x.type),
                   static_cast<std::int64_t>(ElementType::kI8))
        .at(0);
  if (!is_one_of<std::int8_t, std::uint8_t>(to))
    return failure(StatusCode::kUnsupported, "the result must be i8 or u8", static_cast<std::int64_t>(to),
                   static_cast<std::int64_t>(ElementType::kI8));
  for (const float scale : {p.x_scale, p.y_scale})
    if (!std::isfinite(scale) || scale <= 0.0F)
      return failure(StatusCode::kInvalidModel, "a scale must be a positive number");
  if (!fits_byte(p.x_zero_point, x.type))
    return failure(StatusCode::kInvalidModel, "input zero point is outside its type", p.x_zero_point, 0);
  BANTAM_RETURN_IF_ERROR(check_byte_results(to, p.y_zero_point, p.minimum, p.maximum));
  return infer_reduction(p.axes, p.keep_dims, x, to, &outputs[0]);
}

std::int64_t work_reduce_affine(const OpCall& call) { return call.in(0).elements(); }

constexpr KernelVariant kVariants[] = {
#if BANTAM_SIMD
    {.name = "i8__simd",
     .supports = supports_reduce_affine_simd,
     .footprint = reduce_affine_footprint,
     .run = run_reduce_affine_simd},
#endif
    {.name = "i8__ref", .run = run_reduce_affine_ref},
};

}  // namespace

constexpr OpDef kReduceAffine{
    .name = "reduce_affine",
    .params_bytes = sizeof(ReduceAffineParams),
    .default_params = &kDefaults,
    .fields = kFields,
    .infer = infer_reduce_affine,
    .work = work_reduce_affine,
    .variants = kVariants,
};

}  // namespace bantam::ops
