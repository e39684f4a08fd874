// Functions of one 8-bit number, and their tables: what integer_arithmetic looks up instead of computing it.
#pragma once

#include <optional>
#include <vector>

#include "passes/quantized_values.h"

namespace bantam::passes {

/// A float value as a function of the 8-bit integers of one tensor of its shape: these dequantised, behind tables that
/// are looked up one after the other, if any, then what operators make of one element at a time, and of single numbers;
/// several paths may lead from the integers to the value, as in x sigmoid(x). Holds as long as the values it was found
/// behind.
class ByteFunction {
 public:
  /// Nothing when the f32 value `x` is no such function, or one of too many operators.
  static std::optional<ByteFunction> of(const Rewriter& rewriter, graph::ValueId x);
  /// The numbers that quantised integers stand for.
  static std::optional<ByteFunction> of(const Rewriter& rewriter, const Quantized& x);

  /// The integers, which no table gave: i8 or u8.
  graph::ValueId argument() const { return argument_; }
  /// The numbers, as f32, that belong to a list of integers of the argument's type.
  std::optional<graph::ValueId> operator()(Rewriter& rewriter, graph::ValueId integers) const;

 private:
  /// Operators, those that were looked at in vain included: what a rule may emit, and the time to look.
  static constexpr int kMostOperators = 24;

  bool reaches(const Rewriter& rewriter, graph::ValueId x);
  bool reaches_through(const Rewriter& rewriter, const graph::Node& node);
  bool has_step(graph::ValueId x) const;

  graph::ValueId argument_ = graph::kNone;
  graph::ValueId result_ = graph::kNone;
  std::optional<Grid> grid_;        ///< of the result, where that is integers
  std::vector<graph::Node> steps_;  ///< in order
  int looked_at_ = 0;
};

/// The table of `function` on the 8-bit grid `to`, within limits: 256 integers, indexed by the bit pattern of its
/// argument. Computed with the reference kernels of the operators and of quantize.
std::optional<graph::ValueId> lookup_table(Rewriter& rewriter, const ByteFunction& function, const Grid& to,
                                           const Limits& limits);

}  // namespace bantam::passes
