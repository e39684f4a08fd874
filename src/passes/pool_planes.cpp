// Pools images whose channels come first plane by plane, each plane being an image of one channel:
//
//   transpose(pool(transpose(x))), x [N,C,H,W] -> planes, of one or several poolings between the two transposes
//   pool(transpose(x)) of few channels -> transpose(planes), which moves what is left after pooling
//
// Bit for bit the same but for f32 averages, which may be summed in another order. Only of long rows of floats: short
// ones of one channel, or of bytes, take longer than two transposes.
#include <algorithm>
#include <span>
#include <vector>

#include "ops/data/reshape/reshape.h"
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

/// Channels of an image, by measurement: more fill vectors themselves.
constexpr std::int32_t kFewChannels = 15;

constexpr int kChannelsLast[] = {0, 2, 3, 1};
constexpr int kChannelsFirst[] = {0, 3, 1, 2};
constexpr int kPlanes[] = {1, 2, 3, 0};  ///< of one image
constexpr int kFromPlanes[] = {3, 0, 1, 2};

bool turns(const Node& node, std::span<const int> order) {
  return node.is(ops::kTranspose) && Permutation::of(node.as<ops::TransposeParams>().perm) == Permutation::of(order);
}

/// The operand of the transpose into that order that gives `id`, if one does.
std::optional<ValueId> before_turn(const Rewriter& rewriter, ValueId id, std::span<const int> order) {
  const Node* node = rewriter.producer(id);
  return node != nullptr && turns(*node, order) ? std::optional(node->inputs[0]) : std::nullopt;
}

/// x [N,C,H,W] as images of one channel. Of one image only axes of one element move: bands of rows go through that.
std::optional<ValueId> as_planes(Rewriter& rewriter, ValueId x) {
  TensorDesc planes = rewriter.desc(x);
  if (planes.dims[0] == 1) {
    const auto were = before_turn(rewriter, x, kFromPlanes);
    return were ? were : rewriter.transpose(x, kPlanes);
  }
  planes.dims[0] *= planes.dims[1];
  std::copy_n(planes.dims + 2, 2, planes.dims + 1);
  planes.dims[3] = 1;
  planes.set_dense_strides();
  const Node* from = rewriter.producer(x, ops::kReshape);
  if (from != nullptr && same_shape_and_type(rewriter.desc(from->inputs[0]), planes)) return from->inputs[0];
  return rewriter.reshape(x, planes);
}

/// And back, of so many channels.
std::optional<ValueId> from_planes(Rewriter& rewriter, ValueId planes, std::int32_t channels) {
  TensorDesc y = rewriter.desc(planes);
  if (y.dims[0] == channels) return rewriter.transpose(planes, kFromPlanes);
  std::copy_backward(y.dims + 1, y.dims + 3, y.dims + 4);
  y.dims[0] /= channels;
  y.dims[1] = channels;
  return rewriter.reshape(planes, y);
}

/// The poolings of x [N,C,H,W], one after the other.
std::optional<ValueId> pooled(Rewriter& rewriter, ValueId x, std::span<const Node* const> pools) {
  const std::int32_t channels = rewriter.desc(x).dims[1];
  auto planes = as_planes(rewriter, x);
  for (const Node* pool : pools) {
    if (!planes) return std::nullopt;
    rewriter.set_source(pool->name, pool->origin);
    planes = rewriter.emit(ops::kPool2d, pool->params, {*planes});
  }
  return planes ? from_planes(rewriter, *planes, channels) : std::nullopt;
}

/// Of x [N,H,W,C].
bool has_long_rows(const TensorDesc& x) {
  return x.type == ElementType::kF32 && x.elements() > 0 && x.dims[2] >= kLeastWidth;
}

/// `node`: a transpose that brings channels first.
std::optional<ValueId> pool_between_transposes(Rewriter& rewriter, const Node& node) {
  std::vector<const Node*> pools;
  ValueId image = node.inputs[0];
  while (pools.size() < kMostPools) {
    const Node* pool = rewriter.only_producer(image, ops::kPool2d);
    if (pool == nullptr) break;
    pools.insert(pools.begin(), pool);
    image = pool->inputs[0];
  }
  const auto x = before_turn(rewriter, image, kChannelsLast);
  if (!x || pools.empty()) return x;  // without pools: what those of few channels have left
  return has_long_rows(rewriter.desc(pools.back()->inputs[0])) ? pooled(rewriter, *x, pools) : std::nullopt;
}

/// `node`: a pooling.
std::optional<ValueId> pool_before_transpose(Rewriter& rewriter, const Node& node) {
  const TensorDesc image = rewriter.desc(node.inputs[0]);
  const auto x = before_turn(rewriter, node.inputs[0], kChannelsLast);
  if (!x || !rewriter.only_reader(node.inputs[0]) || !has_long_rows(image) || image.dims[3] > kFewChannels ||
      rewriter.desc(node.outputs[0]).elements() > image.elements())
    return std::nullopt;
  const Node* const pools[] = {&node};
  const auto y = pooled(rewriter, *x, pools);
  return y ? rewriter.transpose(*y, kChannelsLast) : std::nullopt;
}

std::optional<ValueId> rewrite(Rewriter& rewriter, const Node& node) {
  if (node.is(ops::kPool2d)) return pool_before_transpose(rewriter, node);
  return turns(node, kChannelsFirst) ? pool_between_transposes(rewriter, node) : std::nullopt;
}

}  // namespace

Result<bool> pool_planes(graph::Graph& graph) { return Rewriter(graph).sweep(rewrite); }

/// Rows of other sizes may be short.
Result<bool> pool_planes_at_any_size(graph::Graph& /*graph*/) { return false; }

}  // namespace bantam::passes
