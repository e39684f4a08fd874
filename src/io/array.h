// An owned dense tensor on the host, typed access to it and conversion between element types.
//
// Every reader of this folder returns an Array and every writer takes one. Values with deep copies; no shared state.
//
// Conversion rules, the same everywhere in this folder:
//   float -> float    nearest, ties to even (f64 to a 16-bit format goes through f32); overflow becomes infinity
//   float -> integer  rounded half away from zero, saturated to the range of the type, NaN becomes 0
//   integer -> integer saturated; integer -> float nearest
//   anything -> bool  1 unless equal to zero; bool -> number 0 or 1
#pragma once

#include <cassert>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "bantam/error.h"
#include "bantam/tensor.h"
#include "io/half.h"

namespace bantam::io {

struct Array {
  TensorDesc desc;              ///< dense
  std::vector<std::byte> data;  ///< exactly desc.bytes() bytes, row-major, little endian
};

/// Storage types of the elements that C++ has no distinct type for.
struct Half {
  std::uint16_t bits;
};
struct BFloat16 {
  std::uint16_t bits;
};
struct Bool8 {
  std::uint8_t value;  ///< 0 or 1
};

template <typename T>
inline constexpr ElementType kElementTypeOf = ElementType::kNone;
template <>
inline constexpr ElementType kElementTypeOf<float> = ElementType::kF32;
template <>
inline constexpr ElementType kElementTypeOf<Half> = ElementType::kF16;
template <>
inline constexpr ElementType kElementTypeOf<BFloat16> = ElementType::kBF16;
template <>
inline constexpr ElementType kElementTypeOf<double> = ElementType::kF64;
template <>
inline constexpr ElementType kElementTypeOf<std::int8_t> = ElementType::kI8;
template <>
inline constexpr ElementType kElementTypeOf<std::uint8_t> = ElementType::kU8;
template <>
inline constexpr ElementType kElementTypeOf<std::int16_t> = ElementType::kI16;
template <>
inline constexpr ElementType kElementTypeOf<std::uint16_t> = ElementType::kU16;
template <>
inline constexpr ElementType kElementTypeOf<std::int32_t> = ElementType::kI32;
template <>
inline constexpr ElementType kElementTypeOf<std::uint32_t> = ElementType::kU32;
template <>
inline constexpr ElementType kElementTypeOf<std::int64_t> = ElementType::kI64;
template <>
inline constexpr ElementType kElementTypeOf<std::uint64_t> = ElementType::kU64;
template <>
inline constexpr ElementType kElementTypeOf<Bool8> = ElementType::kBool;

/// Calls f(std::type_identity<T>{}) with the storage type T of `type`. False, without a call, for types without whole
/// bytes per element (i4) and for kNone.
template <typename F>
bool with_element_type(ElementType type, F&& f) {
  const auto try_types = [&]<typename... T>(std::type_identity<T>... candidates) {
    return ((kElementTypeOf<T> == type && (f(candidates), true)) || ...);
  };
  return try_types(std::type_identity<float>{}, std::type_identity<Half>{}, std::type_identity<BFloat16>{},
                   std::type_identity<double>{}, std::type_identity<std::int8_t>{}, std::type_identity<std::uint8_t>{},
                   std::type_identity<std::int16_t>{}, std::type_identity<std::uint16_t>{},
                   std::type_identity<std::int32_t>{}, std::type_identity<std::uint32_t>{},
                   std::type_identity<std::int64_t>{}, std::type_identity<std::uint64_t>{},
                   std::type_identity<Bool8>{});
}

/// The elements as T, which must be the storage type of array.desc.type.
template <typename T>
std::span<T> elements_of(Array& array) {
  assert(kElementTypeOf<T> == array.desc.type);
  return {reinterpret_cast<T*>(array.data.data()), array.data.size() / sizeof(T)};
}
template <typename T>
std::span<const T> elements_of(const Array& array) {
  assert(kElementTypeOf<T> == array.desc.type);
  return {reinterpret_cast<const T*>(array.data.data()), array.data.size() / sizeof(T)};
}

/// A zero-filled array. Fails when the shape is invalid (rank, negative or absurd dimensions) or the type has no whole
/// bytes per element.
Result<Array> make_array(ElementType type, std::span<const std::int64_t> dims);

/// A zero-filled array of a valid desc, whose strides are replaced by dense ones.
Result<Array> make_array(const TensorDesc& desc);

/// "f32[1,3,320,320]"; "f32[]" for a scalar. For messages.
std::string describe(const TensorDesc& desc);

/// The elements converted to `type` by the rules above, same shape. Fails for i4 on either side.
Result<Array> convert(const Array& array, ElementType type);

/// Stored values of `real` under `quantization` (scale > 0) as an integer type: round half away from zero of
/// real / scale (in float, as TensorFlow Lite does) plus zero_point, saturated. Fails when `type` is not an integer of
/// at most 32 bits or the quantisation is not usable. `real` is f32.
Result<Array> quantize(const Array& real, ElementType type, Quantization quantization);

/// `x` rounded half away from zero and saturated; NaN becomes 0.
template <std::integral To, std::floating_point From>
To round_saturate(From x) noexcept {
  if (std::isnan(x)) return 0;
  const double rounded = std::round(static_cast<double>(x));
  // The limits of 64-bit types round outwards in double, where >= still separates what the cast can represent.
  if (rounded <= static_cast<double>(std::numeric_limits<To>::min())) return std::numeric_limits<To>::min();
  if (rounded >= static_cast<double>(std::numeric_limits<To>::max())) return std::numeric_limits<To>::max();
  return static_cast<To>(rounded);
}

template <std::integral To, std::integral From>
constexpr To saturate(From x) noexcept {
  if (std::cmp_less(x, std::numeric_limits<To>::min())) return std::numeric_limits<To>::min();
  if (std::cmp_greater(x, std::numeric_limits<To>::max())) return std::numeric_limits<To>::max();
  return static_cast<To>(x);
}

/// The number that a stored element stands for: itself, or float for 16-bit floats and 0/1 for bool.
template <typename T>
constexpr auto number_of(T element) noexcept {
  if constexpr (std::is_same_v<T, Half>) {
    return half_to_float(element.bits);
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    return bfloat16_to_float(element.bits);
  } else if constexpr (std::is_same_v<T, Bool8>) {
    return static_cast<std::uint8_t>(element.value != 0);
  } else {
    return element;
  }
}

/// A number stored as To by the rules at the top.
template <typename To, typename Number>
To element_from(Number x) noexcept {
  if constexpr (std::is_same_v<To, Half>) {
    return Half{float_to_half(static_cast<float>(x))};
  } else if constexpr (std::is_same_v<To, BFloat16>) {
    return BFloat16{float_to_bfloat16(static_cast<float>(x))};
  } else if constexpr (std::is_same_v<To, Bool8>) {
    return Bool8{static_cast<std::uint8_t>(x != Number{})};
  } else if constexpr (std::is_floating_point_v<To>) {
    return static_cast<To>(x);
  } else if constexpr (std::is_floating_point_v<Number>) {
    return round_saturate<To>(x);
  } else {
    return saturate<To>(x);
  }
}

}  // namespace bantam::io
