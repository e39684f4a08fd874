#include "ops/signal/filter_bank/filter_bank.h"

#include "ops/common/operands.h"

namespace bantam::ops {
namespace {

constexpr int kSlopeOperands[] = {3, 4, 5};

Status infer_filter_bank(const void*, std::span<const Tensor> inputs, std::span<TensorDesc> outputs) {
  BANTAM_RETURN_IF_ERROR(check_type(desc_of(inputs, 0), ElementType::kU32, 0));
  BANTAM_RETURN_IF_ERROR(check_rank(desc_of(inputs, 0), 1, 0));
  for (int i = 1; i <= 5; ++i) {
    BANTAM_RETURN_IF_ERROR(check_type(desc_of(inputs, i), ElementType::kI16, i));
    BANTAM_RETURN_IF_ERROR(check_rank(desc_of(inputs, i), 1, i));
  }
  if (desc_of(inputs, 2).dims[0] != desc_of(inputs, 1).dims[0])
    return failure(StatusCode::kInvalidModel, "filter_bank: falling and rising weights differ in number",
                   desc_of(inputs, 2).dims[0], desc_of(inputs, 1).dims[0])
        .at(2);
  const std::int32_t slopes = desc_of(inputs, 3).dims[0];
  for (const int i : kSlopeOperands)
    if (desc_of(inputs, i).dims[0] != slopes || slopes < 1)
      return failure(StatusCode::kInvalidModel, "filter_bank: the lists of slopes differ in length",
                     desc_of(inputs, i).dims[0], slopes)
          .at(i);
  const std::int64_t bands = slopes - 1;
  return make_desc(ElementType::kU64, &bands, 1, &outputs[0]);
}

Status check_extent(std::int32_t first, std::int32_t count, std::int32_t size) {
  if (first < 0) return index_fault(first, size);
  return first + count > size ? index_fault(first + count - 1, size) : ok_status();
}

Status run_filter_bank(const Invocation& call) {
  const auto* energies = call.input<std::uint32_t>(0);
  const auto* falling = call.input<std::int16_t>(1);
  const auto* rising = call.input<std::int16_t>(2);
  std::uint64_t from_slope_below = 0;
  for (std::int32_t slope = 0; slope < call.in(3).dims[0]; ++slope) {
    const std::int32_t bin = call.input<std::int16_t>(3)[slope];
    const std::int32_t weight = call.input<std::int16_t>(4)[slope];
    const std::int32_t width = call.input<std::int16_t>(5)[slope];
    std::uint64_t sum = from_slope_below;
    from_slope_below = 0;
    if (width > 0) {
      BANTAM_RETURN_IF_ERROR(check_extent(bin, width, call.in(0).dims[0]));
      BANTAM_RETURN_IF_ERROR(check_extent(weight, width, call.in(1).dims[0]));
    }
    for (std::int32_t i = 0; i < width; ++i) {
      const std::uint64_t energy = energies[bin + i];
      sum += energy * static_cast<std::uint64_t>(std::int64_t{falling[weight + i]});
      from_slope_below += energy * static_cast<std::uint64_t>(std::int64_t{rising[weight + i]});
    }
    if (slope > 0) call.output<std::uint64_t>()[slope - 1] = sum;
  }
  return ok_status();
}

constexpr KernelVariant kVariants[] = {{.name = "u32__ref", .supports = all_dense, .run = run_filter_bank}};

}  // namespace

constexpr OpDef kFilterBank{
    .name = "filter_bank",
    .min_inputs = 6,
    .max_inputs = 6,
    .infer = infer_filter_bank,
    .work = [](const OpCall& call) { return 2 * std::int64_t{call.in(0).dims[0]}; },
    .variants = kVariants,
};

}  // namespace bantam::ops
