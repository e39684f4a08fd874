#include "ops/data/integers/integers.h"

#include "ops/common/dispatch.h"
#include "ops/common/operands.h"
#include "ops/common/params.h"

namespace bantam::ops {
namespace {

constexpr ParamField kFields[] = {
    list_field("values", offsetof(IntegersParams, values)),
    list_field("shape", offsetof(IntegersParams, shape)),
    type_field("to", offsetof(IntegersParams, to)),
};

constexpr IntegersParams kDefaults{};

Status infer_integers(const void* params, std::span<const Tensor> /*inputs*/, std::span<TensorDesc> outputs) {
  const auto& p = *static_cast<const IntegersParams*>(params);
  if (!is_one_of<std::int32_t, std::int64_t>(p.to))
    return failure(StatusCode::kUnsupported, "integers: the type is not i32 or i64", p.to.value,
                   static_cast<std::int64_t>(ElementType::kI64));
  BANTAM_RETURN_IF_ERROR(desc_from_list(p.to, p.shape, &outputs[0]));
  if (p.values.size < 0 || p.values.size > kMaxRank || p.values.size != outputs[0].elements())
    return failure(StatusCode::kInvalidModel, "integers: there is not one value per element", p.values.size,
                   outputs[0].elements());
  return ok_status();
}

Status run_ref(const Invocation& invocation) {
  const auto& p = invocation.as<IntegersParams>();
  dispatch_type<std::int32_t, std::int64_t>(p.to, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int i = 0; i < p.values.size; ++i) invocation.output<T>()[i] = p.values[i];
  });
  return ok_status();
}

bool supports_ref(const OpCall& call) { return call.out().is_dense(); }

constexpr KernelVariant kVariants[] = {{.name = "any__ref", .supports = supports_ref, .run = run_ref}};

}  // namespace

constexpr OpDef kIntegers{
    .name = "integers",
    .params_bytes = sizeof(IntegersParams),
    .default_params = &kDefaults,
    .fields = kFields,
    .min_inputs = 0,
    .max_inputs = 0,
    .infer = infer_integers,
    .variants = kVariants,
};

}  // namespace bantam::ops
