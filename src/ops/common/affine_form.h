// The arithmetic of ONNX's quantised operators, shared by conv2d_affine and matmul_affine: operands are 8-bit integers
// that stand for scale * (q - zero_point), sums are exact int32, and results are scaled in float.
//
// With sum = SUM (x - x_zero) * (w - w_zero), wrapping like int32, the result of type `to` is
//   i32:    sum + bias (bias i32)
//   i8, u8: clamp(round_half_even(float(sum + bias) * scale) + output_zero_point, minimum, maximum) (bias i32)
//   f32:    activation(float(sum) * scale + bias) (bias f32)
// which is how ONNX Runtime computes QLinearConv, QLinearMatMul and the products of its integer operators. With an
// activation, 8-bit results are what quantising the f32 result gives, in one step:
//   i8, u8: clamp(round_half_even(activation(float(sum) * scale + bias) / output_scale) + output_zero_point, minimum,
//           maximum) (bias f32), hard-swish and its division being HardSwishSteps
// A number that is rounded but is not one counts as 0. Operands: 2 bias [N] (optional); 3 scale f32 [1] or [N] (absent
// for i32); 4 zero point of x (type of x), 5 zero points of the weights (type of the weights, [1] or [N]): both
// optional, instead of the parameters, for zero points known only at run time.
//
// Kernels see all 8-bit operands as int8: a u8 with its highest bit flipped is an i8 with a zero point 128 smaller.
// Exact for integer results, on every target; but where an activation computes exponentials, an 8-bit result may differ
// by one step from one target or variant to another. Freestanding.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <span>

#include "bantam/status.h"
#include "bantam/tensor.h"
#include "ops/common/params.h"
#include "ops/elementwise/unary/function.h"
#include "ops/op.h"

namespace bantam::ops {

/// The parameters of the arithmetic, a member of the operators' own structs.
struct AffineForm {
  ElementType32 to{ElementType::kI8};
  std::int32_t input_zero_point = 0;  ///< of x's type; unused when operand 4 is there
  std::int32_t weights_zero_point = 0;
  std::int32_t output_zero_point = 0;  ///< i8 and u8 results, as the two below
  std::int32_t minimum = -128;
  std::int32_t maximum = 127;
  Activation activation{};    ///< of f32 and 8-bit results
  float output_scale = 1.0F;  ///< of 8-bit results with an activation

  bool quantizes_activation() const noexcept {
    return activation.function != UnaryFunction::kIdentity && (to == ElementType::kI8 || to == ElementType::kU8);
  }
  /// Is the bias f32, added to scaled sums?
  bool has_real_bias() const noexcept { return to == ElementType::kF32 || quantizes_activation(); }
};

/// Field rows of an AffineForm at byte `base` of a parameter struct.
constexpr std::array<ParamField, 10> affine_form_fields(std::size_t base) noexcept {
  return {{
      type_field("to", base + offsetof(AffineForm, to)),
      i32_field("input_zero_point", base + offsetof(AffineForm, input_zero_point)),
      i32_field("weights_zero_point", base + offsetof(AffineForm, weights_zero_point)),
      i32_field("output_zero_point", base + offsetof(AffineForm, output_zero_point)),
      i32_field("minimum", base + offsetof(AffineForm, minimum)),
      i32_field("maximum", base + offsetof(AffineForm, maximum)),
      enum_field("activation", base + offsetof(AffineForm, activation.function), kUnaryFunctionNames),
      f32_field("activation_a", base + offsetof(AffineForm, activation.a)),
      f32_field("activation_b", base + offsetof(AffineForm, activation.b)),
      f32_field("output_scale", base + offsetof(AffineForm, output_scale)),
  }};
}

/// Checks types, operands 2 to 5 and the parameters, for N `channels`. `x_zero_points`: how many elements operand 4 may
/// have besides 1.
Status infer_affine_form(std::span<const Tensor> inputs, const AffineForm& form, std::int32_t channels,
                         std::int32_t x_zero_points);

/// Fails unless these are of the 8-bit type and the limits are a range.
Status check_byte_results(ElementType to, std::int32_t zero_point, std::int32_t minimum, std::int32_t maximum);

/// Is the value one of the 8-bit type?
constexpr bool fits_byte(std::int32_t value, ElementType type) noexcept {
  return type == ElementType::kU8 ? value >= 0 && value <= 255 : value >= -128 && value <= 127;
}

/// The bit that makes an element of this 8-bit type an int8.
constexpr std::uint8_t sign_flip(ElementType type) noexcept { return type == ElementType::kU8 ? 0x80 : 0; }

/// Zero points as int8 kernels see them.
struct ZeroPoints {
  const std::uint8_t* values = nullptr;  ///< null: `constant` for all
  bool several = false;
  std::uint8_t flip = 0;
  std::int32_t constant = 0;

