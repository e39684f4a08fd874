// The arithmetic by which TensorFlow Lite turns scales and zero points into integer parameters, to the bit.
//
// Source: TFLite's quantisation specification and the public behaviour of its reference kernels. Called by the lowering
// of quantised operators. Pure functions, re-entrant; every argument range is stated and everything outside it defined.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>

#include "bantam/tensor.h"

namespace bantam::import::tflite {

/// real = scale * (stored - zero_point) for a whole tensor; scale is finite and > 0.
struct Affine {
  float scale = 1.0F;
  std::int32_t zero_point = 0;

  bool operator==(const Affine&) const = default;
};

/// multiplier * 2^(shift - 31).
struct FixedMultiplier {
  std::int32_t multiplier = 0;
  std::int32_t shift = 0;

  /// True when the core operators can apply it (ops/fixed_point.h).
  bool is_applicable() const noexcept { return shift >= -31 && shift <= 30; }
};

/// The Q31 mantissa and exponent nearest to a finite `real`; below 2^-32 in magnitude it is zero.
FixedMultiplier quantize_multiplier(double real) noexcept;

/// The real factor from an accumulator of convolution or matrix products to the output, as the two formulas round it:
/// per-tensor weights of fully connected layers multiply the scales in single precision.
inline double convolution_scale(float input, float weights, float output) noexcept {
  return static_cast<double>(input) * static_cast<double>(weights) / static_cast<double>(output);
}
inline double fully_connected_scale(float input, float weights, float output) noexcept {
  return static_cast<double>(input * weights) / static_cast<double>(output);
}

struct IntegerRange {
  std::int32_t minimum = 0;
  std::int32_t maximum = 0;
};

/// The values of a quantised type; nothing for types other than i8, u8 and i16.
std::optional<IntegerRange> type_range(ElementType type) noexcept;

/// The stored values of real numbers [low, high], within the type's range. An absent bound is the type's own.
IntegerRange clamp_range(IntegerRange type, Affine output, std::optional<float> low,
                         std::optional<float> high) noexcept;

/// Parameters of ops::SoftmaxQParams. Nothing when beta * scale is not in (2^-26, 2^31): the fixed-point form is
/// undefined there.
struct SoftmaxScaling {
  FixedMultiplier input;
  std::int32_t diff_min = 0;
};
std::optional<SoftmaxScaling> softmax_scaling(float beta, float input_scale) noexcept;
/// The same for int16; diff_min is unused. Nothing when the factor is out of a multiplier's range.
std::optional<SoftmaxScaling> softmax_scaling16(float beta, float input_scale) noexcept;

/// Sums that become means: the multiplier divided by `count` > 0 as TFLite's integer mean does it.
FixedMultiplier divide_multiplier(FixedMultiplier sum, std::int64_t count) noexcept;

/// How far 1/16 of a real logarithm's range goes back to the stored differences: for ops::LogSoftmaxQParams.
FixedMultiplier log_softmax_reverse(FixedMultiplier input) noexcept;

/// add and sub bring both operands to twice the larger scale before they meet.
struct AddScaling {
  FixedMultiplier a;
  FixedMultiplier b;
  FixedMultiplier output;
};
AddScaling add_scaling(float a, float b, float output, int left_shift) noexcept;
/// sub computes the same factors in single precision.
AddScaling sub_scaling(float a, float b, float output, int left_shift) noexcept;

/// Padding of one image axis. `before` gets the smaller half of an odd total.
struct AxisPadding {
  std::int32_t before = 0;
  std::int32_t after = 0;
  std::int32_t out = 0;  ///< number of windows
};
/// SAME (or VALID) padding; nothing when an argument is out of range or no window fits.
std::optional<AxisPadding> axis_padding(bool same, std::int32_t image, std::int32_t filter, std::int32_t stride,
                                        std::int32_t dilation) noexcept;

/// A function of one 8-bit value: entry [bit pattern of x] is the bit pattern of y.
using Table8 = std::array<std::uint8_t, 256>;

/// y = round(f(scale (x - zero_point)) / scale') + zero_point' in single precision, saturated.
Table8 float_table(ElementType type, Affine input, Affine output, const std::function<float(float)>& function);

/// A function of one int16 value as ops::lookup_i16 interpolates it.
using Table16 = std::array<std::int16_t, 513>;

/// y = f(scale (x - zero_point)) / scale' at every 128th x, in single precision; entries lie off the function by half
/// of what the straight line to the next one misses in its middle.
Table16 float_table16(Affine input, float output_scale, const std::function<float(float)>& function);

/// Parameters of ops::ActivationI16Params. Nothing for scales beyond 2^19.
struct ActivationScaling {
  std::int32_t multiplier = 3;
  std::int32_t right_shift = 0;
};
/// `highest_power`: input scales 2^-12 to 2^(highest_power - 12) are taken as the powers of two that they nearly are.
std::optional<ActivationScaling> activation_scaling(float input_scale, int highest_power) noexcept;

/// The exponent of the power of two nearest to a positive number, and whether the number is close to it.
struct BinaryLogarithm {
  int rounded = 0;
  bool is_close = false;
};
BinaryLogarithm binary_logarithm(float x) noexcept;

// i8 tables with fixed-point definitions of their own.
Table8 logistic_table(Affine input);  ///< result scale 1/256, zero point -128
Table8 tanh_table(Affine input);      ///< result scale 1/128, zero point 0
/// Nothing when the scales give a multiplier that is_applicable() excludes.
std::optional<Table8> leaky_relu_table(ElementType type, Affine input, Affine output, float alpha);
std::optional<Table8> hard_swish_table(Affine input, Affine output);
std::optional<Table8> abs_table(Affine input, Affine output);
/// y = clamp(requantised x).
std::optional<Table8> relu_table(ElementType type, Affine input, Affine output, std::optional<float> low,
                                 std::optional<float> high);
/// u8 concatenation of unequal scales: float rescaling.
Table8 concatenation_table(Affine input, Affine output);

}  // namespace bantam::import::tflite
