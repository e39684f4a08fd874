// Computes equal expressions once: nodes with the same operator, parameters and operands share one result.
//
// Operators are pure, so equal operands give equal results. Walking in execution order with operands already replaced,
// a chain of equal nodes collapses in one sweep; a hash table keyed by operator, parameters and operands makes it O(n).
// Equal constants are found first, by content, and become one value.
#include <string_view>
#include <unordered_map>

#include "base/hash.h"
#include "passes/list.h"

namespace bantam::passes {
namespace {

using graph::kNone;
using graph::Node;
using graph::Value;
using graph::ValueId;

std::uint64_t mix(std::uint64_t seed, const void* data, std::size_t bytes) { return hash64(data, bytes, seed); }

std::uint64_t hash_of(const Node& node) {
  std::uint64_t h = mix(node.inputs.size(), &node.op, sizeof node.op);
  if (node.params.size() != 0) h = mix(h, node.params.data(), node.params.size());
  return node.inputs.empty() ? h : mix(h, node.inputs.data(), node.inputs.size() * sizeof(ValueId));
}

bool equal(const Node& a, const Node& b) { return a.op == b.op && a.inputs == b.inputs && a.params == b.params; }

/// Weights are compared by the planner's package, which stores equal ones once; here only constants that parameters
/// and arithmetic are made of matter.
constexpr std::size_t kMaxComparedBytes = 1 << 16;

std::uint64_t hash_of(const Value& value) {
  const auto bytes = value.constant->bytes;
  return mix(mix(value.desc.rank, value.desc.dims, sizeof value.desc.dims), bytes.data(), bytes.size());
}

bool equal(const Value& a, const Value& b) {
  const auto x = a.constant->bytes;
  const auto y = b.constant->bytes;
  return same_shape_and_type(a.desc, b.desc) && x.size() == y.size() &&
         (x.empty() || x.data() == y.data() || std::memcmp(x.data(), y.data(), x.size()) == 0);
}

class Sharing {
 public:
  explicit Sharing(graph::Graph& graph) : graph_(graph), same_(graph.values.size()), external_(same_.size(), false) {
    for (std::size_t i = 0; i < same_.size(); ++i) same_[i] = static_cast<ValueId>(i);
    for (const graph::Port& port : graph.outputs) external_[static_cast<std::size_t>(port.value)] = true;
  }

  bool run() {
    share_constants();
    bool changed = false;
    std::unordered_multimap<std::uint64_t, std::size_t> seen;
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      Node& node = graph_.nodes[n];
      if (node.op == nullptr) continue;
      for (ValueId& id : node.inputs) id = same(id);
      if (!node.bodies.empty()) continue;
      const std::uint64_t key = hash_of(node);
      const auto [first, last] = seen.equal_range(key);
      bool shared = false;
      for (auto it = first; it != last && !shared; ++it) shared = share(graph_.nodes[it->second], node);
      if (!shared) seen.emplace(key, n);
      changed = changed || shared;
    }
    graph::for_each_result(graph_, [&](ValueId& id) { id = same(id); });
    return changed;
  }

 private:
  ValueId same(ValueId id) const { return id == kNone ? kNone : same_[static_cast<std::size_t>(id)]; }

  void share_constants() {
    std::unordered_multimap<std::uint64_t, ValueId> seen;
    for (std::size_t i = 0; i < graph_.values.size(); ++i) {
      const Value& value = graph_.values[i];
      if (!value.constant || value.constant->bytes.size() > kMaxComparedBytes) continue;
      const std::uint64_t key = hash_of(value);
      const auto [first, last] = seen.equal_range(key);
      auto it = first;
      while (it != last && !equal(graph_.value(it->second), value)) ++it;
      if (it != last) {
        same_[i] = it->second;
      } else {
        seen.emplace(key, static_cast<ValueId>(i));
      }
    }
  }

  /// Makes readers of `node` read `earlier`. Both results of a port stay apart: each port has a name to keep.
  bool share(Node& earlier, Node& node) {
    if (!equal(earlier, node)) return false;
    for (std::size_t o = 0; o < node.outputs.size(); ++o) {
      if (node.outputs[o] == kNone) continue;
      if (earlier.outputs[o] == kNone || external_[static_cast<std::size_t>(node.outputs[o])]) return false;
    }
    for (std::size_t o = 0; o < node.outputs.size(); ++o)
      if (node.outputs[o] != kNone) same_[static_cast<std::size_t>(node.outputs[o])] = earlier.outputs[o];
    node.op = nullptr;
    return true;
  }

  graph::Graph& graph_;
  std::vector<ValueId> same_;
  std::vector<bool> external_;
};

}  // namespace

Result<bool> common_subexpressions(graph::Graph& graph) {
  const bool changed = Sharing(graph).run();
  if (auto done = remove_dead_code(graph); !done) return fail(std::move(done.error()));
  return changed;
}

}  // namespace bantam::passes
