#include "ops/elementwise/cast/cast.h"

#include "ops/common/elementwise.h"
#include "ops/common/params.h"
#include "ops/elementwise/cast/kernels.h"

namespace bantam::ops {
namespace {

constexpr ParamField kFields[] = {
    type_field("to", offsetof(CastParams, to)),
};

constexpr CastParams kDefaults{};

Status infer_cast(const void* params, std::span<const Tensor> inputs, std::span<TensorDesc> outputs) {
  const ElementType to = static_cast<const CastParams*>(params)->to;
  const TensorDesc& x = *inputs[0].desc;
  if (element_size(x.type) == 0)
    return failure(StatusCode::kUnsupported, "cast: elements of less than a byte", element_bits(x.type), 8).at(0);
  if (element_size(to) == 0)
    return failure(StatusCode::kUnsupported, "cast: no such result type", static_cast<std::int64_t>(to),
                   static_cast<std::int64_t>(ElementType::kF32));
  outputs[0] = x;
  outputs[0].type = to;
  outputs[0].set_dense_strides();
  return ok_status();
}

constexpr KernelVariant kVariants[] = {
#if BANTAM_SIMD
    {.name = "f32__simd", .supports = supports_cast_simd, .footprint = overwrite_same_layout, .run = run_cast_simd},
#endif
    {.name = "any__ref", .footprint = overwrite_same_layout, .run = run_cast_ref},
};

}  // namespace

constexpr OpDef kCast{
    .name = "cast",
    .params_bytes = sizeof(CastParams),
    .default_params = &kDefaults,
    .fields = kFields,
    .infer = infer_cast,
    .variants = kVariants,
};

}  // namespace bantam::ops
