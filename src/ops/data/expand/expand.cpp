#include "ops/data/expand/expand.h"

#include "ops/common/box.h"
#include "ops/common/operands.h"
#include "ops/common/params.h"
#include "ops/common/strides.h"

namespace bantam::ops {
namespace {

Status infer_expand(const void* params, std::span<const Tensor> inputs, std::span<TensorDesc> outputs) {
  const IntList& shape = static_cast<const ExpandParams*>(params)->shape;
  const TensorDesc& x = desc_of(inputs, 0);
  BANTAM_RETURN_IF_ERROR(check_whole_bytes(x, 0));
  BANTAM_RETURN_IF_ERROR(desc_from_list(x.type, shape, &outputs[0]));
  const int added = shape.size - x.rank;
  if (added < 0) return failure(StatusCode::kInvalidModel, "expand lowers the rank", shape.size, x.rank);
  for (int i = 0; i < x.rank; ++i)
    if (x.dims[i] != 1 && x.dims[i] != shape[added + i])
      return failure(StatusCode::kInvalidModel, "operand does not broadcast to the shape", x.dims[i], shape[added + i])
          .at(i);
  return ok_status();
}

Status run_expand(const Invocation& call) {
  const TensorDesc& out = call.out();
  Box box;
  for (int i = 0; i < out.rank; ++i) box.add(out.dims[i], broadcast_stride(call.in(0), out.rank, i), out.strides[i]);
  copy_box(*call.threads, box, element_size(out.type), call.inputs[0].data, call.outputs[0].data);
  return ok_status();
}

constexpr ExpandParams kDefaults{};
constexpr ParamField kFields[] = {list_field("shape", offsetof(ExpandParams, shape))};
constexpr KernelVariant kVariants[] = {{.name = "any__ref", .run = run_expand}};

}  // namespace

constexpr OpDef kExpand{.name = "expand",
                        .params_bytes = sizeof(ExpandParams),
                        .default_params = &kDefaults,
                        .fields = kFields,
                        .infer = infer_expand,
                        .variants = kVariants};

}  // namespace bantam::ops
