#include "ops/data/gather/gather.h"

#include <algorithm>
#include <cstring>

#include "ops/common/operands.h"
#include "ops/common/params.h"

namespace bantam::ops {
namespace {

Status infer_gather(const void* params, std::span<const Tensor> inputs, std::span<TensorDesc> outputs) {
  const auto& p = *static_cast<const GatherParams*>(params);
  const TensorDesc& x = desc_of(inputs, 0);
  const TensorDesc& indices = desc_of(inputs, 1);
  BANTAM_RETURN_IF_ERROR(check_whole_bytes(x, 0));
  BANTAM_RETURN_IF_ERROR(check_index_type(indices, 1));
  BANTAM_RETURN_IF_ERROR(check_axis(p.axis, x.rank));
  if (p.batch_dims < 0 || p.batch_dims > std::min<std::int32_t>(p.axis, indices.rank))
    return failure(StatusCode::kInvalidModel, "number of batch dimensions exceeds the axis or the indices' rank",
                   p.batch_dims, std::min<std::int32_t>(p.axis, indices.rank));
  for (int i = 0; i < p.batch_dims; ++i)
    if (x.dims[i] != indices.dims[i])
      return failure(StatusCode::kInvalidModel, "batch dimensions differ", indices.dims[i], x.dims[i]).at(1);
  std::int64_t dims[2 * kMaxRank] = {};
  int rank = 0;
  for (int i = 0; i < p.axis; ++i) dims[rank++] = x.dims[i];
  for (int i = p.batch_dims; i < indices.rank; ++i) dims[rank++] = indices.dims[i];
  for (int i = p.axis + 1; i < x.rank; ++i) dims[rank++] = x.dims[i];
  return make_desc(x.type, dims, rank, &outputs[0]);
}

bool gather_view(const OpCall& call, TensorDesc* view, std::int64_t* offset) {
  const std::int32_t axis = call.as<GatherParams>().axis;
  const TensorDesc& x = call.in(0);
  const TensorDesc& indices = call.in(1);
  if (call.inputs[1].data == nullptr || indices.elements() != 1) return false;
  const std::int64_t index = wrap_index(index_at(call.inputs[1], 0), x.dims[axis]);
  if (index < 0) return false;
  *view = call.out();
  const int added = view->rank - (x.rank - 1);  // dimensions of size 1 that stand for the indices' shape
  for (int i = 0; i < axis; ++i) view->strides[i] = x.strides[i];
  for (int i = axis + 1; i < x.rank; ++i) view->strides[i - 1 + added] = x.strides[i];
  *offset = view->elements() == 0 ? 0 : index * x.strides[axis];
  return finish_view(view);
}

Status run_gather(const Invocation& call) {
  const auto& p = call.as<GatherParams>();
  const TensorDesc& x = call.in(0);
  const std::int64_t batches = elements_between(x, 0, p.batch_dims);
  const std::int64_t outer = elements_between(x, p.batch_dims, p.axis);
  const std::int64_t size = x.dims[p.axis];
  const std::int64_t count = elements_between(call.in(1), p.batch_dims, call.in(1).rank);
  const std::int64_t bytes = elements_between(x, p.axis + 1, x.rank) * element_size(x.type);
  const auto* from = call.input<std::byte>(0);
  auto* to = call.output<std::byte>();
  for (std::int64_t b = 0; b < batches; ++b) {
    for (std::int64_t o = 0; o < outer; ++o, from += size * bytes) {
      for (std::int64_t k = 0; k < count; ++k, to += bytes) {
        const std::int64_t given = index_at(call.inputs[1], b * count + k);
        const std::int64_t index = wrap_index(given, size);
        if (index < 0) return index_fault(given, size);
        std::memcpy(to, from + index * bytes, static_cast<std::size_t>(bytes));
      }
    }
  }
  return ok_status();
}

constexpr GatherParams kDefaults{};
constexpr ParamField kFields[] = {
    i32_field("axis", offsetof(GatherParams, axis)),
    i32_field("batch_dims", offsetof(GatherParams, batch_dims)),
};
constexpr KernelVariant kVariants[] = {{.name = "any__ref", .supports = all_dense, .run = run_gather}};

}  // namespace

constexpr OpDef kGather{.name = "gather",
                        .params_bytes = sizeof(GatherParams),
                        .default_params = &kDefaults,
                        .fields = kFields,
                        .min_inputs = 2,
                        .max_inputs = 2,
                        .infer = infer_gather,
                        .output_view = gather_view,
                        .variants = kVariants};

}  // namespace bantam::ops
