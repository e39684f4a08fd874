#include "ops/data/copy/copy.h"

#include "ops/common/box.h"
#include "ops/common/operands.h"

namespace bantam::ops {
namespace {

Status infer_copy(const void* /*params*/, std::span<const Tensor> inputs, std::span<TensorDesc> outputs) {
  const TensorDesc& x = desc_of(inputs, 0);
  BANTAM_RETURN_IF_ERROR(check_whole_bytes(x, 0));
  outputs[0] = x;
  outputs[0].set_dense_strides();
  return ok_status();
}

Status run_copy(const Invocation& call) {
  copy_box(*call.threads, make_box(call.out(), call.in(0), call.out()), element_size(call.out().type),
           call.inputs[0].data, call.outputs[0].data);
  return ok_status();
}

constexpr KernelVariant kVariants[] = {{.name = "any__ref", .run = run_copy}};

}  // namespace

constexpr OpDef kCopy{.name = "copy", .infer = infer_copy, .variants = kVariants};

}  // namespace bantam::ops
