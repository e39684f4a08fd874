// Computes in integers what models write as DequantizeLinear, float operators, QuantizeLinear.
//
// Two sweeps. The first moves dequantisations of 8 and 16-bit integers behind operators that only move elements, and
// replaces each quantisation by the integer form of what it quantises, if there is one:
//   convolutions and matrix products of 8-bit integers: conv2d_affine, conv_transpose2d_affine, matmul_affine (float
//     rescaling, rounding to even, as ONNX Runtime fuses them); the sums are exact, where the float operator would
//     round each of them
//   arithmetic of two quantised operands, or of one and real numbers per channel: binary_affine, bit for bit what the
//     three operators compute
//   sums and means of 8-bit integers over axes: reduce_affine (exact sums, rescaled as ONNX Runtime does);
//     averages over windows that all count as many: conv2d_affine of ones
//   linear and cubic resampling: resize_affine (in steps of the operand's grid, where floats would round each product
//     by its scale: what lies halfway between two steps may come to the other one)
//   what any operators make of each 8-bit integer of one tensor (byte_function.h), such as GELU written out, and
//     another grid for the same numbers: lookup8, bit for bit
//   relu and clip: limits of the results; other activations of convolutions and products: in their last step, bit for
//     bit what they compute apart (but for activations with exponentials, see affine_form.h)
//   concatenation, selection and movement: of integers
// The second takes convolutions and products of quantised operands whose results stay real: the same integer sums,
// scaled to f32; and products of real rows and quantised weights, which keep the weights as they were stored
// (block_weights.h). Operands without one constant scale, and operators without an integer form, stay as they are. A
// float bias is rounded to the grid of the sums (the product of both scales) unless it was quantised on it.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <string_view>

#include "ops/data/pad/pad.h"
#include "ops/elementwise/binary_affine/binary_affine.h"
#include "ops/elementwise/dequantize/dequantize.h"
#include "ops/elementwise/lookup8/lookup8.h"
#include "ops/elementwise/quantize/quantize.h"
#include "ops/elementwise/unary/unary.h"
#include "ops/nn/conv2d/conv2d.h"
#include "ops/nn/conv2d_affine/conv2d_affine.h"
#include "ops/nn/conv_transpose2d/conv_transpose2d.h"
#include "ops/nn/conv_transpose2d_affine/conv_transpose2d_affine.h"
#include "ops/nn/depthwise_conv2d/depthwise_conv2d.h"
#include "ops/nn/matmul/matmul.h"
#include "ops/nn/matmul_affine/matmul_affine.h"
#include "ops/nn/pool2d/pool2d.h"
#include "ops/nn/resize/resize.h"
#include "ops/nn/resize_affine/resize_affine.h"
#include "ops/reduce/reduce/reduce.h"
#include "ops/reduce/reduce_affine/reduce_affine.h"
#include "passes/block_weights.h"
#include "passes/byte_function.h"
#include "passes/list.h"
#include "passes/quantized_values.h"

namespace bantam::passes {
namespace {

using graph::kNone;
using graph::Node;
using graph::ValueId;
using ops::UnaryFunction;
using Replacement = std::optional<ValueId>;

/// Where a result is wanted: on a grid, within limits, or (no grid) as f32; what convolutions and products are asked
/// for, after an activation that has no integer form.
struct Target {
  std::optional<Grid> grid;
  Limits limits;
  ops::Activation activation{};

