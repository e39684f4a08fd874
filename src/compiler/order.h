// Execution orders to choose from. The compiler plans with each and keeps the one with the smallest arena.
#pragma once

#include <vector>

#include "graph/graph.h"

namespace bantam::compiler {

/// One node must run after another, although it reads nothing of it.
struct Precedence {
  graph::NodeId before;
  graph::NodeId after;
};

/// The nodes as they stand, those that must wait put behind what they wait for. Fewer nodes than the graph has when
/// some wait for each other.
std::vector<graph::NodeId> order_of_model(const graph::Graph& graph, const std::vector<Precedence>& precedences);

/// A permutation of the nodes in which every producer precedes its readers: at each step the ready node that leaves the
/// fewest bytes alive is taken, the earlier one on ties. Of very many ready nodes only the first few hundred are
/// compared.
std::vector<graph::NodeId> order_by_memory(const graph::Graph& graph, const std::vector<Precedence>& precedences = {});

/// The same for the bodies of its nodes, and theirs: orders each of them.
void order_bodies_by_memory(graph::Graph& graph);

/// Applies a permutation that keeps producers before readers.
void reorder(graph::Graph& graph, const std::vector<graph::NodeId>& order);

}  // namespace bantam::compiler
