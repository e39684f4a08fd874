#include "ops/signal/auto_scale/auto_scale.h"

#include <algorithm>

#include "ops/common/operands.h"
#include "signal/fixed_point_levels.h"

namespace bantam::ops {
namespace {

Status infer_auto_scale(const void*, std::span<const Tensor> inputs, std::span<TensorDesc> outputs) {
  const TensorDesc& x = desc_of(inputs, 0);
  BANTAM_RETURN_IF_ERROR(check_type(x, ElementType::kI16, 0));
  outputs[0] = x;
  outputs[0].set_dense_strides();
  return make_desc(ElementType::kI32, nullptr, 0, &outputs[1]);
}

Footprint auto_scale_footprint(const OpCall&, int /*threads*/) {
  Footprint footprint;
  footprint.overwrites[0] = 1;
  return footprint;
}

Status run_auto_scale(const Invocation& call) {
  const std::int64_t n = call.in(0).elements();
  const auto* x = call.input<std::int16_t>(0);
  auto* y = call.output<std::int16_t>();
  std::int16_t largest = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    if (x[i] > largest) {
      largest = x[i];
    } else if (-x[i] > largest) {
      largest = static_cast<std::int16_t>(-x[i]);
    }
  }
  const int bits = std::max(0, 15 - signal::highest_bit(static_cast<std::uint32_t>(std::int32_t{largest})));
  for (std::int64_t i = 0; i < n; ++i) y[i] = static_cast<std::int16_t>(x[i] * (1 << bits));
  *call.output<std::int32_t>(1) = bits;
  return ok_status();
}

constexpr KernelVariant kVariants[] = {
    {.name = "i16__ref", .supports = all_dense, .footprint = auto_scale_footprint, .run = run_auto_scale},
};

}  // namespace

constexpr OpDef kAutoScale{
    .name = "auto_scale",
    .outputs = 2,
    .infer = infer_auto_scale,
    .variants = kVariants,
};

}  // namespace bantam::ops
