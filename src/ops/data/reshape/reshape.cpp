#include "ops/data/reshape/reshape.h"

#include <algorithm>
#include <cstring>

#include "ops/common/box.h"
#include "ops/common/operands.h"
#include "ops/common/params.h"

namespace bantam::ops {
namespace {

Status infer_reshape(const void* params, std::span<const Tensor> inputs, std::span<TensorDesc> outputs) {
  const TensorDesc& x = desc_of(inputs, 0);
  BANTAM_RETURN_IF_ERROR(desc_from_list(x.type, static_cast<const ReshapeParams*>(params)->shape, &outputs[0]));
  if (outputs[0].elements() != x.elements())
    return failure(StatusCode::kInvalidModel, "reshape changes the number of elements", outputs[0].elements(),
                   x.elements());
  return ok_status();
}

/// A view exists when every new dimension lies within one run of the operand, a run being neighbouring dimensions
/// without gaps between them. A dense operand is a single run.
bool reshape_view(const OpCall& call, TensorDesc* view, std::int64_t* offset) {
  const TensorDesc& x = call.in(0);
  *view = call.out();
  *offset = 0;
  if (x.elements() == 0) return true;
  int dim = x.rank - 1;   // next dimension of the operand, from the innermost
  std::int64_t left = 1;  // elements of the current run not yet handed out
  std::int64_t stride = 1;
  const auto next_run = [&] {
    while (dim >= 0 && x.dims[dim] == 1) --dim;
    if (dim < 0) return;
    stride = x.strides[dim];
    std::int64_t end = stride;
    for (; dim >= 0 && (x.dims[dim] == 1 || x.strides[dim] == end); --dim) {
      if (x.dims[dim] == 1) continue;
      left *= x.dims[dim];
      end *= x.dims[dim];
    }
  };
  for (int i = view->rank - 1; i >= 0; --i) {
    const std::int32_t size = view->dims[i];
    if (size == 1) continue;
    if (left == 1) next_run();
    if (left % size != 0) return false;
    view->strides[i] = static_cast<std::int32_t>(stride);
    stride *= size;
    left /= size;
  }
  return finish_view(view);
}

bool both_dense(const TensorDesc& x, const TensorDesc& out) { return x.is_dense() && out.is_dense(); }

/// Where both sides have gaps there is no common walk; graphs with such a reshape copy first. 4-bit elements are only
/// moved as whole tensors.
bool supports_reshape(const OpCall& call) {
  const TensorDesc& x = call.in(0);
  const TensorDesc& out = call.out();
  return both_dense(x, out) || (element_size(x.type) != 0 && (x.is_dense() || out.is_dense()));
}

Footprint reshape_footprint(const OpCall& call, int /*threads*/) {
  Footprint footprint;
  footprint.overwrites[0] = both_dense(call.in(0), call.out()) ? 1 : 0;
  return footprint;
}

void copy_dense(const Invocation& call) {
  const auto bytes = static_cast<std::size_t>(call.out().bytes());
  if (call.outputs[0].data != call.inputs[0].data && bytes != 0)
    std::memcpy(call.outputs[0].data, call.inputs[0].data, bytes);
}

/// Walks the shape of the side that has gaps; the other side is then one unbroken sequence.
void copy_with_gaps(const Invocation& call) {
  const bool dense_output = call.out().is_dense();
  TensorDesc dense = dense_output ? call.in(0) : call.out();
  dense.set_dense_strides();
  const Box box = dense_output ? make_box(call.in(0), call.in(0), dense) : make_box(call.out(), dense, call.out());
  copy_box(box, element_size(call.out().type), call.inputs[0].data, call.outputs[0].data);
}

Status run_reshape(const Invocation& call) {
  if (both_dense(call.in(0), call.out())) {
    copy_dense(call);
  } else {
    copy_with_gaps(call);
  }
  return ok_status();
}

constexpr ReshapeParams kDefaults{};
constexpr ParamField kFields[] = {list_field("shape", offsetof(ReshapeParams, shape))};
constexpr KernelVariant kVariants[] = {
    {.name = "any__ref", .supports = supports_reshape, .footprint = reshape_footprint, .run = run_reshape}};

}  // namespace

constexpr OpDef kReshape{.name = "reshape",
                         .params_bytes = sizeof(ReshapeParams),
                         .default_params = &kDefaults,
                         .fields = kFields,
                         .infer = infer_reshape,
                         .output_view = reshape_view,
                         .variants = kVariants};

}  // namespace bantam::ops
