// Pools images whose channels come first plane by plane, where nothing but pooling lies between two transposes:
//
//   transpose(pool(transpose(x))), x [N,C,H,W] -> reshape(pool(reshape(x))), the reshape of x being [N * C,H,W,1]
//
// and the same of several poolings behind each other. Bit for bit the same but for f32 averages, which may be summed in
// another order. Only of long rows of floats: short ones of one channel, or of bytes, take longer than two transposes.
#include <algorithm>
#include <vector>

#include "ops/data/transpose/transpose.h"
#include "ops/nn/pool2d/pool2d.h"
#include "passes/list.h"
#include "passes/permutation.h"
#include "passes/rewriter.h"

namespace bantam::passes {
namespace {

using graph::Node;
using graph::ValueId;

/// Of an operand, by measurement on x86-64.
constexpr std::int64_t kLeastWidth = 80;

/// Poolings behind each other: with a reshape at both ends no more than a rule may emit.
constexpr std::size_t kMostPools = Rewriter::kMaxEmitted / 2;

bool moves_channels(const Node& node, const std::vector<int>& order) {
  return Permutation::of(node.as<ops::TransposeParams>().perm) == Permutation::of(order);
}

/// The images of x [N,H,W,C], of channels that were planes, as images of one channel.
TensorDesc as_planes(TensorDesc x) {
  x.dims[0] *= x.dims[3];
  x.dims[3] = 1;
  x.set_dense_strides();
  return x;
}

bool has_long_rows(const TensorDesc& x) { return x.type == ElementType::kF32 && x.dims[2] >= kLeastWidth; }

/// `node`: the transpose behind.
std::optional<ValueId> pool_as_planes(Rewriter& rewriter, const Node& node) {
  if (!node.is(ops::kTranspose) || !moves_channels(node, {0, 3, 1, 2})) return std::nullopt;
  std::vector<const Node*> pools;
  ValueId image = node.inputs[0];
  while (pools.size() < kMostPools) {
    const Node* pool = rewriter.only_producer(image, ops::kPool2d);
    if (pool == nullptr) break;
    pools.insert(pools.begin(), pool);
    image = pool->inputs[0];
  }
  const Node* before = rewriter.producer(image, ops::kTranspose);
  if (pools.empty() || before == nullptr || !moves_channels(*before, {0, 2, 3, 1})) return std::nullopt;
  const TensorDesc x = rewriter.desc(image);
  const TensorDesc y = rewriter.desc(node.outputs[0]);
  if (x.elements() == 0 || !has_long_rows(rewriter.desc(pools.back()->inputs[0]))) return std::nullopt;
  auto planes = rewriter.reshape(before->inputs[0], as_planes(x));
  for (const Node* pool : pools) {
    if (!planes) return std::nullopt;
    rewriter.set_source(pool->name, pool->origin);
    planes = rewriter.emit(ops::kPool2d, pool->params, {*planes});
  }
  return planes ? rewriter.reshape(*planes, y) : std::nullopt;
}

}  // namespace

Result<bool> pool_planes(graph::Graph& graph) { return Rewriter(graph).sweep(pool_as_planes); }

/// Rows of other sizes may be short.
Result<bool> pool_planes_at_any_size(graph::Graph& /*graph*/) { return false; }

}  // namespace bantam::passes
