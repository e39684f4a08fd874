// Computes small convolutions that read the same image in the same way as one, whose channels are then sliced.
//
// Heads of detectors are convolutions with one to a few output channels: each takes as long as one with a whole panel
// of them (nn/gemm/gemm_f32.h), and reads the image again. Slices cost nothing when the planner makes them views.
// Convolutions are merged where that saves a quarter of their panels. Exact: every output channel is computed as
// before.
#include <cstring>
#include <map>

#include "ops/data/slice/slice.h"
#include "ops/nn/conv2d/conv2d.h"
#include "ops/nn/gemm/gemm_f32.h"
#include "passes/list.h"
#include "passes/rewriter.h"

namespace bantam::passes {
namespace {

using graph::Node;
using graph::ValueId;

/// Convolutions of one image with the same parameters and kernel sizes.
struct Group {
  std::vector<Node> members;
  std::int64_t panels = 0;  ///< of all members, each by itself
  std::int32_t channels = 0;
  ValueId merged = graph::kNone;
};

bool is_float_constant(const graph::Graph& graph, ValueId id) {
  return graph.is_constant(id) && graph.value(id).desc.type == ElementType::kF32;
}

bool has_bias(const Node& node) { return node.inputs.size() > 2 && node.inputs[2] != graph::kNone; }

bool can_merge(const graph::Graph& graph, const Node& node) {
  constexpr std::int32_t kMostChannels = 64;
  if (!node.is(ops::kConv2d) || node.outputs[0] == graph::kNone) return false;
  if (node.as<ops::Conv2dParams>().groups != 1 || node.inputs.size() > 3) return false;
  const std::int32_t channels = graph.value(node.inputs[1]).desc.dims[0];
  if (channels < 1 || channels > kMostChannels) return false;
  // Weights that were integers may yet be stored as such.
  if (!is_float_constant(graph, node.inputs[1]) || graph.value(node.inputs[1]).quantized_source) return false;
  return graph.value(node.inputs[0]).desc.type == ElementType::kF32 &&
         (!has_bias(node) || is_float_constant(graph, node.inputs[2]));
}

bool same_kind(const graph::Graph& graph, const Node& a, const Node& b) {
  const TensorDesc& x = graph.value(a.inputs[1]).desc;
  const TensorDesc& y = graph.value(b.inputs[1]).desc;
  return a.params == b.params && x.dims[1] == y.dims[1] && x.dims[2] == y.dims[2];
}

/// Groups that are worth merging, by the results of their members. A few dozen nodes at most are in one group.
class Groups {
 public:
  explicit Groups(const graph::Graph& graph) {
    std::multimap<ValueId, Group> by_image;
    for (const Node& node : graph.nodes) {
      if (node.op == nullptr || !can_merge(graph, node)) continue;
      auto [it, last] = by_image.equal_range(node.inputs[0]);
      while (it != last && !same_kind(graph, it->second.members[0], node)) ++it;
      if (it == last) it = by_image.emplace(node.inputs[0], Group{});
      const std::int32_t channels = graph.value(node.inputs[1]).desc.dims[0];
      it->second.members.push_back(node);
      it->second.panels += ops::gemm::panel_count(channels);
      it->second.channels += channels;
    }
    for (auto& [image, group] : by_image) {
      if (4 * ops::gemm::panel_count(group.channels) > 3 * group.panels) continue;
      groups_.push_back(std::move(group));
    }
    for (Group& group : groups_) {
      std::int32_t channel = 0;
      for (const Node& node : group.members) {
        places_[node.outputs[0]] = {&group, channel};
        channel += graph.value(node.inputs[1]).desc.dims[0];
      }
    }
  }

  struct Place {
    Group* group = nullptr;
    std::int32_t channel = 0;
  };

  Place find(ValueId result) const {
    const auto it = places_.find(result);
    return it == places_.end() ? Place{} : it->second;
  }

 private:
  std::vector<Group> groups_;
  std::map<ValueId, Place> places_;
};

void append(const graph::Graph& graph, ValueId id, std::vector<float>& to) {
  const auto bytes = graph.value(id).constant->bytes;
  const std::size_t count = bytes.size() / sizeof(float);
  to.resize(to.size() + count);
  if (count != 0) std::memcpy(to.data() + to.size() - count, bytes.data(), bytes.size());
}

std::optional<ValueId> merge(Rewriter& rewriter, const Group& group, ValueId image, const Node& node) {
  const graph::Graph& graph = rewriter.graph();
  std::vector<float> weights;
  std::vector<float> bias;
  for (const Node& member : group.members) {
    append(graph, member.inputs[1], weights);
    if (has_bias(member)) {
      append(graph, member.inputs[2], bias);
    } else {
      bias.resize(bias.size() + static_cast<std::size_t>(rewriter.desc(member.inputs[1]).dims[0]));
    }
  }
  std::vector<std::int64_t> dims = dims_of(rewriter.desc(node.inputs[1]));
  dims[0] = group.channels;
  const ValueId w = rewriter.constant<float>(dims, weights);
  const std::int64_t bias_dims[] = {group.channels};
  const ValueId b = rewriter.constant<float>(bias_dims, bias);
  return rewriter.emit(ops::kConv2d, node.params, {image, w, b});
}

}  // namespace

Result<bool> merge_convolutions(graph::Graph& graph) {
  const Groups groups(graph);
  return Rewriter(graph).sweep([&](Rewriter& rewriter, const Node& node) -> std::optional<ValueId> {
    if (!node.is(ops::kConv2d)) return std::nullopt;
    const auto [group, channel] = groups.find(node.outputs[0]);
    if (group == nullptr) return std::nullopt;
    if (group->merged == graph::kNone) {
      const auto merged = merge(rewriter, *group, node.inputs[0], node);
      if (!merged) return std::nullopt;
      group->merged = *merged;
    }
    const TensorDesc& part = rewriter.desc(node.outputs[0]);
    ops::SliceParams p;
    p.starts.size = p.steps.size = p.sizes.size = part.rank;
    std::fill_n(p.steps.v, part.rank, 1);
    std::copy_n(part.dims, part.rank, p.sizes.v);
    p.starts.v[part.rank - 1] = channel;
    return rewriter.emit(ops::kSlice, p, {group->merged});
  });
}

}  // namespace bantam::passes
