#include "ops/elementwise/activation_i16/activation_i16.h"

#include "ops/common/elementwise.h"
#include "ops/common/operands.h"
#include "ops/common/params.h"
#include "ops/fixed_point_i16.h"

namespace bantam::ops {
namespace {

Status infer_activation_i16(const void* params, std::span<const Tensor> inputs, std::span<TensorDesc> outputs) {
  const auto& p = *static_cast<const ActivationI16Params*>(params);
  if (!is_enumerator(p.function))
    return failure(StatusCode::kInvalidModel, "activation_i16: unknown function", static_cast<std::int64_t>(p.function),
                   static_cast<std::int64_t>(ActivationI16Function::kCount) - 1);
  if (p.right_shift < 0 || p.right_shift > 31)
    return failure(StatusCode::kInvalidModel, "activation_i16: the shift is out of range", p.right_shift, 31);
  BANTAM_RETURN_IF_ERROR(check_type(desc_of(inputs, 0), ElementType::kI16, 0));
  outputs[0] = desc_of(inputs, 0);
  outputs[0].set_dense_strides();
  return ok_status();
}

Status run_ref(const Invocation& invocation) {
  const auto& p = invocation.as<ActivationI16Params>();
  const ActivationInput16 to_table{p.multiplier, p.right_shift};
  if (p.function == ActivationI16Function::kLogistic) {
    map_elements<std::int16_t, std::int16_t>(invocation, [&](std::int16_t x) { return logistic_i16(x, to_table); });
  } else {
    map_elements<std::int16_t, std::int16_t>(invocation, [&](std::int16_t x) { return tanh_i16(x, to_table); });
  }
  return ok_status();
}

constexpr ActivationI16Params kDefaults{};
constexpr ParamField kFields[] = {
    enum_field("function", offsetof(ActivationI16Params, function), kActivationI16FunctionNames),
    i32_field("multiplier", offsetof(ActivationI16Params, multiplier)),
    i32_field("right_shift", offsetof(ActivationI16Params, right_shift)),
};
constexpr KernelVariant kVariants[] = {
    {.name = "i16__ref", .footprint = overwrite_same_layout, .run = run_ref},
};

}  // namespace

constexpr OpDef kActivationI16{.name = "activation_i16",
                               .params_bytes = sizeof(ActivationI16Params),
                               .default_params = &kDefaults,
                               .fields = kFields,
                               .infer = infer_activation_i16,
                               .variants = kVariants};

}  // namespace bantam::ops
