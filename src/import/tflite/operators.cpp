#include "import/tflite/operators.h"

#include <algorithm>

namespace bantam::import::tflite {

const OperatorRow* find_operator(schema::BuiltinOperator code) noexcept {
  using Family = std::span<const OperatorRow> (*)() noexcept;
  static constexpr Family kFamilies[] = {convolution_operators, matrix_operators, unary_operators,
                                         binary_operators,      shape_operators,  slice_operators,
                                         reduce_operators,      state_operators,  recurrent_operators};
  for (const Family family : kFamilies) {
    const auto rows = family();
    const auto row = std::find_if(rows.begin(), rows.end(), [&](const OperatorRow& r) { return r.code == code; });
    if (row != rows.end()) return &*row;
  }
  return nullptr;
}

}  // namespace bantam::import::tflite
