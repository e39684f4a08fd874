// Graphs that are equal but for numbers: finding the numbers, expressing them by sizes, and making the graph for other
// sizes. Parts of sized_model.h.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bantam/error.h"
#include "compiler/sized_model.h"

namespace bantam::compiler {

/// Where two graphs differ in more than numbers, in words; empty when they do not. Constants may differ in extent and
/// contents.
std::string structural_difference(const graph::Graph& a, const graph::Graph& b);

/// Do both graphs compute the same from the same inputs? Compares expressions, not names or order.
bool compute_the_same(const graph::Graph& a, const graph::Graph& b);

/// A graph whose numbers are expressions of sizes.
class GraphTemplate {
 public:
  /// `samples` are structurally equal. Constants that grow with a size become slices of the largest, and
  /// short ones of integers become parameters. Fails with the
  /// name of the node whose number follows no expression.
  static Result<GraphTemplate> fit(std::vector<SizedGraph> samples);

  /// The graph at these sizes. Fails where operators refuse the shapes.
  Result<graph::Graph> at(const Sizes& sizes) const;

 private:
  struct InputDim {
    std::size_t input;
    int dim;
    SizeExpression expression;
  };
  struct ParamWord {
    std::size_t node;
    std::size_t word;
    SizeExpression expression;
  };

  graph::Graph graph_;
  std::vector<InputDim> input_dims_;
  std::vector<ParamWord> param_words_;
};

}  // namespace bantam::compiler
