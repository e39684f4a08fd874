// Chooses the kernel variant of every node.
#pragma once

#include <set>
#include <span>
#include <string>
#include <vector>

#include "bantam/compiler.h"
#include "compiler/narrow_weights.h"
#include "graph/graph.h"

namespace bantam::compiler {

struct Selection {
  const ops::KernelVariant* variant = nullptr;
  std::string fallback;  ///< why it is not of the backend that the node should have; empty when it is
};

struct KernelPolicy {
  Backend backend = Backend::kFast;
  std::vector<BackendRule> rules{};   ///< for parts of the graph
  std::vector<KernelRule> kernels{};  ///< for some nodes, whatever their backend; those that fit no node are no error
  Target target{};
  /// By node, as output_marks gives them for the graph before it was flattened; empty: those of the graph itself.
  std::vector<std::uint64_t> marks{};
  std::set<std::string> sparing{};  ///< names of nodes that get the kernel with the least scratch, whose ever it is
  int threads = 1;                  ///< that the scratch of sparing kernels is measured for
  StoreTypes stores{};              ///< in which type weights are stored
};

/// One kernel per node, by node index: the one that the node has already, else, of those that the target has, that
/// belong to the node's backend and that support the call, the one that compiler/cost_model.h takes, else of the next
/// backend that has one; none for control flow. Requires verified graphs in execution order: the same one at every size
/// at which the kernels must serve, at least one. Fails when a rule fits no node, or when no backend has a kernel.
Result<std::vector<Selection>> select_kernels(std::span<const graph::Graph* const> sizes, const KernelPolicy& policy);
inline Result<std::vector<Selection>> select_kernels(const graph::Graph& graph, const KernelPolicy& policy = {}) {
  const graph::Graph* const one = &graph;
  return select_kernels({&one, 1}, policy);
}

/// The fast variants but `kernel` that the target has, that store weights as it does, and that support the node, which
/// has one size.
std::vector<const ops::KernelVariant*> alternatives(const graph::Graph& graph, const graph::Node& node,
                                                    const ops::KernelVariant& kernel, const Target& target);

/// Fails when a rule's pattern fits no node that has such a kernel, in the graph or in bodies within it.
Result<void> check_kernel_rules(const graph::Graph& graph, const std::vector<KernelRule>& rules);

std::vector<const ops::KernelVariant*> variants_of(const std::vector<Selection>& selected);

/// True when the node has nothing to compute, because no result has elements: its step will not be run.
bool is_idle(const graph::Graph& graph, const graph::Node& node);

/// Do these variants, by node, support the graph's calls?
bool supported(const std::vector<const ops::KernelVariant*>& variants, const graph::Graph& graph);

}  // namespace bantam::compiler
