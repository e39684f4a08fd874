#include "ops/nn/resize/sampling.h"

#include <algorithm>
#include <cmath>

#include "ops/common/interpolate.h"

namespace bantam::ops::resize {
namespace {

float nearest_coordinate(ResizeNearest mode, float x) {
  switch (mode) {
    // Not floor(x + 0.5), whose sum rounds up what lies just below a half. Coordinates below 0 are clamped to it.
    case ResizeNearest::kRoundPreferCeil: return std::round(x);
    case ResizeNearest::kFloor: return std::floor(x);
    case ResizeNearest::kCeil: return std::ceil(x);
    default: return std::ceil(x - 0.5F);
  }
}

/// Four neighbours weighted by the cubic convolution kernel with coefficient a.
void set_cubic(const ResizeParams& p, std::int32_t in, std::int32_t floor, float s, Taps* taps) {
  float weights[4];
  cubic_weights(s, p.cubic_coefficient, weights);
  taps->count = 4;
  float sum = 0;
  for (int i = 0; i < 4; ++i) {
    const std::int32_t index = floor - 1 + i;
    const bool inside = index >= 0 && index < in;
    taps->index[i] = std::clamp<std::int32_t>(index, 0, in - 1);
    taps->weight[i] = inside || p.exclude_outside == 0 ? weights[i] : 0.0F;
    sum += taps->weight[i];
  }
  if (p.exclude_outside != 0 && sum != 0.0F)
    for (float& weight : taps->weight) weight /= sum;
}

void set_linear(std::int32_t in, std::int32_t floor, float s, Taps* taps) {
  taps->count = 2;
  taps->index[0] = std::clamp<std::int32_t>(floor, 0, in - 1);
  taps->index[1] = std::clamp<std::int32_t>(floor + 1, 0, in - 1);
  taps->weight[0] = 1.0F - s;
  taps->weight[1] = s;
}

}  // namespace

float source_coordinate(const ResizeParams& p, std::int32_t in, int axis, std::int32_t position) noexcept {
  const std::int32_t out = p.sizes[axis];
  const float scale = p.scales[axis];
  // Lists that are empty are zero. What is taken off is whole and not larger, but for a clamped end: the difference is
  // exact.
  const auto x = static_cast<float>(std::int64_t{position} + p.first_output[axis]);
  const auto first = static_cast<float>(p.first_input[axis]);
  const auto size = static_cast<float>(in);
  const float half_pixel = (x + 0.5F) / scale - 0.5F - first;
  switch (p.coordinates) {
    case ResizeCoordinates::kAsymmetric: return x / scale - first;
    case ResizeCoordinates::kAlignCorners: {
      const float last = scale * size - 1.0F;
      return last > 0.0F ? x * (size - 1.0F) / last : 0.0F;
    }
    case ResizeCoordinates::kPytorchHalfPixel: return out > 1 ? half_pixel : 0.0F;
    case ResizeCoordinates::kHalfPixelSymmetric: {
      const float adjustment = static_cast<float>(out) / (scale * size);
      return 0.5F * size * (1.0F - adjustment) + (x + 0.5F) / scale - 0.5F;
    }
    case ResizeCoordinates::kCropAndResize: {
      const float start = p.roi_start[axis];
      const float end = p.roi_end[axis];
      if (out <= 1) return 0.5F * (start + end) * (size - 1.0F);
      return start * (size - 1.0F) + x * (end - start) * (size - 1.0F) / static_cast<float>(out - 1);
    }
    default: return half_pixel;
  }
}

bool is_resampled(const ResizeParams& p, const TensorDesc& x, int axis) noexcept {
  if (p.sizes[axis] != x.dims[axis] || p.scales[axis] != 1.0F) return true;
  if (p.first_output[axis] != p.first_input[axis]) return true;
  return p.coordinates == ResizeCoordinates::kCropAndResize && (p.roi_start[axis] != 0.0F || p.roi_end[axis] != 1.0F);
}

int last_resampled(const ResizeParams& p, const TensorDesc& x) noexcept {
  int axis = x.rank - 1;
  while (axis >= 0 && !is_resampled(p, x, axis)) --axis;
  return axis;
}

Taps taps_at(const ResizeParams& p, const TensorDesc& x, int axis, std::int32_t position) noexcept {
  Taps taps;
  const std::int32_t in = x.dims[axis];
  if (!is_resampled(p, x, axis)) {
    taps.index[0] = position;
    return taps;
  }
  const float coordinate = source_coordinate(p, in, axis, position);
  const auto size = static_cast<float>(in);
  taps.outside =
      p.coordinates == ResizeCoordinates::kCropAndResize && !(coordinate >= 0.0F && coordinate <= size - 1.0F);
  // A few elements beyond either end all taps are the same.
  const float bounded = bounded_coordinate(coordinate, in);
  if (p.mode == ResizeMode::kNearest) {
    taps.index[0] = static_cast<std::int32_t>(std::clamp(nearest_coordinate(p.nearest, bounded), 0.0F, size - 1.0F));
    taps.index[0] = std::min(taps.index[0], in - 1);  // float cannot hold every size
    return taps;
  }
  const std::int32_t floor = floor_index(bounded);
  const float s = bounded - std::floor(bounded);
  if (p.mode == ResizeMode::kCubic) {
    set_cubic(p, in, floor, s, &taps);
  } else {
    set_linear(in, floor, s, &taps);
  }
  return taps;
}

Cursor::Cursor(const ResizeParams& p, const TensorDesc& x, int last, std::int64_t position) noexcept
    : params_(p), x_(x), last_(last) {
  for (int i = last; i >= 0; --i) {
    at_[i] = static_cast<std::int32_t>(position % p.sizes[i]);
    position /= p.sizes[i];
    taps_[i] = taps_at(p, x, i, at_[i]);
  }
}

bool Cursor::outside() const noexcept {
  for (int i = 0; i <= last_; ++i)
    if (taps_[i].outside) return true;
  return false;
}

void Cursor::next() noexcept {
  for (int i = last_; i >= 0; --i) {
    if (++at_[i] == params_.sizes[i]) at_[i] = 0;
    taps_[i] = taps_at(params_, x_, i, at_[i]);
    if (at_[i] != 0) return;
  }
}

}  // namespace bantam::ops::resize
