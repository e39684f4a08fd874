// One model run by Bantam and by ONNX Runtime: same inputs, in memory that both read; outputs compared; then timed in
// turn. Belongs to one thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "alternate.h"
#include "bantam/compiler.h"
#include "peer/onnxruntime.h"
#include "schedule/processor/roof.h"

namespace bantam::bench {

struct ContestOptions {
  CompileOptions compile;
  AlternateOptions alternate;
  schedule::Roof roof;
  std::uint64_t seed = 1;   ///< of the inputs
  double tolerance = 1e-2;  ///< largest difference of an output, relative to the output's largest magnitude
};

/// A row of the table.
struct ContestRow {
  std::string model;
  /// The file's initializers are also inputs, and the peer was given a copy without those inputs.
  bool fixed_initializers = false;
  double max_relative_error = 0;
  std::int64_t work = 0;  ///< multiply-accumulates
  double roof_share = 0;  ///< Bantam's, of what its threads could multiply
  Alternation times;
};

/// One row; two for a file whose initializers are also inputs: as it is, and with the peer given the cleaned copy.
/// Fails when either side cannot run the model, or when their outputs differ by more than the tolerance.
Result<std::vector<ContestRow>> run_contest(const peer::Library& library, const ModelSpec& model,
                                            const ContestOptions& options);

}  // namespace bantam::bench
