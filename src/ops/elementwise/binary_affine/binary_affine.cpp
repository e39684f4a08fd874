#include "ops/elementwise/binary_affine/binary_affine.h"

#include <cmath>

#include "base/shape.h"
#include "ops/common/dispatch.h"
#include "ops/common/elementwise.h"
#include "ops/common/params.h"
#include "ops/elementwise/binary_affine/kernels.h"

namespace bantam::ops {
namespace {

constexpr ParamField kFields[] = {
    enum_field("function", offsetof(BinaryAffineParams, function), kBinaryFunctionNames),
    f32_field("a_scale", offsetof(BinaryAffineParams, a_scale)),
    i32_field("a_zero_point", offsetof(BinaryAffineParams, a_zero_point)),
    f32_field("b_scale", offsetof(BinaryAffineParams, b_scale)),
    i32_field("b_zero_point", offsetof(BinaryAffineParams, b_zero_point)),
    f32_field("y_scale", offsetof(BinaryAffineParams, y_scale)),
    i32_field("y_zero_point", offsetof(BinaryAffineParams, y_zero_point)),
    i32_field("minimum", offsetof(BinaryAffineParams, minimum)),
    i32_field("maximum", offsetof(BinaryAffineParams, maximum)),
};

constexpr BinaryAffineParams kDefaults{};

bool is_supported(BinaryFunction f) {
  return f == BinaryFunction::kAdd || f == BinaryFunction::kSub || f == BinaryFunction::kMul ||
         f == BinaryFunction::kDiv || f == BinaryFunction::kMin || f == BinaryFunction::kMax ||
         f == BinaryFunction::kPrelu;
}

/// Fails unless all of the list are values of type T.
template <typename T>
Status check_integers(std::initializer_list<std::int32_t> values) {
  for (const std::int32_t value : values)
    if (value < std::numeric_limits<T>::min() || value > std::numeric_limits<T>::max())
      return failure(StatusCode::kInvalidModel, "zero point or limit is outside the type", value,
                     std::numeric_limits<T>::max());
  return ok_status();
}

Status infer_binary_affine(const void* params, std::span<const Tensor> inputs, std::span<TensorDesc> outputs) {
  const auto& p = *static_cast<const BinaryAffineParams*>(params);
  const TensorDesc& a = *inputs[0].desc;
  const TensorDesc& b = *inputs[1].desc;
  if (!is_supported(p.function))
    return failure(StatusCode::kUnsupported, "there is no quantised form of this function",
                   static_cast<std::int64_t>(p.function), 0);
  for (const float scale : {p.a_scale, p.b_scale, p.y_scale})
    if (!std::isfinite(scale) || scale <= 0.0F)
      return failure(StatusCode::kInvalidModel, "a scale must be a positive number");
  Status status = failure(StatusCode::kUnsupported, "operand must be i8, u8, i16 or u16",
                          static_cast<std::int64_t>(a.type), static_cast<std::int64_t>(ElementType::kI8))
                      .at(0);
  dispatch_type<std::int8_t, std::uint8_t, std::int16_t, std::uint16_t>(a.type, [&](auto tag) {
    status = check_integers<typename decltype(tag)::type>(
        {p.a_zero_point, p.b_zero_point, p.y_zero_point, p.minimum, p.maximum});
  });
  BANTAM_RETURN_IF_ERROR(status);
  if (p.minimum > p.maximum)
    return failure(StatusCode::kInvalidModel, "minimum is above maximum", p.minimum, p.maximum);
  if (b.type != a.type && b.type != ElementType::kF32)
    return failure(StatusCode::kInvalidModel, "operands differ in type", static_cast<std::int64_t>(b.type),
                   static_cast<std::int64_t>(a.type))
        .at(1);
  if (!broadcast(a, b, a.type, &outputs[0])) return failure(StatusCode::kInvalidModel, "shapes do not broadcast").at(1);
  return ok_status();
}

constexpr KernelVariant kVariants[] = {
#if BANTAM_SIMD
    {.name = "i8__simd",
     .supports = supports_binary_affine_i8_simd,
     .footprint = overwrite_same_layout,
     .run = run_binary_affine_i8_simd},
#endif
    {.name = "any__ref", .footprint = overwrite_same_layout, .run = run_binary_affine_ref},
};

}  // namespace

constexpr OpDef kBinaryAffine{
    .name = "binary_affine",
    .params_bytes = sizeof(BinaryAffineParams),
    .default_params = &kDefaults,
    .fields = kFields,
    .min_inputs = 2,
    .max_inputs = 2,
    .infer = infer_binary_affine,
    .variants = kVariants,
};

}  // namespace bantam::ops
