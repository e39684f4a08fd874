// Gives a convolution's results in the order in which a transpose behind it wants their channels, so that it moves runs
// of them instead of single ones: what upsampling by depth-to-space and pixel shuffling ask for.
//
// transpose(reshape(conv(x, w))), where the reshape splits the channels and the transpose brings the parts into another
// order, the last of them to the end, becomes the same with the output channels of w, and of what there is per channel,
// in that order. Bit for bit the same. Only for constant operands, one group, and when nobody else reads what lies
// between.
#include <algorithm>
#include <vector>

#include "ops/data/reshape/reshape.h"
#include "ops/data/transpose/transpose.h"
#include "ops/nn/conv2d/conv2d.h"
#include "ops/nn/conv2d_affine/conv2d_affine.h"
#include "passes/list.h"
#include "passes/permutation.h"
#include "passes/rewriter.h"

namespace bantam::passes {
namespace {

using graph::kNone;
using graph::Node;
using graph::ValueId;
using Replacement = std::optional<ValueId>;

/// The parts of the channels as a reshape splits them, and their order behind the transpose.
struct Parts {
  std::vector<std::int32_t> sizes;
  std::vector<int> order;
};

bool is_convolution(const Node& node) {
  return (node.is(ops::kConv2d) && node.as<ops::Conv2dParams>().groups == 1) ||
         (node.is(ops::kConv2dAffine) && node.as<ops::Conv2dAffineParams>().groups == 1);
}

/// Nothing where runs of channels move already, or would not in any order.
std::optional<Parts> parts_of(const TensorDesc& image, const TensorDesc& split, const Permutation& perm) {
  const int first = image.rank - 1;
  if (split.rank <= image.rank || !std::equal(image.dims, image.dims + first, split.dims)) return std::nullopt;
  Parts parts{{split.dims + first, split.dims + split.rank}, {}};
  for (const int axis : perm.span())
    if (axis >= first) parts.order.push_back(axis - first);
  const int last = perm[perm.rank - 1];
  return last == perm.rank - 1 || last < first || std::ranges::is_sorted(parts.order) ? std::nullopt
                                                                                      : std::optional(parts);
}

/// A constant with the elements of its first axis, one per channel, in the order of the parts.
Replacement reordered(Rewriter& rewriter, ValueId id, const Parts& parts) {
  const TensorDesc desc = rewriter.desc(id);
  if (!rewriter.graph().is_constant(id) || rewriter.value(id).quantized_source) return std::nullopt;
  TensorDesc split = desc;
  std::vector<int> perm(parts.order);
  split.rank = 0;
  for (const std::int32_t size : parts.sizes) split.dims[split.rank++] = size;
  perm.push_back(split.rank);
  split.dims[split.rank++] = static_cast<std::int32_t>(desc.elements() / desc.dims[0]);
  const auto apart = rewriter.reshape(id, split);
  const auto turned = apart ? rewriter.transpose(*apart, perm) : std::nullopt;
  const auto result = turned ? rewriter.reshape(*turned, desc) : std::nullopt;
  return result && rewriter.graph().is_constant(*result) ? result : std::nullopt;
}

/// The convolution with its channels in that order.
Replacement convolve_in_order(Rewriter& rewriter, const Node& convolution, const Parts& parts) {
  const std::int32_t channels = rewriter.desc(convolution.inputs[1]).dims[0];
  if (channels == 0) return std::nullopt;
  std::vector<ValueId> inputs = convolution.inputs;
  for (std::size_t i = 1; i < inputs.size(); ++i) {
    if (inputs[i] == kNone || (i > 1 && rewriter.desc(inputs[i]).elements() == 1)) continue;
    const TensorDesc desc = rewriter.desc(inputs[i]);
    if (desc.rank == 0 || desc.dims[0] != channels) return std::nullopt;
    const auto result = reordered(rewriter, inputs[i], parts);
    if (!result) return std::nullopt;
    inputs[i] = *result;
  }
  rewriter.set_source(convolution.name, convolution.origin);
  return rewriter.emit(*convolution.op, convolution.params, std::move(inputs));
}

Replacement order(Rewriter& rewriter, const Node& node) {
  if (!node.is(ops::kTranspose)) return std::nullopt;
  const Node* reshape = rewriter.only_producer(node.inputs[0], ops::kReshape);
  if (reshape == nullptr) return std::nullopt;
  const Node* found = rewriter.only_producer(reshape->inputs[0]);
  if (found == nullptr || !is_convolution(*found)) return std::nullopt;
  const Node convolution = *found;  // emitting moves nodes
  const TensorDesc image = rewriter.desc(reshape->inputs[0]);
  TensorDesc split = rewriter.desc(node.inputs[0]);
  Permutation perm = Permutation::of(node.as<ops::TransposeParams>().perm);
  const auto parts = parts_of(image, split, perm);
  const auto y = parts ? convolve_in_order(rewriter, convolution, *parts) : std::nullopt;
  if (!y) return std::nullopt;
  const int first = image.rank - 1;
  for (int i = 0; i < split.rank - first; ++i)
    split.dims[first + i] = parts->sizes[static_cast<std::size_t>(parts->order[static_cast<std::size_t>(i)])];
  int next = first;
  for (int i = 0; i < perm.rank; ++i)
    if (perm[i] >= first) perm.v[static_cast<std::size_t>(i)] = next++;
  rewriter.set_source(node.name, node.origin);
  const auto apart = rewriter.reshape(*y, split);
  return apart ? rewriter.transpose(*apart, perm.span()) : std::nullopt;
}

}  // namespace

Result<bool> order_channels(graph::Graph& graph) { return Rewriter(graph).sweep(order); }

}  // namespace bantam::passes
