#include "import/tflite/quantization.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <tuple>

#include "ops/fixed_point_math.h"

namespace bantam::import::tflite {
namespace {

constexpr IntegerRange kRangeI8{-128, 127};
constexpr IntegerRange kRangeU8{0, 255};

/// Calls f(x, entry) for each of the 256 values of an 8-bit type; f returns the unsaturated result.
template <typename F>
Table8 tabulate(ElementType type, F f) {
  const IntegerRange range = *type_range(type);
  Table8 table{};
  for (std::int32_t x = range.minimum; x <= range.maximum; ++x) {
    const std::int64_t y = std::clamp<std::int64_t>(f(x), range.minimum, range.maximum);
    table[static_cast<std::uint8_t>(x)] = static_cast<std::uint8_t>(y);
  }
  return table;
}

/// round(value) as an integer; beyond int32 it saturates, NaN gives 0.
std::int64_t round_to_integer(float value) noexcept {
  constexpr float kLimit = 2147483648.0F;
  if (std::isnan(value)) return 0;
  return static_cast<std::int64_t>(std::clamp(std::round(value), -kLimit, kLimit));
}

std::int32_t rescale(std::int32_t x, FixedMultiplier by) noexcept {
  return ops::multiply_by_quantized_multiplier(x, by.multiplier, by.shift);
}

// 16-bit fixed point of hard_swish: gemmlowp's definitions at half the width.
std::int16_t saturate16(std::int64_t x) noexcept {
  return static_cast<std::int16_t>(std::clamp<std::int64_t>(x, -32768, 32767));
}
std::int16_t rounding_doubling_high_mul16(std::int16_t a, std::int16_t b) noexcept {
  const std::int32_t product = static_cast<std::int32_t>(a) * b;
  const std::int32_t nudge = product >= 0 ? (1 << 14) : 1 - (1 << 14);
  return saturate16((product + nudge) / (1 << 15));
}
std::int16_t doubling_high_mul16(std::int16_t a, std::int16_t b) noexcept {
  return saturate16(static_cast<std::int32_t>(a) * b / (1 << 15));
}
std::int16_t round_to_16(std::int32_t multiplier) noexcept {
  constexpr std::int32_t kHalf = 1 << 15;
  if (multiplier >= std::numeric_limits<std::int32_t>::max() - kHalf) return std::numeric_limits<std::int16_t>::max();
  return static_cast<std::int16_t>((multiplier + kHalf) >> 16);
}

}  // namespace

FixedMultiplier quantize_multiplier(double real) noexcept {
  if (real == 0.0 || !std::isfinite(real)) return {};
  int shift = 0;
  const double mantissa = std::frexp(real, &shift);
  auto fixed = static_cast<std::int64_t>(std::round(mantissa * 2147483648.0));
  if (fixed == std::int64_t{1} << 31) {
    fixed /= 2;
    ++shift;
  }
  if (shift < -31) return {};  // the right shift would lose every bit
  // -2^31 arises only from a negative power-of-two boundary; TFLite negates such multipliers, so keep it negatable.
  fixed = std::max<std::int64_t>(fixed, -std::int64_t{std::numeric_limits<std::int32_t>::max()});
  return {static_cast<std::int32_t>(fixed), shift};
}

std::optional<IntegerRange> type_range(ElementType type) noexcept {
  switch (type) {
    case ElementType::kI8: return kRangeI8;
    case ElementType::kU8: return kRangeU8;
    case ElementType::kI16: return IntegerRange{-32768, 32767};
    default: return std::nullopt;
  }
}

IntegerRange clamp_range(IntegerRange type, Affine output, std::optional<float> low,
                         std::optional<float> high) noexcept {
  const auto stored = [&](float real) {
    const std::int64_t q = output.zero_point + round_to_integer(real / output.scale);
    return static_cast<std::int32_t>(std::clamp<std::int64_t>(q, type.minimum, type.maximum));
  };
  if (low) type.minimum = stored(*low);
  if (high) type.maximum = std::max(type.minimum, stored(*high));
  return type;
}

std::optional<SoftmaxScaling> softmax_scaling(float beta, float input_scale) noexcept {
  constexpr int kIntegerBits = 5;
  const double real =
      std::min(static_cast<double>(beta) * static_cast<double>(input_scale) * (1 << (31 - kIntegerBits)), 2147483647.0);
  if (!(real > 1.0)) return std::nullopt;
  SoftmaxScaling result;
  result.input = quantize_multiplier(real);
  const double radius =
      ((1 << kIntegerBits) - 1) * std::ldexp(1.0, 31 - kIntegerBits) / std::ldexp(1.0, result.input.shift);
  result.diff_min = -static_cast<std::int32_t>(std::floor(radius));
  return result;
}

std::optional<SoftmaxScaling> softmax_scaling16(float beta, float input_scale) noexcept {
  constexpr double kTableStep = 10.0 / 65535.0;
  SoftmaxScaling result;
  result.input = quantize_multiplier(static_cast<double>(input_scale) * static_cast<double>(beta) / kTableStep);
  if (!result.input.is_applicable() || result.input.multiplier <= 0) return std::nullopt;
  return result;
}

BinaryLogarithm binary_logarithm(float x) noexcept {
  const float logarithm = std::log(x) * (1.0F / std::log(2.0F));
  const float rounded = std::round(logarithm);
  return {static_cast<int>(rounded), std::abs(logarithm - rounded) < 1e-3F};
}

std::optional<ActivationScaling> activation_scaling(float input_scale, int highest_power) noexcept {
  constexpr double kLargest = 32767.0;
  const BinaryLogarithm log = binary_logarithm(input_scale);
  const int power = log.rounded + 12;
  if (log.is_close && power >= 0 && power <= highest_power) return ActivationScaling{3 << power, 0};
  double multiplier = static_cast<double>(input_scale) * 4096.0 * 3.0;
  if (multiplier > std::numeric_limits<std::int32_t>::max()) return std::nullopt;
  ActivationScaling result;
  for (; multiplier <= kLargest / 2 && result.right_shift <= 30; ++result.right_shift) multiplier *= 2;
  result.multiplier = static_cast<std::int32_t>(multiplier);
  return result;
}

FixedMultiplier divide_multiplier(FixedMultiplier sum, std::int64_t count) noexcept {
  int shift = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(count))) - 1;
  shift = std::min({shift, 32, 31 + sum.shift});
  const std::int64_t scaled = static_cast<std::int64_t>(sum.multiplier) * (std::int64_t{1} << shift);
  return {static_cast<std::int32_t>(scaled / count), sum.shift - shift};
}

