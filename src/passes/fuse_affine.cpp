// Folds multiplications and additions by per-channel constants (batch normalisation, scales, biases) into the weights
// and bias of a neighbouring f32 conv2d, depthwise_conv2d, conv_transpose2d or matmul with constant weights.
//
// After the operator (sole reader, no activation): (w x + b) s + t = (w s) x + (b s + t), s and t per output channel.
// Before it: w (x s) = (w s) x, s per input channel, valid for any zero padding since 0 s = 0; and w (x + t) =
// w x + sum(w t), valid where no padding lets positions escape the addition. Subtraction is addition of -t, a quotient
// x / c multiplication by 1 / c. The product of weight and scale is rounded once more than the original order rounds,
// so results differ by a few units in the last place; scales and results that are not finite are left alone.
// Elsewhere a division by constants becomes a multiplication only where the reciprocals are exact: powers of two.
// One sweep folds chains such as Mul, Add, Mul. Cost: one pass over the weights per folded multiplication.
#include <algorithm>
#include <cmath>
#include <functional>

#include "ops/elementwise/binary/binary.h"
#include "ops/nn/conv2d/conv2d.h"
#include "ops/nn/conv_transpose2d/conv_transpose2d.h"
#include "ops/nn/depthwise_conv2d/depthwise_conv2d.h"
#include "ops/nn/matmul/matmul.h"
#include "passes/list.h"
#include "passes/rewriter.h"

