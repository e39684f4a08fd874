// Terse rows for an operator's ParamField table; see ops/op.h. Used by every operator's <op>.cpp:
//
//   constexpr ParamField kFields[] = {
//       i32_field("axis", offsetof(SoftmaxParams, axis)),
//       enum_field("activation", offsetof(Conv2dParams, activation.function), kUnaryFunctionNames),
//   };
//
// Everything is constexpr: the tables live in read-only memory.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "ops/op.h"

namespace bantam::ops {

constexpr ParamField make_field(std::string_view name, ParamField::Kind kind, std::size_t offset,
                                std::uint32_t count = 1) noexcept {
  return {name, kind, static_cast<std::uint32_t>(offset), count, {}};
}

/// An int32 member, or a C array of `count` of them.
constexpr ParamField i32_field(std::string_view name, std::size_t offset, std::uint32_t count = 1) noexcept {
  return make_field(name, ParamField::Kind::kI32, offset, count);
}

/// A float member, or a C array of `count` of them.
constexpr ParamField f32_field(std::string_view name, std::size_t offset, std::uint32_t count = 1) noexcept {
  return make_field(name, ParamField::Kind::kF32, offset, count);
}

/// An int32 member that is 0 or 1.
constexpr ParamField bool_field(std::string_view name, std::size_t offset) noexcept {
  return make_field(name, ParamField::Kind::kBool, offset);
}

constexpr ParamField list_field(std::string_view name, std::size_t offset) noexcept {
  return make_field(name, ParamField::Kind::kIntList, offset);
}

constexpr ParamField type_field(std::string_view name, std::size_t offset) noexcept {
  return make_field(name, ParamField::Kind::kElementType, offset);
}

/// An int32-based enum member whose values are named by `names`, which has static storage.
constexpr ParamField enum_field(std::string_view name, std::size_t offset,
                                std::span<const std::string_view> names) noexcept {
  ParamField field = make_field(name, ParamField::Kind::kEnum, offset);
  field.enumerators = names;
  return field;
}

/// The rows of one part of an operator's parameters, then those of another.
template <std::size_t A, std::size_t B>
constexpr std::array<ParamField, A + B> join_fields(const std::array<ParamField, A>& a,
                                                    const std::array<ParamField, B>& b) noexcept {
  std::array<ParamField, A + B> all{};
  std::copy(a.begin(), a.end(), all.begin());
  std::copy(b.begin(), b.end(), all.begin() + A);
  return all;
}

/// True for an int32 parameter that is a valid truth value.
constexpr bool is_flag(std::int32_t value) noexcept { return value == 0 || value == 1; }

/// True for a value of an int32-based enumeration that ends in kCount.
template <typename Enum>
constexpr bool is_enumerator(Enum value) noexcept {
  return static_cast<std::int32_t>(value) >= 0 && value < Enum::kCount;
}

}  // namespace bantam::ops
