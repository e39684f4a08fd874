#include "ops/nn/grid_sample/grid_sample.h"

#include "ops/common/operands.h"
#include "ops/common/params.h"
#include "ops/nn/grid_sample/kernels.h"

namespace bantam::ops {
namespace {

constexpr std::string_view kModeNames[] = {"linear", "nearest", "cubic"};
constexpr std::string_view kPaddingNames[] = {"zeros", "border", "reflection"};
static_assert(std::size(kModeNames) == static_cast<std::size_t>(GridSampleMode::kCount));
static_assert(std::size(kPaddingNames) == static_cast<std::size_t>(GridSamplePadding::kCount));
constexpr int kMaxAxes = 3;

Status infer_grid_sample(const void* params, std::span<const Tensor> inputs, std::span<TensorDesc> outputs) {
  const auto& p = *static_cast<const GridSampleParams*>(params);
  if (!is_enumerator(p.mode) || !is_enumerator(p.padding))
    return failure(StatusCode::kInvalidModel, "unknown mode or padding");
  if (!is_flag(p.align_corners))
    return failure(StatusCode::kInvalidModel, "align_corners is neither 0 nor 1", p.align_corners, 1);
  const TensorDesc& x = desc_of(inputs, 0);
  const TensorDesc& grid = desc_of(inputs, 1);
  BANTAM_RETURN_IF_ERROR(check_type(x, ElementType::kF32, 0));
  BANTAM_RETURN_IF_ERROR(check_type(grid, ElementType::kF32, 1));
  if (x.rank < 3 || x.rank > 2 + kMaxAxes)
    return failure(StatusCode::kUnsupported, "image must have one to three axes", x.rank - 2, kMaxAxes).at(0);
  BANTAM_RETURN_IF_ERROR(check_rank(grid, x.rank, 1));
  if (grid.last(0) != x.rank - 2)
    return failure(StatusCode::kInvalidModel, "grid does not have one coordinate per axis", grid.last(0), x.rank - 2)
        .at(1);
  if (grid.dims[0] != x.dims[0])
    return failure(StatusCode::kInvalidModel, "grid has another batch size than the image", grid.dims[0], x.dims[0])
        .at(1);
  std::int64_t dims[kMaxRank] = {};
  for (int i = 0; i < x.rank - 1; ++i) dims[i] = grid.dims[i];
  dims[x.rank - 1] = x.last(0);
  BANTAM_RETURN_IF_ERROR(make_desc(x.type, dims, x.rank, &outputs[0]));
  if (x.elements() == 0 && outputs[0].elements() > 0)
    return failure(StatusCode::kInvalidModel, "an empty image has nothing to sample").at(0);
  return ok_status();
}

std::int64_t work(const OpCall& call) {
  const auto mode = call.as<GridSampleParams>().mode;
  std::int64_t taps = 1;
  for (int i = 0; i < call.in(0).rank - 2; ++i)
    taps *= mode == GridSampleMode::kNearest ? 1 : mode == GridSampleMode::kLinear ? 2 : 4;
  return call.out().elements() * taps;
}

constexpr GridSampleParams kDefaults{};
constexpr ParamField kFields[] = {
    enum_field("mode", offsetof(GridSampleParams, mode), kModeNames),
    enum_field("padding", offsetof(GridSampleParams, padding), kPaddingNames),
    bool_field("align_corners", offsetof(GridSampleParams, align_corners)),
};
constexpr KernelVariant kVariants[] = {
#if BANTAM_SIMD
    {.name = "f32_channels__simd", .supports = all_dense, .run = grid_sample::run_channels},
#endif
    {.name = "f32__ref", .supports = all_dense, .run = grid_sample::run_reference},
};

}  // namespace

constexpr OpDef kGridSample{.name = "grid_sample",
                            .params_bytes = sizeof(GridSampleParams),
                            .default_params = &kDefaults,
                            .fields = kFields,
                            .min_inputs = 2,
                            .max_inputs = 2,
                            .infer = infer_grid_sample,
                            .work = work,
                            .variants = kVariants};

}  // namespace bantam::ops
