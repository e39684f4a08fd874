// Where grid_sample finds what a point is made of. Shared by its kernels. Freestanding, pure, defined for coordinates
// of any kind.
#pragma once

#include <cstdint>

#include "ops/nn/grid_sample/grid_sample.h"

namespace bantam::ops::grid_sample {

/// The channels of an element of an image, and their weight.
struct Sample {
  std::int64_t offset = 0;  ///< from the image's first number
  float weight = 0.0F;
};

inline constexpr int kMaxSamples = 64;  ///< of three axes

/// The samples of the point whose coordinates are at `at`, which their weighted sum gives, in this order; returns how
/// many there are. `x` is the operand that holds the images.
int samples_at(const GridSampleParams& p, const TensorDesc& x, const float* at, Sample* samples) noexcept;

}  // namespace bantam::ops::grid_sample
