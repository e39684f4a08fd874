// Storages that fill or empty bit by bit: which of their bytes are in use when.
//
// The input of a patched stage is read row by row, its result is written so (patch_rows.h). A plan that treats such a
// storage as one block wastes the rows that are not yet written, or will not be read again. Here it is cut into strips
// of bytes with lifetimes of their own; whoever plans fixes the offsets of the strips of one storage together, which
// `fix_strips` chooses, and leaves everything else to the planner. Called by planned_model.cpp for models with one size
// and no control flow. Pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/storage.h"
#include "graph/graph.h"
#include "plan/problem.h"

namespace bantam::compiler {

/// Bytes [begin, end) of a storage, in use in the steps [lower, upper).
struct Strip {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t lower = 0;
  std::int64_t upper = 0;
};

struct StripedStorage {
  std::size_t storage = 0;    ///< index into StorageMap::storages
  std::int64_t offset = 0;    ///< within the activations
  std::vector<Strip> strips;  ///< ascending, together the whole storage
};

/// The storages among `candidates` (indices) that strips are worth it for, with offsets at which no two strips collide.
/// `preserved_inputs` as StorageOptions has them.
std::vector<StripedStorage> fix_strips(const graph::Graph& graph, const StorageMap& map,
                                       const std::vector<std::size_t>& candidates,
                                       const std::vector<bool>& preserved_inputs);

}  // namespace bantam::compiler
