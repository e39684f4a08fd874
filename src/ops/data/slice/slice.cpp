#include "ops/data/slice/slice.h"

#include "ops/common/box.h"
#include "ops/common/operands.h"
#include "ops/common/params.h"

namespace bantam::ops {
namespace {

Status check_range(std::int32_t start, std::int32_t step, std::int32_t size, std::int32_t dim) {
  if (size < 0) return failure(StatusCode::kInvalidModel, "slice has a negative size", size, 0);
  if (step == 0) return failure(StatusCode::kInvalidModel, "slice step is zero", 0, 1);
  if (size == 0) return ok_status();
  if (start < 0 || start >= dim)
    return failure(StatusCode::kInvalidModel, "slice starts outside the operand", start, dim - 1);
  const std::int64_t last = start + (static_cast<std::int64_t>(size) - 1) * step;
  if (last < 0 || last >= dim)
    return failure(StatusCode::kInvalidModel, "slice ends outside the operand", last, dim - 1);
  return ok_status();
}

Status infer_slice(const void* params, std::span<const Tensor> inputs, std::span<TensorDesc> outputs) {
  const auto& p = *static_cast<const SliceParams*>(params);
  const TensorDesc& x = desc_of(inputs, 0);
  BANTAM_RETURN_IF_ERROR(check_whole_bytes(x, 0));
  BANTAM_RETURN_IF_ERROR(check_list(p.starts, x.rank, "slice starts do not have the operand's rank"));
  BANTAM_RETURN_IF_ERROR(check_list(p.steps, x.rank, "slice steps do not have the operand's rank"));
  BANTAM_RETURN_IF_ERROR(check_list(p.sizes, x.rank, "slice sizes do not have the operand's rank"));
  for (int i = 0; i < x.rank; ++i)
    BANTAM_RETURN_IF_ERROR(check_range(p.starts[i], p.steps[i], p.sizes[i], x.dims[i]).at(i));
  return desc_from_list(x.type, p.sizes, &outputs[0]);
}

/// Elements from the operand's first to the slice's first.
std::int64_t first_element(const SliceParams& p, const TensorDesc& x, const TensorDesc& out) {
  if (out.elements() == 0) return 0;
  std::int64_t offset = 0;
  for (int i = 0; i < x.rank; ++i) offset += static_cast<std::int64_t>(p.starts[i]) * x.strides[i];
  return offset;
}

bool slice_view(const OpCall& call, TensorDesc* view, std::int64_t* offset) {
  const auto& p = call.as<SliceParams>();
  const TensorDesc& x = call.in(0);
  *view = call.out();
  for (int i = 0; i < x.rank; ++i) {
    if (p.steps[i] != 1 && p.sizes[i] > 1) return false;
    view->strides[i] = x.strides[i];
  }
  *offset = first_element(p, x, call.out());
  return finish_view(view);
}

Status run_slice(const Invocation& call) {
  const auto& p = call.as<SliceParams>();
  const TensorDesc& x = call.in(0);
  const TensorDesc& out = call.out();
  Box box;
  for (int i = 0; i < out.rank; ++i)
    box.add(out.dims[i], static_cast<std::int64_t>(x.strides[i]) * p.steps[i], out.strides[i]);
  const std::int64_t bytes = element_size(x.type);
  copy_box(box, bytes, advance(call.input<void>(0), first_element(p, x, out), bytes), call.outputs[0].data);
  return ok_status();
}

constexpr SliceParams kDefaults{};
constexpr ParamField kFields[] = {
    list_field("starts", offsetof(SliceParams, starts)),
    list_field("steps", offsetof(SliceParams, steps)),
    list_field("sizes", offsetof(SliceParams, sizes)),
};
constexpr KernelVariant kVariants[] = {{.name = "any__ref", .run = run_slice}};

}  // namespace

constexpr OpDef kSlice{.name = "slice",
                       .params_bytes = sizeof(SliceParams),
                       .default_params = &kDefaults,
                       .fields = kFields,
                       .infer = infer_slice,
                       .output_view = slice_view,
                       .variants = kVariants};

}  // namespace bantam::ops
