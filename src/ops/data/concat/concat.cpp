#include "ops/data/concat/concat.h"

#include <algorithm>

#include "ops/common/box.h"
#include "ops/common/elementwise.h"
#include "ops/common/operands.h"
#include "ops/common/parallel.h"
#include "ops/common/params.h"

namespace bantam::ops {
namespace {

Status infer_concat(const void* params, std::span<const Tensor> inputs, std::span<TensorDesc> outputs) {
  const std::int32_t axis = static_cast<const ConcatParams*>(params)->axis;
  const TensorDesc& first = desc_of(inputs, 0);
  BANTAM_RETURN_IF_ERROR(check_whole_bytes(first, 0));
  BANTAM_RETURN_IF_ERROR(check_axis(axis, first.rank));
  std::int64_t dims[kMaxRank] = {};
  for (int d = 0; d < first.rank; ++d) dims[d] = first.dims[d];
  dims[axis] = 0;
  for (int i = 0; i < static_cast<int>(inputs.size()); ++i) {
    const TensorDesc& x = desc_of(inputs, i);
    BANTAM_RETURN_IF_ERROR(check_type(x, first.type, i));
    BANTAM_RETURN_IF_ERROR(check_rank(x, first.rank, i));
    for (int d = 0; d < x.rank; ++d)
      if (d != axis && x.dims[d] != first.dims[d])
        return failure(StatusCode::kInvalidModel, "operands to be joined differ in another dimension", x.dims[d],
                       first.dims[d])
            .at(i);
    dims[axis] += x.dims[axis];
  }
  return make_desc(first.type, dims, first.rank, &outputs[0]);
}

bool concat_view(const OpCall& call, int i, TensorDesc* view, std::int64_t* offset) {
  const std::int32_t axis = call.as<ConcatParams>().axis;
  std::int64_t before = 0;
  for (int k = 0; k < i; ++k) before += call.in(k).dims[axis];
  *view = call.in(i);
  for (int d = 0; d < view->rank; ++d) view->strides[d] = call.out().strides[d];
  *offset = view->elements() == 0 ? 0 : before * call.out().strides[axis];
  return true;
}

Footprint concat_footprint(const OpCall& call, int /*threads*/) {
  Footprint footprint;
  for (std::size_t i = 0; i < call.inputs.size(); ++i) footprint.within |= std::uint64_t{1} << i;
  return footprint;
}

/// Copies tensors that are stacked along a new last axis as the transposition that this is, where they lie equally far
/// apart, as two always do. False, and nothing done, where that is not so.
bool copy_stacked(const Invocation& call) {
  const std::int32_t axis = call.as<ConcatParams>().axis;
  const auto count = static_cast<std::int64_t>(call.inputs.size());
  const TensorDesc& x = call.in(0);
  const TensorDesc& out = call.out();
  const std::int64_t bytes = element_size(out.type);
  const std::int64_t elements = x.elements();
  if (count < 2 || elements == 0 || out.elements() != elements * count || !out.is_dense()) return false;
  for (int d = axis; d < x.rank; ++d)
    if (x.dims[d] != 1) return false;
  const auto address = [&](std::int64_t i) {
    return reinterpret_cast<std::intptr_t>(call.inputs[static_cast<std::size_t>(i)].data);
  };
  const std::intptr_t apart = address(1) - address(0);
  if (apart % bytes != 0) return false;
  for (std::int64_t i = 0; i < count; ++i) {
    const TensorDesc& other = call.in(static_cast<int>(i));
    const bool within = address(i) == reinterpret_cast<std::intptr_t>(call.output<std::byte>()) + i * bytes;
    if (within || other.dims[axis] != 1 || !other.is_dense() || address(i) != address(0) + i * apart) return false;
  }
  Box box;
  box.add(elements, 1, count);
  box.add(count, apart / bytes, 1);
  copy_box(*call.threads, box, bytes, call.inputs[0].data, call.output<void>());
  return true;
}

/// Copies the operands' elements [begin, end) of dimension `shared`, which lies before the axis, by `threads`.
void copy_operands(const Invocation& call, const Threads& threads, int shared, std::int64_t begin, std::int64_t end) {
  const std::int32_t axis = call.as<ConcatParams>().axis;
  const TensorDesc& out = call.out();
  const std::int64_t bytes = element_size(out.type);
  std::int64_t before = 0;
  for (int i = 0; i < static_cast<int>(call.inputs.size()); ++i) {
    const TensorDesc& x = call.in(i);
    const void* from = call.inputs[static_cast<std::size_t>(i)].data;
    void* to = advance(call.output<void>(), before * out.strides[axis], bytes);
    before += x.dims[axis];
    if (x.elements() == 0 || from == to) continue;
    Box box = make_box(x, x, out);
    if (shared < axis) {
      box.levels[shared].size = end - begin;
      from = advance(from, begin * x.strides[shared], bytes);
      to = advance(to, begin * out.strides[shared], bytes);
    }
    copy_box(threads, box, bytes, from, to);
  }
}

/// Threads share a dimension before the axis, and so all operands at once, or else one operand after the other.
Status run_concat(const Invocation& call) {
  constexpr std::int64_t kEnough = 4;  // elements of the dimension for each thread, so that all get about as many
  if (copy_stacked(call)) return ok_status();
  const std::int32_t axis = call.as<ConcatParams>().axis;
  const TensorDesc& out = call.out();
  int shared = 0;
  while (shared < axis && out.dims[shared] < kEnough * call.threads->count) ++shared;
  if (shared == axis) {
    copy_operands(call, *call.threads, shared, 0, 0);
    return ok_status();
  }
  const std::int64_t elements = std::max<std::int64_t>(out.elements() / out.dims[shared], 1);
  parallel_ranges(*call.threads, out.dims[shared], (kElementwiseGrain + elements - 1) / elements,
                  [&](std::int64_t begin, std::int64_t end) { copy_operands(call, Threads{}, shared, begin, end); });
  return ok_status();
}

constexpr ConcatParams kDefaults{};
constexpr ParamField kFields[] = {i32_field("axis", offsetof(ConcatParams, axis))};
constexpr KernelVariant kVariants[] = {{.name = "any__ref", .footprint = concat_footprint, .run = run_concat}};

}  // namespace

constexpr OpDef kConcat{.name = "concat",
                        .params_bytes = sizeof(ConcatParams),
                        .default_params = &kDefaults,
                        .fields = kFields,
                        .max_inputs = kMaxInputs,
                        .infer = infer_concat,
                        .input_view = concat_view,
                        .variants = kVariants};

}  // namespace bantam::ops
