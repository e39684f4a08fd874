// Makes integer sums real in the last step of the product that computes them.
//
// conv2d_affine and matmul_affine scale their sums to f32 and add a bias before they store them, so what models write
// behind integer products (ConvInteger, MatMulInteger) needs no pass over the sums of its own:
//   mul(cast(product), factor): the product's own scale, known while compiling or not, one or one per channel; bit for
//     bit the same
//   add(product, row): the product's bias, a constant row of channels, when it has none; bit for bit the same
// Only when nobody else reads what lies between, and the product has no activation yet.
#include <algorithm>

#include "ops/elementwise/binary/binary.h"
#include "ops/elementwise/cast/cast.h"
#include "ops/nn/conv2d_affine/conv2d_affine.h"
#include "ops/nn/matmul_affine/matmul_affine.h"
#include "passes/list.h"
#include "passes/quantized_values.h"
#include "passes/rewriter.h"

namespace bantam::passes {
namespace {

using graph::kNone;
using graph::Node;
using graph::ValueId;
using Replacement = std::optional<ValueId>;

// Operands, see ops/common/affine_form.h.
constexpr std::size_t kBias = 2;
constexpr std::size_t kScale = 3;

bool is_product(const Node& node) { return node.is(ops::kConv2dAffine) || node.is(ops::kMatmulAffine); }

const ops::AffineForm& form_of(const Node& product) {
  return product.is(ops::kConv2dAffine) ? product.as<ops::Conv2dAffineParams>().form
                                        : product.as<ops::MatmulAffineParams>().form;
}

/// The product that gives `x` to one reader; null if there is none.
const Node* product_of(const Rewriter& rewriter, ValueId x) {
  const Node* node = rewriter.producer(x);
  return node != nullptr && rewriter.only_reader(x) && is_product(*node) ? node : nullptr;
}

/// `row` as a list, when it has one element per channel of `y`, or one for all if that may be.
Replacement channel_list(Rewriter& rewriter, ValueId row, const TensorDesc& y, bool may_be_one) {
  const TensorDesc desc = rewriter.desc(row);
  const std::int64_t n = desc.elements();
  const bool per_channel = y.rank > 0 && desc.rank > 0 && n == y.last(0) && desc.last(0) == n;
  if (desc.type != ElementType::kF32 || desc.rank > y.rank || !(per_channel || (may_be_one && n == 1)))
    return std::nullopt;
  TensorDesc list = desc;
  list.rank = 1;
  list.dims[0] = static_cast<std::int32_t>(n);
  return rewriter.reshape(row, list);
}

/// The product with operand `i` and f32 results behind `activation`.
Replacement rebuild(Rewriter& rewriter, const Node& product, std::size_t i, ValueId operand,
                    const ops::Activation& activation) {
  std::vector<ValueId> inputs = product.inputs;
  inputs.resize(std::max(inputs.size(), i + 1), kNone);
  inputs[i] = operand;
  const auto emit = [&](auto params) {
    params.form.to = ElementType::kF32;
    params.form.activation = activation;
    return rewriter.emit(*product.op, params, std::move(inputs));
  };
  return product.is(ops::kConv2dAffine) ? emit(product.as<ops::Conv2dAffineParams>())
                                        : emit(product.as<ops::MatmulAffineParams>());
}

/// What `node`, a binary operator on a product of which `x` is the result, makes of it.
Replacement scale_sums(Rewriter& rewriter, const Node& node, ValueId x, ValueId factor) {
  const Node* cast = rewriter.producer(x, ops::kCast);
  if (cast == nullptr || !rewriter.only_reader(x)) return std::nullopt;
  const Node* found = product_of(rewriter, cast->inputs[0]);
  if (found == nullptr || form_of(*found).to != ElementType::kI32 || operand(*found, kBias) != kNone)
    return std::nullopt;
  const Node product = *found;  // emitting moves nodes
  const TensorDesc y = rewriter.desc(node.outputs[0]);
  const auto scale = channel_list(rewriter, factor, y, true);
  if (!scale || !same_shape_and_type(rewriter.desc(x), y)) return std::nullopt;
  rewriter.set_fused_source(product, node);
  return rebuild(rewriter, product, kScale, *scale, node.as<ops::BinaryParams>().activation);
}

Replacement add_bias(Rewriter& rewriter, const Node& node, ValueId x, ValueId row) {
  if (!rewriter.graph().is_constant(row)) return std::nullopt;
  const Node* found = product_of(rewriter, x);
  if (found == nullptr || form_of(*found).to != ElementType::kF32 || operand(*found, kBias) != kNone ||
      form_of(*found).activation.function != ops::UnaryFunction::kIdentity)
    return std::nullopt;
  const Node product = *found;
  const TensorDesc y = rewriter.desc(node.outputs[0]);
  const auto bias = channel_list(rewriter, row, y, false);
  if (!bias || !same_shape_and_type(rewriter.desc(x), y)) return std::nullopt;
  rewriter.set_fused_source(product, node);
  return rebuild(rewriter, product, kBias, *bias, node.as<ops::BinaryParams>().activation);
}

Replacement move_into_product(Rewriter& rewriter, const Node& node) {
  if (!node.is(ops::kBinary)) return std::nullopt;
  const auto function = node.as<ops::BinaryParams>().function;
  const auto rule = function == ops::BinaryFunction::kMul   ? scale_sums
                    : function == ops::BinaryFunction::kAdd ? add_bias
                                                            : nullptr;
  if (rule == nullptr) return std::nullopt;
  for (const std::size_t i : {0U, 1U})
    if (const auto y = rule(rewriter, node, node.inputs[i], node.inputs[1 - i])) return y;
  return std::nullopt;
}

}  // namespace

Result<bool> scale_integer_sums(graph::Graph& graph) { return Rewriter(graph).sweep(move_into_product); }

}  // namespace bantam::passes
