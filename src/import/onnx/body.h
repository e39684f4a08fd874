// Bodies of control flow that stay in the graph: nested graphs lowered into graphs of their own.
//
// A frame is a graph under construction, the model's own or that of a body. A name that a body finds outside becomes an
// input of the body (a capture), a constant is copied in: bodies see nothing of the graph around them
// (graph/control.h). Single-threaded; belongs to one import.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "graph/builder.h"
#include "import/onnx/counts.h"
#include "import/onnx/measured.h"

namespace bantam::import::onnx {

class Frame {
 public:
  explicit Frame(const Options& options)
      : options_(options), builder_(graph_), counts_(builder_), measured_(builder_, options) {}
  explicit Frame(Frame& outer)
      : options_(outer.options_),
        outer_(&outer),
        builder_(graph_, outer.builder_),
        counts_(builder_),
        measured_(builder_, options_) {}
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;

  graph::Graph& graph() noexcept { return graph_; }
  graph::Builder& builder() noexcept { return builder_; }
  LargestCounts& counts() noexcept { return counts_; }
  MeasuredSizes& measured() noexcept { return measured_; }

  /// What a value of the frame around is in here. Requires such a frame.
  graph::ValueId capture(graph::ValueId outer);
  /// Constants that were stored in 4 bits.
  void mark_nibbles(graph::ValueId id) { nibbles_.insert(id); }
  bool is_nibbles(graph::ValueId id) const { return nibbles_.contains(id); }
  /// Values of the frame around, in the order of the inputs that they became.
  const std::vector<graph::ValueId>& captures() const noexcept { return captures_; }
  /// True when there are as many bodies around as a graph may have.
  bool is_deepest() const noexcept;

 private:
  const Options& options_;
  Frame* outer_ = nullptr;
  graph::Graph graph_;
  graph::Builder builder_;
  LargestCounts counts_;
  MeasuredSizes measured_;
  std::map<graph::ValueId, graph::ValueId> known_;  ///< by value of the frame around
  std::vector<graph::ValueId> captures_;
  std::set<graph::ValueId> nibbles_;
};

}  // namespace bantam::import::onnx
