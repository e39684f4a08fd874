#include "ops/data/transpose/transpose.h"

#include "ops/common/operands.h"
#include "ops/common/params.h"
#include "ops/data/transpose/kernels.h"

namespace bantam::ops {
namespace {

Status infer_transpose(const void* params, std::span<const Tensor> inputs, std::span<TensorDesc> outputs) {
  const IntList& perm = static_cast<const TransposeParams*>(params)->perm;
  const TensorDesc& x = desc_of(inputs, 0);
  BANTAM_RETURN_IF_ERROR(check_whole_bytes(x, 0));
  BANTAM_RETURN_IF_ERROR(check_list(perm, x.rank, "permutation does not have the operand's rank"));
  std::int64_t dims[kMaxRank] = {};
  unsigned seen = 0;
  for (int i = 0; i < x.rank; ++i) {
    BANTAM_RETURN_IF_ERROR(check_axis(perm[i], x.rank));
    const unsigned bit = 1U << perm[i];
    if ((seen & bit) != 0) return failure(StatusCode::kInvalidModel, "permutation names an axis twice", perm[i], i);
    seen |= bit;
    dims[i] = x.dims[perm[i]];
  }
  return make_desc(x.type, dims, x.rank, &outputs[0]);
}

/// The operand's strides in the order of the result's dimensions.
TensorDesc permuted_operand(const TransposeParams& params, const TensorDesc& x, const TensorDesc& out) {
  TensorDesc permuted = out;
  for (int i = 0; i < out.rank; ++i) permuted.strides[i] = x.strides[params.perm[i]];
  return permuted;
}

bool transpose_view(const OpCall& call, TensorDesc* view, std::int64_t* offset) {
  const auto& params = call.as<TransposeParams>();
  const TensorDesc& x = call.in(0);
  *offset = 0;
  *view = permuted_operand(params, x, call.out());
  int last = -1;  // the axes that are longer than 1 must stay in order
  for (int i = 0; i < x.rank; ++i) {
    const int axis = params.perm[i];
    if (x.dims[axis] == 1) continue;
    if (axis < last) return false;
    last = axis;
  }
  return finish_view(view);
}

Status run_reference(const Invocation& call) {
  copy_box(transpose::make_moves(call.as<TransposeParams>(), call.in(0), call.out()), element_size(call.out().type),
           call.inputs[0].data, call.outputs[0].data);
  return ok_status();
}

constexpr TransposeParams kDefaults{};
constexpr ParamField kFields[] = {list_field("perm", offsetof(TransposeParams, perm))};
constexpr KernelVariant kVariants[] = {
#if BANTAM_SIMD
    {.name = "any__simd", .supports = transpose::supports_tiles, .run = transpose::run_tiles},
#endif
    {.name = "any__ref", .run = run_reference},
};

}  // namespace

Box transpose::make_moves(const TransposeParams& p, const TensorDesc& x, const TensorDesc& out) noexcept {
  return make_box(out, permuted_operand(p, x, out), out);
}

constexpr OpDef kTranspose{.name = "transpose",
                           .params_bytes = sizeof(TransposeParams),
                           .default_params = &kDefaults,
                           .fields = kFields,
                           .infer = infer_transpose,
                           .output_view = transpose_view,
                           .variants = kVariants};

}  // namespace bantam::ops
