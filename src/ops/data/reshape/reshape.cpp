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

/// Walks a shape from its innermost dimension outwards, in pieces of any size that divides what is left of a dimension.
class Pieces {
 public:
  explicit Pieces(const TensorDesc& desc) : desc_(desc), dim_(desc.rank) {}

  /// Elements left in the current dimension; 1 when there are no more.
  std::int64_t left() {
    while (left_ == 1 && dim_ > 0) {
      left_ = desc_.dims[--dim_];
      stride_ = desc_.strides[dim_];
    }
    return left_;
  }

  /// Takes `size` of them and returns their stride.
  std::int64_t take(std::int64_t size) {
    const std::int64_t stride = stride_;
    stride_ *= size;
    left_ /= size;
    return stride;
  }

 private:
  const TensorDesc& desc_;
  int dim_;
  std::int64_t left_ = 1;
  std::int64_t stride_ = 1;
};

/// The walk that both sides have in common, whatever gaps they have. False when dimensions cut across one another, as
/// in [2, 3] to [3, 2]. Neither side is empty.
bool common_walk(const TensorDesc& x, const TensorDesc& out, Box* box) {
  Pieces from(x);
  Pieces to(out);
  Box inner_first;
  while (from.left() > 1 || to.left() > 1) {
    const std::int64_t size = std::min(from.left(), to.left());
    if (size == 1 || from.left() % size != 0 || to.left() % size != 0) return false;
    const std::int64_t source = from.take(size);
    inner_first.add(size, source, to.take(size));
  }
  for (int i = inner_first.rank - 1; i >= 0; --i)
    box->add(inner_first.levels[i].size, inner_first.levels[i].source, inner_first.levels[i].destination);
  return true;
}

/// Where one side is dense, the other's shape is the walk.
bool has_dense_side(const TensorDesc& x, const TensorDesc& out) { return x.is_dense() || out.is_dense(); }

/// Where both sides have gaps and no common walk, graphs copy first. 4-bit elements are only moved as whole tensors.
bool supports_reshape(const OpCall& call) {
  const TensorDesc& x = call.in(0);
  const TensorDesc& out = call.out();
  if (both_dense(x, out)) return true;
  Box box;
  return element_size(x.type) != 0 && (has_dense_side(x, out) || x.elements() == 0 || common_walk(x, out, &box));
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

/// Walks the shape of the side that has gaps, the other side then being one unbroken sequence, or what they share.
void copy_with_gaps(const Invocation& call) {
  const TensorDesc& x = call.in(0);
  const TensorDesc& out = call.out();
  Box box;
  if (has_dense_side(x, out)) {
    TensorDesc dense = out.is_dense() ? x : out;
    dense.set_dense_strides();
    box = out.is_dense() ? make_box(x, x, dense) : make_box(out, dense, out);
  } else if (x.elements() == 0 || !common_walk(x, out, &box)) {
    return;
  }
  copy_box(*call.threads, box, element_size(out.type), call.inputs[0].data, call.outputs[0].data);
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
