#include "ops/nn/resize_bilinear_q/resize_bilinear_q.h"

#include <algorithm>

#include "ops/common/operands.h"
#include "ops/common/params.h"
#include "ops/nn/resize_bilinear_q/kernels.h"

namespace bantam::ops {
namespace {

using P = ResizeBilinearQParams;

constexpr ParamField kFields[] = {
    i32_field("height", offsetof(P, height)),          i32_field("width", offsetof(P, width)),
    i32_field("scale_h", offsetof(P, scale_h)),        i32_field("scale_w", offsetof(P, scale_w)),
    bool_field("half_pixel", offsetof(P, half_pixel)),
};

constexpr P kDefaults{};

using resize_bilinear_q::kOne;
using resize_bilinear_q::position;

struct Sample {
  std::int64_t lower;
  std::int64_t upper;
  std::int64_t upper_weight;  ///< of kOne
};

Sample sample(std::int64_t i, std::int64_t scale, bool half_pixel, std::int64_t size) {
  const std::int64_t at = position(i, scale, half_pixel);
  const std::int64_t lower = std::max<std::int64_t>(at / kOne, 0);
  return {lower, std::min((at + kOne - 1) / kOne, size - 1), at - lower * kOne};
}

/// The last coordinate must still name a row of the operand, so that no weight grows beyond reason.
Status check_axis_scale(std::int32_t size, std::int32_t result, std::int32_t scale, bool half_pixel) {
  if (result < 0) return failure(StatusCode::kInvalidModel, "resize_bilinear_q: the size is negative", result, 0);
  if (scale < 0) return failure(StatusCode::kInvalidModel, "resize_bilinear_q: a scale is negative", scale, 0);
  if (result > 0 && position(result - 1, scale, half_pixel) / kOne > size - 1)
    return failure(StatusCode::kInvalidModel, "resize_bilinear_q: a scale leads outside the image", scale,
                   size * kOne / result);
  return ok_status();
}

Status infer_resize(const void* params, std::span<const Tensor> inputs, std::span<TensorDesc> outputs) {
  const auto& p = *static_cast<const P*>(params);
  const TensorDesc& x = desc_of(inputs, 0);
  BANTAM_RETURN_IF_ERROR(check_type(x, ElementType::kI8, 0));
  BANTAM_RETURN_IF_ERROR(check_rank(x, 4, 0));
  if (!is_flag(p.half_pixel))
    return failure(StatusCode::kInvalidModel, "resize_bilinear_q: half_pixel is not 0 or 1", p.half_pixel, 1);
  const bool half_pixel = p.half_pixel != 0;
  const std::int64_t dims[] = {x.dims[0], p.height, p.width, x.dims[3]};
  BANTAM_RETURN_IF_ERROR(make_desc(ElementType::kI8, dims, 4, &outputs[0]));
  if (outputs[0].elements() == 0) return ok_status();
  BANTAM_RETURN_IF_ERROR(check_axis_scale(x.dims[1], p.height, p.scale_h, half_pixel));
  return check_axis_scale(x.dims[2], p.width, p.scale_w, half_pixel);
}

std::int8_t rounded(std::int64_t sum) {
  constexpr std::int64_t kHalf = kOne * kOne / 2;
  return static_cast<std::int8_t>((sum + (sum > 0 ? kHalf : -kHalf)) / (kOne * kOne));
}

Status run_resize(const Invocation& call) {
  const auto& p = call.as<P>();
  if (call.out().elements() == 0) return ok_status();
  const TensorDesc& in = call.in(0);
  const bool half_pixel = p.half_pixel != 0;
  const std::int64_t channels = in.dims[3];
  auto* y = call.output<std::int8_t>();
  for (std::int64_t n = 0; n < in.dims[0]; ++n) {
    const auto* image = call.input<std::int8_t>(0) + n * in.dims[1] * in.dims[2] * channels;
    for (std::int64_t row = 0; row < p.height; ++row) {
      const Sample v = sample(row, p.scale_h, half_pixel, in.dims[1]);
      for (std::int64_t column = 0; column < p.width; ++column) {
        const Sample h = sample(column, p.scale_w, half_pixel, in.dims[2]);
        const auto* a = image + (v.lower * in.dims[2] + h.lower) * channels;
        const auto* b = image + (v.upper * in.dims[2] + h.lower) * channels;
        const auto* c = image + (v.lower * in.dims[2] + h.upper) * channels;
        const auto* d = image + (v.upper * in.dims[2] + h.upper) * channels;
        for (std::int64_t i = 0; i < channels; ++i)
          *y++ = rounded((a[i] * (kOne - v.upper_weight) + b[i] * v.upper_weight) * (kOne - h.upper_weight) +
                         (c[i] * (kOne - v.upper_weight) + d[i] * v.upper_weight) * h.upper_weight);
      }
    }
  }
  return ok_status();
}

constexpr KernelVariant kVariants[] = {
#if BANTAM_SIMD
    {.name = "i8__simd", .supports = all_dense, .run = resize_bilinear_q::run_channels},
#endif
    {.name = "i8__ref", .supports = all_dense, .run = run_resize},
};

}  // namespace

constexpr OpDef kResizeBilinearQ{
    .name = "resize_bilinear_q",
    .params_bytes = sizeof(P),
    .default_params = &kDefaults,
    .fields = kFields,
    .infer = infer_resize,
    .work = [](const OpCall& call) { return 4 * call.out().elements(); },
    .variants = kVariants,
};

}  // namespace bantam::ops
