#include "ops/reduce/reduce_affine/reduce_affine.h"

#include <array>

#include "ops/common/byte_grids.h"
#include "ops/common/params.h"
#include "ops/reduce/reduce_affine/kernels.h"
#include "ops/reduce/reduce_loops.h"

namespace bantam::ops {
namespace {

constexpr std::array kOwnFields = {
    enum_field("function", offsetof(ReduceAffineParams, function), kReduceFunctionNames),
    list_field("axes", offsetof(ReduceAffineParams, axes)),
    bool_field("keep_dims", offsetof(ReduceAffineParams, keep_dims)),
};
constexpr auto kFields = join_fields(kOwnFields, byte_grid_fields<ReduceAffineParams>());

constexpr ReduceAffineParams kDefaults{};

Status infer_reduce_affine(const void* params, std::span<const Tensor> inputs, std::span<TensorDesc> outputs) {
  const auto& p = *static_cast<const ReduceAffineParams*>(params);
  const TensorDesc& x = *inputs[0].desc;
  if (p.function != ReduceFunction::kSum && p.function != ReduceFunction::kMean)
    return failure(StatusCode::kUnsupported, "there is no quantised form of this function",
                   static_cast<std::int64_t>(p.function), static_cast<std::int64_t>(ReduceFunction::kMean));
  BANTAM_RETURN_IF_ERROR(check_byte_grids(p, x));
  return infer_reduction(p.axes, p.keep_dims, x, p.to, &outputs[0]);
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