  std::int32_t operator[](std::int64_t i) const noexcept {
    return values != nullptr ? static_cast<std::int8_t>(values[several ? i : 0] ^ flip) : constant;
  }
  ZeroPoints from(std::int64_t first) const noexcept {
    ZeroPoints result = *this;
    if (values != nullptr && several) result.values += first;
    return result;
  }
  /// True when nothing has to be subtracted.
  bool are_zero() const noexcept { return values == nullptr && constant == 0; }
  /// The same from channels [first, first + count), whatever is known of the others.
  bool are_zero(std::int64_t first, std::int64_t count) const noexcept {
    if (values == nullptr || !several) return (*this)[0] == 0;
    std::uint8_t bits = 0;
    for (std::int64_t i = first; i < first + count; ++i) bits |= values[i] ^ flip;
    return bits == 0;
  }
};

/// Zero points of operand `x` (0 or 1): operand `i` if it is there, else the parameter. Of an Invocation, or of an
/// OpCall whose operand i is constant.
template <typename Call>
ZeroPoints zero_points(const Call& call, int x, int i, std::int32_t parameter) noexcept {
  const std::uint8_t flip = sign_flip(call.in(x).type);
  if (call.has(i))
    return {static_cast<const std::uint8_t*>(call.inputs[static_cast<std::size_t>(i)].data), call.in(i).elements() != 1,
            flip, 0};
  return {nullptr, false, flip, flip != 0 ? parameter - 128 : parameter};
}

/// How accumulators become results; see the top. Numbers of 8-bit results are those of int8.
struct AffineScaler {
  const std::int32_t* bias = nullptr;  ///< integer results; may be null
  const float* real_bias = nullptr;    ///< results with AffineForm::has_real_bias; may be null
  const float* scale = nullptr;        ///< null for i32 results
  bool per_channel = false;
  std::uint8_t flip = 0;  ///< of 8-bit results
  std::int32_t zero_point = 0;
  std::int32_t minimum = -128;
  std::int32_t maximum = 127;
  Activation activation{};
  float output_scale = 1.0F;  ///< of 8-bit results, if there is an activation

  /// Is the result of an activation quantised? For kernels whose results have 8 bits.
  bool has_activation() const noexcept { return activation.function != UnaryFunction::kIdentity; }

  /// The same for a group of channels that begins at `first`.
  AffineScaler from_channel(std::int64_t first) const noexcept {
    AffineScaler result = *this;
    if (bias != nullptr) result.bias += first;
    if (real_bias != nullptr) result.real_bias += first;
    if (per_channel) result.scale += first;
    return result;
  }

  std::int32_t with_bias(std::uint32_t sum, std::int64_t channel) const noexcept {
    return static_cast<std::int32_t>(bias != nullptr ? sum + static_cast<std::uint32_t>(bias[channel]) : sum);
  }

  void store(std::uint32_t sum, std::int64_t channel, std::int32_t* y) const noexcept { *y = with_bias(sum, channel); }

  void store(std::uint32_t sum, std::int64_t channel, std::uint8_t* y) const noexcept {
    *y = to_byte(has_activation() ? activated_steps(argument(sum, channel))
                                  : static_cast<float>(with_bias(sum, channel)) * scale[per_channel ? channel : 0]);
  }

  /// The 8-bit result that stands for `scaled` steps from the zero point.
  std::uint8_t to_byte(float scaled) const noexcept {
    const float number = std::isnan(scaled) ? 0.0F : scaled;
    const float limited =
        std::clamp(number, static_cast<float>(minimum - zero_point), static_cast<float>(maximum - zero_point));
    const float whole = apply_unary(limited, UnaryFunction::kRound, 0.0F, 0.0F);
    return static_cast<std::uint8_t>(static_cast<std::uint8_t>(static_cast<std::int32_t>(whole) + zero_point) ^ flip);
  }

  void store(std::uint32_t sum, std::int64_t channel, float* y) const noexcept { *y = real(sum, channel); }

  float real(std::uint32_t sum, std::int64_t channel) const noexcept {
    return apply_activation(argument(sum, channel), activation);
  }

  /// Of the activation.
  float argument(std::uint32_t sum, std::int64_t channel) const noexcept {
    const float scaled = static_cast<float>(static_cast<std::int32_t>(sum)) * scale[per_channel ? channel : 0];
    return real_bias != nullptr ? scaled + real_bias[channel] : scaled;
  }

  /// activation(x) / output_scale.
  float activated_steps(float x) const noexcept;
};

/// The scaler, of whichever arithmetic, if results have an activation that is quantised; else null.
inline const AffineScaler* activated_scaler(const AffineScaler& s) noexcept {
  return s.has_activation() ? &s : nullptr;
}
template <class Scaler>
const AffineScaler* activated_scaler(const Scaler& /*s*/) noexcept {
  return nullptr;
}

AffineScaler make_affine_scaler(const Invocation& call, const AffineForm& form) noexcept;

/// The zero point and limits of 8-bit results, without a scale.
AffineScaler make_byte_scaler(ElementType to, std::int32_t zero_point, std::int32_t minimum,
                              std::int32_t maximum) noexcept;

/// Calls f(y) with the result's data as the type that AffineScaler stores: u8 (of i8 too), i32 or f32.
template <typename F>
void with_affine_result(const Invocation& call, F&& f) {
  switch (call.out().type) {
    case ElementType::kF32: f(call.output<float>()); break;
    case ElementType::kI32: f(call.output<std::int32_t>()); break;
    default: f(call.output<std::uint8_t>()); break;
  }
}

/// Sums of a dot product between integers, of which the left ones are centred: what is needed to centre the right ones
/// afterwards.
struct AffineSum {
  std::uint32_t products = 0;
  std::uint32_t left = 0;

  AffineSum add(std::int32_t centred, std::int32_t right) const noexcept {
    return {products + static_cast<std::uint32_t>(centred * right), left + static_cast<std::uint32_t>(centred)};
  }
  std::uint32_t centred(std::int32_t right_zero_point) const noexcept {
    return products - left * static_cast<std::uint32_t>(right_zero_point);
  }
};

}  // namespace bantam::ops
