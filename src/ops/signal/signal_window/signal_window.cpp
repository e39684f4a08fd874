#include "ops/signal/signal_window/signal_window.h"

#include <algorithm>

#include "ops/common/elementwise.h"
#include "ops/common/operands.h"
#include "ops/common/params.h"

namespace bantam::ops {
namespace {

constexpr ParamField kFields[] = {i32_field("shift", offsetof(SignalWindowParams, shift))};

constexpr SignalWindowParams kDefaults{};

Status infer_window(const void* params, std::span<const Tensor> inputs, std::span<TensorDesc> outputs) {
  const auto& p = *static_cast<const SignalWindowParams*>(params);
  const TensorDesc& x = desc_of(inputs, 0);
  const TensorDesc& window = desc_of(inputs, 1);
  BANTAM_RETURN_IF_ERROR(check_type(x, ElementType::kI16, 0));
  BANTAM_RETURN_IF_ERROR(check_type(window, ElementType::kI16, 1));
  BANTAM_RETURN_IF_ERROR(check_rank(window, 1, 1));
  if (window.dims[0] == 0 || x.elements() % window.dims[0] != 0)
    return failure(StatusCode::kInvalidModel, "signal_window: the samples are not a whole number of windows",
                   x.elements(), window.dims[0])
        .at(1);
  if (p.shift < 0 || p.shift > 31)
    return failure(StatusCode::kInvalidModel, "signal_window: shift is out of range", p.shift, 31);
  outputs[0] = x;
  outputs[0].set_dense_strides();
  return ok_status();
}

Footprint window_footprint(const OpCall&, int /*threads*/) {
  Footprint footprint;
  footprint.overwrites[0] = 1;
  return footprint;
}

Status run_window(const Invocation& call) {
  const int shift = call.as<SignalWindowParams>().shift;
  const std::int64_t size = call.in(1).dims[0];
  const std::int64_t samples = call.in(0).elements();
  const auto* x = call.input<std::int16_t>(0);
  const auto* window = call.input<std::int16_t>(1);
  auto* y = call.output<std::int16_t>();
  for (std::int64_t frame = 0; frame < samples; frame += size)
    for (std::int64_t i = 0; i < size; ++i)
      y[frame + i] = static_cast<std::int16_t>(std::clamp((x[frame + i] * window[i]) >> shift, -32768, 32767));
  return ok_status();
}

constexpr KernelVariant kVariants[] = {
    {.name = "i16__ref", .supports = all_dense, .footprint = window_footprint, .run = run_window},
};

}  // namespace

constexpr OpDef kSignalWindow{
    .name = "signal_window",
    .params_bytes = sizeof(SignalWindowParams),
    .default_params = &kDefaults,
    .fields = kFields,
    .min_inputs = 2,
    .max_inputs = 2,
    .infer = infer_window,
    .variants = kVariants,
};

}  // namespace bantam::ops
