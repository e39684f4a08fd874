// Chooses the kernel variant of every node.
#pragma once

#include <span>
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

/// One variant per node, by node index. Requires verified graphs: the same one at every size at which the variants must
/// serve, at least one. Only variants that `target` has are chosen.
Result<std::vector<const ops::KernelVariant*>> select_kernels(std::span<const graph::Graph* const> sizes,
                                                              KernelChoice choice, const Target& target = {});
inline Result<std::vector<const ops::KernelVariant*>> select_kernels(const graph::Graph& graph, KernelChoice choice,
                                                                     const Target& target = {}) {
  const graph::Graph* const one = &graph;
  return select_kernels({&one, 1}, choice, target);
}

/// Do these variants, by node, support the graph's calls?
bool supported(const std::vector<const ops::KernelVariant*>& variants, const graph::Graph& graph);

}  // namespace bantam::compiler
