// Control flow in a graph: nodes with bodies.
//
// An `if` or a `loop` is a node like any other to passes: operands in, results out. What it computes is in its bodies,
// graphs of their own that see nothing of the graph around them: whatever a body reads from outside is an operand of
// the node and an input of the body. Importers make such nodes, the compiler flattens them into steps that jump
// (compiler/flatten.h); there are no kernels for them.
//   if    operands: condition (bool, one element), captures. Bodies: then, else; inputs: the captures; outputs: the
//         results, of equal type and shape in both.
//   loop  operands: trip count (i64, one element) or absent, condition (bool, one element) or absent, one initial value
//         per result (absent: unspecified, the body writes it before anything reads it), captures. Body inputs:
//         iteration (i64 scalar, from 0), the carried values, the captures; outputs: condition (bool, one element), the
//         carried values' next ones. Runs while iteration < trip count and the condition holds; results are the carried
//         values in the end, the initial ones when it runs not once.
// Bodies have no states. Host only.
#pragma once

#include <cstdint>

#include "graph/graph.h"

namespace bantam::graph {

struct LoopParams {
  std::int32_t limit = 0;  ///< most iterations; a run that would take more fails. Fixed when compiled, at least 1
};

extern const ops::OpDef kIf;    // "if"
extern const ops::OpDef kLoop;  // "loop"

/// Most bodies inside one another.
inline constexpr int kMaxBodyDepth = 8;

/// The control operator of that name, or null.
const ops::OpDef* find_control_op(std::string_view name) noexcept;

/// Operands before the captures.
std::size_t leading_operands(const Node& node);
/// Inputs of its bodies before the captures.
std::size_t leading_inputs(const Node& node);

/// What the results are, by the node's bodies. Requires a node that check_control accepts.
const TensorDesc& control_result(const Node& node, std::size_t i);

/// Checks operands, results and bodies (their insides too) against each other. `depth`: bodies around the node.
Result<void> check_control(const Graph& graph, const Node& node, int depth);

/// True when a node of the graph has bodies.
bool has_control(const Graph& graph);

}  // namespace bantam::graph
