#include "import/tflite/operators.h"

#include <algorithm>

namespace bantam::import::tflite {

const OperatorRow* find_operator(schema::BuiltinOperator code) noexcept {
  using Family = std::span<const OperatorRow> (*)() noexcept;
  static constexpr Family kFamilies[] = {convolution_operators, matrix_operators, unary_operators,  binary_operators,
                                         shape_operators,       slice_operators,  reduce_operators, state_operators,
                                         recurrent_operators,   control_operators};
  for (const Family family : kFamilies) {
    const auto rows = family();
    const auto row = std::find_if(rows.begin(), rows.end(), [&](const OperatorRow& r) { return r.code == code; });
    if (row != rows.end()) return &*row;
  }
  return nullptr;
}

const OperatorRow* find_operator(const schema::OperatorCode& code) noexcept {
  const schema::BuiltinOperator builtin = builtin_operator(code);
  if (builtin != schema::BuiltinOperator::CUSTOM) return find_operator(builtin);
  if (code.custom_code() == nullptr) return nullptr;
  const std::string_view name(code.custom_code()->c_str(), code.custom_code()->size());
  for (const auto family : {signal_operators, custom_operators})
    for (const CustomOperatorRow& custom : family())
      if (custom.name == name) return &custom.row;
  return nullptr;
}

}  // namespace bantam::import::tflite
