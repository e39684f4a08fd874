#include "graph/quantized_source.h"

#include <algorithm>

#include "graph/builder.h"
#include "ops/data/reshape/reshape.h"
#include "ops/data/transpose/transpose.h"
#include "ops/elementwise/dequantize/dequantize.h"

namespace bantam::graph {
namespace {

using Source = std::shared_ptr<const QuantizedSource>;

Source of_dequantize(const Graph& graph, const Node& node) {
  const Value& x = graph.value(node.inputs[0]);
  const auto scales = constant_floats(graph, node.inputs[1]);
  if (!scales || scales->empty()) return nullptr;
  auto source = std::make_shared<QuantizedSource>();
  source->integers = *x.constant;
  source->type = x.desc.type;
  source->scales = *scales;
  source->zero_points.assign(scales->size(), 0);
  source->axis = node.as<ops::DequantizeParams>().axis;
  if (node.inputs.size() > 2 && node.inputs[2] != kNone) {
    const auto zero_points = constant_integers(graph, node.inputs[2]);
    if (!zero_points || zero_points->size() != scales->size()) return nullptr;
    std::transform(zero_points->begin(), zero_points->end(), source->zero_points.begin(),
                   [](std::int64_t z) { return static_cast<std::int32_t>(z); });
  }
  return source;
}

std::int64_t elements_before(const TensorDesc& desc, int axis) {
  std::int64_t n = 1;
  for (int i = 0; i < axis; ++i) n *= desc.dims[i];
  return n;
}

/// The axis of `to` that holds what `axis` of `from` holds, or kNone.
int axis_after_reshape(const TensorDesc& from, const TensorDesc& to, int axis) {
  const std::int64_t before = elements_before(from, axis);
  for (int i = 0; i < to.rank; ++i)
    if (to.dims[i] == from.dims[axis] && elements_before(to, i) == before) return i;
  return kNone;
}

/// The same operator on the integers.
std::optional<Constant> moved(const Node& node, const TensorDesc& x, const QuantizedSource& source) {
  TensorDesc desc = x;
  desc.type = source.type;
  desc.set_dense_strides();
  const Tensor input{const_cast<std::byte*>(source.integers.bytes.data()), &desc};
  TensorDesc result;
  if (!ops::infer(*node.op, node.params.data(), std::span(&input, 1), std::span(&result, 1)).ok()) return std::nullopt;
  auto constants = evaluate(*node.op, node.params, std::span(&input, 1), std::span(&result, 1));
  return constants ? std::optional(std::move(constants->front())) : std::nullopt;
}

Source of_movement(const Graph& graph, const Node& node) {
  const Value& x = graph.value(node.inputs[0]);
  if (!x.quantized_source) return nullptr;
  auto source = std::make_shared<QuantizedSource>(*x.quantized_source);
  if (source->scales.size() > 1) {
    if (node.is(ops::kTranspose)) {
      const auto& perm = node.as<ops::TransposeParams>().perm;
      source->axis = static_cast<int>(std::find(perm.v, perm.v + perm.size, source->axis) - perm.v);
    } else {
      TensorDesc to;
      if (!ops::infer(*node.op, node.params.data(), operand_tables(graph, node).inputs, std::span(&to, 1)).ok())
        return nullptr;
      source->axis = axis_after_reshape(x.desc, to, source->axis);
      if (source->axis == kNone) return nullptr;
    }
  }
  auto integers = moved(node, x.desc, *x.quantized_source);
  if (!integers) return nullptr;
  source->integers = std::move(*integers);
  return source;
}

}  // namespace

std::shared_ptr<const QuantizedSource> quantized_source_of(const Graph& graph, const Node& node) {
  if (node.is(ops::kDequantize)) return of_dequantize(graph, node);
  if (node.is(ops::kTranspose) || node.is(ops::kReshape)) return of_movement(graph, node);
  return nullptr;
}

}  // namespace bantam::graph