FixedMultiplier log_softmax_reverse(FixedMultiplier input) noexcept {
  return quantize_multiplier(std::ldexp(1.0, 31 - input.shift) / static_cast<double>(input.multiplier));
}

AddScaling add_scaling(float a, float b, float output, int left_shift) noexcept {
  const double twice_larger = 2 * static_cast<double>(std::max(a, b));
  return {quantize_multiplier(static_cast<double>(a) / twice_larger),
          quantize_multiplier(static_cast<double>(b) / twice_larger),
          quantize_multiplier(twice_larger / ((1 << left_shift) * static_cast<double>(output)))};
}

AddScaling sub_scaling(float a, float b, float output, int left_shift) noexcept {
  const float twice_larger = 2 * std::max(a, b);
  return {quantize_multiplier(static_cast<double>(a / twice_larger)),
          quantize_multiplier(static_cast<double>(b / twice_larger)),
          quantize_multiplier(static_cast<double>(twice_larger / (static_cast<float>(1 << left_shift) * output)))};
}

std::optional<AxisPadding> axis_padding(bool same, std::int32_t image, std::int32_t filter, std::int32_t stride,
                                        std::int32_t dilation) noexcept {
  if (image < 0 || filter <= 0 || stride <= 0 || dilation <= 0) return std::nullopt;
  const std::int64_t extent = (static_cast<std::int64_t>(filter) - 1) * dilation + 1;
  const std::int64_t out = same ? (static_cast<std::int64_t>(image) + stride - 1) / stride
                                : (static_cast<std::int64_t>(image) + stride - extent) / stride;
  if (out < 0 || (!same && extent > image)) return std::nullopt;
  const std::int64_t total = same ? std::max<std::int64_t>((out - 1) * stride + extent - image, 0) : 0;
  if (total > std::numeric_limits<std::int32_t>::max()) return std::nullopt;
  return AxisPadding{static_cast<std::int32_t>(total / 2), static_cast<std::int32_t>(total - total / 2),
                     static_cast<std::int32_t>(out)};
}

