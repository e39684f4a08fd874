#include "ops/signal/spectral_subtraction/spectral_subtraction.h"

#include <algorithm>

#include "ops/common/operands.h"
#include "ops/common/params.h"

namespace bantam::ops {
namespace {

using P = SpectralSubtractionParams;

constexpr ParamField kFields[] = {
    i32_field("smoothing", offsetof(P, smoothing)),
    i32_field("one_minus_smoothing", offsetof(P, one_minus_smoothing)),
    i32_field("alternate_smoothing", offsetof(P, alternate_smoothing)),
    i32_field("alternate_one_minus_smoothing", offsetof(P, alternate_one_minus_smoothing)),
    i32_field("min_signal_remaining", offsetof(P, min_signal_remaining)),
    i32_field("smoothing_bits", offsetof(P, smoothing_bits)),
    i32_field("share_bits", offsetof(P, share_bits)),
    bool_field("clamping", offsetof(P, clamping)),
};

constexpr P kDefaults{};

Status infer_subtraction(const void* params, std::span<const Tensor> inputs, std::span<TensorDesc> outputs) {
  const auto& p = *static_cast<const P*>(params);
  for (int i = 0; i < 2; ++i) {
    BANTAM_RETURN_IF_ERROR(check_type(desc_of(inputs, i), ElementType::kU32, i));
    BANTAM_RETURN_IF_ERROR(check_rank(desc_of(inputs, i), 1, i));
  }
  if (desc_of(inputs, 1).dims[0] != desc_of(inputs, 0).dims[0])
    return failure(StatusCode::kInvalidModel, "spectral_subtraction: the estimate has another number of bands",
                   desc_of(inputs, 1).dims[0], desc_of(inputs, 0).dims[0])
        .at(1);
  for (const std::int32_t share : {p.smoothing, p.one_minus_smoothing, p.alternate_smoothing,
                                   p.alternate_one_minus_smoothing, p.min_signal_remaining})
    if (share < 0) return failure(StatusCode::kInvalidModel, "spectral_subtraction: a share is negative", share, 0);
  for (const std::int32_t bits : {p.smoothing_bits, p.share_bits})
    if (bits < 0 || bits > 31)
      return failure(StatusCode::kInvalidModel, "spectral_subtraction: a number of bits is out of range", bits, 31);
  if (!is_flag(p.clamping))
    return failure(StatusCode::kInvalidModel, "spectral_subtraction: clamping is not 0 or 1", p.clamping, 1);
  for (int i = 0; i < 2; ++i) {
    outputs[static_cast<std::size_t>(i)] = desc_of(inputs, i);
    outputs[static_cast<std::size_t>(i)].set_dense_strides();
  }
  return ok_status();
}

Footprint subtraction_footprint(const OpCall&, int /*threads*/) {
  Footprint footprint;
  footprint.overwrites[0] = 1U << 0;
  footprint.overwrites[1] = 1U << 1;
  return footprint;
}

Status run_subtraction(const Invocation& call) {
  const auto& p = call.as<P>();
  const auto* x = call.input<std::uint32_t>(0);
  const auto* estimate = call.input<std::uint32_t>(1);
  auto* y = call.output<std::uint32_t>(0);
  auto* next_estimate = call.output<std::uint32_t>(1);
  for (std::int32_t band = 0; band < call.in(0).dims[0]; ++band) {
    const bool even = band % 2 == 0;
    const auto smoothing = static_cast<std::uint32_t>(even ? p.smoothing : p.alternate_smoothing);
    const auto rest = static_cast<std::uint32_t>(even ? p.one_minus_smoothing : p.alternate_one_minus_smoothing);
    const std::uint32_t signal = x[band] << p.smoothing_bits;
    const auto noise = static_cast<std::uint32_t>(
        (std::uint64_t{signal} * smoothing + std::uint64_t{estimate[band]} * rest) >> p.share_bits);
    const auto floor = static_cast<std::uint32_t>(
        (std::uint64_t{x[band]} * static_cast<std::uint32_t>(p.min_signal_remaining)) >> p.share_bits);
    const std::uint32_t bounded = std::min(noise, signal);
    next_estimate[band] = p.clamping != 0 ? bounded : noise;
    y[band] = std::max((signal - bounded) >> p.smoothing_bits, floor);
  }
  return ok_status();
}

constexpr KernelVariant kVariants[] = {
    {.name = "u32__ref", .supports = all_dense, .footprint = subtraction_footprint, .run = run_subtraction},
};

}  // namespace

constexpr OpDef kSpectralSubtraction{
    .name = "spectral_subtraction",
    .params_bytes = sizeof(P),
    .default_params = &kDefaults,
    .fields = kFields,
    .min_inputs = 2,
    .max_inputs = 2,
    .outputs = 2,
    .infer = infer_subtraction,
    .variants = kVariants,
};

}  // namespace bantam::ops
