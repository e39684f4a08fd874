// From an element type known at run time to a C++ type known at compile time. Freestanding, pure functions.
//
//   dispatch_size(element_size(type), [&](auto tag) { using T = typename decltype(tag)::type; move<T>(...); });
//   dispatch_type<float, std::int32_t>(type, [&](auto tag) { ... });
//
// Both return false, without calling, when no type of the list matches.
#pragma once

#include <cstdint>
#include <type_traits>

#include "bantam/tensor.h"
#include "ops/common/half.h"

namespace bantam::ops {

/// A boolean element: one byte. A separate type so that it dispatches apart from u8; any nonzero byte counts as true.
struct Bool8 {
  std::uint8_t value;

  constexpr explicit operator bool() const noexcept { return value != 0; }
  constexpr bool operator==(const Bool8& other) const noexcept { return (value != 0) == (other.value != 0); }
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

/// Carries a type as a value: `typename decltype(tag)::type`.
template <typename T>
struct TypeTag {
  using type = T;
};

/// Calls f(TypeTag<T>) for the T of the list whose element type is `type`.
template <typename... Ts, typename F>
constexpr bool dispatch_type(ElementType type, F&& f) {
  return ((kElementTypeOf<Ts> == type ? (f(TypeTag<Ts>{}), true) : false) || ...);
}

/// dispatch_type over every element type of whole bytes.
template <typename F>
constexpr bool dispatch_any_type(ElementType type, F&& f) {
  return dispatch_type<float, Half, BFloat16, double, std::int8_t, std::uint8_t, std::int16_t, std::uint16_t,
                       std::int32_t, std::uint32_t, std::int64_t, std::uint64_t, Bool8>(type, f);
}

/// True when `type` is one of the list.
template <typename... Ts>
constexpr bool is_one_of(ElementType type) noexcept {
  return ((kElementTypeOf<Ts> == type) || ...);
}

/// Calls f(TypeTag<U>) for the unsigned integer U of that many bytes: data movement does not care for the type.
template <typename F>
constexpr bool dispatch_size(std::int64_t bytes, F&& f) {
  switch (bytes) {
    case 1: f(TypeTag<std::uint8_t>{}); return true;
    case 2: f(TypeTag<std::uint16_t>{}); return true;
    case 4: f(TypeTag<std::uint32_t>{}); return true;
    case 8: f(TypeTag<std::uint64_t>{}); return true;
    default: return false;
  }
}

}  // namespace bantam::ops
