// Hard-swish whose result is quantised: x clamp(x / 6 + 1 / 2, 0, 1) / step in one go, without a division.
// Freestanding.
#pragma once

namespace bantam::ops {

/// Results are the same bits wherever they are computed by these operations, each of which rounds: SIMD kernels do so
/// too. Like the f32 function with a division behind it, they are off by a few 2^-24 of themselves, or of hard_swish(3)
/// / step if that is more.
struct HardSwishSteps {
  static constexpr float kLeast = -3.0F;  ///< whose result, and that of lesser numbers, is exactly 0
  static constexpr float kLinear = 3.0F;  ///< from which on the factor stays the same

  float slope;
  float offset;  ///< of slope * x + offset; exactly -kLeast * slope, rounded

  /// Are all numbers here normal ones?
  static constexpr bool serves(float step) noexcept { return step >= 0x1p-100F && step <= 0x1p100F; }

  explicit constexpr HardSwishSteps(float step) noexcept : slope(1.0F / (6.0F * step)), offset(3.0F * slope) {}

  /// hard_swish(x) / step; 0 for NaN.
  constexpr float operator()(float x) const noexcept {
    const float limited = x > kLeast ? x : kLeast;
    const float product = (limited < kLinear ? limited : kLinear) * slope;
    return limited * (product + offset);
  }
};

}  // namespace bantam::ops
