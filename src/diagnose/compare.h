// Finds the first step of a session that computes something wrong: what `bantam compare` does.
//
// The session runs twice. First as it is, and every result that has a counterpart in the reference is compared: the
// *accumulated* error. Then with every operand and result replaced by the reference's tensor as soon as it is there, so
// that each step works on right inputs: its *own* error. Both runs use the plan, the memory and the kernels that an
// application would use; nothing has to be compiled anew, and the arena needs not one byte more.
// Tensors that no kernel writes whole, because they are views, are compared where a step reads them, or as outputs.
// Results without a counterpart (values that passes made) pass through; what they do wrong shows in the next tensor
// that has one, together with the steps in between. Host only; allocates.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bantam/compiler.h"
#include "bantam/runtime.h"
#include "diagnose/difference.h"
#include "diagnose/tensor_set.h"

namespace bantam::diagnose {

/// A tensor that one or more steps compute and that has a counterpart in the reference.
struct TensorCheck {
  std::size_t step = 0;  ///< the last of the steps whose result it is
  std::string tensor;    ///< as the model calls it
  ElementType type = ElementType::kNone;
  Difference own;
  Difference accumulated;
  bool within = false;                ///< the own error is tolerable
  std::vector<std::size_t> suspects;  ///< the steps that computed it from tensors of the reference
};

struct Comparison {
  std::vector<TensorCheck> checks;         ///< in the order of execution
  std::size_t unmatched = 0;               ///< steps of which no result has a counterpart
  std::optional<std::size_t> first_fault;  /// index of the first check that is not within tolerance
};

/// Sums of products may be wrong by 2^-18 of their largest operand, where terms cancel. Integers of at most 16 bits
/// that are computed from floats may be one step off, whatever `tolerance` says: they are quantised. `report` is the
/// compiler's on the session's model; `inputs` have an array for every input of the session. The session is reset
/// before and after.
Result<Comparison> compare_steps(Session& session, const ModelReport& report, const TensorSet& reference,
                                 const std::vector<io::NamedArray>& inputs, const Tolerance& tolerance);

}  // namespace bantam::diagnose
