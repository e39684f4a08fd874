#include "ops/data/concat/concat.h"

#include "ops/common/box.h"
#include "ops/common/operands.h"
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

Status run_concat(const Invocation& call) {
  const std::int32_t axis = call.as<ConcatParams>().axis;
  const TensorDesc& out = call.out();
  const std::int64_t bytes = element_size(out.type);
  std::int64_t before = 0;
  for (int i = 0; i < static_cast<int>(call.inputs.size()); ++i) {
    const TensorDesc& x = call.in(i);
    const void* from = call.inputs[static_cast<std::size_t>(i)].data;
    void* to = advance(call.output<void>(), before * out.strides[axis], bytes);
    if (x.elements() != 0 && from != to) copy_box(make_box(x, x, out), bytes, from, to);
    before += x.dims[axis];
  }
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
