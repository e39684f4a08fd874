#include "ops/elementwise/lookup8/lookup8.h"

#include "ops/common/dispatch.h"
#include "ops/common/elementwise.h"
#include "ops/elementwise/lookup8/kernels.h"

namespace bantam::ops {
namespace {

Status infer_lookup8(const void*, std::span<const Tensor> inputs, std::span<TensorDesc> outputs) {
  const TensorDesc& x = *inputs[0].desc;
  const TensorDesc& table = *inputs[1].desc;
  if (!is_one_of<std::int8_t, std::uint8_t>(x.type))
    return failure(StatusCode::kInvalidModel, "lookup8 takes i8 or u8").at(0);
  if (!is_one_of<std::int8_t, std::uint8_t>(table.type))
    return failure(StatusCode::kInvalidModel, "the table of lookup8 is i8 or u8").at(1);
  if (table.elements() != 256)
    return failure(StatusCode::kInvalidModel, "the table of lookup8 has the wrong size", table.elements(), 256).at(1);
  if (!table.is_dense()) return failure(StatusCode::kInvalidModel, "the table of lookup8 must be dense").at(1);
  outputs[0] = x;
  outputs[0].type = table.type;
  outputs[0].set_dense_strides();
  return ok_status();
}

Footprint footprint_lookup8(const OpCall&, int) {
  Footprint result;
  result.overwrites[0] = 1;
  return result;
}

Status run_ref(const Invocation& invocation) {
  const auto* table = invocation.input<std::uint8_t>(1);
  map_elements<std::uint8_t, std::uint8_t>(invocation, [table](std::uint8_t x) { return table[x]; });
  return ok_status();
}

constexpr KernelVariant kVariants[] = {
#if BANTAM_SIMD
    {.name = "any__simd",
     .supports = supports_lookup8_simd,
     .footprint = footprint_lookup8,
     .packed_bytes = packed_bytes_lookup8_simd,
     .pack = pack_lookup8_simd,
     .run = run_lookup8_simd},
#endif
    {.name = "any__ref", .footprint = footprint_lookup8, .run = run_ref},
};

}  // namespace

constexpr OpDef kLookup8{
    .name = "lookup8",
    .min_inputs = 2,
    .max_inputs = 2,
    .infer = infer_lookup8,
    .variants = kVariants,
};

}  // namespace bantam::ops
