#include "ops/nn/max_pool_indices/max_pool_indices.h"

#include <algorithm>

#include "ops/common/operands.h"
#include "ops/common/params.h"
#include "ops/nn/max_pool_indices/kernels.h"

namespace bantam::ops {
namespace {

Status infer_max_pool_indices(const void* params, std::span<const Tensor> inputs, std::span<TensorDesc> outputs) {
  const auto& p = *static_cast<const MaxPoolIndicesParams*>(params);
  const TensorDesc& x = desc_of(inputs, 0);
  BANTAM_RETURN_IF_ERROR(check_whole_bytes(x, 0));
  if (x.type == ElementType::kBool)
    return failure(StatusCode::kUnsupported, "maxima are of numbers", static_cast<std::int64_t>(x.type), 0).at(0);
  if (x.rank < 3) return failure(StatusCode::kInvalidModel, "operand must be [N,C,...]", x.rank, 3).at(0);
  const int spatial = x.rank - 2;
  for (const IntList* list : {&p.kernel, &p.strides, &p.dilations, &p.before, &p.after})
    BANTAM_RETURN_IF_ERROR(check_list(*list, spatial, "window does not have one entry per spatial axis"));
  if (!is_flag(p.ceil_mode) || !is_flag(p.column_major))
    return failure(StatusCode::kInvalidModel, "ceil_mode and column_major must be 0 or 1");
  std::int64_t dims[kMaxRank] = {x.dims[0], x.dims[1]};
  for (int i = 0; i < spatial; ++i)
    BANTAM_RETURN_IF_ERROR(
        window_positions(max_pool_indices::window_axis(p, i), x.dims[2 + i], p.ceil_mode != 0, &dims[2 + i]).at(i));
  BANTAM_RETURN_IF_ERROR(make_desc(x.type, dims, x.rank, &outputs[0]));
  return make_desc(ElementType::kI64, dims, x.rank, &outputs[1]);
}

std::int64_t work(const OpCall& call) {
  const auto& p = call.as<MaxPoolIndicesParams>();
  const TensorDesc& x = call.in(0);
  // Only taps inside the image count; kept below 2^31 so that the product stays within int64.
  std::int64_t taps = 1;
  for (int i = 0; i < p.kernel.size; ++i)
    taps = std::min<std::int64_t>(taps * std::min(p.kernel[i], x.dims[2 + i]), kMaxElements);
  return call.out().elements() * taps;
}

constexpr MaxPoolIndicesParams kDefaults{};
constexpr ParamField kFields[] = {
    list_field("kernel", offsetof(MaxPoolIndicesParams, kernel)),
    list_field("strides", offsetof(MaxPoolIndicesParams, strides)),
    list_field("dilations", offsetof(MaxPoolIndicesParams, dilations)),
    list_field("before", offsetof(MaxPoolIndicesParams, before)),
    list_field("after", offsetof(MaxPoolIndicesParams, after)),
    bool_field("ceil_mode", offsetof(MaxPoolIndicesParams, ceil_mode)),
    bool_field("column_major", offsetof(MaxPoolIndicesParams, column_major)),
};
constexpr KernelVariant kVariants[] = {
#if BANTAM_SIMD
    {.name = "f32__simd", .supports = max_pool_indices::supports_simd, .run = max_pool_indices::run_simd},
#endif
    {.name = "any__ref", .supports = all_dense, .run = max_pool_indices::run_reference},
};

}  // namespace

constexpr OpDef kMaxPoolIndices{.name = "max_pool_indices",
                                .params_bytes = sizeof(MaxPoolIndicesParams),
                                .default_params = &kDefaults,
                                .fields = kFields,
                                .outputs = 2,
                                .infer = infer_max_pool_indices,
                                .work = work,
                                .variants = kVariants};

}  // namespace bantam::ops
