#include "ops/data/nonzero/nonzero.h"

#include <algorithm>
#include <limits>
#include <type_traits>

#include "ops/common/dispatch.h"
#include "ops/common/operands.h"
#include "ops/common/params.h"

namespace bantam::ops {
namespace {

constexpr ParamField kFields[] = {
    i32_field("capacity", offsetof(NonzeroParams, capacity)),
};

constexpr NonzeroParams kDefaults{};

Status infer_nonzero(const void* params, std::span<const Tensor> inputs, std::span<TensorDesc> outputs) {
  const auto& p = *static_cast<const NonzeroParams*>(params);
  const TensorDesc& x = *inputs[0].desc;
  BANTAM_RETURN_IF_ERROR(check_whole_bytes(x, 0));
  if (p.capacity < 0) return failure(StatusCode::kInvalidModel, "nonzero: the capacity is negative", p.capacity, 0);
  const std::int64_t dims[] = {p.capacity, x.rank};
  BANTAM_RETURN_IF_ERROR(make_desc(ElementType::kI64, dims, 2, &outputs[0]));
  return make_desc(ElementType::kI64, nullptr, 0, &outputs[1]);
}

/// Writes the coordinates of element `index` of a tensor of that shape.
void write_coordinates(const TensorDesc& shape, std::int64_t index, std::int64_t* row) {
  for (int d = shape.rank - 1; d >= 0; --d) {
    row[d] = index % shape.dims[d];
    index /= shape.dims[d];
  }
}

/// `zero_mask`: the bits of an element that are all clear in zeros. Returns how many others there are.
template <typename Bits>
std::int64_t find(const Invocation& invocation, Bits zero_mask) {
  const std::int64_t capacity = invocation.as<NonzeroParams>().capacity;
  const TensorDesc& shape = invocation.in(0);
  const auto* x = invocation.input<Bits>(0);
  auto* rows = invocation.output<std::int64_t>(0);
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < shape.elements(); ++i) {
    if ((x[i] & zero_mask) == 0) continue;
    if (count < capacity) write_coordinates(shape, i, rows + count * shape.rank);
    ++count;
  }
  std::fill(rows + std::min(count, capacity) * shape.rank, rows + capacity * shape.rank, 0);
  return count;
}

Status run_ref(const Invocation& invocation) {
  const ElementType type = invocation.in(0).type;
  std::int64_t count = 0;
  dispatch_size(element_size(type), [&](auto tag) {
    using Bits = typename decltype(tag)::type;
    constexpr Bits kAll = std::numeric_limits<Bits>::max();
    // Zero has two signs.
    count = find<Bits>(invocation, is_float(type) ? static_cast<Bits>(kAll >> 1U) : kAll);
  });
  *invocation.output<std::int64_t>(1) = count;
  const std::int64_t capacity = invocation.as<NonzeroParams>().capacity;
  if (count > capacity)
    return failure(StatusCode::kOutOfRange, "more elements are not zero than there is room for", count, capacity);
  return ok_status();
}

bool supports_ref(const OpCall& call) { return call.in(0).is_dense() && call.out(0).is_dense(); }

constexpr KernelVariant kVariants[] = {
    {.name = "any__ref", .supports = supports_ref, .run = run_ref},
};

}  // namespace

constexpr OpDef kNonzero{
    .name = "nonzero",
    .params_bytes = sizeof(NonzeroParams),
    .default_params = &kDefaults,
    .fields = kFields,
    .outputs = 2,
    .infer = infer_nonzero,
    .variants = kVariants,
};

}  // namespace bantam::ops
