// The text of docs/operators.md: what the tables of operators and importers say, and what probing finds.
#pragma once

#include <string>

namespace bantam::testing {

/// Needs ONNX's test data (conformance_case.h) for the column that says what ONNX operators are lowered to.
std::string operators_document();

}  // namespace bantam::testing
