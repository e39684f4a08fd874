#include "ops/signal/spectrum_energy/spectrum_energy.h"

#include <algorithm>

#include "ops/common/operands.h"
#include "ops/common/params.h"

namespace bantam::ops {
namespace {

constexpr ParamField kFields[] = {
    i32_field("begin", offsetof(SpectrumEnergyParams, begin)),
    i32_field("end", offsetof(SpectrumEnergyParams, end)),
};

constexpr SpectrumEnergyParams kDefaults{};

Status infer_energy(const void* params, std::span<const Tensor> inputs, std::span<TensorDesc> outputs) {
  const auto& p = *static_cast<const SpectrumEnergyParams*>(params);
  const TensorDesc& x = desc_of(inputs, 0);
  BANTAM_RETURN_IF_ERROR(check_type(x, ElementType::kI16, 0));
  BANTAM_RETURN_IF_ERROR(check_rank(x, 1, 0));
  if (x.dims[0] % 2 != 0)
    return failure(StatusCode::kInvalidModel, "spectrum_energy: an odd number of parts", x.dims[0], x.dims[0] + 1)
        .at(0);
  const std::int64_t bins = x.dims[0] / 2;
  if (p.begin < 0 || p.begin > p.end)
    return failure(StatusCode::kInvalidModel, "spectrum_energy: begin is outside 0..end", p.begin, p.end);
  if (p.end > bins) return failure(StatusCode::kInvalidModel, "spectrum_energy: end is beyond the bins", p.end, bins);
  return make_desc(ElementType::kU32, &bins, 1, &outputs[0]);
}

/// A bin of four bytes takes the place of its two parts.
Footprint energy_footprint(const OpCall&, int /*threads*/) {
  Footprint footprint;
  footprint.overwrites[0] = 1;
  return footprint;
}

Status run_energy(const Invocation& call) {
  const auto& p = call.as<SpectrumEnergyParams>();
  const auto* x = static_cast<const std::byte*>(call.inputs[0].data);
  auto* y = static_cast<std::byte*>(call.outputs[0].data);
  for (std::int32_t bin = 0; bin < call.out().dims[0]; ++bin) {
    std::int16_t parts[2];
    std::memcpy(parts, x + std::ptrdiff_t{4} * bin, sizeof parts);
    const std::int32_t re = parts[0];
    const std::int32_t im = parts[1];
    const std::uint32_t energy =
        bin < p.begin || bin >= p.end ? 0U : static_cast<std::uint32_t>(re * re) + static_cast<std::uint32_t>(im * im);
    std::memcpy(y + std::ptrdiff_t{4} * bin, &energy, sizeof energy);
  }
  return ok_status();
}

constexpr KernelVariant kVariants[] = {
    {.name = "i16__ref", .supports = all_dense, .footprint = energy_footprint, .run = run_energy},
};

}  // namespace

constexpr OpDef kSpectrumEnergy{
    .name = "spectrum_energy",
    .params_bytes = sizeof(SpectrumEnergyParams),
    .default_params = &kDefaults,
    .fields = kFields,
    .infer = infer_energy,
    .variants = kVariants,
};

}  // namespace bantam::ops
