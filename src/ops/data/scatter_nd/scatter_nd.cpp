#include "ops/data/scatter_nd/scatter_nd.h"

#include "ops/common/element_index.h"
#include "ops/data/scatter_nd/reduction.h"

namespace bantam::ops {
namespace {

Status infer_scatter_nd(const void* params, std::span<const Tensor> inputs, std::span<TensorDesc> outputs) {
  const TensorDesc& x = desc_of(inputs, 0);
  const TensorDesc& indices = desc_of(inputs, 1);
  const TensorDesc& updates = desc_of(inputs, 2);
  BANTAM_RETURN_IF_ERROR(check_reduction(static_cast<const ScatterNdParams*>(params)->reduction, x));
  BANTAM_RETURN_IF_ERROR(check_index_type(indices, 1));
  BANTAM_RETURN_IF_ERROR(check_type(updates, x.type, 2));
  if (indices.rank < 1) return failure(StatusCode::kInvalidModel, "indices must be tuples", indices.rank, 1).at(1);
  const std::int32_t tuple = indices.last(0);
  if (tuple > x.rank)
    return failure(StatusCode::kInvalidModel, "index tuples are longer than the operand's rank", tuple, x.rank).at(1);
  const int picked = indices.rank - 1;  // dimensions of the updates that the indices' shape gives
  BANTAM_RETURN_IF_ERROR(check_rank(updates, picked + x.rank - tuple, 2));
  for (int i = 0; i < updates.rank; ++i) {
    const std::int32_t expected = i < picked ? indices.dims[i] : x.dims[tuple + i - picked];
    if (updates.dims[i] != expected)
      return failure(StatusCode::kInvalidModel, "updates have the wrong shape", updates.dims[i], expected).at(2);
  }
  outputs[0] = x;
  outputs[0].set_dense_strides();
  return ok_status();
}

Status run_scatter_nd(const Invocation& call) {
  const ScatterReduction reduction = call.as<ScatterNdParams>().reduction;
  const TensorDesc& x = call.in(0);
  const TensorDesc& indices = call.in(1);
  const std::int64_t slice = elements_between(x, indices.last(0), x.rank);
  const std::int64_t count = elements_between(indices, 0, indices.rank - 1);
  start_scatter(call);
  Status status = ok_status();
  dispatch_reduction(reduction, x.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* updates = call.input<T>(2);
    for (std::int64_t i = 0; i < count; ++i) {
      std::int64_t offset = 0;
      status = tuple_offset(x, 0, call.inputs[1], i, &offset);
      if (!status.ok()) return;
      T* to = call.output<T>() + offset;
      for (std::int64_t k = 0; k < slice; ++k) to[k] = combine(reduction, to[k], updates[i * slice + k]);
    }
  });
  return status;
}

constexpr ScatterNdParams kDefaults{};
constexpr ParamField kFields[] = {
    enum_field("reduction", offsetof(ScatterNdParams, reduction), kScatterReductionNames)};
constexpr KernelVariant kVariants[] = {
    {.name = "any__ref", .supports = all_dense, .footprint = scatter_footprint, .run = run_scatter_nd}};

}  // namespace

constexpr OpDef kScatterNd{.name = "scatter_nd",
                           .params_bytes = sizeof(ScatterNdParams),
                           .default_params = &kDefaults,
                           .fields = kFields,
                           .min_inputs = 3,
                           .max_inputs = 3,
                           .infer = infer_scatter_nd,
                           .variants = kVariants};

}  // namespace bantam::ops
