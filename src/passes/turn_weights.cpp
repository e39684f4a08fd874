// Turns weights instead of what they are multiplied by: behind a channels-last image that is flattened channel by
// channel, say, the transpose goes away, and rows of the constant matrix come in the order in which pixels lie.
//
// matmul(reshape(transpose(x)), w), where the transpose only moves axes that the reshape joins to the last one, becomes
// matmul(reshape(x), w in that order). The same products are added in another order: integers bit for bit the same,
// floats to a rounding. Only for constant weights of this product alone, and when nobody else reads what lies between.
#include <algorithm>
#include <vector>

#include "ops/data/reshape/reshape.h"
#include "ops/data/transpose/transpose.h"
#include "ops/nn/matmul/matmul.h"
#include "ops/nn/matmul_affine/matmul_affine.h"
#include "passes/list.h"
#include "passes/permutation.h"
#include "passes/rewriter.h"

namespace bantam::passes {
namespace {

using graph::Node;
using graph::ValueId;
using Replacement = std::optional<ValueId>;

/// Does the product read its weights as [N,K]? Nothing when the node is no such product.
std::optional<bool> has_weights_in_rows(const Node& node) {
  if (node.is(ops::kMatmul)) {
    const auto& p = node.as<ops::MatmulParams>();
    return p.transpose_a == 0 ? std::optional(p.transpose_b != 0) : std::nullopt;
  }
  if (node.is(ops::kMatmulAffine)) return node.as<ops::MatmulAffineParams>().transpose_b != 0;
  return std::nullopt;
}

/// The axes that a reshape joins to its last one: their sizes as they lie behind the transpose, and where in them the
/// axes are found one after the other before it.
struct Joined {
  std::vector<std::int32_t> sizes;
  std::vector<int> order;
};

/// Nothing when the transpose moves other axes too, or none of these.
std::optional<Joined> joined_axes(const TensorDesc& x, const Permutation& perm, std::int32_t length) {
  const std::vector<int> stored = perm.order(x);
  std::size_t first = stored.size();
  std::int64_t elements = 1;
  while (first > 0 && elements < length) elements *= x.dims[stored[--first]];
  std::vector<int> before = stored;
  std::ranges::sort(before);
  if (elements != length ||
      !std::equal(before.begin(), before.begin() + static_cast<std::ptrdiff_t>(first), stored.begin()))
    return std::nullopt;
  Joined joined;
  for (std::size_t i = first; i < stored.size(); ++i) {
    joined.sizes.push_back(x.dims[stored[i]]);
    joined.order.push_back(
        static_cast<int>(std::ranges::find(stored, before[i]) - stored.begin() - static_cast<std::ptrdiff_t>(first)));
  }
  const bool has_room = joined.sizes.size() < static_cast<std::size_t>(kMaxRank);  // for the other axis of the weights
  return std::ranges::is_sorted(joined.order) || !has_room ? std::nullopt : std::optional(joined);
}

/// The weights with their rows, or with `in_rows` their columns, in the order before the transpose.
Replacement reordered(Rewriter& rewriter, ValueId weights, bool in_rows, const Joined& joined) {
  const TensorDesc desc = rewriter.desc(weights);
  TensorDesc apart = desc;
  apart.rank = 0;
  std::vector<int> perm;
  const auto keep = [&](std::int32_t size) {
    perm.push_back(apart.rank);
    apart.dims[apart.rank++] = size;
  };
  if (in_rows) keep(desc.dims[0]);
  for (const int axis : joined.order) perm.push_back(apart.rank + axis);
  for (const std::int32_t size : joined.sizes) apart.dims[apart.rank++] = size;
  if (!in_rows) keep(desc.dims[1]);
  const auto split = rewriter.reshape(weights, apart);
  const auto turned = split ? rewriter.transpose(*split, perm) : std::nullopt;
  const auto result = turned ? rewriter.reshape(*turned, desc) : std::nullopt;
  return result && rewriter.graph().is_constant(*result) ? result : std::nullopt;
}

/// Are they a constant matrix of this product alone, of elements that are whole bytes?
bool can_turn(const Rewriter& rewriter, ValueId weights) {
  const TensorDesc& desc = rewriter.desc(weights);
  return rewriter.graph().is_constant(weights) && rewriter.only_reader(weights) && desc.rank == 2 &&
         element_size(desc.type) != 0 && !rewriter.value(weights).quantized_source;
}

Replacement turn(Rewriter& rewriter, const Node& node) {
  const auto in_rows = has_weights_in_rows(node);
  if (!in_rows || !can_turn(rewriter, node.inputs[1])) return std::nullopt;
  const Node* reshape = rewriter.only_producer(node.inputs[0], ops::kReshape);
  const Node* transpose = reshape != nullptr ? rewriter.only_producer(reshape->inputs[0], ops::kTranspose) : nullptr;
  if (transpose == nullptr) return std::nullopt;
  const ValueId x = transpose->inputs[0];
  const TensorDesc flat = rewriter.desc(node.inputs[0]);
  const auto joined = joined_axes(rewriter.desc(x), Permutation::of(transpose->as<ops::TransposeParams>().perm),
                                  flat.dims[flat.rank - 1]);
  const auto weights = joined ? reordered(rewriter, node.inputs[1], *in_rows, *joined) : std::nullopt;
  const auto rows = weights ? rewriter.reshape(x, flat) : std::nullopt;
  if (!rows) return std::nullopt;
  std::vector<ValueId> inputs = node.inputs;
  inputs[0] = *rows;
  inputs[1] = *weights;
  return rewriter.emit(*node.op, node.params, std::move(inputs));
}

}  // namespace

Result<bool> turn_weights(graph::Graph& graph) { return Rewriter(graph).sweep(turn); }

}  // namespace bantam::passes
