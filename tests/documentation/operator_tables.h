// The text of docs/operators.md: what the tables of operators and importers say, and what probing finds.
#pragma once

#include <map>
#include <string>

#include "ops/op.h"

namespace bantam::testing {

/// What the headers in src/ops say behind "Accuracy:", by operator.
std::map<std::string, std::string> stated_accuracies();

/// The largest error, relative to a result's largest magnitude, that a kernel of the operator may have; 0: none.
float accuracy_bound(const ops::OpDef& op);

/// Needs ONNX's test data (conformance_case.h) for the column that says what ONNX operators are lowered to.
std::string operators_document();

}  // namespace bantam::testing
