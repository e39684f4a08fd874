// Splits a stage of a graph into bands of rows: where a large early part of a convolutional model is computed band by
// band, only a few rows of its values ever live at once.
//
// A stage is a run of neighbouring nodes that are all local in rows (row_rules.h), branches and several results
// included. Each band of a value is computed by the same operator with padding of its own; bands of what the stage
// reads are slices, bands of its results are joined, both without copies where the storage rules allow. Rows that
// several bands need are either computed again by each (kRecompute) or kept from one band for the next, copied in
// memory (kKeep): then nothing is computed twice. Constants are shared by all bands. Results are the same to the bit in
// integers, and as close as the kernels' accuracy in floats. Used by budget.h; host only; pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "bantam/error.h"
#include "graph/graph.h"

namespace bantam::compiler {

enum class Halo : std::uint8_t {
  kKeep,       ///< line buffers
  kRecompute,  ///< every band on its own
};

/// Numbers of bands that are tried, ascending.
inline constexpr int kBandCounts[] = {2, 3, 4, 6, 8, 12, 16, 24, 32, 40, 48, 64, 80, 96, 128, 160};

struct Patching {
  graph::NodeId first = 0;  ///< of the stage
  graph::NodeId last = 0;   ///< included
  int bands = 2;
  Halo halo = Halo::kKeep;

  bool operator==(const Patching&) const = default;
};

/// "layers 'a' to 'b' in 8 bands of rows, rows kept".
std::string describe(const graph::Graph& graph, const Patching& patching);

/// What the rewrite costs, per invoke.
struct PatchCost {
  std::int64_t work = 0;          ///< multiplications of the stage, all bands
  std::int64_t copied_bytes = 0;  ///< rows that are kept for a later band
};

struct PatchedGraph {
  graph::Graph graph;
  PatchCost cost;
  graph::NodeId first = 0;  ///< the nodes that compute the stage now ...
  graph::NodeId last = 0;   ///< ... included
};

/// Nothing when the nodes are no stage, or their rows do not divide into so many bands. Requires a verified graph in
/// execution order with one size and no control flow among these nodes. An Error is a defect of a row rule.
Result<std::optional<PatchedGraph>> patch_rows(const graph::Graph& graph, const Patching& patching);

/// Bytes that live at once while a stage runs in bands, at least nearly.
struct StageBytes {
  std::int64_t inner = 0;  ///< rows of the stage's own values that are computed, kept or recomputed
  std::int64_t all = 0;    ///< with what a band has not yet consumed of what the stage reads, and has given
};

/// Nothing as patch_rows. Far cheaper.
std::optional<StageBytes> estimate_stage(const graph::Graph& graph, const Patching& patching);

/// Multiplications of the nodes [first, last].
std::int64_t work_of(const graph::Graph& graph, graph::NodeId first, graph::NodeId last);
/// Of all nodes.
std::int64_t work_of(const graph::Graph& graph);

}  // namespace bantam::compiler
