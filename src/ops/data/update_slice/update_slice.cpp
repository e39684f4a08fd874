#include "ops/data/update_slice/update_slice.h"

#include <algorithm>
#include <cstring>

#include "ops/common/operands.h"
#include "ops/common/strides.h"

namespace bantam::ops {
namespace {

Status infer_update_slice(const void*, std::span<const Tensor> inputs, std::span<TensorDesc> outputs) {
  const TensorDesc& x = desc_of(inputs, 0);
  const TensorDesc& update = desc_of(inputs, 1);
  const TensorDesc& starts = desc_of(inputs, 2);
  BANTAM_RETURN_IF_ERROR(check_whole_bytes(x, 0));
  BANTAM_RETURN_IF_ERROR(check_type(update, x.type, 1));
  BANTAM_RETURN_IF_ERROR(check_rank(update, x.rank, 1));
  BANTAM_RETURN_IF_ERROR(check_index_type(starts, 2));
  BANTAM_RETURN_IF_ERROR(check_rank(starts, 1, 2));
  if (starts.dims[0] != x.rank)
    return failure(StatusCode::kInvalidModel, "update_slice: one start per dimension is needed", starts.dims[0], x.rank)
        .at(2);
  for (int i = 0; i < x.rank; ++i)
    if (update.dims[i] > x.dims[i])
      return failure(StatusCode::kInvalidModel, "update_slice: the update is larger than the tensor", update.dims[i],
                     x.dims[i])
          .at(1);
  outputs[0] = x;
  outputs[0].set_dense_strides();
  return ok_status();
}

Footprint update_slice_footprint(const OpCall&, int /*threads*/) {
  Footprint footprint;
  footprint.overwrites[0] = 1;
  return footprint;
}

Status run_update_slice(const Invocation& call) {
  const TensorDesc& update = call.in(1);
  const auto size = static_cast<std::size_t>(element_size(call.in(0).type));
  auto* y = call.output<std::byte>();
  const auto* x = call.input<std::byte>(0);
  const std::size_t bytes = static_cast<std::size_t>(call.in(0).elements()) * size;
  if (bytes != 0 && y != x) std::memcpy(y, x, bytes);
  if (update.elements() == 0) return ok_status();
  std::int64_t first = 0;
  TensorDesc place = call.out();  // where the update goes, as a view of the result
  for (int i = 0; i < place.rank; ++i) {
    const std::int64_t room = call.in(0).dims[i] - update.dims[i];
    first += std::clamp<std::int64_t>(index_at(call.inputs[2], i), 0, room) * place.strides[i];
    place.dims[i] = update.dims[i];
  }
  const auto* from = call.input<std::byte>(1);
  const auto move = [&](std::int64_t to, std::int64_t at, std::int64_t n) {
    std::memcpy(y + static_cast<std::size_t>(first + to) * size, from + static_cast<std::size_t>(at) * size,
                static_cast<std::size_t>(n) * size);
  };
  const auto rows = make_rows<2>(update, {&place, &update});
  if (rows.all_contiguous()) {
    for_each_row(rows, [&](const auto& offsets, std::int64_t n) { move(offsets[0], offsets[1], n); });
  } else {
    for_each_element(rows, [&](const auto& offsets) { move(offsets[0], offsets[1], 1); });
  }
  return ok_status();
}

constexpr KernelVariant kVariants[] = {
    {.name = "any__ref", .supports = all_dense, .footprint = update_slice_footprint, .run = run_update_slice},
};

}  // namespace

constexpr OpDef kUpdateSlice{
    .name = "update_slice",
    .min_inputs = 3,
    .max_inputs = 3,
    .infer = infer_update_slice,
    .variants = kVariants,
};

}  // namespace bantam::ops
