#include "ops/data/unique/unique.h"

#include <algorithm>

#include "ops/common/dispatch.h"
#include "ops/common/heap_sort.h"
#include "ops/common/operands.h"
#include "ops/common/params.h"

namespace bantam::ops {
namespace {

constexpr ParamField kFields[] = {
    i32_field("axis", offsetof(UniqueParams, axis)),
    bool_field("sorted", offsetof(UniqueParams, sorted)),
    i32_field("capacity", offsetof(UniqueParams, capacity)),
};

constexpr UniqueParams kDefaults{};

Status infer_unique(const void* params, std::span<const Tensor> inputs, std::span<TensorDesc> outputs) {
  const auto& p = *static_cast<const UniqueParams*>(params);
  const TensorDesc& x = *inputs[0].desc;
  if (!is_one_of<float, double, std::int8_t, std::uint8_t, std::int32_t, std::int64_t>(x.type))
    return failure(StatusCode::kUnsupported, "unique: operand is not f32, f64, i8, u8, i32 or i64",
                   static_cast<std::int64_t>(x.type), static_cast<std::int64_t>(ElementType::kF32))
        .at(0);
  const int axis = normalize_axis(p.axis, x.rank);
  if (axis < 0) return failure(StatusCode::kInvalidModel, "unique: axis is outside the tensor", p.axis, x.rank - 1);
  if (!is_flag(p.sorted)) return failure(StatusCode::kInvalidModel, "unique: sorted is not 0 or 1", p.sorted, 1);
  if (p.capacity < 0) return failure(StatusCode::kInvalidModel, "unique: the capacity is negative", p.capacity, 0);
  const std::int64_t most[] = {p.capacity};
  const std::int64_t length[] = {x.dims[axis]};
  BANTAM_RETURN_IF_ERROR(make_desc(ElementType::kI64, most, 1, &outputs[0]));
  BANTAM_RETURN_IF_ERROR(make_desc(ElementType::kI64, length, 1, &outputs[1]));
  BANTAM_RETURN_IF_ERROR(make_desc(ElementType::kI64, most, 1, &outputs[2]));
  return make_desc(ElementType::kI64, nullptr, 0, &outputs[3]);
}

/// The slices of a dense tensor along an axis.
struct Slices {
  std::int64_t count = 1;
  std::int64_t outer = 1;
  std::int64_t inner = 1;

  Slices(const TensorDesc& x, std::int32_t axis) {
    const int a = normalize_axis(axis, x.rank);
    for (int d = 0; d < x.rank; ++d) (d < a ? outer : d > a ? inner : count) *= x.dims[d];
  }
};

/// Negative, zero or positive as a comes before, with or after b: a total order.
template <typename T>
int compare(T a, T b) {
  const bool a_nan = a != a;
  const bool b_nan = b != b;
  if (a_nan || b_nan) return static_cast<int>(a_nan) - static_cast<int>(b_nan);
  return static_cast<int>(b < a) - static_cast<int>(a < b);
}

template <typename T>
int compare_slices(const Slices& slices, const T* x, std::int64_t a, std::int64_t b) {
  for (std::int64_t o = 0; o < slices.outer; ++o) {
    const T* block = x + o * slices.count * slices.inner;
    for (std::int64_t i = 0; i < slices.inner; ++i)
      if (const int order = compare(block[a * slices.inner + i], block[b * slices.inner + i]); order != 0) return order;
  }
  return 0;
}

/// Sets inverse[i] to the first slice that is equal to slice i, and id[j] of such a first slice j to its place in the
/// result. Returns how many there are.
template <typename T>
std::int64_t number_slices(const Slices& slices, const T* x, bool sorted, std::int32_t* order, std::int32_t* id,
                           std::int64_t* inverse) {
  const auto n = static_cast<std::int32_t>(slices.count);
  for (std::int32_t i = 0; i < n; ++i) order[i] = i;
  // Equal slices in the order of their places, so that the first of them is the one that is met first.
  heap_sort(order, n, [&](std::int32_t a, std::int32_t b) {
    const int c = compare_slices(slices, x, a, b);
    return c != 0 ? c < 0 : a < b;
  });
  std::int32_t count = 0;
  for (std::int32_t k = 0; k < n; ++k) {
    const bool fresh = k == 0 || compare_slices(slices, x, order[k - 1], order[k]) != 0;
    if (fresh) id[order[k]] = count++;
    inverse[order[k]] = fresh ? order[k] : inverse[order[k - 1]];
  }
  if (sorted) return count;
  std::int32_t met = 0;
  for (std::int32_t i = 0; i < n; ++i)
    if (inverse[i] == i) id[i] = met++;
  return count;
}

template <typename T>
std::int64_t unique(const Invocation& invocation) {
  const auto& p = invocation.as<UniqueParams>();
  const Slices slices(invocation.in(0), p.axis);
  auto* order = reinterpret_cast<std::int32_t*>(invocation.scratch);
  std::int32_t* id = order + slices.count;
  auto* first = invocation.output<std::int64_t>(0);
  auto* inverse = invocation.output<std::int64_t>(1);
  auto* times = invocation.output<std::int64_t>(2);
  std::fill_n(first, p.capacity, 0);
  std::fill_n(times, p.capacity, 0);
  const std::int64_t count = number_slices(slices, invocation.input<T>(0), p.sorted != 0, order, id, inverse);
  for (std::int64_t i = 0; i < slices.count; ++i) {
    const std::int64_t first_equal = inverse[i];
    const std::int32_t place = id[first_equal];
    inverse[i] = place;
    if (place >= p.capacity) continue;
    first[place] = first_equal;
    ++times[place];
  }
  return count;
}

Status run_ref(const Invocation& invocation) {
  std::int64_t count = 0;
  dispatch_type<float, double, std::int8_t, std::uint8_t, std::int32_t, std::int64_t>(
      invocation.in(0).type, [&](auto tag) { count = unique<typename decltype(tag)::type>(invocation); });
  *invocation.output<std::int64_t>(3) = count;
  const std::int64_t capacity = invocation.as<UniqueParams>().capacity;
  if (count > capacity)
    return failure(StatusCode::kOutOfRange, "more slices are different than there is room for", count, capacity);
  return ok_status();
}

bool supports_ref(const OpCall& call) {
  return call.in(0).is_dense() && call.out(0).is_dense() && call.out(1).is_dense() && call.out(2).is_dense();
}

Footprint footprint_ref(const OpCall& call, int) {
  return {.scratch_bytes = Slices(call.in(0), call.as<UniqueParams>().axis).count * 2 *
                           static_cast<std::int64_t>(sizeof(std::int32_t))};
}

constexpr KernelVariant kVariants[] = {
    {.name = "any__ref", .supports = supports_ref, .footprint = footprint_ref, .run = run_ref},
};

}  // namespace

constexpr OpDef kUnique{
    .name = "unique",
    .params_bytes = sizeof(UniqueParams),
    .default_params = &kDefaults,
    .fields = kFields,
    .outputs = 4,
    .infer = infer_unique,
    .variants = kVariants,
};

}  // namespace bantam::ops
