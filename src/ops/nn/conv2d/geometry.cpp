#include "ops/nn/conv2d/geometry.h"

namespace bantam::ops {

Status check_grouped_weights(const TensorDesc& x, const TensorDesc& w, std::int32_t groups) {
  if (x.rank != 4) return failure(StatusCode::kInvalidModel, "operand must be [N,H,W,C]", x.rank, 4).at(0);
  if (w.rank != 4) return failure(StatusCode::kInvalidModel, "weights must be [OC,KH,KW,C/groups]", w.rank, 4).at(1);
  if (groups < 1) return failure(StatusCode::kInvalidModel, "groups must be positive", groups, 1);
  const std::int64_t channels = static_cast<std::int64_t>(w.dims[3]) * groups;
  if (channels != x.dims[3])
    return failure(StatusCode::kInvalidModel, "weights do not fit the operand's channels", channels, x.dims[3]).at(1);
  if (w.dims[0] % groups != 0)
    return failure(StatusCode::kInvalidModel, "output channels are not a multiple of groups", w.dims[0], groups).at(1);
  return ok_status();
}

Status infer_convolution(const Conv2dParams& params, std::span<const Tensor> inputs, std::int32_t kh, std::int32_t kw,
                         std::int32_t channels, TensorDesc* y) {
  LinearForm form{};
  BANTAM_RETURN_IF_ERROR(infer_linear_form(inputs, channels, params.activation, int8_range(params), &form));
  const TensorDesc& x = *inputs[0].desc;
  const ConvGeometry g = conv_geometry(params, x, x, kh, kw);
  std::int64_t dims[4] = {x.dims[0], 0, 0, channels};
  BANTAM_RETURN_IF_ERROR(window_positions(g.vertical, x.dims[1], false, &dims[1]).at(1));
  BANTAM_RETURN_IF_ERROR(window_positions(g.horizontal, x.dims[2], false, &dims[2]).at(2));
  return make_desc(x.type, dims, 4, y);
}

float quantize_image(const ImageShape& shape, const float* x, std::int32_t item, std::int8_t* q) noexcept {
  float largest = 0.0F;
  for (std::int32_t iy = 0; iy < shape.h; ++iy)
    for (std::int32_t ix = 0; ix < shape.w; ++ix)
      largest = largest_magnitude(x + shape.offset(item, iy, ix), shape.c, largest);
  const float scale = symmetric_scale(largest);
  for (std::int32_t iy = 0; iy < shape.h; ++iy)
    for (std::int32_t ix = 0; ix < shape.w; ++ix, q += shape.c)
      quantize_symmetric(x + shape.offset(item, iy, ix), shape.c, scale, q);
  return scale;
}

}  // namespace bantam::ops