  static Target on(const Grid& grid) { return {grid, Limits::of(grid), {}}; }
  bool has_activation() const { return activation.function != UnaryFunction::kIdentity; }
  bool is_unlimited() const { return !grid || limits == Limits::of(*grid); }
};

/// What relu or clip leave of the target; nothing for other functions.
std::optional<Target> limited_by(const ops::Activation& activation, Target target) {
  if (activation.function == UnaryFunction::kIdentity) return target;
  if (!target.grid) return std::nullopt;
  if (activation.function == UnaryFunction::kRelu) {
    target.limits.low = std::max(target.limits.low, target.grid->quantize(0.0F));
  } else if (activation.function == UnaryFunction::kClip && activation.a <= activation.b) {
    target.limits.low = std::max(target.limits.low, target.grid->quantize(activation.a));
    target.limits.high = std::min(target.limits.high, target.grid->quantize(activation.b));
  } else {
    return std::nullopt;
  }
  return target.limits.low <= target.limits.high ? std::optional(target) : std::nullopt;
}

/// The target with an activation that the kernels of convolutions and products apply before they quantise; nothing
/// where there is none such, or one already.
std::optional<Target> activated_by(const ops::Activation& activation, Target target) {
  if (!target.grid || !is_8_bit(target.grid->type) || !ops::is_fusible(activation.function) || target.has_activation())
    return std::nullopt;
  target.activation = activation;
  return target;
}

/// What convolutions and products with an activation of their own are asked for.
std::optional<Target> target_behind(const ops::Activation& activation, const Target& target) {
  if (target.has_activation() && activation.function != UnaryFunction::kIdentity) return std::nullopt;
  const auto limited = limited_by(activation, target);
  return limited ? limited : activated_by(activation, target);
}

// Operators that move elements, or take the largest or smallest of some: they commute with dequantisation.

/// Movement that any element type permits, and which takes its elements from operand 0 only.
constexpr std::string_view kMovers[] = {"copy",    "expand", "gather", "gather_elements", "gather_nd",
                                        "reshape", "slice",  "tile",   "transpose"};

bool is_zero(const Rewriter& rewriter, ValueId id) { return id == kNone || is_splat(rewriter.graph(), id, 0); }

bool only_moves(const Node& node) {
  return std::find(std::begin(kMovers), std::end(kMovers), node.op->name) != std::end(kMovers);
}

bool is_mover(const Rewriter& rewriter, const Node& node, ElementType type) {
  if (only_moves(node)) return true;
  if (node.is(ops::kPad)) return is_zero(rewriter, operand(node, 1));
  if (node.is(ops::kResize)) {
    const auto& p = node.as<ops::ResizeParams>();
    return p.mode == ops::ResizeMode::kNearest && p.coordinates != ops::ResizeCoordinates::kCropAndResize;
  }
  if (!is_8_bit(type)) return false;
  if (node.is(ops::kPool2d)) {
    const auto& p = node.as<ops::Pool2dParams>();
    return p.kind == ops::PoolKind::kMax && p.activation.function == UnaryFunction::kIdentity;
  }
  if (!node.is(ops::kReduce)) return false;
  const auto function = node.as<ops::ReduceParams>().function;
  return function == ops::ReduceFunction::kMax || function == ops::ReduceFunction::kMin;
}

/// The mover on integers of the grid.
Replacement move_integers(Rewriter& rewriter, const Node& node, ValueId q, const Grid& grid) {
  graph::Params params = node.params;
  std::vector<ValueId> inputs = node.inputs;
  inputs[0] = q;
  if (node.is(ops::kPad)) {
    inputs.resize(2, kNone);
    inputs[1] = integer_constant(rewriter, grid.type, grid.zero_point);
  } else if (node.is(ops::kPool2d)) {
    params.as<ops::Pool2dParams>().minimum = grid.lowest();
    params.as<ops::Pool2dParams>().maximum = grid.highest();
  }
  return rewriter.emit(*node.op, std::move(params), std::move(inputs));
}

Replacement dequantized(Rewriter& rewriter, Replacement q, const Grid& grid) {
  return q ? dequantize_from(rewriter, *q, grid) : std::nullopt;
}

/// What lies behind operand `i`: a dequantize, not a constant.
std::optional<Quantized> dequantized_operand(Rewriter& rewriter, const Node& node, std::size_t i) {
  return rewriter.producer(node.inputs[i], ops::kDequantize) != nullptr ? as_quantized(rewriter, node.inputs[i])
                                                                        : std::nullopt;
}

/// The operands from `first` on, when all are integers of one grid.
std::optional<Grid> common_grid(Rewriter& rewriter, const Node& node, std::size_t first, std::vector<ValueId>& inputs) {
  std::optional<Grid> grid;
  for (std::size_t i = first; i < node.inputs.size(); ++i) {
    const auto x = dequantized_operand(rewriter, node, i);
    if (!x || (grid && x->grid != *grid)) return std::nullopt;
    grid = x->grid;
    inputs[i] = x->q;
  }
  return grid;
}

/// Moves dequantisation behind the node.
Replacement sink_dequantization(Rewriter& rewriter, const Node& node) {
  if (node.inputs.empty() || node.inputs[0] == kNone) return std::nullopt;
  if (node.op->name == "concat" || node.op->name == "select") {
    std::vector<ValueId> inputs = node.inputs;
    const auto grid = common_grid(rewriter, node, node.op->name == "select" ? 1 : 0, inputs);
    if (!grid) return std::nullopt;
    return dequantized(rewriter, rewriter.emit(*node.op, node.params, std::move(inputs)), *grid);
  }
  const auto x = dequantized_operand(rewriter, node, 0);
  if (!x || !is_mover(rewriter, node, x->grid.type)) return std::nullopt;
  return dequantized(rewriter, move_integers(rewriter, node, x->q, x->grid), x->grid);
}

// The arithmetic that convolutions and matrix products share.

/// Bias as int32 on the grid of the sums.
std::optional<std::vector<std::int32_t>> integer_bias(const Rewriter& rewriter, ValueId bias, float x_scale,
                                                      const std::vector<float>& w_scales) {
  const auto real = graph::constant_floats(rewriter.graph(), bias);
  if (!real) return std::nullopt;
  const auto& source = rewriter.value(bias).quantized_source;
  std::vector<std::int64_t> integers;
  if (source && source->type == ElementType::kI32) {
    graph::Graph one;
    TensorDesc desc = rewriter.desc(bias);
    desc.type = ElementType::kI32;
    graph::Value value;
    value.desc = desc;
    value.constant = source->integers;
    integers = *graph::constant_integers(one, one.add_value(std::move(value)));
  }
  std::vector<std::int32_t> result;
  for (std::size_t i = 0; i < real->size(); ++i) {
    const double scale = static_cast<double>(x_scale) * static_cast<double>(w_scales[w_scales.size() == 1 ? 0 : i]);
    double number = scale == 0.0 ? 0.0 : std::nearbyint(static_cast<double>((*real)[i]) / scale);
    if (!integers.empty()) {
      const double own = static_cast<double>(source->scales[source->scales.size() == 1 ? 0 : i]);
      if (std::abs(own - scale) <= 1e-5 * scale) number = static_cast<double>(integers[i]);
    }
    if (!(std::abs(number) <= 2147483647.0) || (scale == 0.0 && (*real)[i] != 0.0F)) return std::nullopt;
    result.push_back(static_cast<std::int32_t>(number));
  }
  return result;
}

/// Operands 2 to 5 of an affine operator, and its form. Nothing when the numbers do not allow it.
struct AffineOperands {
  ops::AffineForm form;
  std::array<ValueId, 4> more{kNone, kNone, kNone, kNone};

