// Sizes that a graph computes from data, while it is imported: how many elements a NonZero finds, or the integer that a
// Range ends at. Shapes are made with an assumed number, which the compiler varies (compiler/sized_model.h); which
// value holds the real one is noted in the graph (graph::MeasuredSize). Equal computations are one size, so that what
// two nodes select by the same mask fits together. Single-threaded; belongs to one import.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "graph/builder.h"
#include "import/import.h"

namespace bantam::import::onnx {

class MeasuredSizes {
 public:
  MeasuredSizes(graph::Builder& builder, const Options& options) : builder_(builder), options_(options) {}

  /// One element of an integer tensor: `offset` plus what `base`, an integer tensor with one element, holds; a constant
  /// when there is no base.
  struct Element {
    graph::ValueId base = graph::kNone;
    std::int64_t offset = 0;
  };
  /// Follows what moves integers about, and additions of constants, back to where element `index` comes from.
  Element trace(graph::ValueId id, std::int64_t index);

  /// The name of the size that `value` holds, or that the last result of this call will hold: the one that an equal
  /// computation got, else `proposed`, made unique.
  std::string name_of(graph::ValueId value, const std::string& proposed);
  std::string name_of(const ops::OpDef& op, const graph::Params& params, const std::vector<graph::ValueId>& inputs,
                      const std::string& proposed);
  /// The largest number that it may be: what the user says, else `most`.
  std::optional<std::int64_t> bound(const std::string& name, std::optional<std::int64_t> most) const;
  /// The bound that it has without `most`: the user's, or that of the size as it is known already.
  std::optional<std::int64_t> known_bound(const std::string& name) const {
    const auto known = bounds_.find(name);
    return known != bounds_.end() ? std::optional(known->second) : bound(name, std::nullopt);
  }
  /// The number to make shapes with. `value` becomes the size's source unless it has one.
  std::int64_t measure(const std::string& name, graph::ValueId value, std::int64_t bound);

  bool is_known(const std::string& name) const { return bounds_.contains(name); }

 private:
  using Expression = std::tuple<const ops::OpDef*, std::string, std::vector<int>, std::size_t>;

  /// Equal numbers for equal expressions.
  int number(graph::ValueId id);
  int number(Expression expression);
  std::string name_of_number(int number, const std::string& proposed);

  graph::Builder& builder_;
  const Options& options_;
  std::map<std::string, std::int64_t> bounds_;  ///< of the sizes that are measured
  std::map<int, std::string> names_;            ///< by number
  std::map<graph::ValueId, int> numbers_;
  std::map<Expression, int> expressions_;
  std::map<std::pair<std::string, std::string>, int> constants_;  ///< by desc and bytes
  int count_ = 0;
};

}  // namespace bantam::import::onnx
