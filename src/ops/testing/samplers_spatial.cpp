// How operators on images that sample, pool and fold are drawn.
#include <algorithm>

#include "ops/nn/col2im/col2im.h"
#include "ops/nn/deform_conv2d/deform_conv2d.h"
#include "ops/nn/det/det.h"
#include "ops/nn/grid_sample/grid_sample.h"
#include "ops/nn/max_pool_indices/max_pool_indices.h"
#include "ops/nn/roi_pool/roi_pool.h"
#include "ops/testing/samplers.h"
#include "ops/vision/non_max_suppression/non_max_suppression.h"

namespace bantam::ops::testing {
namespace {

constexpr ElementType kF32 = ElementType::kF32;
constexpr ElementType kF64 = ElementType::kF64;
constexpr ElementType kI32 = ElementType::kI32;

/// Lists for windows over `axes` spatial axes of an image whose sizes begin at dims[first].
template <typename P>
void spatial_lists(Sampling& s, P& p, const TensorDesc& x, int first, int axes) {
  for (IntList* list : {&p.kernel, &p.strides, &p.dilations, &p.before, &p.after}) list->size = axes;
  for (int i = 0; i < axes; ++i) {
    p.kernel.v[i] = s.pick(1, std::max(1, std::min(3, x.dims[first + i])));
    p.strides.v[i] = s.pick(1, 2);
    p.dilations.v[i] = s.one_in(4) ? 2 : 1;
    p.before.v[i] = s.pick(0, 1);
    p.after.v[i] = s.pick(0, 1);
  }
}

void max_pool_indices(Sampling& s) {
  const TensorDesc x = s.any(3, 5);
  MaxPoolIndicesParams p{.ceil_mode = s.pick(0, 1), .column_major = s.pick(0, 1)};
  spatial_lists(s, p, x, 2, x.rank - 2);
  s.set_params(p);
}

void col2im(Sampling& s) {
  const int axes = s.pick(1, 3);
  Col2ImParams p;
  for (IntList* list : {&p.image, &p.block, &p.strides, &p.dilations, &p.before, &p.after}) list->size = axes;
  std::int64_t block = 1;
  std::int64_t positions = 1;
  for (int i = 0; i < axes; ++i) {
    p.image.v[i] = s.pick(3, 6);
    p.block.v[i] = s.pick(1, 3);
    p.strides.v[i] = s.pick(1, 2);
    p.dilations.v[i] = 1;
    p.before.v[i] = s.pick(0, 1);
    p.after.v[i] = s.pick(0, 1);
    block *= p.block.v[i];
    positions *= (p.image.v[i] + p.before.v[i] + p.after.v[i] - p.block.v[i]) / p.strides.v[i] + 1;
  }
  s.like(dense_desc(s.type({kF32, kF64}), {s.pick(1, 2), s.pick(1, 3) * block, positions}));
  s.set_params(p);
}

void deform_conv2d(Sampling& s) {
  const TensorDesc x = s.any(s.type({kF32}), 4, 4);
  DeformConv2dParams p;
  p.stride_h = s.pick(1, 2);
  p.stride_w = s.pick(1, 2);
  p.pad_top = s.pick(0, 2);
  p.pad_left = s.pick(0, 2);
  p.pad_bottom = s.pick(0, 2);
  p.pad_right = s.pick(0, 2);
  const std::int64_t channels = x.dims[3];
  p.groups = channels % 2 == 0 && s.one_in(3) ? 2 : 1;
  p.offset_groups = channels % 2 == 0 && s.one_in(3) ? 2 : 1;
  const std::int64_t kh = s.pick(1, 3);
  const std::int64_t kw = s.pick(1, 3);
  const std::int64_t oh = (x.dims[1] + p.pad_top + p.pad_bottom - p.dilation_h * (kh - 1) - 1) / p.stride_h + 1;
  const std::int64_t ow = (x.dims[2] + p.pad_left + p.pad_right - p.dilation_w * (kw - 1) - 1) / p.stride_w + 1;
  const std::int64_t out = p.groups * s.pick(1, 4);
  s.constant(dense_desc(kF32, {out, kh, kw, channels / p.groups}), {-1.0, 1.0});
  if (oh > 0 && ow > 0) s.like(dense_desc(kF32, {x.dims[0], oh, ow, p.offset_groups * kh * kw * 2}));
  if (s.one_in(2)) s.like(dense_desc(kF32, {out}));
  s.set_params(p);
}

void det(Sampling& s) {
  const std::int64_t size = s.pick(0, 5);
  s.like(dense_desc(s.type({kF32, kF64}), {s.pick(1, 3), size, size}));
}

void grid_sample(Sampling& s) {
  const TensorDesc x = s.any(s.type({kF32}), 3, 5);
  std::vector<std::int64_t> dims = {x.dims[0]};
  for (int i = 0; i < x.rank - 2; ++i) dims.push_back(s.pick(1, 4));
  dims.push_back(x.rank - 2);
  s.like(dense_desc(kF32, dims), {-1.2, 1.2});
  s.set_params(GridSampleParams{s.enumerator<GridSampleMode>(), s.enumerator<GridSamplePadding>(), s.pick(0, 1)});
}

void non_max_suppression(Sampling& s) {
  const TensorDesc boxes = dense_desc(kF32, {s.pick(1, 2), s.pick(0, 6), 4});
  const std::int64_t classes = s.pick(1, 3);
  s.like(boxes, {0.0, 1.0});
  s.like(dense_desc(kF32, {boxes.dims[0], classes, boxes.dims[1]}), {0.0, 1.0});
  s.fresh(dense_desc(ElementType::kI64, {1}), {0.0, 4.0});
  if (s.one_in(2)) s.fresh(dense_desc(kF32, {1}), {0.0, 1.0});
  const auto most = boxes.dims[0] * classes * boxes.dims[1];
  s.set_params(NonMaxSuppressionParams{s.pick(0, 1), static_cast<std::int32_t>(most)});
}

void roi_pool(Sampling& s) {
  const TensorDesc x = s.any(s.type({kF32}), 4, 4);
  const std::int64_t regions = s.pick(0, 4);
  s.fresh(dense_desc(kF32, {regions, 4}), {0.0, 6.0});
  s.fresh(dense_desc(s.one_of({kI32, ElementType::kI64}), {regions}), {0.0, x.dims[0] - 1.0});
  s.set_params(RoiPoolParams{s.enumerator<RoiPoolMode>(), s.pick(1, 3), s.pick(1, 3), s.pick(0, 2), s.pick(0, 1),
                             s.one_of({1.0F, 0.5F})});
}

constexpr SamplerRow kRows[] = {
    {&kCol2im, col2im},          {&kDeformConv2d, deform_conv2d},      {&kDet, det},
    {&kGridSample, grid_sample}, {&kMaxPoolIndices, max_pool_indices}, {&kNonMaxSuppression, non_max_suppression},
    {&kRoiPool, roi_pool}};

}  // namespace

std::span<const SamplerRow> spatial_samplers() { return kRows; }

}  // namespace bantam::ops::testing