  /// All operands, without absent ones at the end.
  std::vector<ValueId> after(ValueId x, ValueId w) const {
    std::vector<ValueId> all{x, w};
    all.insert(all.end(), more.begin(), more.end());
    while (all.back() == kNone) all.pop_back();
    return all;
  }
};

std::optional<AffineOperands> affine_operands(Rewriter& rewriter, const Quantized& x, const IntegerWeights& w,
                                              ValueId bias, const Target& target) {
  AffineOperands result;
  result.form.input_zero_point = x.grid.zero_point;
  const bool activated = target.has_activation();
  std::vector<float> factors;
  for (const float scale : w.scales) {
    const float product = x.grid.scale * scale;
    factors.push_back(target.grid && !activated ? product / target.grid->scale : product);
    if (!std::isfinite(factors.back())) return std::nullopt;
  }
  const auto list = [](const auto& v) { return std::array{static_cast<std::int64_t>(v.size())}; };
  if (target.grid) {
    result.form.to = target.grid->type;
    result.form.output_zero_point = target.grid->zero_point;
    result.form.minimum = target.limits.low;
    result.form.maximum = target.limits.high;
    if (activated) {
      result.form.activation = target.activation;
      result.form.output_scale = target.grid->scale;
      result.more[0] = bias;
    } else if (bias != kNone) {
      const auto integers = integer_bias(rewriter, bias, x.grid.scale, w.scales);
      if (!integers) return std::nullopt;
      result.more[0] = rewriter.constant<std::int32_t>(list(*integers), *integers);
    }
  } else {
    result.form.to = ElementType::kF32;
    result.more[0] = bias;
  }
  result.more[1] = rewriter.constant<float>(list(factors), factors);
  const auto& zeros = w.zero_points;
  if (std::all_of(zeros.begin(), zeros.end(), [&](std::int32_t z) { return z == zeros[0]; })) {
    result.form.weights_zero_point = zeros[0];
  } else {
    result.more[3] = integer_list(rewriter, rewriter.desc(w.w).type, zeros);
  }
  return result;
}

/// The integer form of a float convolution.
Replacement convolve_integers(Rewriter& rewriter, const Node& node, const Target& wanted) {
  const auto& p = node.as<ops::Conv2dParams>();
  const auto target = target_behind(p.activation, wanted);
  const auto x = target ? as_quantized(rewriter, node.inputs[0]) : std::nullopt;
  if (!x || !is_8_bit(x->grid.type) || (target->grid && !is_8_bit(target->grid->type))) return std::nullopt;
  const bool depthwise = node.is(ops::kDepthwiseConv2d);
  auto w = as_integer_weights(rewriter, node.inputs[1], depthwise ? 2 : 0);
  if (!w) return std::nullopt;
  const auto operands = affine_operands(rewriter, *x, *w, operand(node, 2), *target);
  if (!operands) return std::nullopt;
  ops::Conv2dAffineParams params{p.stride_h, p.stride_w,   p.dilation_h, p.dilation_w, p.pad_top,
                                 p.pad_left, p.pad_bottom, p.pad_right,  p.groups,     operands->form};
  if (depthwise) {
    // [KH,KW,C] as [C,KH,KW,1]
    params.groups = rewriter.desc(node.inputs[0]).dims[3];
    constexpr int kChannelFirst[] = {2, 0, 1};
    const auto turned = rewriter.transpose(w->w, kChannelFirst);
    if (!turned) return std::nullopt;
    TensorDesc with_one = rewriter.desc(*turned);
    with_one.dims[with_one.rank++] = 1;
    const auto reshaped = rewriter.reshape(*turned, with_one);
    if (!reshaped) return std::nullopt;
    w->w = *reshaped;
  }
  return rewriter.emit(ops::kConv2dAffine, params, operands->after(x->q, w->w));
}

/// The integer form of a float transposed convolution. Groups of few channels stay: products of integers would leave
/// most columns of their panels empty, what takes longer than the same in f32.
Replacement convolve_transposed_integers(Rewriter& rewriter, const Node& node, const Target& wanted) {
  constexpr std::int32_t kLeastOutputs = 8;
  const auto& p = node.as<ops::ConvTranspose2dParams>();
  const TensorDesc weights = rewriter.desc(node.inputs[1]);
  if (p.groups != 1 && weights.dims[0] / p.groups < kLeastOutputs) return std::nullopt;
  const auto target = target_behind(p.activation, wanted);
  const auto x = target ? as_quantized(rewriter, node.inputs[0]) : std::nullopt;
  if (!x || !is_8_bit(x->grid.type) || (target->grid && !is_8_bit(target->grid->type))) return std::nullopt;
  const auto w = as_integer_weights(rewriter, node.inputs[1], 0);
  const auto operands = w ? affine_operands(rewriter, *x, *w, operand(node, 2), *target) : std::nullopt;
  if (!operands) return std::nullopt;
  const ops::ConvTranspose2dAffineParams params{p.stride_h,     p.stride_w,     p.dilation_h, p.dilation_w,
                                                p.pad_top,      p.pad_left,     p.pad_bottom, p.pad_right,
                                                p.output_pad_h, p.output_pad_w, p.groups,     operands->form};
  return rewriter.emit(ops::kConvTranspose2dAffine, params, operands->after(x->q, w->w));
}

/// The integer form of a float matrix product; `bias` is the product's own or one added to it.
Replacement multiply_integers(Rewriter& rewriter, const Node& node, ValueId bias, const Target& wanted) {
  const auto& p = node.as<ops::MatmulParams>();
  const auto target = target_behind(p.activation, wanted);
  if (!target || p.transpose_a != 0 || (target->grid && !is_8_bit(target->grid->type))) return std::nullopt;
  const auto a = as_quantized(rewriter, node.inputs[0]);
  if (!a || !is_8_bit(a->grid.type)) return std::nullopt;
  auto b =
      as_integer_weights(rewriter, node.inputs[1], rewriter.desc(node.inputs[1]).rank - (p.transpose_b != 0 ? 2 : 1));
  if (!b) {
    const auto matrix = as_quantized(rewriter, node.inputs[1]);
    if (!matrix || !is_8_bit(matrix->grid.type)) return std::nullopt;
    b = IntegerWeights{matrix->q, {matrix->grid.scale}, {matrix->grid.zero_point}};
  }
  const auto operands = affine_operands(rewriter, *a, *b, bias, *target);
  if (!operands) return std::nullopt;
  const ops::MatmulAffineParams params{p.transpose_b, operands->form};
  return rewriter.emit(ops::kMatmulAffine, params, operands->after(a->q, b->w));
}

// Quantisation.

Replacement quantized_form(Rewriter& rewriter, ValueId x, const Target& target);

/// The table of `function` on the target's grid, looked up by its argument.
Replacement look_up(Rewriter& rewriter, const std::optional<ByteFunction>& function, const Target& target) {
  if (!function || !is_8_bit(target.grid->type)) return std::nullopt;
  const auto table = lookup_table(rewriter, *function, *target.grid, target.limits);
  return table ? rewriter.emit(ops::kLookup8, graph::Params{}, {function->argument(), *table}) : std::nullopt;
}

/// The same numbers on the target's grid, within its limits.
Replacement regrid(Rewriter& rewriter, const Quantized& x, const Target& target) {
  if (x.grid == *target.grid && target.is_unlimited()) return x.q;
  return look_up(rewriter, ByteFunction::of(rewriter, x), target);
}

/// 8-bit integers of the other signedness, where the type is not the wanted one.
std::optional<Quantized> with_type(Rewriter& rewriter, const std::optional<Quantized>& x, ElementType type) {
  if (!x || x->grid.type == type) return x;
  if (!is_8_bit(x->grid.type) || !is_8_bit(type)) return std::nullopt;
  Grid grid = x->grid;
  grid.type = type;
  grid.zero_point += type == ElementType::kU8 ? 128 : -128;
  const auto q = regrid(rewriter, *x, Target::on(grid));
  return q ? std::optional(Quantized{*q, grid}) : std::nullopt;
}

/// matmul + constant row: the row is the product's bias.
Replacement quantized_product_with_bias(Rewriter& rewriter, const Node& add, const Target& target) {
  for (const std::size_t i : {0U, 1U}) {
    const ValueId bias = add.inputs[1 - i];
    const Node* producer = rewriter.producer(add.inputs[i], ops::kMatmul);
    if (producer == nullptr || !rewriter.only_reader(add.inputs[i]) || !rewriter.graph().is_constant(bias)) continue;
    const Node product = *producer;
    const TensorDesc row = rewriter.desc(bias);
    const std::int32_t columns = rewriter.desc(add.outputs[0]).last(0);
    if (operand(product, 2) != kNone || row.rank == 0 || row.elements() != columns || row.last(0) != columns ||
        product.as<ops::MatmulParams>().activation.function != UnaryFunction::kIdentity)
      continue;
    TensorDesc list = row;
    list.rank = 1;
    list.dims[0] = columns;
    const auto flat = rewriter.reshape(bias, list);
    return flat ? multiply_integers(rewriter, product, *flat, target) : std::nullopt;
  }
  return std::nullopt;
}

/// Is operand i real, and such as a number per channel, so that it is no image that integers would do without? Minima
/// and maxima with what is not a number are none, which binary_affine does not say.
bool is_real_row(const Rewriter& rewriter, const Node& node, std::size_t i) {
  const auto function = node.as<ops::BinaryParams>().function;
  const TensorDesc& desc = rewriter.desc(node.inputs[i]);
  return function != ops::BinaryFunction::kMin && function != ops::BinaryFunction::kMax &&
         desc.type == ElementType::kF32 && desc.elements() * 4 <= rewriter.desc(node.outputs[0]).elements();
}

bool commutes(ops::BinaryFunction function) {
  return function == ops::BinaryFunction::kAdd || function == ops::BinaryFunction::kMul;
}

Replacement quantized_binary(Rewriter& rewriter, const Node& node, const Target& wanted) {
  const auto& p = node.as<ops::BinaryParams>();
  const auto target = limited_by(p.activation, wanted);
  if (!target) return std::nullopt;
  if (target->has_activation())
    return p.function == ops::BinaryFunction::kAdd ? quantized_product_with_bias(rewriter, node, *target)
                                                   : std::nullopt;
  if (const auto looked_up = look_up(rewriter, ByteFunction::of(rewriter, node.outputs[0]), wanted)) return looked_up;
  if (p.function == ops::BinaryFunction::kAdd)
    if (const auto product = quantized_product_with_bias(rewriter, node, *target)) return product;
  const ElementType type = target->grid->type;
  const auto a = with_type(rewriter, as_quantized(rewriter, node.inputs[0]), type);
  const auto b = with_type(rewriter, as_quantized(rewriter, node.inputs[1]), type);
  ops::BinaryAffineParams affine{.function = p.function,
                                 .y_scale = target->grid->scale,
                                 .y_zero_point = target->grid->zero_point,
                                 .minimum = target->limits.low,
                                 .maximum = target->limits.high};
  const auto with = [&](const Quantized& first, ValueId second) {
    affine.a_scale = first.grid.scale;
    affine.a_zero_point = first.grid.zero_point;
    return rewriter.emit(ops::kBinaryAffine, affine, {first.q, second});
  };
  if (a && b) {
    affine.b_scale = b->grid.scale;
    affine.b_zero_point = b->grid.zero_point;
    return with(*a, b->q);
  }
  if (a && is_real_row(rewriter, node, 1)) return with(*a, node.inputs[1]);
  return b && commutes(p.function) && is_real_row(rewriter, node, 0) ? with(*b, node.inputs[0]) : std::nullopt;
}

/// The integer form of a float sum or mean.
Replacement reduce_integers(Rewriter& rewriter, const Node& node, const Target& target) {
  const auto& p = node.as<ops::ReduceParams>();
  if (p.function != ops::ReduceFunction::kSum && p.function != ops::ReduceFunction::kMean) return std::nullopt;
  const auto x = as_quantized(rewriter, node.inputs[0]);
  if (!x || !is_8_bit(x->grid.type) || !is_8_bit(target.grid->type)) return std::nullopt;
  return rewriter.emit(
      ops::kReduceAffine,
      ops::ReduceAffineParams{p.function, p.axes, p.keep_dims, x->grid.scale, x->grid.zero_point, target.grid->type,
                              target.grid->scale, target.grid->zero_point, target.limits.low, target.limits.high},
      {x->q});
}

/// The integer form of linear and cubic resampling.
Replacement resize_integers(Rewriter& rewriter, const Node& node, const Target& target) {
  const auto& p = node.as<ops::ResizeParams>();
  const auto x = as_quantized(rewriter, node.inputs[0]);
  if (!x || !is_8_bit(x->grid.type) || !is_8_bit(target.grid->type)) return std::nullopt;
  return rewriter.emit(
      ops::kResizeAffine,
      ops::ResizeAffineParams{p, x->grid.scale, x->grid.zero_point, target.grid->type, target.grid->scale,
                              target.grid->zero_point, target.limits.low, target.limits.high},
      {x->q});
}

/// An average over windows as a depthwise convolution with ones, where all windows count as many elements.
Replacement average_integers(Rewriter& rewriter, const Node& node, const Target& target) {
  constexpr std::int32_t kLeastChannels = 4;  // of the kernels of depthwise convolutions
  constexpr std::int32_t kMostTaps = 64;
  const auto& p = node.as<ops::Pool2dParams>();
  const bool is_padded = p.pad_top != 0 || p.pad_left != 0 || p.pad_bottom != 0 || p.pad_right != 0;
  const auto limited = limited_by(p.activation, target);
  if (p.kind != ops::PoolKind::kAverage || !limited || (is_padded && p.count_include_pad == 0) || p.ceil_mode != 0 ||
      std::int64_t{p.kernel_h} * p.kernel_w > kMostTaps)
    return std::nullopt;
  const auto x = as_quantized(rewriter, node.inputs[0]);
  if (!x || !is_8_bit(x->grid.type) || !is_8_bit(target.grid->type)) return std::nullopt;
  const std::int32_t channels = rewriter.desc(node.inputs[0]).dims[3];
  const std::int32_t taps = p.kernel_h * p.kernel_w;
  const float scale = x->grid.scale / (target.grid->scale * static_cast<float>(taps));
  if (channels < kLeastChannels || !std::isfinite(scale)) return std::nullopt;
  ops::Conv2dAffineParams params{p.stride_h, p.stride_w,   p.dilation_h, p.dilation_w, p.pad_top,
                                 p.pad_left, p.pad_bottom, p.pad_right,  channels,     {}};
  params.form.to = target.grid->type;
  params.form.input_zero_point = x->grid.zero_point;
  params.form.output_zero_point = target.grid->zero_point;
  params.form.minimum = limited->limits.low;
  params.form.maximum = limited->limits.high;
  const std::vector<std::int8_t> ones(static_cast<std::size_t>(channels) * static_cast<std::size_t>(taps), 1);
  const std::array<std::int64_t, 4> dims{channels, p.kernel_h, p.kernel_w, 1};
  return rewriter.emit(
      ops::kConv2dAffine, params,
      {x->q, rewriter.constant<std::int8_t>(dims, ones), kNone, rewriter.constant<float>({}, std::span(&scale, 1))});
}

/// Concatenation and selection: operands without an integer form of their own are quantised one by one.
Replacement quantized_parts(Rewriter& rewriter, const Node& node, std::size_t first, const Target& target) {
  std::vector<ValueId> inputs = node.inputs;
  std::vector<std::size_t> real;
  for (std::size_t i = first; i < inputs.size(); ++i) {
    if (const auto part = quantized_form(rewriter, inputs[i], target)) {
      inputs[i] = *part;
    } else {
      real.push_back(i);
    }
  }
  if (real.size() == inputs.size() - first || (!real.empty() && !target.is_unlimited())) return std::nullopt;
  for (const std::size_t i : real) {
    const auto q = quantize_on(rewriter, inputs[i], *target.grid);
    if (!q) return std::nullopt;
    inputs[i] = *q;
  }
  return rewriter.emit(*node.op, node.params, std::move(inputs));
}

/// Integers on the target's grid that are what quantising `x` gives; nothing when `x` has no integer form.
Replacement quantized_form(Rewriter& rewriter, ValueId x, const Target& target) {
  if (const auto q = as_quantized(rewriter, x))
    return target.has_activation() ? std::nullopt : regrid(rewriter, *q, target);
  const Node* producer = rewriter.producer(x);
  if (producer == nullptr || !rewriter.only_reader(x)) return std::nullopt;
  const Node node = *producer;  // emitting moves nodes
  if (node.is(ops::kUnary)) {
    if (target.has_activation()) return std::nullopt;
    const auto& p = node.as<ops::UnaryParams>();
    if (const auto looked_up = look_up(rewriter, ByteFunction::of(rewriter, x), target)) return looked_up;
    const auto inner = target_behind({p.function, p.a, p.b}, target);
    return inner ? quantized_form(rewriter, node.inputs[0], *inner) : std::nullopt;
  }
  rewriter.set_source(node.name, node.origin);
  if (node.is(ops::kBinary)) return quantized_binary(rewriter, node, target);
  if (node.is(ops::kConv2d) || node.is(ops::kDepthwiseConv2d)) return convolve_integers(rewriter, node, target);
  if (node.is(ops::kConvTranspose2d)) return convolve_transposed_integers(rewriter, node, target);
  if (node.is(ops::kMatmul)) return multiply_integers(rewriter, node, operand(node, 2), target);
  if (target.has_activation() && !only_moves(node)) return std::nullopt;
  if (node.op->name == "concat") return quantized_parts(rewriter, node, 0, target);
  if (node.op->name == "select") return quantized_parts(rewriter, node, 1, target);
  if (!is_mover(rewriter, node, target.grid->type)) {
    if (node.is(ops::kPool2d)) return average_integers(rewriter, node, target);
    if (node.is(ops::kResize)) return resize_integers(rewriter, node, target);
    return node.is(ops::kReduce) ? reduce_integers(rewriter, node, target) : std::nullopt;
  }
  // What is appended must be within the limits too.
  if (node.is(ops::kPad) && !target.is_unlimited()) return std::nullopt;
  const auto q = quantized_form(rewriter, node.inputs[0], target);
  return q ? move_integers(rewriter, node, *q, *target.grid) : std::nullopt;
}

Replacement quantize_in_integers(Rewriter& rewriter, const Node& node) {
  const auto& p = node.as<ops::QuantizeParams>();
  const auto grid = grid_of(rewriter.graph(), p.to, node.inputs[1], operand(node, 2));
  if (!grid || p.round_half_away != 0) return std::nullopt;
  return quantized_form(rewriter, node.inputs[0], Target::on(*grid));
}

// Results that stay real.

Replacement compute_in_integers(Rewriter& rewriter, const Node& node) {
  if (node.outputs[0] == kNone || rewriter.desc(node.outputs[0]).type != ElementType::kF32) return std::nullopt;
  if (node.is(ops::kConv2d) || node.is(ops::kDepthwiseConv2d)) return convolve_integers(rewriter, node, {});
  if (node.is(ops::kConvTranspose2d)) return convolve_transposed_integers(rewriter, node, {});
  if (node.is(ops::kMatmul)) {
    const auto product = multiply_integers(rewriter, node, operand(node, 2), {});
    return product ? product : multiply_by_blocks(rewriter, node);
  }
  return std::nullopt;
}

}  // namespace

Result<bool> integer_arithmetic(graph::Graph& graph) {
  auto quantized = Rewriter(graph).sweep([](Rewriter& rewriter, const Node& node) -> Replacement {
    return node.is(ops::kQuantize) ? quantize_in_integers(rewriter, node) : sink_dequantization(rewriter, node);
  });
  if (!quantized) return quantized;
  auto real = Rewriter(graph).sweep(compute_in_integers);
  if (!real) return real;
  return *quantized || *real;
}

}  // namespace bantam::passes
