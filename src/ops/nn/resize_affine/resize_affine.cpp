#include "ops/nn/resize_affine/resize_affine.h"

#include "ops/common/byte_grids.h"
#include "ops/common/operands.h"
#include "ops/common/params.h"
#include "ops/nn/resize/fields.h"
#include "ops/nn/resize/sampling.h"
#include "ops/nn/resize_affine/kernels.h"

namespace bantam::ops {
namespace {

Status infer_resize_affine(const void* params, std::span<const Tensor> inputs, std::span<TensorDesc> outputs) {
  const auto& p = *static_cast<const ResizeAffineParams*>(params);
  const TensorDesc& x = desc_of(inputs, 0);
  BANTAM_RETURN_IF_ERROR(check_byte_grids(p, x));
  if (x.rank == 0) return failure(StatusCode::kInvalidModel, "a scalar has no axis to resample").at(0);
  if (p.resize.mode == ResizeMode::kNearest || p.resize.antialias != 0 ||
      p.resize.coordinates == ResizeCoordinates::kCropAndResize)
    return failure(StatusCode::kUnsupported, "there is no quantised form of this resampling");
  BANTAM_RETURN_IF_ERROR(infer_resampling(p.resize, x, p.to, &outputs[0]));
  const int axes = resize_affine::resampled_axes(p, x);
  if (axes > kMostResampledAxes)
    return failure(StatusCode::kUnsupported, "too many axes are resampled", axes, kMostResampledAxes);
  return ok_status();
}

std::int64_t work(const OpCall& call) {
  return resampling_work(call.as<ResizeAffineParams>().resize, call.in(0), call.out());
}

constexpr ResizeAffineParams kDefaults{};
constexpr auto kFields =
    join_fields(resize_fields(offsetof(ResizeAffineParams, resize)), byte_grid_fields<ResizeAffineParams>());
constexpr KernelVariant kVariants[] = {
#if BANTAM_SIMD
    {.name = "i8_rows__simd",
     .supports = resize_affine::supports_rows,
     .footprint = resize_affine::rows_footprint,
     .run = resize_affine::run_rows},
#endif
    {.name = "i8__ref", .supports = all_dense, .run = resize_affine::run_reference},
};

}  // namespace

namespace resize_affine {

int resampled_axes(const ResizeAffineParams& p, const TensorDesc& x) noexcept {
  int count = 0;
  for (int axis = 0; axis < x.rank; ++axis) count += resize::is_resampled(p.resize, x, axis) ? 1 : 0;
  return count;
}

}  // namespace resize_affine

constexpr OpDef kResizeAffine{.name = "resize_affine",
                              .params_bytes = sizeof(ResizeAffineParams),
                              .default_params = &kDefaults,
                              .fields = kFields,
                              .infer = infer_resize_affine,
                              .work = work,
                              .variants = kVariants};

}  // namespace bantam::ops
