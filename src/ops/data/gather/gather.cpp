#include "ops/data/gather/gather.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "ops/common/operands.h"
#include "ops/common/parallel.h"
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

/// Rows of slices: each picks `count` of `size` slices.
struct Slices {
  std::int64_t batches;
  std::int64_t outer;  ///< rows of a batch item, which share its indices
  std::int64_t size;
  std::int64_t count;
  std::int64_t bytes;  ///< of a slice
};

/// Are all indices inside the dimension?
template <typename Index>
Status check_indices(const Slices& s, const Index* indices) {
  for (std::int64_t i = 0; i < s.batches * s.count; ++i)
    if (wrap_index(indices[i], s.size) < 0) return index_fault(indices[i], s.size);
  return ok_status();
}

/// Slices [begin, end) of the result, counted through all rows, by copy(from, to). The indices are checked.
template <typename Index, typename Copy>
void copy_slices(const Slices& s, const std::byte* from, const Index* indices, std::int64_t begin, std::int64_t end,
                 std::byte* to, Copy copy) {
  for (std::int64_t at = begin; at < end;) {
    const std::int64_t row = at / s.count;
    const std::int64_t first = at % s.count;
    const std::int64_t n = std::min(s.count - first, end - at);
    const Index* given = indices + row / s.outer * s.count + first;
    const std::byte* source = from + row * s.size * s.bytes;
    for (std::int64_t i = 0; i < n; ++i) {
      const std::int64_t index = given[i];
      copy(source + (index < 0 ? index + s.size : index) * s.bytes, to + (at + i) * s.bytes);
    }
    at += n;
  }
}

/// Calls run(copy) with what copies a slice of so many bytes; of a number's it is known while compiling.
template <typename Run>
void with_copy(std::int64_t bytes, Run run) {
  const auto copy_number = [&](auto size) {
    run([size](const std::byte* from, std::byte* to) { std::memcpy(to, from, size()); });
  };
  switch (bytes) {
    case 1: return copy_number(std::integral_constant<std::size_t, 1>());
    case 2: return copy_number(std::integral_constant<std::size_t, 2>());
    case 4: return copy_number(std::integral_constant<std::size_t, 4>());
    case 8: return copy_number(std::integral_constant<std::size_t, 8>());
    default:
      run([bytes](const std::byte* from, std::byte* to) { std::memcpy(to, from, static_cast<std::size_t>(bytes)); });
  }
}

template <typename Index>
Status gather(const Invocation& call, const Slices& s) {
  constexpr std::int64_t kGrainBytes = 32768;
  const auto* indices = call.input<Index>(1);
  BANTAM_RETURN_IF_ERROR(check_indices(s, indices));
  with_copy(s.bytes, [&](auto copy) {
    parallel_ranges(*call.threads, s.batches * s.outer * s.count, kGrainBytes / std::max<std::int64_t>(s.bytes, 1) + 1,
                    [&](std::int64_t begin, std::int64_t end) {
                      copy_slices(s, call.input<std::byte>(0), indices, begin, end, call.output<std::byte>(), copy);
                    });
  });
  return ok_status();
}

Status run_gather(const Invocation& call) {
  const auto& p = call.as<GatherParams>();
  const TensorDesc& x = call.in(0);
  const Slices slices{.batches = elements_between(x, 0, p.batch_dims),
                      .outer = elements_between(x, p.batch_dims, p.axis),
                      .size = x.dims[p.axis],
                      .count = elements_between(call.in(1), p.batch_dims, call.in(1).rank),
                      .bytes = elements_between(x, p.axis + 1, x.rank) * element_size(x.type)};
  if (slices.outer == 0) return ok_status();
  return call.in(1).type == ElementType::kI32 ? gather<std::int32_t>(call, slices) : gather<std::int64_t>(call, slices);
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
