#include "ops/nn/conv_transpose2d/geometry.h"

#include <algorithm>

#include "ops/common/operands.h"

namespace bantam::ops::conv_transpose2d {
namespace {

Status output_extent(const AxisParams& a, std::int64_t in, std::int64_t kernel, std::int64_t* out) {
  if (a.stride < 1) return failure(StatusCode::kInvalidModel, "stride must be positive", a.stride, 1);
  if (a.dilation < 1) return failure(StatusCode::kInvalidModel, "dilation must be positive", a.dilation, 1);
  if (kernel < 1) return failure(StatusCode::kInvalidModel, "kernel is empty", kernel, 1).at(1);
  if (a.pad_before < 0 || a.pad_after < 0 || a.output_pad < 0)
    return failure(StatusCode::kInvalidModel, "padding must not be negative",
                   std::min({a.pad_before, a.pad_after, a.output_pad}), 0);
  if (in == 0) {
    *out = 0;
    return ok_status();
  }
  // Two products of factors below 2^31: no overflow.
  *out = a.stride * (in - 1) + a.dilation * (kernel - 1) + 1 + a.output_pad - a.pad_before - a.pad_after;
  if (*out < 0) return failure(StatusCode::kInvalidModel, "padding removes more than there is", *out, 0);
  return ok_status();
}

}  // namespace

Status infer_image(const AxisParams& vertical, const AxisParams& horizontal, const TensorDesc& x, const TensorDesc& w,
                   ElementType type, TensorDesc* y) {
  std::int64_t dims[4] = {x.dims[0], 0, 0, w.dims[0]};
  BANTAM_RETURN_IF_ERROR(output_extent(vertical, x.dims[1], w.dims[1], &dims[1]));
  BANTAM_RETURN_IF_ERROR(output_extent(horizontal, x.dims[2], w.dims[2], &dims[2]));
  return make_desc(type, dims, 4, y);
}

}  // namespace bantam::ops::conv_transpose2d