Table8 float_table(ElementType type, Affine input, Affine output, const std::function<float(float)>& function) {
  const float inverse_scale = 1 / output.scale;
  return tabulate(type, [&](std::int32_t x) {
    const float real = input.scale * static_cast<float>(x - input.zero_point);
    return round_to_integer(function(real) * inverse_scale) + output.zero_point;
  });
}

Table16 float_table16(Affine input, float output_scale, const std::function<float(float)>& function) {
  constexpr int kSteps = static_cast<int>(std::tuple_size_v<Table16>) - 1;
  constexpr float kLowest = -32768;
  constexpr float kHighest = 32767;
  const auto real = [](float scale, std::int32_t stored) { return scale * static_cast<float>(stored); };
  const float low = real(input.scale, -32768 - input.zero_point);
  const float high = real(input.scale, 32767 - input.zero_point);
  const float step = (high - low) / kSteps;
  const float half_step = step / 2;
  const float inverse_scale = 65536.0F / (real(output_scale, 32767) - real(output_scale, -32768));
  Table16 table{};
  for (int i = 0; i < kSteps; ++i) {
    const float at = low + static_cast<float>(i) * step;
    const float sample = std::round(function(at) * inverse_scale);
    const float next = function(low + static_cast<float>(i + 1) * step) * inverse_scale;
    const float on_the_line = std::round((next + sample) / 2);
    const float in_the_middle = std::round(function(at + half_step) * inverse_scale);
    const float correction = std::round((on_the_line - in_the_middle) / 2);
    table[static_cast<std::size_t>(i)] = static_cast<std::int16_t>(std::clamp(sample - correction, kLowest, kHighest));
  }
  table.back() = static_cast<std::int16_t>(std::clamp(std::round(function(high) * inverse_scale), kLowest, kHighest));
  return table;
}

Table8 logistic_table(Affine input) {
  const ops::ActivationInput to_q4 = ops::activation_input(static_cast<double>(input.scale));
  return tabulate(ElementType::kI8, [&](std::int32_t x) { return ops::logistic_i8(x - input.zero_point, to_q4); });
}

Table8 tanh_table(Affine input) {
  const ops::ActivationInput to_q4 = ops::activation_input(static_cast<double>(input.scale));
  return tabulate(ElementType::kI8, [&](std::int32_t x) { return ops::tanh_i8(x - input.zero_point, to_q4); });
}

std::optional<Table8> leaky_relu_table(ElementType type, Affine input, Affine output, float alpha) {
  FixedMultiplier slope = quantize_multiplier(static_cast<double>(input.scale * alpha / output.scale));
  const FixedMultiplier identity = quantize_multiplier(static_cast<double>(input.scale / output.scale));
  if (!slope.is_applicable() || !identity.is_applicable()) return std::nullopt;
  const bool negative = slope.multiplier < 0;
  if (negative) slope.multiplier = -slope.multiplier;
  return tabulate(type, [&](std::int32_t stored) -> std::int64_t {
    const std::int32_t x = stored - input.zero_point;
    if (x >= 0) return std::int64_t{output.zero_point} + rescale(x, identity);
    const std::int64_t scaled = rescale(x, slope);
    return output.zero_point + (negative ? -scaled : scaled);
  });
}

