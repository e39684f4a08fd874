// The forms of the operators that multiply by weights (conv2d, depthwise_conv2d, matmul and their like): f32, int8,
// int16 and hybrid, told apart by element type. Operands 0 x, 1 weights, 2 bias, 3 and 4 scales; see conv2d.h for the
// arithmetic. Freestanding.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>

#include "bantam/status.h"
#include "bantam/tensor.h"
#include "ops/elementwise/unary/function.h"
#include "ops/fixed_point.h"
#include "ops/op.h"

namespace bantam::ops {

enum class LinearForm : std::uint8_t { kFloat, kInt8, kInt16, kHybrid };

/// The form of operands that infer accepted.
constexpr LinearForm linear_form(const TensorDesc& x, const TensorDesc& weights) noexcept {
  if (x.type == ElementType::kI8) return LinearForm::kInt8;
  if (x.type == ElementType::kI16) return LinearForm::kInt16;
  return weights.type == ElementType::kI8 ? LinearForm::kHybrid : LinearForm::kFloat;
}

/// The parameters of the integer forms that are the same in every operator. In the int16 form zero points are 0.
struct Int8Range {
  std::int32_t input_zero_point = 0;
  std::int32_t weights_zero_point = 0;
  std::int32_t output_zero_point = 0;
  std::int32_t minimum = -128;
  std::int32_t maximum = 127;
};

/// Checks the element types of all operands, the shapes of operands 2 to 4 for `channels` output channels, and the
/// parameters that belong to the form.
Status infer_linear_form(std::span<const Tensor> inputs, std::int32_t channels, const Activation& activation,
                         const Int8Range& range, LinearForm* form);

/// Operand i, or null when it is absent.
template <typename T>
const T* optional_input(const Invocation& call, int i) noexcept {
  return call.has(i) ? call.input<T>(i) : nullptr;
}

/// How the int8 form turns an accumulator into a result.
struct Requantizer {
  const std::int32_t* bias = nullptr;  ///< may be null
  const std::int32_t* multiplier = nullptr;
  const std::int32_t* shift = nullptr;
  std::int32_t zero_point = 0;
  std::int32_t minimum = -128;
  std::int32_t maximum = 127;

  /// The same for a group of channels that begins at `first`.
  Requantizer from_channel(std::int64_t first) const noexcept {
    Requantizer result = *this;
    if (bias != nullptr) result.bias += first;
    result.multiplier += first;
    result.shift += first;
    return result;
  }

  /// The result for an accumulator without bias. Sums wrap; shifts outside [-31, 30] count as the nearest bound.
  std::int8_t operator()(std::uint32_t accumulator, std::int32_t channel) const noexcept {
    if (bias != nullptr) accumulator += static_cast<std::uint32_t>(bias[channel]);
    const std::int32_t scaled = multiply_by_quantized_multiplier(
        static_cast<std::int32_t>(accumulator), multiplier[channel], std::clamp<std::int32_t>(shift[channel], -31, 30));
    // Clamping before the zero point is added is the same, and cannot overflow.
    return static_cast<std::int8_t>(std::clamp(scaled, minimum - zero_point, maximum - zero_point) + zero_point);
  }
};

inline Requantizer make_requantizer(const Invocation& call, const Int8Range& range) noexcept {
  return {optional_input<std::int32_t>(call, 2),
          call.input<std::int32_t>(3),
          call.input<std::int32_t>(4),
          range.output_zero_point,
          range.minimum,
          range.maximum};
}

/// How the int16 form turns an accumulator into a result: with a 32-bit bias in 32 bits, otherwise in 64.
struct Requantizer16 {
  const std::int32_t* narrow_bias = nullptr;  ///< null, or wide_bias is
  const std::int64_t* wide_bias = nullptr;
  const std::int32_t* multiplier = nullptr;
  const std::int32_t* shift = nullptr;
  std::int32_t minimum = -32768;
  std::int32_t maximum = 32767;

  /// The same for a group of channels that begins at `first`.
  Requantizer16 from_channel(std::int64_t first) const noexcept {
    Requantizer16 result = *this;
    if (narrow_bias != nullptr) result.narrow_bias += first;
    if (wide_bias != nullptr) result.wide_bias += first;
    result.multiplier += first;
    result.shift += first;
    return result;
  }

  /// The result for an accumulator without bias. Sums wrap; shifts outside [-31, 30], or in 64 bits [-31, 14], count as
  /// the nearest bound.
  std::int16_t operator()(std::uint64_t accumulator, std::int32_t channel) const noexcept {
    return static_cast<std::int16_t>(std::clamp(scaled(accumulator, channel), minimum, maximum));
  }

