// In which type the weights of a node are stored: what a StoreRule says, or the narrowest that loses nothing. Used by
// the selection of kernels and by reports. Host only.
#pragma once

#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "bantam/compiler.h"
#include "graph/graph.h"
#include "ops/narrowing.h"

namespace bantam::compiler {

/// The types that a rule may name, "f32, f16, ...", and the rule for nodes that fit the pattern; an Error names the
/// types that there are.
std::string store_type_names();
Result<StoreRule> store_rule(const std::string& pattern, const std::string& type);

/// Says what weights are narrowed to, by the rules and by what the weights are. What it finds in a constant it
/// remembers as long as the constant lives, since a search for a budget selects kernels for the same weights thousands
/// of times. Copies share what was found and belong to one thread at a time.
class StoreTypes {
 public:
  StoreTypes();
  StoreTypes(std::initializer_list<StoreRule> rules);
  StoreTypes(std::vector<StoreRule> rules);

  /// What the node's weights should be narrowed to; kNone: they stay f32, which is also what weights do that the type
  /// of a rule cannot hold (f16 beyond 65504, integers where one is not finite). Arithmetic stays in f32 where sums of
  /// products might not fit 16 bits.
  ops::NarrowForm of(const graph::Graph& graph, const graph::Node& node) const;

 private:
  class Findings;

  std::vector<StoreRule> rules_;
  std::shared_ptr<Findings> findings_;
};

/// Fails when a rule's pattern fits no node that has weights to narrow, in the graph or in bodies within it.
Result<void> check_store_rules(const graph::Graph& graph, const std::vector<StoreRule>& rules);

/// True when the pattern is the name, or stands for it.
bool fits_name(const std::string& pattern, const std::string& name);

/// What narrowing did to the weights of one step.
struct NarrowingEffect {
  std::int64_t saved_bytes = 0;
  float error = 0.0F;  ///< the largest change of a weight, relative to the largest weight
};
NarrowingEffect narrowing_effect(const ops::OpCall& call, const ops::KernelVariant& variant,
                                 const ops::Narrowing& narrowing);

}  // namespace bantam::compiler
