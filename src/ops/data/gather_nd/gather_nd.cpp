#include "ops/data/gather_nd/gather_nd.h"

#include <algorithm>
#include <cstring>

#include "ops/common/element_index.h"
#include "ops/common/operands.h"
#include "ops/common/params.h"

namespace bantam::ops {
namespace {

Status infer_gather_nd(const void* params, std::span<const Tensor> inputs, std::span<TensorDesc> outputs) {
  const std::int32_t batch_dims = static_cast<const GatherNdParams*>(params)->batch_dims;
  const TensorDesc& x = desc_of(inputs, 0);
  const TensorDesc& indices = desc_of(inputs, 1);
  BANTAM_RETURN_IF_ERROR(check_whole_bytes(x, 0));
  BANTAM_RETURN_IF_ERROR(check_index_type(indices, 1));
  if (indices.rank < 1) return failure(StatusCode::kInvalidModel, "indices must be tuples", indices.rank, 1).at(1);
  const int limit = std::min<int>(x.rank, indices.rank - 1);
  if (batch_dims < 0 || batch_dims > limit)
    return failure(StatusCode::kInvalidModel, "too many batch dimensions", batch_dims, limit);
  for (int i = 0; i < batch_dims; ++i)
    if (x.dims[i] != indices.dims[i])
      return failure(StatusCode::kInvalidModel, "batch dimensions differ", indices.dims[i], x.dims[i]).at(1);
  const std::int32_t tuple = indices.last(0);
  if (tuple > x.rank - batch_dims)
    return failure(StatusCode::kInvalidModel, "index tuples are longer than the operand's rank", tuple,
                   x.rank - batch_dims)
        .at(1);
  std::int64_t dims[2 * kMaxRank] = {};
  int rank = 0;
  for (int i = 0; i < indices.rank - 1; ++i) dims[rank++] = indices.dims[i];
  for (int i = batch_dims + tuple; i < x.rank; ++i) dims[rank++] = x.dims[i];
  return make_desc(x.type, dims, rank, &outputs[0]);
}

Status run_gather_nd(const Invocation& call) {
  const std::int32_t batch_dims = call.as<GatherNdParams>().batch_dims;
  const TensorDesc& x = call.in(0);
  const TensorDesc& indices = call.in(1);
  const std::int64_t bytes = element_size(x.type);
  const std::int64_t batches = elements_between(x, 0, batch_dims);
  const std::int64_t batch_bytes = elements_between(x, batch_dims, x.rank) * bytes;
  const std::int64_t slice_bytes = elements_between(x, batch_dims + indices.last(0), x.rank) * bytes;
  const std::int64_t count = elements_between(indices, batch_dims, indices.rank - 1);
  if (call.out().elements() == 0) return ok_status();
  auto* to = call.output<std::byte>();
  for (std::int64_t b = 0; b < batches; ++b) {
    for (std::int64_t i = 0; i < count; ++i, to += slice_bytes) {
      std::int64_t offset = 0;
      BANTAM_RETURN_IF_ERROR(tuple_offset(x, batch_dims, call.inputs[1], b * count + i, &offset));
      std::memcpy(to, call.input<std::byte>(0) + b * batch_bytes + offset * bytes,
                  static_cast<std::size_t>(slice_bytes));
    }
  }
  return ok_status();
}

constexpr GatherNdParams kDefaults{};
constexpr ParamField kFields[] = {i32_field("batch_dims", offsetof(GatherNdParams, batch_dims))};
constexpr KernelVariant kVariants[] = {{.name = "any__ref", .supports = all_dense, .run = run_gather_nd}};

}  // namespace

constexpr OpDef kGatherNd{.name = "gather_nd",
                          .params_bytes = sizeof(GatherNdParams),
                          .default_params = &kDefaults,
                          .fields = kFields,
                          .min_inputs = 2,
                          .max_inputs = 2,
                          .infer = infer_gather_nd,
                          .variants = kVariants};

}  // namespace bantam::ops