namespace bantam::passes {
namespace {

using graph::Node;
using graph::ValueId;
using Floats = std::vector<float>;
using Replacement = std::optional<ValueId>;

/// x -> x * scale + offset per channel; an empty vector means 1 or 0. One element stands for all channels.
struct Affine {
  Floats scale;
  Floats offset;
};

float at(const Floats& list, std::size_t channel) { return list.size() == 1 ? list[0] : list[channel]; }

bool all_finite(const Floats& list) {
  return std::all_of(list.begin(), list.end(), [](float f) { return std::isfinite(f); });
}

/// The elements of an f32 constant that varies only along the last axis of a tensor `of`, one or one per channel.
std::optional<Floats> per_channel(const graph::Graph& graph, ValueId id, const TensorDesc& of) {
  const TensorDesc& d = graph.value(id).desc;
  if (!graph.is_constant(id) || d.type != ElementType::kF32 || d.rank > of.rank || of.rank == 0) return std::nullopt;
  const std::int64_t n = d.elements();
  if (n != 1 && (n != of.last(0) || d.last(0) != n)) return std::nullopt;
  auto elements = graph::constant_floats(graph, id);
  return elements && all_finite(*elements) ? elements : std::nullopt;
}

struct AffineNode {
  ValueId x;
  Affine affine;
};

/// `node` read as x * scale + offset, when it is that and keeps x's shape.
std::optional<AffineNode> as_affine(const graph::Graph& graph, const Node& node) {
  using enum ops::BinaryFunction;
  if (!node.is(ops::kBinary)) return std::nullopt;
  const auto& p = node.as<ops::BinaryParams>();
  if (p.activation.function != ops::UnaryFunction::kIdentity) return std::nullopt;
  for (const std::size_t constant : {std::size_t{1}, std::size_t{0}}) {
    const ValueId x = node.inputs[1 - constant];
    const TensorDesc& shape = graph.value(x).desc;
    if (!same_shape_and_type(shape, graph.value(node.outputs[0]).desc)) continue;
    auto c = per_channel(graph, node.inputs[constant], shape);
    if (!c) continue;
    const auto mapped = [&](auto f) {
      std::transform(c->begin(), c->end(), c->begin(), f);
      return *c;
    };
    switch (p.function) {
      case kAdd: return AffineNode{x, {{}, *c}};
      case kMul: return AffineNode{x, {*c, {}}};
      case kSub:
        if (constant == 0) return AffineNode{x, {{-1.0F}, *c}};
        return AffineNode{x, {{}, mapped([](float f) { return -f; })}};
      case kDiv:
        if (constant == 0) return std::nullopt;
        mapped([](float f) { return 1.0F / f; });
        return all_finite(*c) ? std::optional(AffineNode{x, {*c, {}}}) : std::nullopt;
      default: return std::nullopt;
    }
  }
  return std::nullopt;
}

/// How the elements of a weight tensor belong to output and input channels.
struct WeightAxes {
  std::size_t outputs = 0;  ///< output channels
  std::size_t inputs = 0;   ///< input channels
  /// Channels of weight element i.
  std::function<std::size_t(std::size_t)> output_of;
  std::function<std::size_t(std::size_t)> input_of;
  bool padded = false;  ///< some result sees fewer taps than others
};

WeightAxes grouped_axes(const TensorDesc& w, std::int32_t groups, bool padded) {
  const auto outputs = static_cast<std::size_t>(w.dims[0]);
  const auto group_inputs = static_cast<std::size_t>(w.dims[3]);
  const std::size_t taps = static_cast<std::size_t>(w.dims[1]) * static_cast<std::size_t>(w.dims[2]);
  const std::size_t group_outputs = std::max<std::size_t>(outputs / static_cast<std::size_t>(groups), 1);
  const std::size_t per_output = std::max<std::size_t>(taps * group_inputs, 1);
  return {outputs, group_inputs * static_cast<std::size_t>(groups), [=](std::size_t i) { return i / per_output; },
          [=](std::size_t i) { return i / per_output / group_outputs * group_inputs + i % group_inputs; }, padded};
}

bool has_padding(const ops::Conv2dParams& p) { return (p.pad_top | p.pad_left | p.pad_bottom | p.pad_right) != 0; }

std::optional<WeightAxes> weight_axes(const graph::Graph& graph, const Node& node) {
  const TensorDesc& w = graph.value(node.inputs[1]).desc;
  if (node.is(ops::kConv2d))
    return grouped_axes(w, node.as<ops::Conv2dParams>().groups, has_padding(node.as<ops::Conv2dParams>()));
  if (node.op->name == "conv_transpose2d")  // its borders see fewer taps even without padding
    return grouped_axes(w, node.as<ops::ConvTranspose2dParams>().groups, true);
  if (node.is(ops::kDepthwiseConv2d)) {
    const auto outputs = static_cast<std::size_t>(w.last(0));
    const auto inputs = static_cast<std::size_t>(graph.value(node.inputs[0]).desc.last(0));
    const std::size_t multiplier = std::max<std::size_t>(inputs == 0 ? 1 : outputs / inputs, 1);
    return WeightAxes{outputs, inputs, [=](std::size_t i) { return i % outputs; },
                      [=](std::size_t i) { return i % outputs / multiplier; },
                      has_padding(node.as<ops::Conv2dParams>())};
  }
  if (!node.is(ops::kMatmul) || w.rank != 2) return std::nullopt;
  const auto& p = node.as<ops::MatmulParams>();
  if (p.transpose_a != 0) return std::nullopt;  // the last axis of operand 0 is not the channel then
  const auto rows = static_cast<std::size_t>(w.dims[0]);
  const auto columns = static_cast<std::size_t>(w.dims[1]);
  const auto row = [=](std::size_t i) { return i / columns; };
  const auto column = [=](std::size_t i) { return i % columns; };
  if (p.transpose_b != 0) return WeightAxes{rows, columns, row, column, false};
  return WeightAxes{columns, rows, column, row, false};
}

ops::UnaryFunction activation_of(const Node& node) {
  if (node.is(ops::kMatmul)) return node.as<ops::MatmulParams>().activation.function;
  if (node.op->name == "conv_transpose2d") return node.as<ops::ConvTranspose2dParams>().activation.function;
  return node.as<ops::Conv2dParams>().activation.function;
}

/// An operator whose constant weights and bias may change.
struct Linear {
  const Node* node = nullptr;
  WeightAxes axes;
  Floats bias;  ///< empty: none
};

std::optional<Linear> as_linear(Rewriter& rewriter, const Node* node) {
  if (node == nullptr) return std::nullopt;
  const bool linear = node->is(ops::kConv2d) || node->is(ops::kDepthwiseConv2d) || node->is(ops::kMatmul) ||
                      node->op->name == "conv_transpose2d";
  if (!linear) return std::nullopt;
  const graph::Graph& graph = rewriter.graph();
  const auto f32_constant = [&](ValueId id) {
    return graph.is_constant(id) && graph.value(id).desc.type == ElementType::kF32;
  };
  if (!f32_constant(node->inputs[1]) || rewriter.desc(node->inputs[0]).type != ElementType::kF32) return std::nullopt;
  Linear result{node, {}, {}};
  if (node->inputs.size() > 2 && node->inputs[2] != graph::kNone) {
    if (!f32_constant(node->inputs[2])) return std::nullopt;
    result.bias = *graph::constant_floats(graph, node->inputs[2]);
  }
  auto axes = weight_axes(graph, *node);
  if (!axes || axes->outputs == 0 || axes->inputs == 0) return std::nullopt;
  result.axes = std::move(*axes);
  return result;
}

/// The operator on `x` with these weights (empty: as they are) and bias (empty: none).
Replacement rebuild(Rewriter& rewriter, const Linear& linear, ValueId x, const Floats& weights, const Floats& bias) {
  if (!all_finite(weights) || !all_finite(bias)) return std::nullopt;
  std::vector<ValueId> inputs = linear.node->inputs;
  inputs[0] = x;
  inputs.resize(std::max<std::size_t>(inputs.size(), 3), graph::kNone);
  if (!weights.empty()) {
    const TensorDesc w = rewriter.desc(inputs[1]);
    inputs[1] = rewriter.constant<float>(dims_of(w), weights);
  }
  const std::int64_t outputs[] = {static_cast<std::int64_t>(linear.axes.outputs)};
  if (!bias.empty()) inputs[2] = rewriter.constant<float>(outputs, bias);
  return rewriter.emit(*linear.node->op, linear.node->params, std::move(inputs));
}

Replacement fold_after(Rewriter& rewriter, const Node& node) {
  const auto affine = as_affine(rewriter.graph(), node);
  if (!affine || !rewriter.only_reader(affine->x)) return std::nullopt;
  const auto linear = as_linear(rewriter, rewriter.producer(affine->x));
  if (!linear || activation_of(*linear->node) != ops::UnaryFunction::kIdentity) return std::nullopt;
  const auto& [scale, offset] = affine->affine;
  Floats weights;
  Floats bias = linear->bias;
  if (!scale.empty()) {
    weights = *graph::constant_floats(rewriter.graph(), linear->node->inputs[1]);
    for (std::size_t i = 0; i < weights.size(); ++i) weights[i] *= at(scale, linear->axes.output_of(i));
    for (std::size_t i = 0; i < bias.size(); ++i) bias[i] *= at(scale, i);
  }
  if (!offset.empty()) {
    bias.resize(linear->axes.outputs, 0.0F);
    for (std::size_t i = 0; i < bias.size(); ++i) bias[i] += at(offset, i);
  }
  rewriter.set_fused_source(*linear->node, node);
  return rebuild(rewriter, *linear, linear->node->inputs[0], weights, bias);
}

Replacement fold_before(Rewriter& rewriter, const Node& node) {
  const auto linear = as_linear(rewriter, &node);
  const Node* producer = linear ? rewriter.producer(node.inputs[0], ops::kBinary) : nullptr;
  if (producer == nullptr || !rewriter.only_reader(node.inputs[0])) return std::nullopt;
  const auto affine = as_affine(rewriter.graph(), *producer);
  if (!affine || (!affine->affine.offset.empty() && linear->axes.padded)) return std::nullopt;
  const auto& [scale, offset] = affine->affine;
  const Floats original = *graph::constant_floats(rewriter.graph(), node.inputs[1]);
  Floats weights;
  Floats bias = linear->bias;
  if (!offset.empty()) {
    std::vector<double> sums(linear->axes.outputs, 0.0);
    for (std::size_t i = 0; i < original.size(); ++i)
      sums[linear->axes.output_of(i)] +=
          static_cast<double>(original[i]) * static_cast<double>(at(offset, linear->axes.input_of(i)));
    bias.resize(linear->axes.outputs, 0.0F);
    for (std::size_t i = 0; i < bias.size(); ++i) bias[i] += static_cast<float>(sums[i]);
  }
  if (!scale.empty()) {
    weights = original;
    for (std::size_t i = 0; i < weights.size(); ++i) weights[i] *= at(scale, linear->axes.input_of(i));
  }
  rewriter.set_fused_source(*producer, node);
  return rebuild(rewriter, *linear, affine->x, weights, bias);
}

/// x / c as x * (1 / c) where every 1 / c is exact.
Replacement multiply_by_reciprocal(Rewriter& rewriter, const Node& node) {
  auto params = node.as<ops::BinaryParams>();
  auto divisors = params.function == ops::BinaryFunction::kDiv
                      ? graph::constant_floats(rewriter.graph(), node.inputs[1])
                      : std::nullopt;
  if (!divisors) return std::nullopt;
  for (float& c : *divisors) {
    int exponent = 0;
    if (std::abs(std::frexp(c, &exponent)) != 0.5F || !std::isnormal(c) || !std::isnormal(1.0F / c))
      return std::nullopt;
    c = 1.0F / c;
  }
  params.function = ops::BinaryFunction::kMul;
  const TensorDesc shape = rewriter.desc(node.inputs[1]);
  const ValueId factors = rewriter.constant<float>(dims_of(shape), *divisors);
  return rewriter.emit(ops::kBinary, params, {node.inputs[0], factors});
}

}  // namespace

Result<bool> fuse_affine(graph::Graph& graph) {
  return Rewriter(graph).sweep([](Rewriter& rewriter, const Node& node) -> Replacement {
    if (!node.is(ops::kBinary)) return fold_before(rewriter, node);
    const auto folded = fold_after(rewriter, node);
    return folded ? folded : multiply_by_reciprocal(rewriter, node);
  });
}

}  // namespace bantam::passes
