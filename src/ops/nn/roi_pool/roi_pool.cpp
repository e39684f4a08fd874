#include "ops/nn/roi_pool/roi_pool.h"

#include <algorithm>
#include <cmath>

#include "ops/common/operands.h"
#include "ops/common/params.h"
#include "ops/nn/roi_pool/kernels.h"

namespace bantam::ops {
namespace {

constexpr std::string_view kModeNames[] = {"average", "max", "rounded_max"};
static_assert(std::size(kModeNames) == static_cast<std::size_t>(RoiPoolMode::kCount));
constexpr std::int32_t kMaxSamples = 256;

Status check_params(const RoiPoolParams& p) {
  if (!is_enumerator(p.mode)) return failure(StatusCode::kInvalidModel, "unknown mode of pooling");
  if (!is_flag(p.half_pixel))
    return failure(StatusCode::kInvalidModel, "half_pixel is neither 0 nor 1", p.half_pixel, 1);
  if (p.samples < 0 || p.samples > kMaxSamples)
    return failure(StatusCode::kUnsupported, "number of samples per bin is out of range", p.samples, kMaxSamples);
  if (!std::isfinite(p.spatial_scale)) return failure(StatusCode::kInvalidModel, "spatial scale is not finite");
  return ok_status();
}

Status infer_roi_pool(const void* params, std::span<const Tensor> inputs, std::span<TensorDesc> outputs) {
  const auto& p = *static_cast<const RoiPoolParams*>(params);
  BANTAM_RETURN_IF_ERROR(check_params(p));
  const TensorDesc& x = desc_of(inputs, 0);
  const TensorDesc& regions = desc_of(inputs, 1);
  const TensorDesc& images = desc_of(inputs, 2);
  BANTAM_RETURN_IF_ERROR(check_type(x, ElementType::kF32, 0));
  BANTAM_RETURN_IF_ERROR(check_rank(x, 4, 0));
  BANTAM_RETURN_IF_ERROR(check_type(regions, ElementType::kF32, 1));
  BANTAM_RETURN_IF_ERROR(check_rank(regions, 2, 1));
  if (regions.dims[1] != 4)
    return failure(StatusCode::kInvalidModel, "a region has four coordinates", regions.dims[1], 4).at(1);
  BANTAM_RETURN_IF_ERROR(check_index_type(images, 2));
  BANTAM_RETURN_IF_ERROR(check_rank(images, 1, 2));
  if (images.dims[0] != regions.dims[0])
    return failure(StatusCode::kInvalidModel, "there is not one image per region", images.dims[0], regions.dims[0])
        .at(2);
  const std::int64_t dims[] = {regions.dims[0], p.output_h, p.output_w, x.dims[3]};
  BANTAM_RETURN_IF_ERROR(make_desc(x.type, dims, 4, &outputs[0]));
  if (x.elements() == 0 && outputs[0].elements() > 0)
    return failure(StatusCode::kInvalidModel, "an empty image has nothing to pool").at(0);
  return ok_status();
}

/// As many elements as the regions can cover together when each is a whole image, at most.
std::int64_t work(const OpCall& call) {
  const auto& p = call.as<RoiPoolParams>();
  const TensorDesc& x = call.in(0);
  const std::int64_t image = elements_between(x, 1, 3);
  const std::int64_t per_bin = std::max<std::int64_t>(p.output_h, 1) * std::max<std::int64_t>(p.output_w, 1);
  const std::int64_t points = p.samples > 0 ? std::int64_t{p.samples} * p.samples : image / per_bin + 1;
  return call.out().elements() * std::min(points, kMaxElements);
}

constexpr RoiPoolParams kDefaults{};
constexpr ParamField kFields[] = {
    enum_field("mode", offsetof(RoiPoolParams, mode), kModeNames),
    i32_field("output_h", offsetof(RoiPoolParams, output_h)),
    i32_field("output_w", offsetof(RoiPoolParams, output_w)),
    i32_field("samples", offsetof(RoiPoolParams, samples)),
    bool_field("half_pixel", offsetof(RoiPoolParams, half_pixel)),
    f32_field("spatial_scale", offsetof(RoiPoolParams, spatial_scale)),
};
constexpr KernelVariant kVariants[] = {{.name = "f32__ref", .supports = all_dense, .run = roi_pool::run_reference}};

}  // namespace

constexpr OpDef kRoiPool{.name = "roi_pool",
                         .params_bytes = sizeof(RoiPoolParams),
                         .default_params = &kDefaults,
                         .fields = kFields,
                         .min_inputs = 3,
                         .max_inputs = 3,
                         .infer = infer_roi_pool,
                         .work = work,
                         .variants = kVariants};

}  // namespace bantam::ops
