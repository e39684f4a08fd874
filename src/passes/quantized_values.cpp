#include "passes/quantized_values.h"

#include <algorithm>

#include "ops/elementwise/dequantize/dequantize.h"
#include "ops/elementwise/quantize/quantize.h"

namespace bantam::passes {

using graph::kNone;
using graph::Node;
using graph::ValueId;

std::int32_t Grid::lowest() const {
  if (type == ElementType::kI8) return -128;
  return type == ElementType::kI16 ? -32768 : 0;
}

std::int32_t Grid::highest() const {
  const std::int32_t numbers = is_16_bit(type) ? 65536 : 256;
  return lowest() + numbers - 1;
}

std::int32_t Grid::quantize(float real) const {
  const double number = std::nearbyint(static_cast<double>(real / scale)) + zero_point;
  return static_cast<std::int32_t>(std::clamp(number, static_cast<double>(lowest()), static_cast<double>(highest())));
}

std::optional<Grid> grid_of(const graph::Graph& graph, ElementType type, ValueId scale, ValueId zero_point) {
  if (!is_8_bit(type) && !is_16_bit(type)) return std::nullopt;
  const auto scales = graph::constant_floats(graph, scale);
  if (!scales || scales->size() != 1 || !std::isnormal(scales->front()) || scales->front() < 0.0F) return std::nullopt;
  Grid grid{type, scales->front(), 0};
  if (zero_point == kNone) return grid;
  const auto zero_points = graph::constant_integers(graph, zero_point);
  if (!zero_points || zero_points->size() != 1) return std::nullopt;
  grid.zero_point = static_cast<std::int32_t>(zero_points->front());
  return grid;
}

namespace {

template <typename T>
ValueId typed_list(Rewriter& rewriter, std::span<const std::int64_t> dims, std::span<const std::int32_t> values) {
  std::vector<T> elements(values.size());
  std::transform(values.begin(), values.end(), elements.begin(), [](std::int32_t v) { return static_cast<T>(v); });
  return rewriter.constant<T>(dims, elements);
}

ValueId integers_of_type(Rewriter& rewriter, ElementType type, std::span<const std::int64_t> dims,
                         std::span<const std::int32_t> values) {
  switch (type) {
    case ElementType::kI8: return typed_list<std::int8_t>(rewriter, dims, values);
    case ElementType::kU8: return typed_list<std::uint8_t>(rewriter, dims, values);
    case ElementType::kI16: return typed_list<std::int16_t>(rewriter, dims, values);
    default: return typed_list<std::uint16_t>(rewriter, dims, values);
  }
}

}  // namespace

ValueId integer_constant(Rewriter& rewriter, ElementType type, std::int32_t value) {
  return integers_of_type(rewriter, type, {}, std::span(&value, 1));
}

ValueId integer_list(Rewriter& rewriter, ElementType type, std::span<const std::int32_t> values) {
  const std::int64_t dims[] = {static_cast<std::int64_t>(values.size())};
  return integers_of_type(rewriter, type, dims, values);
}

namespace {

/// `x`, and scale and zero point of the grid: the operands of quantize and dequantize.
std::vector<ValueId> with_grid(Rewriter& rewriter, ValueId x, const Grid& grid) {
  const ValueId scale = rewriter.constant<float>({}, std::span(&grid.scale, 1));
  return {x, scale, integer_constant(rewriter, grid.type, grid.zero_point)};
}

}  // namespace

std::optional<ValueId> quantize_on(Rewriter& rewriter, ValueId x, const Grid& grid) {
  return rewriter.emit(ops::kQuantize, ops::QuantizeParams{grid.type, 0, 0}, with_grid(rewriter, x, grid));
}

std::optional<ValueId> dequantize_from(Rewriter& rewriter, ValueId q, const Grid& grid) {
  return rewriter.emit(ops::kDequantize, ops::DequantizeParams{}, with_grid(rewriter, q, grid));
}

std::shared_ptr<const graph::QuantizedSource> quantized_source(const Rewriter& rewriter, ValueId x) {
  if (rewriter.graph().is_constant(x)) return rewriter.value(x).quantized_source;
  const Node* node = rewriter.producer(x, ops::kDequantize);
  if (node == nullptr || !rewriter.graph().is_constant(node->inputs[0])) return nullptr;
  return graph::quantized_source_of(rewriter.graph(), *node);
}

namespace {

ValueId integers_of(Rewriter& rewriter, ValueId x, const graph::QuantizedSource& source) {
  TensorDesc desc = rewriter.desc(x);
  desc.type = source.type;
  return rewriter.constant(desc, source.integers);
}

}  // namespace

std::optional<Quantized> as_quantized(Rewriter& rewriter, ValueId x) {
  if (const auto source = quantized_source(rewriter, x)) {
    const bool one_grid =
        source->scales.size() == 1 && source->block == 0 && (is_8_bit(source->type) || is_16_bit(source->type));
    if (!one_grid || !std::isnormal(source->scales[0]) || source->scales[0] < 0.0F) return std::nullopt;
    return Quantized{integers_of(rewriter, x, *source), {source->type, source->scales[0], source->zero_points[0]}};
  }
  const Node* node = rewriter.producer(x, ops::kDequantize);
  if (node == nullptr) return std::nullopt;
  const ElementType type = rewriter.desc(node->inputs[0]).type;
  const auto grid = grid_of(rewriter.graph(), type, node->inputs[1], operand(*node, 2));
  if (!grid) return std::nullopt;
  return Quantized{node->inputs[0], *grid};
}

std::optional<IntegerWeights> as_integer_weights(Rewriter& rewriter, ValueId w, int axis) {
  const auto source = quantized_source(rewriter, w);
  if (!source || !is_8_bit(source->type) || source->block != 0) return std::nullopt;
  if (source->scales.size() != 1 && source->axis != axis) return std::nullopt;
  const auto usable = [](float scale) { return std::isfinite(scale) && scale >= 0.0F; };
  if (!std::all_of(source->scales.begin(), source->scales.end(), usable)) return std::nullopt;
  return IntegerWeights{integers_of(rewriter, w, *source), source->scales, source->zero_points};
}

}  // namespace bantam::passes
