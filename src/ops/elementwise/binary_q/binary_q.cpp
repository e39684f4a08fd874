#include "ops/elementwise/binary_q/binary_q.h"

#include <limits>

#include "base/shape.h"
#include "ops/common/dispatch.h"
#include "ops/common/elementwise.h"
#include "ops/common/params.h"
#include "ops/elementwise/binary_q/kernels.h"

namespace bantam::ops {
namespace {

constexpr ParamField kFields[] = {
    enum_field("function", offsetof(BinaryQParams, function), kBinaryQFunctionNames),
    i32_field("a_zero_point", offsetof(BinaryQParams, a_zero_point)),
    i32_field("b_zero_point", offsetof(BinaryQParams, b_zero_point)),
    i32_field("output_zero_point", offsetof(BinaryQParams, output_zero_point)),
    i32_field("left_shift", offsetof(BinaryQParams, left_shift)),
    i32_field("a_multiplier", offsetof(BinaryQParams, a_multiplier)),
    i32_field("a_shift", offsetof(BinaryQParams, a_shift)),
    i32_field("b_multiplier", offsetof(BinaryQParams, b_multiplier)),
    i32_field("b_shift", offsetof(BinaryQParams, b_shift)),
    i32_field("output_multiplier", offsetof(BinaryQParams, output_multiplier)),
    i32_field("output_shift", offsetof(BinaryQParams, output_shift)),
    i32_field("minimum", offsetof(BinaryQParams, minimum)),
    i32_field("maximum", offsetof(BinaryQParams, maximum)),
};

constexpr BinaryQParams kDefaults{};

Status check_range(std::int32_t value, std::int32_t low, std::int32_t high, const char* message) {
  if (value < low) return failure(StatusCode::kInvalidModel, message, value, low);
  return value > high ? failure(StatusCode::kInvalidModel, message, value, high) : ok_status();
}

template <typename T>
Status check_type_ranges(const BinaryQParams& p) {
  constexpr std::int32_t kLow = std::numeric_limits<T>::min();
  constexpr std::int32_t kHigh = std::numeric_limits<T>::max();
  for (const std::int32_t zero_point : {p.a_zero_point, p.b_zero_point, p.output_zero_point})
    BANTAM_RETURN_IF_ERROR(check_range(zero_point, kLow, kHigh, "binary_q: a zero point is outside the element type"));
  BANTAM_RETURN_IF_ERROR(check_range(p.minimum, kLow, kHigh, "binary_q: minimum is outside the element type"));
  return check_range(p.maximum, p.minimum, kHigh, "binary_q: maximum is below minimum or outside the element type");
}

Status check_scales(const BinaryQParams& p) {
  constexpr std::int32_t kMax = std::numeric_limits<std::int32_t>::max();
  for (const std::int32_t multiplier : {p.a_multiplier, p.b_multiplier, p.output_multiplier})
    BANTAM_RETURN_IF_ERROR(check_range(multiplier, 0, kMax, "binary_q: a multiplier is negative"));
  for (const std::int32_t shift : {p.a_shift, p.b_shift, p.output_shift})
    BANTAM_RETURN_IF_ERROR(check_range(shift, -31, 30, "binary_q: a shift is out of range"));
  return check_range(p.left_shift, 0, 30, "binary_q: left_shift is out of range");
}

Status infer_binary_q(const void* params, std::span<const Tensor> inputs, std::span<TensorDesc> outputs) {
  const auto& p = *static_cast<const BinaryQParams*>(params);
  const TensorDesc& a = *inputs[0].desc;
  const TensorDesc& b = *inputs[1].desc;
  if (!is_enumerator(p.function))
    return failure(StatusCode::kInvalidModel, "binary_q: unknown function", static_cast<std::int64_t>(p.function),
                   static_cast<std::int64_t>(BinaryQFunction::kCount) - 1);
  if (a.type != b.type)
    return failure(StatusCode::kInvalidModel, "binary_q: the operands' element types differ",
                   static_cast<std::int64_t>(b.type), static_cast<std::int64_t>(a.type))
        .at(1);
  Status in_type;
  if (!dispatch_type<std::int8_t, std::uint8_t, std::int16_t>(
          a.type, [&](auto tag) { in_type = check_type_ranges<typename decltype(tag)::type>(p); }))
    return failure(StatusCode::kUnsupported, "binary_q: operands are not i8, u8 or i16",
                   static_cast<std::int64_t>(a.type), static_cast<std::int64_t>(ElementType::kI8))
        .at(0);
  BANTAM_RETURN_IF_ERROR(in_type);
  BANTAM_RETURN_IF_ERROR(check_scales(p));
  if (!broadcast(a, b, is_comparison(p.function) ? ElementType::kBool : a.type, &outputs[0]))
    return failure(StatusCode::kInvalidModel, "binary_q: the operands' shapes do not broadcast together");
  return ok_status();
}

constexpr KernelVariant kVariants[] = {
#if BANTAM_SIMD
    {.name = "i8__simd",
     .supports = supports_binary_q_i8_simd,
     .footprint = overwrite_same_layout,
     .run = run_binary_q_i8_simd},
#endif
    {.name = "any__ref", .footprint = overwrite_same_layout, .run = run_binary_q_ref},
};

}  // namespace

constexpr OpDef kBinaryQ{
    .name = "binary_q",
    .params_bytes = sizeof(BinaryQParams),
    .default_params = &kDefaults,
    .fields = kFields,
    .min_inputs = 2,
    .max_inputs = 2,
    .infer = infer_binary_q,
    .variants = kVariants,
};

}  // namespace bantam::ops
