// Interpolation along one axis: which elements around a coordinate count, and how much. Shared by operators that sample
// images (resize, grid_sample, deform_conv2d). Freestanding, pure, defined for all arguments.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace bantam::ops {

/// Weights of the elements floor - 1 .. floor + 2 around a coordinate floor + s by the cubic convolution kernel with
/// coefficient a (Keys, "Cubic Convolution Interpolation for Digital Image Processing", 1981).
inline void cubic_weights(float s, float a, float weights[4]) noexcept {
  const auto near = [a](float t) { return ((a + 2.0F) * t - (a + 3.0F)) * t * t + 1.0F; };
  const auto far = [a](float t) { return ((a * t - 5.0F * a) * t + 8.0F * a) * t - 4.0F * a; };
  weights[0] = far(s + 1.0F);
  weights[1] = near(s);
  weights[2] = near(1.0F - s);
  weights[3] = far(2.0F - s);
}

/// `coordinate` limited to a margin of four elements around [0, size); what is not a number counts as the lower end.
/// No element of the axis is within reach of an interpolation from the margin's ends.
inline float bounded_coordinate(float coordinate, std::int32_t size) noexcept {
  return coordinate >= -4.0F ? std::min(coordinate, static_cast<float>(size) + 4.0F) : -4.0F;
}

/// The element at or before a bounded coordinate. Sizes near 2^31 leave int32 by a little, which counts as their end.
inline std::int32_t floor_index(float bounded) noexcept {
  return static_cast<std::int32_t>(std::min(std::floor(bounded), 2147483000.0F));
}

}  // namespace bantam::ops
