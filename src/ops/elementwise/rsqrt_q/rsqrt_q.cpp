#include "ops/elementwise/rsqrt_q/rsqrt_q.h"

#include <limits>

#include "ops/common/dispatch.h"
#include "ops/common/operands.h"
#include "ops/common/params.h"
#include "ops/fixed_point_series.h"

namespace bantam::ops {
namespace {

constexpr ParamField kFields[] = {
    i32_field("input_zero_point", offsetof(RsqrtQParams, input_zero_point)),
    i32_field("output_zero_point", offsetof(RsqrtQParams, output_zero_point)),
    i32_field("multiplier", offsetof(RsqrtQParams, multiplier)),
    i32_field("shift", offsetof(RsqrtQParams, shift)),
};

constexpr RsqrtQParams kDefaults{};

/// Fraction bits that the root is computed with beyond the unit.
constexpr int kExtraBits = 20;

template <typename T>
Status check_zero_points(const RsqrtQParams& p) {
  for (const std::int32_t zero_point : {p.input_zero_point, p.output_zero_point})
    if (zero_point != static_cast<T>(zero_point))
      return failure(StatusCode::kInvalidModel, "rsqrt_q: a zero point is outside the element type", zero_point,
                     std::numeric_limits<T>::max());
  return ok_status();
}

Status infer_rsqrt(const void* params, std::span<const Tensor> inputs, std::span<TensorDesc> outputs) {
  const auto& p = *static_cast<const RsqrtQParams*>(params);
  const TensorDesc& x = desc_of(inputs, 0);
  Status in_type;
  if (!dispatch_type<std::int8_t, std::int16_t>(
          x.type, [&](auto tag) { in_type = check_zero_points<typename decltype(tag)::type>(p); }))
    return failure(StatusCode::kUnsupported, "rsqrt_q: operand is not i8 or i16", static_cast<std::int64_t>(x.type),
                   static_cast<std::int64_t>(ElementType::kI8))
        .at(0);
  BANTAM_RETURN_IF_ERROR(in_type);
  if (p.multiplier < 0) return failure(StatusCode::kInvalidModel, "rsqrt_q: the multiplier is negative", p.multiplier);
  if (p.shift < kExtraBits - 31 || p.shift > 30)
    return failure(StatusCode::kInvalidModel, "rsqrt_q: shift is out of range", p.shift, 30);
  outputs[0] = x;
  outputs[0].set_dense_strides();
  return ok_status();
}

Footprint rsqrt_footprint(const OpCall&, int /*threads*/) {
  Footprint footprint;
  footprint.overwrites[0] = 1;
  return footprint;
}

template <typename T>
Status take_roots(const Invocation& call) {
  const auto& p = call.as<RsqrtQParams>();
  constexpr std::int64_t kLow = std::numeric_limits<T>::min();
  constexpr std::int64_t kHigh = std::numeric_limits<T>::max();
  const T* x = call.input<T>(0);
  T* y = call.output<T>();
  for (std::int64_t i = 0; i < call.in(0).elements(); ++i) {
    const std::int32_t value = x[i] - p.input_zero_point;
    if (value < 0)
      return failure(StatusCode::kOutOfRange, "rsqrt_q: the root of a number below zero", x[i], p.input_zero_point)
          .at(0);
    if (value == 0) {
      y[i] = std::numeric_limits<T>::max();
      continue;
    }
    const FixedFactor root = inverse_square_root(value);
    const std::int32_t fine = multiply_by_quantized_multiplier(1, root.multiplier, root.shift + kExtraBits);
    const std::int64_t scaled = multiply_by_quantized_multiplier(fine, p.multiplier, p.shift - kExtraBits);
    y[i] = static_cast<T>(std::clamp(scaled + p.output_zero_point, kLow, kHigh));
  }
  return ok_status();
}

Status run_rsqrt(const Invocation& call) {
  return call.in(0).type == ElementType::kI8 ? take_roots<std::int8_t>(call) : take_roots<std::int16_t>(call);
}

constexpr KernelVariant kVariants[] = {
    {.name = "any__ref", .supports = all_dense, .footprint = rsqrt_footprint, .run = run_rsqrt},
};

}  // namespace

constexpr OpDef kRsqrtQ{
    .name = "rsqrt_q",
    .params_bytes = sizeof(RsqrtQParams),
    .default_params = &kDefaults,
    .fields = kFields,
    .infer = infer_rsqrt,
    .variants = kVariants,
};

}  // namespace bantam::ops