 private:
  std::int32_t scaled(std::uint64_t accumulator, std::int32_t channel) const noexcept {
    if (narrow_bias != nullptr) {
      const auto sum = static_cast<std::uint32_t>(accumulator) + static_cast<std::uint32_t>(narrow_bias[channel]);
      return multiply_by_quantized_multiplier(static_cast<std::int32_t>(sum), multiplier[channel],
                                              std::clamp<std::int32_t>(shift[channel], -31, 30));
    }
    if (wide_bias != nullptr) accumulator += static_cast<std::uint64_t>(wide_bias[channel]);
    return multiply_wide_by_quantized_multiplier(static_cast<std::int64_t>(accumulator), multiplier[channel],
                                                 std::clamp<std::int32_t>(shift[channel], -31, 14));
  }
};

inline Requantizer16 make_requantizer16(const Invocation& call, const Int8Range& range) noexcept {
  const bool narrow = call.has(2) && call.in(2).type == ElementType::kI32;
  return {narrow ? call.input<std::int32_t>(2) : nullptr,
          narrow ? nullptr : optional_input<std::int64_t>(call, 2),
          call.input<std::int32_t>(3),
          call.input<std::int32_t>(4),
          range.minimum,
          range.maximum};
}

/// The largest magnitude among `previous` and n floats; NaNs do not count.
inline float largest_magnitude(const float* x, std::int64_t n, float previous) noexcept {
  for (std::int64_t i = 0; i < n; ++i) previous = std::fabs(x[i]) > previous ? std::fabs(x[i]) : previous;
  return previous;
}

/// The scale that maps [-largest, largest] to [-127, 127]; 1 when there is nothing to scale.
inline float symmetric_scale(float largest) noexcept { return largest > 0.0F ? largest / 127.0F : 1.0F; }

/// q = x / scale, rounded half away from zero, in [-127, 127]; NaN gives -127.
inline void quantize_symmetric(const float* x, std::int64_t n, float scale, std::int8_t* q) noexcept {
  for (std::int64_t i = 0; i < n; ++i) {
    const float rounded = std::round(x[i] / scale);
    const float limited = rounded < 127.0F ? rounded : 127.0F;
    q[i] = static_cast<std::int8_t>(limited > -127.0F ? limited : -127.0F);
  }
}

/// A row quantised over its own range: x = scale * (q - zero_point).
struct RowQuantization {
  float scale = 1.0F;
  std::int32_t zero_point = 0;
};

/// Quantises n floats so that their range and zero fill int8, as TensorFlow Lite does for inputs that it calls
/// asymmetric. NaNs do not count and become 127.
inline RowQuantization quantize_asymmetric(const float* x, std::int64_t n, std::int8_t* q) noexcept {
  float low = 0.0F;
  float high = 0.0F;
  for (std::int64_t i = 0; i < n; ++i) {
    low = x[i] < low ? x[i] : low;
    high = x[i] > high ? x[i] : high;
  }
  if (low == high) {
    std::fill_n(q, n, std::int8_t{0});
    return {};
  }
  const double scale = (static_cast<double>(high) - static_cast<double>(low)) / 255.0;
  // The end that is nearer to zero tells the zero point more exactly.
  const double from_low = -128.0 - static_cast<double>(low) / scale;
  const double from_high = 127.0 - static_cast<double>(high) / scale;
  const bool low_is_nearer = 128.0 - static_cast<double>(low) / scale < 127.0 + static_cast<double>(high) / scale;
  const double zero_point = std::round(low_is_nearer ? from_low : from_high);
  RowQuantization result{static_cast<float>(scale), zero_point > -128.0 ? 127 : -128};
  if (zero_point > -128.0 && zero_point < 127.0) result.zero_point = static_cast<std::int32_t>(zero_point);
  const float inverse = 1.0F / result.scale;
  for (std::int64_t i = 0; i < n; ++i) {
    const float rounded = std::round(static_cast<float>(result.zero_point) + x[i] * inverse);
    const float limited = rounded < 127.0F ? rounded : 127.0F;
    q[i] = static_cast<std::int8_t>(limited > -128.0F ? limited : -128.0F);
  }
  return result;
}

/// How the hybrid form turns an accumulator into a result, but for the activation.
struct HybridScaler {
  const float* bias = nullptr;  ///< may be null
  const float* scale = nullptr;
  bool per_channel = false;  ///< `scale` has one value per channel, not one for all

  /// The same for a group of channels that begins at `first`.
  HybridScaler from_channel(std::int64_t first) const noexcept {
    HybridScaler result = *this;
    if (bias != nullptr) result.bias += first;
    if (per_channel) result.scale += first;
    return result;
  }

  float operator()(std::uint32_t accumulator, float input_scale, std::int32_t channel) const noexcept {
    const float product =
        static_cast<float>(static_cast<std::int32_t>(accumulator)) * input_scale * scale[per_channel ? channel : 0];
    return bias != nullptr ? product + bias[channel] : product;
  }
};

inline HybridScaler make_hybrid_scaler(const Invocation& call) noexcept {
  return {optional_input<float>(call, 2), call.input<float>(3), call.in(3).dims[0] != 1};
}

}  // namespace bantam::ops
