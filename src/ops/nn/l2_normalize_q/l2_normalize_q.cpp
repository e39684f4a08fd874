#include "ops/nn/l2_normalize_q/l2_normalize_q.h"

#include "ops/common/operands.h"
#include "ops/common/params.h"
#include "ops/fixed_point_series.h"

namespace bantam::ops {
namespace {

constexpr ParamField kFields[] = {i32_field("zero_point", offsetof(L2NormalizeQParams, zero_point))};

constexpr L2NormalizeQParams kDefaults{};

/// So that a sum of squares stays below 2^31.
constexpr std::int32_t kLongestRow = (1 << 15) - 1;

Status infer_l2_normalize(const void* params, std::span<const Tensor> inputs, std::span<TensorDesc> outputs) {
  const auto& p = *static_cast<const L2NormalizeQParams*>(params);
  const TensorDesc& x = desc_of(inputs, 0);
  BANTAM_RETURN_IF_ERROR(check_type(x, ElementType::kI8, 0));
  if (x.rank < 1) return failure(StatusCode::kInvalidModel, "l2_normalize_q: no dimension", x.rank, 1).at(0);
  if (x.last(0) > kLongestRow)
    return failure(StatusCode::kUnsupported, "l2_normalize_q: the rows are too long", x.last(0), kLongestRow).at(0);
  if (p.zero_point < -128 || p.zero_point > 127)
    return failure(StatusCode::kInvalidModel, "l2_normalize_q: the zero point is outside i8", p.zero_point, 127);
  outputs[0] = x;
  outputs[0].set_dense_strides();
  return ok_status();
}

Footprint l2_normalize_footprint(const OpCall&, int /*threads*/) {
  Footprint footprint;
  footprint.overwrites[0] = 1;
  return footprint;
}

Status run_l2_normalize(const Invocation& call) {
  constexpr int kOutputBits = 7;
  const std::int32_t zero_point = call.as<L2NormalizeQParams>().zero_point;
  const std::int64_t size = call.in(0).last(0);
  if (size == 0) return ok_status();
  for (std::int64_t row = 0; row < call.in(0).elements(); row += size) {
    const std::int8_t* x = call.input<std::int8_t>(0) + row;
    std::int8_t* y = call.output<std::int8_t>() + row;
    std::int32_t sum = 0;
    for (std::int64_t i = 0; i < size; ++i) sum += (x[i] - zero_point) * (x[i] - zero_point);
    const FixedFactor inverse = inverse_square_root(sum);
    for (std::int64_t i = 0; i < size; ++i) {
      const std::int32_t scaled =
          multiply_by_quantized_multiplier(x[i] - zero_point, inverse.multiplier, inverse.shift + kOutputBits);
      y[i] = static_cast<std::int8_t>(std::clamp<std::int32_t>(scaled, -128, 127));
    }
  }
  return ok_status();
}

constexpr KernelVariant kVariants[] = {
    {.name = "i8__ref", .supports = all_dense, .footprint = l2_normalize_footprint, .run = run_l2_normalize},
};

}  // namespace

constexpr OpDef kL2NormalizeQ{
    .name = "l2_normalize_q",
    .params_bytes = sizeof(L2NormalizeQParams),
    .default_params = &kDefaults,
    .fields = kFields,
    .infer = infer_l2_normalize,
    .variants = kVariants,
};

}  // namespace bantam::ops
