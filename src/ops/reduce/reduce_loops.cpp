#include "ops/reduce/reduce_loops.h"

#include "base/shape.h"
#include "ops/common/params.h"
#include "ops/reduce/axis_loop.h"

namespace bantam::ops {
namespace {

Status check_axes(const IntList& axes, int rank) {
  if (axes.size < 0 || axes.size > kMaxRank)
    return failure(StatusCode::kInvalidModel, "reduce: wrong number of axes", axes.size, rank);
  for (int i = 0; i < axes.size; ++i) {
    const std::int32_t lowest = i > 0 ? axes[i - 1] + 1 : 0;
    if (axes[i] < lowest)
      return failure(StatusCode::kInvalidModel, "reduce: axes are negative or not ascending", axes[i], lowest);
    if (axes[i] >= rank)
      return failure(StatusCode::kInvalidModel, "reduce: axis is outside the tensor", axes[i], rank - 1);
  }
  return ok_status();
}

constexpr std::int64_t kTaskElements = 16384;  // some microseconds of work

unsigned axis_mask(const IntList& axes) {
  unsigned mask = 0;
  for (int i = 0; i < axes.size; ++i) mask |= 1U << axes[i];
  return mask;
}

/// The dimensions of x for which (mask has the bit) == reduced, with x's strides.
TensorDesc part_of(const TensorDesc& x, unsigned mask, bool reduced) {
  TensorDesc part;
  part.type = x.type;
  for (int i = 0; i < x.rank; ++i) {
    if (((mask >> i & 1U) != 0) != reduced) continue;
    part.dims[part.rank] = x.dims[i];
    part.strides[part.rank++] = x.strides[i];
  }
  return part;
}

}  // namespace

Status infer_reduction(const IntList& axes, std::int32_t keep_dims, const TensorDesc& x, ElementType type,
                       TensorDesc* result) {
  if (!is_flag(keep_dims)) return failure(StatusCode::kInvalidModel, "reduce: keep_dims is not 0 or 1", keep_dims, 1);
  BANTAM_RETURN_IF_ERROR(check_axes(axes, x.rank));
  *result = reduced_desc(x, axis_mask(axes), keep_dims != 0, type);
  // A dimension of 0 among the reduced ones no longer bounds the others together.
  return check_shape(*result);
}

ReduceLoops make_reduce_loops(const IntList& axes, std::int32_t keep_dims, const TensorDesc& x,
                              const TensorDesc& y) noexcept {
  const unsigned mask = axis_mask(axes);
  const TensorDesc kept_x = part_of(x, mask, false);
  const TensorDesc reduced_x = part_of(x, mask, true);
  // The result's own dimensions are the kept ones, among ones when they are all kept.
  const TensorDesc kept_y = keep_dims != 0 ? part_of(y, mask, false) : y;
  return {make_rows<2>(kept_x, {&kept_y, &kept_x}), make_rows<1>(reduced_x, {&reduced_x})};
}

std::int64_t reduce_grain(const ReduceLoops& loops) noexcept {
  return 1 + kTaskElements / (loops.reduced.elements > 0 ? loops.reduced.elements : 1);
}

bool shares_rows(const ReduceLoops& loops, int threads) noexcept {
  return threads > 1 && loops.is_matrix() && loops.reduced.elements * loops.kept.elements >= 2 * kTaskElements;
}

std::int64_t row_grain(const ReduceLoops& loops) noexcept {
  return 1 + kTaskElements / (loops.kept.elements > 0 ? loops.kept.elements : 1);
}

}  // namespace bantam::ops
