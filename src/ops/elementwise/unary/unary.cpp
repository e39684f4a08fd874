#include "ops/elementwise/unary/unary.h"

#include "ops/built.h"
#include "ops/common/params.h"
#include "ops/elementwise/unary/kernels.h"

namespace bantam::ops {
namespace {

constexpr ParamField kFields[] = {
    enum_field("function", offsetof(UnaryParams, function), kUnaryFunctionNames),
    f32_field("a", offsetof(UnaryParams, a)),
    f32_field("b", offsetof(UnaryParams, b)),
};

constexpr UnaryParams kDefaults{};

/// Whether `function` is defined on elements of `type`.
bool is_defined(UnaryFunction function, ElementType type) {
  if (function == UnaryFunction::kIdentity) return element_size(type) > 0;
  if (type == ElementType::kBool) return function == UnaryFunction::kNot;
  if (is_float(type)) return function != UnaryFunction::kNot && function != UnaryFunction::kBitNot;
  switch (function) {
    case UnaryFunction::kAbs:
    case UnaryFunction::kNeg:
    case UnaryFunction::kSign:
    case UnaryFunction::kRelu:
    case UnaryFunction::kClip:
    case UnaryFunction::kSquare:
    case UnaryFunction::kBitNot: return element_size(type) > 0;
    default: return false;
  }
}

Status infer_unary(const void* params, std::span<const Tensor> inputs, std::span<TensorDesc> outputs) {
  const auto& p = *static_cast<const UnaryParams*>(params);
  const TensorDesc& x = *inputs[0].desc;
  if (!is_enumerator(p.function))
    return failure(StatusCode::kInvalidModel, "unary: unknown function", static_cast<std::int64_t>(p.function),
                   static_cast<std::int64_t>(UnaryFunction::kCount) - 1);
  if (!is_defined(p.function, x.type))
    return failure(StatusCode::kUnsupported, "unary: the function is not defined for the element type",
                   static_cast<std::int64_t>(x.type), static_cast<std::int64_t>(ElementType::kF32))
        .at(0);
  outputs[0] = x;
  if (p.function == UnaryFunction::kIsNan || p.function == UnaryFunction::kIsInf) outputs[0].type = ElementType::kBool;
  outputs[0].set_dense_strides();
  return ok_status();
}

Footprint footprint_unary(const OpCall& call, int) {
  Footprint result;
  result.overwrites[0] = element_size(call.in(0).type) == element_size(call.out().type) ? 1 : 0;
  return result;
}

constexpr KernelVariant kVariants[] = {
#if BANTAM_SIMD
    {.name = "f32__simd",
     .supports = supports_unary_f32_simd,
     .footprint = footprint_unary,
     .run = run_unary_f32_simd,
     .accuracy = {Accuracy::Kind::kRelative, 1e-6F}},
#endif
    {.name = "f32__portable",
     .supports = supports_unary_f32_portable,
     .footprint = footprint_unary,
     .run = run_unary_f32_portable},
    {.name = "any__ref", .footprint = footprint_unary, .run = run_unary_ref},
};

constexpr auto kBuilt = built_variants("unary", kVariants);

}  // namespace

constexpr OpDef kUnary{
    .name = "unary",
    .params_bytes = sizeof(UnaryParams),
    .default_params = &kDefaults,
    .fields = kFields,
    .infer = infer_unary,
    .variants = kBuilt,
};

}  // namespace bantam::ops
