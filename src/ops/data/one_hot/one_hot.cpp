#include "ops/data/one_hot/one_hot.h"

#include <cstring>

#include "ops/common/dispatch.h"
#include "ops/common/operands.h"
#include "ops/common/params.h"

namespace bantam::ops {
namespace {

Status infer_one_hot(const void* params, std::span<const Tensor> inputs, std::span<TensorDesc> outputs) {
  const auto& p = *static_cast<const OneHotParams*>(params);
  const TensorDesc& indices = desc_of(inputs, 0);
  const TensorDesc& off = desc_of(inputs, 1);
  if (!is_one_of<std::int32_t, std::int64_t, float>(indices.type))
    return failure(StatusCode::kUnsupported, "indices must be i32, i64 or f32", static_cast<std::int64_t>(indices.type),
                   static_cast<std::int64_t>(ElementType::kI64))
        .at(0);
  BANTAM_RETURN_IF_ERROR(check_whole_bytes(off, 1));
  BANTAM_RETURN_IF_ERROR(check_type(desc_of(inputs, 2), off.type, 2));
  for (int i = 1; i <= 2; ++i)
    if (desc_of(inputs, i).elements() != 1)
      return failure(StatusCode::kInvalidModel, "on and off values must be single elements",
                     desc_of(inputs, i).elements(), 1)
          .at(i);
  if (p.depth < 0) return failure(StatusCode::kInvalidModel, "negative depth", p.depth, 0);
  const int axis = normalize_axis(p.axis, indices.rank + 1);
  if (axis < 0) return failure(StatusCode::kInvalidModel, "axis is outside the result", p.axis, indices.rank);
  std::int64_t dims[kMaxRank + 1] = {};
  for (int i = 0; i <= indices.rank; ++i) dims[i] = i == axis ? p.depth : indices.dims[i < axis ? i : i - 1];
  return make_desc(off.type, dims, indices.rank + 1, &outputs[0]);
}

/// The position that index i marks, or -1.
std::int64_t marked_position(const Tensor& indices, std::int64_t i, std::int64_t depth) {
  if (indices.desc->type != ElementType::kF32) return wrap_index(index_at(indices, i), depth);
  const float value = indices.as<const float>()[i];
  const bool inside = value >= -static_cast<float>(depth) && value < static_cast<float>(depth);  // false for NaN
  return inside ? wrap_index(static_cast<std::int64_t>(value), depth) : -1;
}

Status run_one_hot(const Invocation& call) {
  const auto& p = call.as<OneHotParams>();
  const int axis = normalize_axis(p.axis, call.out().rank);
  const std::int64_t outer = elements_between(call.in(0), 0, axis);
  const std::int64_t inner = elements_between(call.in(0), axis, call.in(0).rank);
  const auto bytes = static_cast<std::size_t>(element_size(call.out().type));
  const auto at = [&](std::int64_t element) {
    return call.output<std::byte>() + element * static_cast<std::int64_t>(bytes);
  };
  const std::int64_t elements = call.out().elements();
  for (std::int64_t i = 0; i < elements; ++i) std::memcpy(at(i), call.inputs[1].data, bytes);
  for (std::int64_t o = 0; o < outer; ++o) {
    for (std::int64_t i = 0; i < inner; ++i) {
      const std::int64_t position = marked_position(call.inputs[0], o * inner + i, p.depth);
      if (position >= 0) std::memcpy(at((o * p.depth + position) * inner + i), call.inputs[2].data, bytes);
    }
  }
  return ok_status();
}

constexpr OneHotParams kDefaults{};
constexpr ParamField kFields[] = {
    i32_field("axis", offsetof(OneHotParams, axis)),
    i32_field("depth", offsetof(OneHotParams, depth)),
};
constexpr KernelVariant kVariants[] = {{.name = "any__ref", .supports = all_dense, .run = run_one_hot}};

}  // namespace

constexpr OpDef kOneHot{.name = "one_hot",
                        .params_bytes = sizeof(OneHotParams),
                        .default_params = &kDefaults,
                        .fields = kFields,
                        .min_inputs = 3,
                        .max_inputs = 3,
                        .infer = infer_one_hot,
                        .variants = kVariants};

}  // namespace bantam::ops
