#include "ops/elementwise/binary/binary.h"

#include "base/shape.h"
#include "ops/built.h"
#include "ops/common/elementwise.h"
#include "ops/common/params.h"
#include "ops/elementwise/binary/kernels.h"

namespace bantam::ops {
namespace {

constexpr ParamField kFields[] = {
    enum_field("function", offsetof(BinaryParams, function), kBinaryFunctionNames),
    enum_field("activation", offsetof(BinaryParams, activation.function), kUnaryFunctionNames),
    f32_field("activation_a", offsetof(BinaryParams, activation.a)),
    f32_field("activation_b", offsetof(BinaryParams, activation.b)),
};

constexpr BinaryParams kDefaults{};

bool is_integer(ElementType type) { return element_size(type) > 0 && !is_float(type) && type != ElementType::kBool; }

/// Whether `function` is defined on operand 0 of that type.
bool is_defined(BinaryFunction function, ElementType type) {
  switch (function) {
    case BinaryFunction::kEqual:
    case BinaryFunction::kNotEqual: return element_size(type) > 0;
    case BinaryFunction::kAnd:
    case BinaryFunction::kOr:
    case BinaryFunction::kXor: return type == ElementType::kBool;
    case BinaryFunction::kBitAnd:
    case BinaryFunction::kBitOr:
    case BinaryFunction::kBitXor:
    case BinaryFunction::kShiftLeft:
    case BinaryFunction::kShiftRight: return is_integer(type);
    case BinaryFunction::kAtan2: return is_float(type);
    default: return is_float(type) || is_integer(type);
  }
}

/// Whether operand 1 may have type `b` beside operand 0 of type `a`.
bool types_agree(BinaryFunction function, ElementType a, ElementType b) {
  if (a == b) return true;
  if (function == BinaryFunction::kPow) return is_float(b) || is_integer(b);
  const bool is_shift = function == BinaryFunction::kShiftLeft || function == BinaryFunction::kShiftRight;
  return is_shift && is_integer(b);
}

Status infer_binary(const void* params, std::span<const Tensor> inputs, std::span<TensorDesc> outputs) {
  const auto& p = *static_cast<const BinaryParams*>(params);
  const TensorDesc& a = *inputs[0].desc;
  const TensorDesc& b = *inputs[1].desc;
  if (!is_enumerator(p.function))
    return failure(StatusCode::kInvalidModel, "binary: unknown function", static_cast<std::int64_t>(p.function),
                   static_cast<std::int64_t>(BinaryFunction::kCount) - 1);
  if (!is_defined(p.function, a.type))
    return failure(StatusCode::kUnsupported, "binary: the function is not defined for the element type",
                   static_cast<std::int64_t>(a.type), static_cast<std::int64_t>(ElementType::kF32))
        .at(0);
  if (!types_agree(p.function, a.type, b.type))
    return failure(StatusCode::kInvalidModel, "binary: the operands' element types differ",
                   static_cast<std::int64_t>(b.type), static_cast<std::int64_t>(a.type))
        .at(1);
  BANTAM_RETURN_IF_ERROR(check_activation(p.activation));
  const ElementType type = gives_bool(p.function) ? ElementType::kBool : a.type;
  if (p.activation.function != UnaryFunction::kIdentity && type != ElementType::kF32)
    return failure(StatusCode::kUnsupported, "binary: only f32 results have an activation",
                   static_cast<std::int64_t>(type), static_cast<std::int64_t>(ElementType::kF32));
  if (!broadcast(a, b, type, &outputs[0]))
    return failure(StatusCode::kInvalidModel, "binary: the operands' shapes do not broadcast together");
  return ok_status();
}

constexpr KernelVariant kVariants[] = {
#if BANTAM_SIMD
    {.name = "f32__simd",
     .supports = supports_binary_f32_simd,
     .footprint = overwrite_same_layout,
     .run = run_binary_f32_simd,
     .accuracy = {Accuracy::Kind::kRelative, 1e-6F}},
    {.name = "integer__simd",
     .supports = supports_binary_integer_simd,
     .footprint = overwrite_same_layout,
     .run = run_binary_integer_simd},
    {.name = "bool__simd",
     .supports = supports_compare_simd,
     .footprint = overwrite_same_layout,
     .run = run_compare_simd},
#endif
    {.name = "f32__portable",
     .supports = supports_binary_f32_portable,
     .footprint = overwrite_same_layout,
     .run = run_binary_f32_portable},
    {.name = "any__ref", .footprint = overwrite_same_layout, .run = run_binary_ref},
};

constexpr auto kBuilt = built_variants("binary", kVariants);

}  // namespace

constexpr OpDef kBinary{
    .name = "binary",
    .params_bytes = sizeof(BinaryParams),
    .default_params = &kDefaults,
    .fields = kFields,
    .min_inputs = 2,
    .max_inputs = 2,
    .infer = infer_binary,
    .variants = kBuilt,
};

}  // namespace bantam::ops
