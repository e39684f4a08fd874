#include "ops/nn/resize/resize.h"

#include <cmath>

#include "ops/common/operands.h"
#include "ops/common/params.h"
#include "ops/nn/resize/antialias.h"
#include "ops/nn/resize/fields.h"
#include "ops/nn/resize/kernels.h"
#include "ops/nn/resize/sampling.h"

namespace bantam::ops {
namespace {

/// Either empty or a place in a larger tensor.
Status check_first(const ResizeParams& p, const IntList& first, int rank) {
  if (first.size == 0) return ok_status();
  BANTAM_RETURN_IF_ERROR(check_list(first, rank, "places do not have the operand's rank"));
  const bool relative =
      p.coordinates == ResizeCoordinates::kHalfPixel || p.coordinates == ResizeCoordinates::kAsymmetric;
  if (!relative || p.antialias != 0)
    return failure(StatusCode::kInvalidModel, "parts are resized by half_pixel or asymmetric coordinates only");
  return ok_status();
}

Status check_params(const ResizeParams& p, int rank) {
  if (!is_enumerator(p.mode) || !is_enumerator(p.coordinates) || !is_enumerator(p.nearest))
    return failure(StatusCode::kInvalidModel, "unknown resize mode");
  if (!is_flag(p.exclude_outside) || !is_flag(p.antialias))
    return failure(StatusCode::kInvalidModel, "exclude_outside and antialias must be 0 or 1");
  BANTAM_RETURN_IF_ERROR(check_list(p.sizes, rank, "sizes do not have the operand's rank"));
  BANTAM_RETURN_IF_ERROR(check_first(p, p.first_output, rank));
  BANTAM_RETURN_IF_ERROR(check_first(p, p.first_input, rank));
  for (int i = 0; i < rank; ++i) {
    if (!(p.scales[i] > 0) || !std::isfinite(p.scales[i]))
      return failure(StatusCode::kInvalidModel, "scale is not a positive number").at(i);
    if (!std::isfinite(p.roi_start[i]) || !std::isfinite(p.roi_end[i]))
      return failure(StatusCode::kInvalidModel, "region of interest is not finite").at(i);
  }
  return ok_status();
}

Status infer_resize(const void* params, std::span<const Tensor> inputs, std::span<TensorDesc> outputs) {
  const auto& p = *static_cast<const ResizeParams*>(params);
  const TensorDesc& x = desc_of(inputs, 0);
  BANTAM_RETURN_IF_ERROR(infer_resampling(p, x, x.type, &outputs[0]));
  if (p.mode != ResizeMode::kNearest || p.coordinates == ResizeCoordinates::kCropAndResize) {
    BANTAM_RETURN_IF_ERROR(check_type(x, ElementType::kF32, 0));
  } else {
    BANTAM_RETURN_IF_ERROR(check_whole_bytes(x, 0));
  }
  return p.antialias != 0 ? resize::check_antialias(p, x) : ok_status();
}

Footprint footprint_reference(const OpCall& call, int threads) {
  const auto& p = call.as<ResizeParams>();
  return {.scratch_bytes = p.antialias != 0 ? resize::filter_bytes(p, call.in(0)) * threads : 0};
}

std::int64_t work(const OpCall& call) {
  const auto& p = call.as<ResizeParams>();
  if (p.mode == ResizeMode::kNearest) return 0;
  if (p.antialias != 0)
    return call.out().elements() * (resize::filter_bytes(p, call.in(0)) / static_cast<std::int64_t>(sizeof(float)));
  return resampling_work(p, call.in(0), call.out());
}

constexpr ResizeParams kDefaults{};
constexpr auto kFields = resize_fields(0);
constexpr KernelVariant kVariants[] = {
#if BANTAM_SIMD
    {.name = "any_rows__simd",
     .supports = resize::supports_rows,
     .footprint = resize::rows_footprint,
     .run = resize::run_rows,
     // The same products of at most 64 taps, in another order.
     .accuracy = {Accuracy::Kind::kRelative, 4e-6F}},
#endif
    {.name = "any__ref", .supports = all_dense, .footprint = footprint_reference, .run = resize::run_reference},
};

}  // namespace

Status infer_resampling(const ResizeParams& p, const TensorDesc& x, ElementType type, TensorDesc* result) {
  BANTAM_RETURN_IF_ERROR(check_params(p, x.rank));
  for (int i = 0; i < x.rank; ++i)
    if (x.dims[i] == 0 && p.sizes[i] > 0)
      return failure(StatusCode::kInvalidModel, "an empty axis has nothing to sample", p.sizes[i], 0).at(i);
  return desc_from_list(type, p.sizes, result);
}

std::int64_t resampling_work(const ResizeParams& p, const TensorDesc& x, const TensorDesc& result) {
  std::int64_t taps = 1;
  for (int i = 0; i < x.rank; ++i)
    if (resize::is_resampled(p, x, i)) taps *= p.mode == ResizeMode::kCubic ? 4 : 2;
  return result.elements() * taps;
}

constexpr OpDef kResize{.name = "resize",
                        .params_bytes = sizeof(ResizeParams),
                        .default_params = &kDefaults,
                        .fields = kFields,
                        .infer = infer_resize,
                        .work = work,
                        .variants = kVariants};

}  // namespace bantam::ops
