#include "ops/signal/overlap_add/overlap_add.h"

#include <algorithm>
#include <type_traits>

#include "ops/common/dispatch.h"
#include "ops/common/operands.h"
#include "ops/common/params.h"

namespace bantam::ops {
namespace {

constexpr ParamField kFields[] = {i32_field("step", offsetof(OverlapAddParams, step))};

constexpr OverlapAddParams kDefaults{};

Status infer_overlap_add(const void* params, std::span<const Tensor> inputs, std::span<TensorDesc> outputs) {
  const auto& p = *static_cast<const OverlapAddParams*>(params);
  const TensorDesc& x = desc_of(inputs, 0);
  const TensorDesc& sums = desc_of(inputs, 1);
  if (!is_one_of<std::int16_t, float>(x.type))
    return failure(StatusCode::kUnsupported, "overlap_add: operand is not i16 or f32",
                   static_cast<std::int64_t>(x.type), static_cast<std::int64_t>(ElementType::kI16))
        .at(0);
  if (x.rank < 2) return failure(StatusCode::kInvalidModel, "overlap_add: operand has no frames", x.rank, 2).at(0);
  const std::int64_t frame = x.last(0);
  if (p.step < 1 || p.step > frame)
    return failure(StatusCode::kInvalidModel, "overlap_add: step is outside 1..frame", p.step, frame);
  BANTAM_RETURN_IF_ERROR(check_type(sums, x.type, 1));
  BANTAM_RETURN_IF_ERROR(check_rank(sums, 2, 1));
  if (sums.dims[1] != frame || sums.dims[0] != elements_between(x, 0, x.rank - 2))
    return failure(StatusCode::kInvalidModel, "overlap_add: the sums are not one frame per row", sums.dims[1], frame)
        .at(1);
  std::int64_t dims[kMaxRank] = {};
  for (int i = 0; i < x.rank - 2; ++i) dims[i] = x.dims[i];
  dims[x.rank - 2] = std::int64_t{x.dims[x.rank - 2]} * p.step;
  outputs[1] = sums;
  outputs[1].set_dense_strides();
  return make_desc(x.type, dims, x.rank - 1, &outputs[0]);
}

Footprint overlap_add_footprint(const OpCall&, int /*threads*/) {
  Footprint footprint;
  footprint.overwrites[1] = 1U << 1;
  return footprint;
}

template <typename T>
T add(T a, T b) {
  if constexpr (std::is_same_v<T, std::int16_t>) return static_cast<T>(std::clamp(a + b, -32768, 32767));
  return static_cast<T>(a + b);
}

template <typename T>
void add_frames(const Invocation& call) {
  const std::int64_t step = call.as<OverlapAddParams>().step;
  const std::int64_t rows = call.in(1).dims[0];
  const std::int64_t size = call.in(1).dims[1];
  const std::int64_t hops = call.in(0).dims[call.in(0).rank - 2];
  const T* frame = call.input<T>(0);
  T* y = call.output<T>(0);
  T* sum = call.output<T>(1);
  if (sum != call.input<T>(1)) std::copy_n(call.input<T>(1), rows * size, sum);
  for (std::int64_t row = 0; row < rows; ++row, sum += size) {
    for (std::int64_t hop = 0; hop < hops; ++hop, frame += size, y += step) {
      for (std::int64_t i = 0; i < size; ++i) sum[i] = add(sum[i], frame[i]);
      std::copy_n(sum, step, y);
      std::fill(std::copy(sum + step, sum + size, sum), sum + size, T{0});
    }
  }
}

Status run_overlap_add(const Invocation& call) {
  dispatch_type<std::int16_t, float>(call.in(0).type,
                                     [&](auto tag) { add_frames<typename decltype(tag)::type>(call); });
  return ok_status();
}

constexpr KernelVariant kVariants[] = {
    {.name = "any__ref", .supports = all_dense, .footprint = overlap_add_footprint, .run = run_overlap_add},
};

}  // namespace

constexpr OpDef kOverlapAdd{
    .name = "overlap_add",
    .params_bytes = sizeof(OverlapAddParams),
    .default_params = &kDefaults,
    .fields = kFields,
    .min_inputs = 2,
    .max_inputs = 2,
    .outputs = 2,
    .infer = infer_overlap_add,
    .variants = kVariants,
};

}  // namespace bantam::ops
