// Removes nodes that give their operand unchanged, and merges chains of reshapes, transposes and casts.
//
// Every rule looks at one node and the producer of its operand, so one sweep in execution order collapses chains of any
// length. All rules are exact to the bit but one: x + 0.0 becomes x although -0.0 + 0.0 is +0.0.
#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "ops/data/concat/concat.h"
#include "ops/data/copy/copy.h"
#include "ops/data/pad/pad.h"
#include "ops/data/reshape/reshape.h"
#include "ops/data/slice/slice.h"
#include "ops/data/tile/tile.h"
#include "ops/data/transpose/transpose.h"
#include "ops/elementwise/binary/binary.h"
#include "ops/elementwise/cast/cast.h"
#include "ops/elementwise/select/select.h"
#include "ops/elementwise/unary/unary.h"
#include "ops/nn/resize/resize.h"
#include "ops/reduce/reduce/reduce.h"
#include "passes/list.h"
#include "passes/permutation.h"
#include "passes/rewriter.h"

namespace bantam::passes {
namespace {

using graph::Node;
using graph::ValueId;
using Replacement = std::optional<ValueId>;

bool keeps_shape(Rewriter& rewriter, const Node& node, std::size_t operand = 0) {
  return same_shape_and_type(rewriter.desc(node.inputs[operand]), rewriter.desc(node.outputs[0]));
}

Replacement always(Rewriter& /*rewriter*/, const Node& node) { return node.inputs[0]; }

Replacement when_shape_is_kept(Rewriter& rewriter, const Node& node) {
  return keeps_shape(rewriter, node) ? Replacement(node.inputs[0]) : std::nullopt;
}

Replacement unary_identity(Rewriter& /*rewriter*/, const Node& node) {
  if (node.as<ops::UnaryParams>().function != ops::UnaryFunction::kIdentity) return std::nullopt;
  return node.inputs[0];
}

/// Bits of integers that a type holds exactly, and whether it holds negative ones.
struct Range {
  int bits = 0;
  bool is_signed = false;
  bool is_float = false;
};

Range range_of(ElementType type) {
  switch (type) {
    case ElementType::kBool: return {1, false, false};
    case ElementType::kI8: return {7, true, false};
    case ElementType::kU8: return {8, false, false};
    case ElementType::kI16: return {15, true, false};
    case ElementType::kU16: return {16, false, false};
    case ElementType::kI32: return {31, true, false};
    case ElementType::kU32: return {32, false, false};
    case ElementType::kI64: return {63, true, false};
    case ElementType::kU64: return {64, false, false};
    case ElementType::kF16: return {11, true, true};
    case ElementType::kBF16: return {8, true, true};
    case ElementType::kF32: return {24, true, true};
    case ElementType::kF64: return {53, true, true};
    default: return {};
  }
}

/// True when every value of `from` is exactly one of `to`, so that the cast through `to` can be left out.
bool is_lossless(ElementType from, ElementType to) {
  const Range a = range_of(from);
  const Range b = range_of(to);
  if (a.bits == 0 || b.bits == 0 || to == ElementType::kBool) return false;
  // f16's few exponents do not hold bf16's range; every wider float holds a narrower one's.
  if (a.is_float) return b.is_float && b.bits >= a.bits && to != ElementType::kF16;
  return b.bits >= a.bits && (b.is_signed || !a.is_signed);
}

Replacement cast(Rewriter& rewriter, const Node& node) {
  const ElementType to = node.as<ops::CastParams>().to;
  if (rewriter.desc(node.inputs[0]).type == to) return node.inputs[0];
  const Node* inner = rewriter.producer(node.inputs[0], ops::kCast);
  if (inner == nullptr) return std::nullopt;
  const ElementType from = rewriter.desc(inner->inputs[0]).type;
  if (!is_lossless(from, inner->as<ops::CastParams>().to)) return std::nullopt;
  if (from == to) return inner->inputs[0];
  return rewriter.emit(ops::kCast, node.params, {inner->inputs[0]});
}

Replacement reshape(Rewriter& rewriter, const Node& node) {
  if (keeps_shape(rewriter, node)) return node.inputs[0];
  const Node* inner = rewriter.producer(node.inputs[0], ops::kReshape);
  if (inner == nullptr) return std::nullopt;
  return rewriter.reshape(inner->inputs[0], rewriter.desc(node.outputs[0]));
}

Replacement transpose(Rewriter& rewriter, const Node& node) {
  const TensorDesc& x = rewriter.desc(node.inputs[0]);
  const Permutation perm = Permutation::of(node.as<ops::TransposeParams>().perm);
  if (perm.is_identity()) return node.inputs[0];
  if (perm.is_view(x)) return rewriter.reshape(node.inputs[0], rewriter.desc(node.outputs[0]));
  const Node* inner = rewriter.producer(node.inputs[0], ops::kTranspose);
  if (inner == nullptr) return std::nullopt;
  const Permutation merged = Permutation::of(inner->as<ops::TransposeParams>().perm).then(perm);
  if (merged.is_view(rewriter.desc(inner->inputs[0])))
    return rewriter.reshape(inner->inputs[0], rewriter.desc(node.outputs[0]));
  return rewriter.transpose(inner->inputs[0], merged.span());
}

Replacement pad(Rewriter& /*rewriter*/, const Node& node) {
  const auto& p = node.as<ops::PadParams>();
  const auto none = [](const ops::IntList& list) {
    return std::all_of(list.v, list.v + list.size, [](std::int32_t n) { return n == 0; });
  };
  return none(p.before) && none(p.after) ? Replacement(node.inputs[0]) : std::nullopt;
}

/// Slices of the operand's shape may still reverse an axis.
Replacement slice(Rewriter& rewriter, const Node& node) {
  const auto& p = node.as<ops::SliceParams>();
  const bool forward = std::all_of(p.steps.v, p.steps.v + p.steps.size, [](std::int32_t s) { return s > 0; });
  return forward ? when_shape_is_kept(rewriter, node) : std::nullopt;
}

/// Empty operands contribute nothing; of what remains, one is the result.
Replacement concat_identity(Rewriter& rewriter, const Node& node) {
  std::vector<ValueId> parts;
  for (const ValueId id : node.inputs)
    if (rewriter.desc(id).elements() != 0) parts.push_back(id);
  if (parts.empty()) return std::nullopt;
  if (parts.size() == 1 && same_shape_and_type(rewriter.desc(parts[0]), rewriter.desc(node.outputs[0])))
    return parts[0];
  if (parts.size() == node.inputs.size()) return std::nullopt;
  return rewriter.emit(ops::kConcat, node.params, std::move(parts));
}

Replacement resize(Rewriter& rewriter, const Node& node) {
  const auto& p = node.as<ops::ResizeParams>();
  const int rank = rewriter.desc(node.inputs[0]).rank;
  if (p.coordinates == ops::ResizeCoordinates::kCropAndResize || p.first_output.size != 0) return std::nullopt;
  if (!std::all_of(p.scales, p.scales + rank, [](float s) { return s == 1.0F; })) return std::nullopt;
  return when_shape_is_kept(rewriter, node);
}

/// A reduction of one element by these functions is that element.
bool keeps_single_elements(ops::ReduceFunction function) {
  using enum ops::ReduceFunction;
  return function == kSum || function == kMean || function == kMax || function == kMin || function == kProd;
}

Replacement reduce(Rewriter& rewriter, const Node& node) {
  const auto& p = node.as<ops::ReduceParams>();
  const TensorDesc& x = rewriter.desc(node.inputs[0]);
  const bool single = std::all_of(p.axes.v, p.axes.v + p.axes.size, [&](std::int32_t a) { return x.dims[a] == 1; });
  if (!single || !keeps_single_elements(p.function)) return std::nullopt;
  return rewriter.reshape(node.inputs[0], rewriter.desc(node.outputs[0]));
}

Replacement select(Rewriter& rewriter, const Node& node) {
  const auto condition = integer_splat(rewriter.graph(), node.inputs[0]);
  if (!condition) return std::nullopt;
  const std::size_t chosen = *condition != 0 ? 1 : 2;
  return keeps_shape(rewriter, node, chosen) ? Replacement(node.inputs[chosen]) : std::nullopt;
}

/// x + 0, 0 + x, x - 0, x * 1, 1 * x, x / 1, x ^ 1.
Replacement binary_identity(Rewriter& rewriter, const Node& node) {
  using enum ops::BinaryFunction;
  const auto& p = node.as<ops::BinaryParams>();
  if (p.activation.function != ops::UnaryFunction::kIdentity) return std::nullopt;
  const auto neutral = [&](std::size_t operand) {
    const auto is = [&](int number) { return is_splat(rewriter.graph(), node.inputs[operand], number); };
    switch (p.function) {
      case kAdd: return is(0);
      case kMul: return is(1);
      case kSub: return operand == 1 && is(0);
      case kDiv:
      case kPow: return operand == 1 && is(1);
      default: return false;
    }
  };
  for (const std::size_t operand : {std::size_t{1}, std::size_t{0}})
    if (neutral(operand) && keeps_shape(rewriter, node, 1 - operand)) return node.inputs[1 - operand];
  return std::nullopt;
}

using Handler = Replacement (*)(Rewriter&, const Node&);
constexpr std::pair<std::string_view, Handler> kHandlers[] = {
    {"binary", binary_identity},
    {"cast", cast},
    {"concat", concat_identity},
    {"copy", always},
    {"expand", when_shape_is_kept},
    {"pad", pad},
    {"reduce", reduce},
    {"reshape", reshape},
    {"resize", resize},
    {"select", select},
    {"slice", slice},
    {"tile", when_shape_is_kept},
    {"transpose", transpose},
    {"unary", unary_identity},
};

/// `any_size`: a slice that takes everything may take a part at other sizes.
Result<bool> remove_once(graph::Graph& graph, bool any_size) {
  return Rewriter(graph).sweep([any_size](Rewriter& rewriter, const Node& node) -> Replacement {
    if (any_size && node.is(ops::kSlice)) return std::nullopt;
    for (const auto& [name, handler] : kHandlers)
      if (node.op->name == name) return handler(rewriter, node);
    return std::nullopt;
  });
}

}  // namespace

Result<bool> remove_identities(graph::Graph& graph) { return remove_once(graph, false); }

Result<bool> remove_identities_at_any_size(graph::Graph& graph) { return remove_once(graph, true); }

}  // namespace bantam::passes
