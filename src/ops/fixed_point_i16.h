// Functions of int16 activations in fixed point, to the bit as TensorFlow Lite's reference kernels compute them. Used
// by activation_i16, lstm_q and softmax_q.
//
// Source of the method: the public behaviour of TFLite's kernels for int16 activations: logistic and tanh interpolate
// one table of the logistic function at multiples of 1/24; other functions interpolate tables of 513 entries over the
// whole range of int16. Freestanding, pure, defined for all arguments: where the formats' kernels would overflow, these
// wrap.
#pragma once

#include <array>
#include <cstdint>

namespace bantam::ops {

namespace fixed_point_detail {

/// exp(x) of a small negative x: the series about 0 to double precision.
constexpr double small_exp(double x) noexcept {
  double term = 1;
  double sum = 1;
  for (int n = 1; n < 20; ++n) {
    term *= x / n;
    sum += term;
  }
  return sum;
}

/// Entry i: 65536 / (1 + exp(-i / 24)) plus half of what a straight line to the next entry lacks in its middle,
/// rounded: the interpolation then errs to both sides. The last entry ends the range of u16.
constexpr std::array<std::uint16_t, 256> make_logistic_table() noexcept {
  constexpr double kHalfStep = small_exp(-1.0 / 48);
  std::array<double, 2 * 256 + 1> exact{};  // at half steps
  double power = 1;
  for (double& value : exact) {
    value = 65536 / (1 + power);
    power *= kHalfStep;
  }
  std::array<std::uint16_t, 256> table{};
  for (std::size_t i = 0; i < 255; ++i) {
    const double sag = exact[2 * i + 1] - (exact[2 * i] + exact[2 * i + 2]) / 2;
    table[i] = static_cast<std::uint16_t>(exact[2 * i] + sag / 2 + 0.5);
  }
  table[255] = 65535;
  return table;
}

inline constexpr std::array<std::uint16_t, 256> kLogisticTable = make_logistic_table();

constexpr std::uint32_t magnitude(std::int32_t x) noexcept {
  return x < 0 ? 0 - static_cast<std::uint32_t>(x) : static_cast<std::uint32_t>(x);
}

}  // namespace fixed_point_detail

/// How an int16 argument reaches the table: (x * multiplier + rounding) >> right_shift is in steps of 1 / (3 * 4096).
struct ActivationInput16 {
  std::int32_t multiplier = 3;
  std::int32_t right_shift = 0;  ///< in [0, 31]
};

constexpr std::int32_t table_argument(std::int16_t x, const ActivationInput16& input) noexcept {
  const std::uint32_t rounding = input.right_shift > 0 ? std::uint32_t{1} << (input.right_shift - 1) : 0;
  const std::uint32_t product =
      static_cast<std::uint32_t>(std::int32_t{x}) * static_cast<std::uint32_t>(input.multiplier) + rounding;
  return static_cast<std::int32_t>(product) >> input.right_shift;
}

/// Q15 1 / (1 + exp(-x)).
constexpr std::int16_t logistic_i16(std::int16_t x, const ActivationInput16& to_table) noexcept {
  constexpr std::uint32_t kHalf = 1U << 9;
  const std::int32_t argument = table_argument(x, to_table);
  const std::uint32_t size = fixed_point_detail::magnitude(argument);
  const std::uint32_t index = size >> 9;
  std::uint32_t q25 = 0x7fffU << 10;
  if (index < 255) {
    const std::uint32_t low = fixed_point_detail::kLogisticTable[index];
    const std::uint32_t high = fixed_point_detail::kLogisticTable[index + 1];
    q25 = (low << 9) + (size & 0x1ff) * (high - low);
  }
  const std::uint32_t rounded = argument >= 0 ? q25 + kHalf : (1U << 25) - q25 + kHalf - 1;
  return static_cast<std::int16_t>(rounded >> 10);
}

/// Q15 tanh(x): 2 logistic(2 x) - 1.
constexpr std::int16_t tanh_i16(std::int16_t x, const ActivationInput16& to_table) noexcept {
  constexpr std::int32_t kOne = 1 << 23;
  constexpr std::int32_t kHalf = 1 << 7;
  const std::int32_t argument = table_argument(x, to_table);
  const std::uint32_t size = fixed_point_detail::magnitude(argument);
  const std::uint32_t index = size >> 8;
  std::int32_t q24 = 0xffff << 8;
  if (index < 255) {
    const std::uint32_t low = fixed_point_detail::kLogisticTable[index];
    const std::uint32_t high = fixed_point_detail::kLogisticTable[index + 1];
    q24 = static_cast<std::int32_t>((low << 8) + (size & 0xff) * (high - low));
  }
  const std::int32_t rounded = argument >= 0 ? q24 - kOne + kHalf : kOne - q24 + kHalf - 1;
  return static_cast<std::int16_t>(rounded >> 8);
}

inline constexpr int kLookup16Size = 513;

/// A function of an int16 argument by linear interpolation: entry i of `table` belongs to -32768 + 128 i.
constexpr std::int16_t lookup_i16(std::int16_t x, const std::int16_t* table) noexcept {
  const int index = 256 + (x >> 7);
  const auto slope = static_cast<std::int16_t>(table[index + 1] - table[index]);
  return static_cast<std::int16_t>(table[index] + ((slope * (x & 0x7f) + 64) >> 7));
}

}  // namespace bantam::ops
