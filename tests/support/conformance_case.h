// One folder of ONNX's test data, run through the whole system: import, passes, plan, package, session.
//
// Operands that decide shapes are inputs in those models; where the compiler needs them as constants, they are given as
// a user would give them (ModelSpec::values), as few as possible. Test code: allocates freely.
#pragma once

#include <cstddef>
#include <filesystem>
#include <set>
#include <string>

#include "bantam/error.h"
#include "graph/graph.h"

namespace bantam::testing {

struct CaseOutcome {
  std::string problem;  ///< why the case does not pass; empty when it does
  std::size_t inputs = 0;
  std::size_t fixed = 0;  ///< inputs that had to be constants of the compilation
};

/// Runs every data set of the folder with the default kernels and with the plain ones. Packages that the runtime
/// refuses to open or place are reported to GoogleTest.
CaseOutcome run_conformance_case(const std::filesystem::path& folder);

/// The folder's model as imported, before any pass, with the same inputs constant.
Result<graph::Graph> import_conformance_case(const std::filesystem::path& folder);

/// Where Debian's libonnx-testdata keeps the suites.
inline constexpr const char* kConformanceData = "/usr/share/libonnx-testdata/data";

}  // namespace bantam::testing
