// Which rows of its operands a node needs to compute some rows of its result: what patch_rows.h splits stages by.
//
// Rows are positions along one axis of the result, which may be another axis of an operand (a transpose moves it). One
// table (row_rules.cpp) has a rule for every operator that is local in rows; all others end a stage. Pure functions of
// the graph, host only.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "graph/graph.h"

namespace bantam::compiler {

/// Rows [first, last).
struct RowRange {
  std::int64_t first = 0;
  std::int64_t last = 0;

  std::int64_t size() const { return last - first; }
};

struct RowOperand {
  int axis = -1;  ///< that rows are counted along; -1: the operand is needed whole
  RowRange rows;
};

/// A node that computes only some rows: its parameters, and what it reads.
struct RowBand {
  graph::Params params;
  std::vector<RowOperand> operands;
};

/// How `node` computes these rows of its result along `axis`; nothing when no rule says how. Requires a verified node,
/// 0 <= axis < rank of the result, and rows within it, at least one.
std::optional<RowBand> row_band(const graph::Graph& graph, const graph::Node& node, int axis, RowRange rows);

/// Is there a rule for the node's operator?
bool has_row_rule(const graph::Node& node);

/// The axis that rows are counted along if only the node is asked: of windowed operators and matrix products; -1 for
/// others.
int own_row_axis(const graph::Graph& graph, const graph::Node& node);

}  // namespace bantam::compiler
