// What integer_arithmetic knows about quantised values: which float values are dequantised integers, which constants
// were.
#pragma once

#include <cmath>
#include <optional>
#include <vector>

#include "graph/quantized_source.h"
#include "passes/rewriter.h"

namespace bantam::passes {

constexpr bool is_8_bit(ElementType type) { return type == ElementType::kI8 || type == ElementType::kU8; }
constexpr bool is_16_bit(ElementType type) { return type == ElementType::kI16 || type == ElementType::kU16; }

/// The numbers that integers of a tensor stand for: scale * (q - zero_point).
struct Grid {
  ElementType type = ElementType::kNone;
  float scale = 1.0F;
  std::int32_t zero_point = 0;

  bool operator==(const Grid&) const = default;

  std::int32_t lowest() const;
  std::int32_t highest() const;
  /// The integer that QuantizeLinear gives for a number that is not NaN.
  std::int32_t quantize(float real) const;
};

/// Operand `i`, or kNone where the node has fewer.
inline graph::ValueId operand(const graph::Node& node, std::size_t i) {
  return i < node.inputs.size() ? node.inputs[i] : graph::kNone;
}

/// Integers that stand for a float value.
struct Quantized {
  graph::ValueId q = graph::kNone;
  Grid grid;
};

/// Results are limited to these integers: what is left of relu and clip in front of a quantisation.
struct Limits {
  std::int32_t low = 0;
  std::int32_t high = 0;

  static Limits of(const Grid& grid) { return {grid.lowest(), grid.highest()}; }
  bool operator==(const Limits&) const = default;
};

/// The grid that constants `scale` and `zero_point` (may be kNone) describe, when there is one for the whole tensor, of
/// 8 or 16 bits.
std::optional<Grid> grid_of(const graph::Graph& graph, ElementType type, graph::ValueId scale,
                            graph::ValueId zero_point);

/// The integers of `grid` for the f32 numbers `x`, rounded half to even.
std::optional<graph::ValueId> quantize_on(Rewriter& rewriter, graph::ValueId x, const Grid& grid);

/// The f32 numbers that integers of `grid` stand for.
std::optional<graph::ValueId> dequantize_from(Rewriter& rewriter, graph::ValueId q, const Grid& grid);

/// The integers behind `x`, when it is the result of a dequantize or a constant that once was one, with one grid.
std::optional<Quantized> as_quantized(Rewriter& rewriter, graph::ValueId x);

/// Where a constant came from, or a dequantize of constants that was too large to fold; null when it is neither.
std::shared_ptr<const graph::QuantizedSource> quantized_source(const Rewriter& rewriter, graph::ValueId x);

/// Constant 8-bit integers behind the float weights `w`, one grid per slice along `axis` or one for all.
struct IntegerWeights {
  graph::ValueId w = graph::kNone;
  std::vector<float> scales;
  std::vector<std::int32_t> zero_points;
};
std::optional<IntegerWeights> as_integer_weights(Rewriter& rewriter, graph::ValueId w, int axis);

/// A one-element constant of an integer grid's type.
graph::ValueId integer_constant(Rewriter& rewriter, ElementType type, std::int32_t value);

/// The same as a list.
graph::ValueId integer_list(Rewriter& rewriter, ElementType type, std::span<const std::int32_t> values);

}  // namespace bantam::passes
