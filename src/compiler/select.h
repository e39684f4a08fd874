// Chooses the kernel variant of every node.
#pragma once

#include <string>
#include <vector>

#include "bantam/target.h"
#include "graph/graph.h"

namespace bantam::compiler {

/// Which of an operator's variants may be used.
enum class KernelChoice {
  kFast,       ///< the first variant that supports the call: they are listed fastest first
  kReference,  ///< the plain definition, everywhere
};

/// One variant per node, by node index, of those that `target` has. Requires a verified graph.
Result<std::vector<const ops::KernelVariant*>> select_kernels(const graph::Graph& graph, KernelChoice choice,
                                                              const Target& target = {});

}  // namespace bantam::compiler
