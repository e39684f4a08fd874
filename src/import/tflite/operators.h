// Which TensorFlow Lite operators Bantam lowers, and how many operands each has.
//
// Each lower_<family>.cpp holds its handlers and one row per operator; operators.cpp lists the families. To add an
// operator, write a handler and its row.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "import/tflite/lowering.h"

namespace bantam::import::tflite {

using Handler = void (*)(Lowering&);

inline constexpr int kAnyNumber = 1 << 20;

struct OperatorRow {
  schema::BuiltinOperator code;
  int min_operands;  ///< the first of them must be present
  int max_operands;
  int max_results;  ///< at least one, except for operators with none
  Handler lower;
};

/// An operator that files name instead of numbering; `row.code` is CUSTOM.
struct CustomOperatorRow {
  std::string_view name;
  OperatorRow row;
};

std::span<const OperatorRow> convolution_operators() noexcept;
std::span<const OperatorRow> control_operators() noexcept;
std::span<const OperatorRow> matrix_operators() noexcept;
std::span<const OperatorRow> unary_operators() noexcept;
std::span<const OperatorRow> binary_operators() noexcept;
std::span<const OperatorRow> shape_operators() noexcept;
std::span<const OperatorRow> slice_operators() noexcept;
std::span<const OperatorRow> reduce_operators() noexcept;
std::span<const OperatorRow> state_operators() noexcept;
std::span<const OperatorRow> recurrent_operators() noexcept;

std::span<const CustomOperatorRow> signal_operators() noexcept;
std::span<const CustomOperatorRow> custom_operators() noexcept;

/// The row of an operator, or null.
const OperatorRow* find_operator(schema::BuiltinOperator code) noexcept;
const OperatorRow* find_operator(const schema::OperatorCode& code) noexcept;

}  // namespace bantam::import::tflite
