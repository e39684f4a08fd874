#include <algorithm>
#include <cmath>

#include "ops/common/interpolate.h"
#include "ops/common/operands.h"
#include "ops/common/parallel.h"
#include "ops/nn/deform_conv2d/kernels.h"

namespace bantam::ops::deform_conv2d {
namespace {

/// Writes the interpolated channels [first, last) at (row, column) of an image, times `factor`.
void sample(const TensorDesc& x, const float* image, float row, float column, std::int64_t first, std::int64_t last,
            float factor, float* to) {
  std::fill_n(to, last - first, 0.0F);
  const float v = bounded_coordinate(row, x.dims[1]);
  const float h = bounded_coordinate(column, x.dims[2]);
  const std::int32_t top = floor_index(v);
  const std::int32_t left = floor_index(h);
  const float below = v - std::floor(v);
  const float right = h - std::floor(h);
  for (int k = 0; k < 4; ++k) {
    const std::int32_t i = top + k / 2;
    const std::int32_t j = left + k % 2;
    if (i < 0 || i >= x.dims[1] || j < 0 || j >= x.dims[2]) continue;
    const float weight = (k / 2 == 0 ? 1.0F - below : below) * (k % 2 == 0 ? 1.0F - right : right) * factor;
    const float* from =
        image + static_cast<std::int64_t>(i) * x.strides[1] + static_cast<std::int64_t>(j) * x.strides[2] + first;
    for (std::int64_t c = 0; c < last - first; ++c) to[c] += weight * from[c];
  }
}

/// Output channel oc of a window.
float product(const Invocation& call, const float* samples, std::int64_t oc) {
  const TensorDesc& w = call.in(1);
  const std::int64_t taps = elements_between(w, 1, 3);
  const std::int64_t members = w.dims[3];
  const std::int64_t group = oc / (w.dims[0] / call.as<DeformConv2dParams>().groups);
  const float* weights = call.input<float>(1) + oc * taps * members;
  const float* from = samples + group * members;
  float sum = 0.0F;
  for (std::int64_t k = 0; k < taps; ++k, from += call.in(0).dims[3], weights += members)
    for (std::int64_t c = 0; c < members; ++c) sum += from[c] * weights[c];
  return call.has(3) ? sum + call.input<float>(3)[oc] : sum;
}

/// Bytes of one thread's samples.
std::int64_t sample_bytes(const TensorDesc& x, const TensorDesc& w) {
  const auto elements = checked_multiply(elements_between(w, 1, 3), x.dims[3]).value_or(kMaxElements);
  return align_up(std::min(elements, kMaxElements) * static_cast<std::int64_t>(sizeof(float)), kAlignment);
}

}  // namespace

void gather(const Invocation& call, std::int64_t position, float* samples) {
  const auto& p = call.as<DeformConv2dParams>();
  const TensorDesc& x = call.in(0);
  const TensorDesc& w = call.in(1);
  const TensorDesc& y = call.out();
  const std::int64_t taps = elements_between(w, 1, 3);
  const std::int64_t channels = x.dims[3];
  const std::int64_t members = channels / p.offset_groups;
  const std::int64_t row = position / y.dims[2] % y.dims[1] * p.stride_h - p.pad_top;
  const std::int64_t column = position % y.dims[2] * p.stride_w - p.pad_left;
  const std::int64_t per_image = elements_between(y, 1, 3);
  const float* image = call.input<float>(0) + position / per_image * x.strides[0];
  const float* offsets = call.input<float>(2) + position * call.in(2).dims[3];
  const float* mask = call.has(4) ? call.input<float>(4) + position * call.in(4).dims[3] : nullptr;
  for (std::int64_t g = 0; g < p.offset_groups; ++g)
    for (std::int64_t k = 0; k < taps; ++k) {
      const float* offset = offsets + (g * taps + k) * 2;
      const std::int64_t tap_row = row + k / w.dims[2] * p.dilation_h;
      const std::int64_t tap_column = column + k % w.dims[2] * p.dilation_w;
      sample(x, image, static_cast<float>(tap_row) + offset[0], static_cast<float>(tap_column) + offset[1], g * members,
             (g + 1) * members, mask != nullptr ? mask[g * taps + k] : 1.0F, samples + k * channels + g * members);
    }
}

Footprint footprint(const OpCall& call, int threads) {
  return {.scratch_bytes = sample_bytes(call.in(0), call.in(1)) * threads};
}

Status run_reference(const Invocation& call) {
  const TensorDesc& y = call.out();
  if (y.elements() == 0) return ok_status();
  const std::int64_t bytes = sample_bytes(call.in(0), call.in(1));
  parallel_slots(*call.threads, elements_between(y, 0, 3), 4,
                 [&](std::int64_t slot, std::int64_t begin, std::int64_t end) {
                   auto* samples = reinterpret_cast<float*>(call.scratch + slot * bytes);
                   for (std::int64_t i = begin; i < end; ++i) {
                     gather(call, i, samples);
                     float* to = call.output<float>() + i * y.dims[3];
                     for (std::int64_t oc = 0; oc < y.dims[3]; ++oc) to[oc] = product(call, samples, oc);
                   }
                 });
  return ok_status();
}

}  // namespace bantam::ops::deform_conv2d