std::optional<Table8> hard_swish_table(Affine input, Affine output) {
  constexpr float kReluishScale = 3.0F / 32768.0F;
  const float fine_scale = (1.0F / 128.0F) * input.scale;
  const FixedMultiplier to_output = quantize_multiplier(static_cast<double>(fine_scale / output.scale));
  const FixedMultiplier to_reluish = quantize_multiplier(static_cast<double>(fine_scale / kReluishScale));
  if (to_output.shift > 0 || !to_output.is_applicable() || !to_reluish.is_applicable()) return std::nullopt;
  const std::int16_t output_multiplier = round_to_16(to_output.multiplier);
  const std::int16_t reluish_multiplier = round_to_16(to_reluish.multiplier);
  return tabulate(ElementType::kI8, [&](std::int32_t stored) -> std::int64_t {
    const auto fine = static_cast<std::int16_t>((stored - input.zero_point) * 128);
    const std::int16_t on_output_scale = rounding_doubling_high_mul16(fine, output_multiplier);
    std::int16_t reluish = fine;  // becomes clamp(x / 3, -1, 1) in Q15, then clamp(x / 6 + 1/2, 0, 1)
    if (to_reluish.shift > 0) reluish = saturate16(std::int64_t{reluish} * (std::int64_t{1} << (to_reluish.shift - 1)));
    reluish = rounding_doubling_high_mul16(reluish, reluish_multiplier);
    if (to_reluish.shift > 0) reluish = saturate16(std::int64_t{reluish} * 2);
    if (to_reluish.shift < 0)
      reluish = static_cast<std::int16_t>(ops::rounding_divide_by_pot(reluish, -to_reluish.shift));
    reluish = static_cast<std::int16_t>((reluish + (1 << 15)) >> 1);
    const std::int16_t product = doubling_high_mul16(reluish, on_output_scale);
    const auto y = static_cast<std::int16_t>(ops::rounding_divide_by_pot(product, -to_output.shift));
    return std::int64_t{y} + output.zero_point;
  });
}

std::optional<Table8> abs_table(Affine input, Affine output) {
  const FixedMultiplier scale = quantize_multiplier(static_cast<double>(input.scale / output.scale));
  if (!scale.is_applicable()) return std::nullopt;
  const bool same_scale = input.scale == output.scale;
  return tabulate(ElementType::kI8, [&](std::int32_t stored) -> std::int64_t {
    const std::int32_t magnitude = std::abs(stored - input.zero_point);
    return std::int64_t{same_scale ? magnitude : rescale(magnitude, scale)} + output.zero_point;
  });
}

std::optional<Table8> relu_table(ElementType type, Affine input, Affine output, std::optional<float> low,
                                 std::optional<float> high) {
  const FixedMultiplier scale = quantize_multiplier(static_cast<double>(input.scale / output.scale));
  if (!scale.is_applicable()) return std::nullopt;
  const IntegerRange range = clamp_range(*type_range(type), output, low, high);
  return tabulate(type, [&](std::int32_t x) -> std::int64_t {
    const std::int64_t y = std::int64_t{output.zero_point} + rescale(x - input.zero_point, scale);
    return std::clamp<std::int64_t>(y, range.minimum, range.maximum);
  });
}

Table8 concatenation_table(Affine input, Affine output) {
  const float scale = input.scale * (1.0F / output.scale);
  const float bias = static_cast<float>(-input.zero_point) * scale;
  return tabulate(ElementType::kU8, [&](std::int32_t x) {
    return round_to_integer(static_cast<float>(x) * scale + bias) + output.zero_point;
  });
}

}  // namespace bantam::import::tflite
