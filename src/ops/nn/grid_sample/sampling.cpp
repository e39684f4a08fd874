#include "ops/nn/grid_sample/sampling.h"

#include <algorithm>
#include <cmath>

#include "ops/common/interpolate.h"

namespace bantam::ops::grid_sample {
namespace {

constexpr int kMaxTaps = 4;
constexpr float kCubicCoefficient = -0.75F;

/// The elements of one axis that a coordinate needs; those outside are left out.
struct Taps {
  int count = 0;
  std::int32_t index[kMaxTaps] = {};
  float weight[kMaxTaps] = {};

  void add(std::int32_t i, float w) noexcept {
    index[count] = i;
    weight[count++] = w;
  }
};

/// `x` reflected at both ends until it lies between them.
float reflect(float x, float low, float high) noexcept {
  const float range = high - low;
  if (!(range > 0.0F)) return low;
  // fmod is exact, so far coordinates keep their place.
  const float distance = std::fmod(std::abs(x - low), 2.0F * range);
  return distance <= range ? low + distance : high - (distance - range);
}

/// One axis of an image.
struct Axis {
  std::int32_t size = 0;
  float low = 0;   ///< where coordinates are reflected
  float high = 0;  ///< both ends inclusive

  Axis(std::int32_t elements, bool align_corners) noexcept
      : size(elements),
        low(align_corners ? 0.0F : -0.5F),
        high(align_corners ? static_cast<float>(elements - 1) : static_cast<float>(elements) - 0.5F) {}

  float denormalised(float coordinate, bool align_corners) const noexcept {
    const auto length = static_cast<float>(size);
    return align_corners ? (coordinate + 1.0F) / 2.0F * (length - 1.0F) : ((coordinate + 1.0F) * length - 1.0F) / 2.0F;
  }

  float inside(float x, GridSamplePadding padding) const noexcept {
    if (x >= low && x <= high) return x;
    if (padding == GridSamplePadding::kReflection && std::isfinite(x)) return reflect(x, low, high);
    if (padding == GridSamplePadding::kBorder) return std::clamp(x, 0.0F, static_cast<float>(size - 1));
    return x;
  }

  /// Adds element i, or what stands for it outside the image.
  void add(std::int32_t i, float weight, GridSamplePadding padding, Taps& taps) const noexcept {
    if (i >= 0 && i < size) return taps.add(i, weight);
    if (padding == GridSamplePadding::kBorder) return taps.add(std::clamp<std::int32_t>(i, 0, size - 1), weight);
    if (padding != GridSamplePadding::kReflection) return;
    const float reflected = reflect(static_cast<float>(i), low, high);
    taps.add(std::clamp<std::int32_t>(static_cast<std::int32_t>(reflected), 0, size - 1), weight);
  }
};

Taps taps_at(const GridSampleParams& p, const Axis& axis, float coordinate) noexcept {
  Taps taps;
  float x = axis.denormalised(coordinate, p.align_corners != 0);
  if (p.mode == GridSampleMode::kNearest) x = std::nearbyint(x);
  // Behind a border each cubic tap is clamped by itself: the nearest elements still mix.
  const bool each_tap = p.mode == GridSampleMode::kCubic && p.padding == GridSamplePadding::kBorder;
  if (!each_tap) x = axis.inside(x, p.padding);
  x = bounded_coordinate(x, axis.size);
  const std::int32_t floor = floor_index(x);
  const float s = x - std::floor(x);
  if (p.mode == GridSampleMode::kNearest) {
    axis.add(floor_index(std::nearbyint(x)), 1.0F, p.padding, taps);
  } else if (p.mode == GridSampleMode::kLinear) {
    axis.add(floor, 1.0F - s, p.padding, taps);
    axis.add(floor + 1, s, p.padding, taps);
  } else {
    float weights[kMaxTaps];
    cubic_weights(s, kCubicCoefficient, weights);
    for (int i = 0; i < kMaxTaps; ++i) axis.add(floor - 1 + i, weights[i], p.padding, taps);
  }
  return taps;
}

/// Every sample becomes those of the taps of one more axis, in place from the last to the first.
int split(const Taps& taps, std::int64_t stride, int count, Sample* samples) noexcept {
  for (int s = count - 1; s >= 0; --s) {
    const Sample whole = samples[s];
    for (int t = taps.count - 1; t >= 0; --t)
      samples[s * taps.count + t] = {whole.offset + taps.index[t] * stride, whole.weight * taps.weight[t]};
  }
  return count * taps.count;
}

}  // namespace

int samples_at(const GridSampleParams& p, const TensorDesc& x, const float* at, Sample* samples) noexcept {
  const int axes = x.rank - 2;
  samples[0] = {0, 1.0F};
  int count = 1;
  for (int axis = 0; axis < axes; ++axis) {
    const Taps taps = taps_at(p, Axis(x.dims[1 + axis], p.align_corners != 0), at[axes - 1 - axis]);
    count = split(taps, x.strides[1 + axis], count, samples);
  }
  return count;
}

}  // namespace bantam::ops::grid_sample
