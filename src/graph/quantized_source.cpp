#include "graph/quantized_source.h"

#include <algorithm>

#include "graph/builder.h"
#include "ops/data/reshape/reshape.h"
#include "ops/data/slice/slice.h"
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

/// A transpose, reshape or slice of other elements of the constant's shape.
std::optional<Constant> moved(const Node& node, TensorDesc desc, std::span<const std::byte> bytes) {
  desc.set_dense_strides();
  const Tensor input{const_cast<std::byte*>(bytes.data()), &desc};
  TensorDesc result;
  if (!ops::infer(*node.op, node.params.data(), std::span(&input, 1), std::span(&result, 1)).ok()) return std::nullopt;
  auto constants = evaluate(*node.op, node.params, std::span(&input, 1), std::span(&result, 1));
  return constants ? std::optional(std::move(constants->front())) : std::nullopt;
}

template <typename T>
bool move_list(const Node& node, TensorDesc desc, std::vector<T>& list) {
  desc.type = element_type_of<T>();
  const auto result = moved(node, desc, std::as_bytes(std::span(list)));
  if (result) std::memcpy(list.data(), result->bytes.data(), result->bytes.size());
  return result.has_value();
}

/// Does a slice take all of this axis as it is?
bool keeps_axis(const Node& slice, const TensorDesc& x, int axis) {
  const auto& p = slice.as<ops::SliceParams>();
  return p.starts.v[axis] == 0 && p.steps.v[axis] == 1 && p.sizes.v[axis] == x.dims[axis];
}

/// Where scales and their axis go; false when a reshape mixes slices with different scales, or a slice cuts their axis.
bool move_scales(const Graph& graph, const Node& node, QuantizedSource& source) {
  const TensorDesc& x = graph.value(node.inputs[0]).desc;
  if (source.scales.size() <= 1) return true;
  if (node.is(ops::kSlice)) return source.block == 0 && keeps_axis(node, x, source.axis);
  if (node.is(ops::kTranspose)) {
    const TensorDesc scales = scales_desc(x, source);
    const auto& perm = node.as<ops::TransposeParams>().perm;
    source.axis = static_cast<int>(std::find(perm.v, perm.v + perm.size, source.axis) - perm.v);
    return source.block == 0 || (move_list(node, scales, source.scales) && move_list(node, scales, source.zero_points));
  }
  TensorDesc to;
  if (source.block != 0 ||
      !ops::infer(*node.op, node.params.data(), operand_tables(graph, node).inputs, std::span(&to, 1)).ok())
    return false;
  source.axis = axis_after_reshape(x, to, source.axis);
  return source.axis != kNone;
}

Source of_movement(const Graph& graph, const Node& node) {
  const Value& x = graph.value(node.inputs[0]);
  if (!x.quantized_source) return nullptr;
  auto source = std::make_shared<QuantizedSource>(*x.quantized_source);
  if (!move_scales(graph, node, *source)) return nullptr;
  TensorDesc desc = x.desc;
  desc.type = source->type;
  auto integers = moved(node, desc, source->integers.bytes);
  if (!integers) return nullptr;
  source->integers = std::move(*integers);
  return source;
}

}  // namespace

TensorDesc scales_desc(const TensorDesc& constant, const QuantizedSource& source) {
  TensorDesc desc = constant;
  desc.type = ElementType::kF32;
  if (source.block != 0) {
    std::int32_t& dim = desc.dims[source.axis];
    dim = static_cast<std::int32_t>((dim + source.block - 1) / source.block);
  } else {
    desc.rank = 1;
    desc.dims[0] = static_cast<std::int32_t>(source.scales.size());
  }
  desc.set_dense_strides();
  return desc;
}

std::shared_ptr<const QuantizedSource> quantized_source_of(const Graph& graph, const Node& node) {
  if (node.is(ops::kDequantize)) return of_dequantize(graph, node);
  if (node.is(ops::kTranspose) || node.is(ops::kReshape) || node.is(ops::kSlice)) return of_movement(graph, node);
  return nullptr;
}

}  // namespace bantam::graph
