// Scales and shifts in one step what goes through memory twice otherwise:
//
//   binary add(binary mul(x, a), b) -> multiply_add(x, a, b), for constants a and b
//
// with the activation of the sum. Bit for bit the same. What is behind a convolution became part of its weights before;
// left are normalisations of whole batches that come first in a block, of what was concatenated, or of inputs. Other
// operands than constants would have to live longer.
#include "ops/elementwise/binary/binary.h"
#include "ops/elementwise/multiply_add/multiply_add.h"
#include "passes/list.h"
#include "passes/rewriter.h"

namespace bantam::passes {
namespace {

using graph::Node;
using graph::ValueId;

/// An operand that is computed, and one that is a constant.
struct Operands {
  ValueId computed = graph::kNone;
  ValueId constant = graph::kNone;
};

/// Of a binary operator whose operands may change places.
std::optional<Operands> operands_of(const Rewriter& rewriter, const Node& node) {
  const bool first = rewriter.graph().is_constant(node.inputs[0]);
  if (first == rewriter.graph().is_constant(node.inputs[1])) return std::nullopt;
  return Operands{node.inputs[first ? 1 : 0], node.inputs[first ? 0 : 1]};
}

bool is_sum(const Rewriter& rewriter, const Node& node) {
  return node.is(ops::kBinary) && node.as<ops::BinaryParams>().function == ops::BinaryFunction::kAdd &&
         rewriter.desc(node.outputs[0]).type == ElementType::kF32;
}

std::optional<ValueId> multiply_add(Rewriter& rewriter, const Node& node) {
  if (!is_sum(rewriter, node)) return std::nullopt;
  const auto sum = operands_of(rewriter, node);
  if (!sum || !rewriter.only_reader(sum->computed)) return std::nullopt;
  const Node* scaled = plain_binary(rewriter, sum->computed, ops::BinaryFunction::kMul);
  const auto product = scaled != nullptr ? operands_of(rewriter, *scaled) : std::nullopt;
  if (!product) return std::nullopt;
  const ops::MultiplyAddParams params{node.as<ops::BinaryParams>().activation};
  rewriter.set_fused_source(*scaled, node);
  return rewriter.emit(ops::kMultiplyAdd, params, {product->computed, product->constant, sum->constant});
}

}  // namespace

Result<bool> multiply_adds(graph::Graph& graph) { return Rewriter(graph).sweep(multiply_add); }

}  // namespace bantam::passes
