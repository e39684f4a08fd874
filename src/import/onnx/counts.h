// Inputs that hold counts, and the sizes that a graph computes from them.
//
// Shapes are fixed when a model is compiled, but some graphs compute a size from data: a Range up to the longest of
// the lengths given, say. For an input whose elements are counts of at most N, such a size is what it is when all of
// them are N; the input stays an input. Single-threaded; belongs to one import.
#pragma once

#include <map>
#include <optional>

#include "graph/builder.h"

namespace bantam::import::onnx {

class LargestCounts {
 public:
  explicit LargestCounts(graph::Builder& builder) : builder_(builder) {}

  /// `input` holds `largest`, a constant of the same desc, when all counts are as large as they may be.
  void set(graph::ValueId input, graph::Constant largest) { known_[input] = std::move(largest); }

  /// A constant value: `id` itself when it is one, else what it is when all counts are largest. kNone when it depends
  /// on other inputs, or costs more than sizes do.
  graph::ValueId resolve(graph::ValueId id);

 private:
  /// The nodes that `id` is computed by, in order; nothing when one of them reads an input that holds no counts.
  std::optional<std::vector<graph::NodeId>> cone(graph::ValueId id) const;
  bool evaluate(graph::NodeId id);

  graph::Builder& builder_;
  std::map<graph::ValueId, graph::Constant> known_;  ///< inputs, and what was computed from them
};

}  // namespace bantam::import::onnx
