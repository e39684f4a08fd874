// Checks a model against recorded inputs and outputs: what `bantam verify` does.
//
// A reference file is an .npz with entries `in.<tensor>.<case>` and `out.<tensor>.<case>`, where <tensor> is the port's
// name with every character outside [A-Za-z0-9_] replaced by `_` (unnamed ports: in0, out0, by position). Cases whose
// names end in -s0, -s1, ... are the steps of a sequence: run in that order on one session, fresh at -s0. Every other
// case starts fresh. Models with dynamic dimensions are compiled once per combination of input shapes; those with
// bounds once, and resized.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "bantam/compiler.h"
#include "diagnose/difference.h"

namespace bantam::diagnose {

/// How one output of one case (all steps of a sequence together) compares.
struct OutputCheck {
  std::string case_name;
  std::string output;
  std::string type;
  std::int64_t steps = 1;
  std::int64_t elements = 0;      ///< compared, over all steps
  std::int64_t mismatches = 0;    ///< elements that differ at all
  double max_absolute_error = 0;  ///< in units of the output; steps for quantised outputs
  double max_relative_error = 0;  ///< largest absolute error over largest reference magnitude
  bool within = false;
};

struct ReferenceReport {
  std::vector<OutputCheck> checks;
  std::int64_t cases = 0;
  bool within = false;  ///< all of them, and at least one
};

struct ReferenceOptions {
  Tolerance tolerance;  ///< per output and step
  CompileOptions compile;
  /// Called before each case or sequence with (done, total, name); may be empty.
  std::function<void(std::int64_t, std::int64_t, const std::string&)> progress;
};

Result<ReferenceReport> check_reference(const ModelSpec& model, const std::filesystem::path& reference,
                                        const ReferenceOptions& options);

}  // namespace bantam::diagnose
