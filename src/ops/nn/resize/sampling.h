// Where resize samples its operand: per axis and output coordinate at most four taps with weights. Shared by the
// kernels of resize. Freestanding, pure, defined for all parameters that infer accepted.
#pragma once

#include <cstdint>

#include "ops/nn/resize/resize.h"

namespace bantam::ops::resize {

struct Taps {
  int count = 1;
  bool outside = false;  ///< crop_and_resize: the coordinate lies outside; the result is the extrapolation value
  std::int32_t index[4] = {};
  float weight[4] = {1.0F, 0.0F, 0.0F, 0.0F};
};

/// The input coordinate, of an axis with `in` elements, for an output coordinate. In float, as the runtimes compute it
/// whose results models are judged by: which neighbour is nearest can hang on the last bit.
float source_coordinate(const ResizeParams& p, std::int32_t in, int axis, std::int32_t position) noexcept;

/// The taps of output coordinate `position` along `axis`.
Taps taps_at(const ResizeParams& p, const TensorDesc& x, int axis, std::int32_t position) noexcept;

/// True when the axis is resampled; others are copied.
bool is_resampled(const ResizeParams& p, const TensorDesc& x, int axis) noexcept;

/// The innermost resampled axis, or -1: everything behind it is one contiguous run.
int last_resampled(const ResizeParams& p, const TensorDesc& x) noexcept;

/// Walks the output coordinates of axes 0..last in row-major order and keeps the taps of each axis.
class Cursor {
 public:
  Cursor(const ResizeParams& p, const TensorDesc& x, int last, std::int64_t position) noexcept;

  const Taps& taps(int axis) const noexcept { return taps_[axis]; }
  bool outside() const noexcept;
  void next() noexcept;

 private:
  const ResizeParams& params_;
  const TensorDesc& x_;
  int last_;
  std::int32_t at_[kMaxRank] = {};
  Taps taps_[kMaxRank];
};

}  // namespace bantam::ops::resize
