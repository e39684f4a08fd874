// Chooses the layout in which every node computes, so that as few bytes as possible are transposed.
//
// Importers keep a channels-first model's order of axes and put a transpose before and after every channels-last
// operator. Most nodes between two such operators compute as well in either order. Each node that can (layout_rules)
// gets one candidate layout, found by walking from transposes through neighbouring nodes: the layout that makes the
// transpose it was reached from vanish. A binary variable per node says whether it takes its candidate.
// A value must then be transposed once for every layout that some reader wants and its producer does not give; the
// bytes of those transposes are the cost. Transposes of constants cost nothing, and those that only move axes of one
// element (views) next to nothing. The sum is minimised exactly by a minimum cut (min_cut.h), except for terms that a
// cut cannot express (a transpose that either end could absorb, but not both): these are replaced by an upper bound
// that is equal where nothing changes, so the true cost never rises. Rounds that let the reader absorb such a transpose
// alternate with rounds that let the producer do it, until neither finds anything, at most kMaxRounds times.
//
// Soundness: the rewritten graph computes every value in some order of axes; rules only claim what holds for every
// element, each reader is given the order it asks for, and ports and states keep theirs. Results are equal to the bit
// but for f32 sums (reduce, norm) that are accumulated in another order. Finally, transposes of a matrix product's
// operands become its flags. Cost: O(nodes + operands) besides the cut, which is near linear on such graphs.
#include <algorithm>
#include <map>
#include <utility>

#include "graph/builder.h"
#include "ops/data/transpose/transpose.h"
#include "ops/elementwise/unary/unary.h"
#include "ops/nn/matmul/matmul.h"
#include "passes/layout_rules.h"
#include "passes/list.h"
#include "passes/min_cut.h"
#include "passes/rewriter.h"

namespace bantam::passes {
namespace {

using graph::Graph;
using graph::kNone;
using graph::Node;
using graph::NodeId;
using graph::ValueId;
using Operand = NodeLayout::Operand;
using Cost = MinCut::Cost;

constexpr int kMaxRounds = 12;

/// Which side of a transpose is to absorb it in a round. `kEither` offers both sides a candidate and, where both could,
/// prefers the reader.
enum class Absorb { kReaders, kProducers, kEither, kCount };

/// A transpose costs its bytes. A view costs nothing at run time; counting it a little keeps the graph small.
constexpr Cost kByteCost = 4096;
constexpr Cost kViewCost = 1;

std::size_t at(std::int32_t id) { return static_cast<std::size_t>(id); }

/// Every value as a transpose of a value that no transpose produces.
struct Root {
  ValueId value = kNone;
  Permutation layout;  ///< the value is transpose(root, layout)
};

std::vector<Root> find_roots(const Graph& graph) {
  std::vector<Root> roots(graph.values.size());
  for (std::size_t i = 0; i < roots.size(); ++i)
    roots[i] = {static_cast<ValueId>(i), Permutation::identity(graph.values[i].desc.rank)};
  for (const Node& node : graph.nodes) {
    if (node.op == nullptr || !node.is(ops::kTranspose) || node.outputs[0] == kNone) continue;
    const Root& from = roots[at(node.inputs[0])];
    const Permutation perm = Permutation::of(node.as<ops::TransposeParams>().perm);
    roots[at(node.outputs[0])] = {from.value, from.layout.then(perm)};
  }
  return roots;
}

/// Swapping the two innermost axes of an f32 matrix product's operand is a flag.
bool absorbs_transpose(const Graph& graph, const Node& node, std::size_t operand, const Permutation& layout) {
  if (!node.is(ops::kMatmul) || operand > 1 || layout.rank < 2) return false;
  for (const std::size_t i : {std::size_t{0}, std::size_t{1}})
    if (graph.value(node.inputs[i]).desc.type != ElementType::kF32) return false;
  Permutation swapped = Permutation::identity(layout.rank);
  std::swap(swapped.v[at(layout.rank - 1)], swapped.v[at(layout.rank - 2)]);
  return layout == swapped;
}

/// The layout in which a node could compute, by node; empty for those that keep theirs.
class Candidates {
 public:
  Candidates(const Graph& graph, const graph::Uses& uses, const std::vector<Root>& roots, Absorb absorb)
      : graph_(graph), uses_(uses), roots_(roots), found_(graph.nodes.size()) {
    seed(absorb);
  }

  const std::optional<NodeLayout>& of(NodeId node) const { return found_[at(node)]; }

 private:
  /// Walks from each transpose, unless one already reached makes it vanish: forward from its readers or backward from
  /// its producer, whichever is to absorb it.
  void seed(Absorb absorb) {
    const bool backward = absorb == Absorb::kProducers;
    const auto count = static_cast<NodeId>(graph_.nodes.size());
    for (NodeId i = 0; i < count; ++i) {
      const Node& node = graph_.node(backward ? count - 1 - i : i);
      if (node.op == nullptr || !node.is(ops::kTranspose) || node.outputs[0] == kNone) continue;
      const ValueId y = node.outputs[0];
      const Root& root = roots_[at(y)];
      const bool either = absorb == Absorb::kEither;
      if (either || (!backward && !absorbed_by_producer(root))) offer_readers(y, root.layout.inverse());
      if (either || (backward && !absorbed_by_readers(y))) offer_producer(root.value, root.layout);
      for (; spread_ < reached_.size(); ++spread_) spread(reached_[spread_]);
    }
  }

  /// True when the candidate of the root's producer gives what the transpose gives.
  bool absorbed_by_producer(const Root& root) const {
    const graph::Value& x = graph_.value(root.value);
    return x.producer != kNone && found_[at(x.producer)] &&
           found_[at(x.producer)]->result.order(x.desc) == root.layout.order(x.desc);
  }
  /// True when the candidates of all readers take the root as it is.
  bool absorbed_by_readers(ValueId y) const {
    const Root& root = roots_[at(y)];
    const TensorDesc& x = graph_.value(root.value).desc;
    const auto absorbs = [&](const graph::Uses::Use& use) {
      const auto& candidate = found_[at(use.node)];
      return candidate && candidate->kinds[at(use.operand)] == Operand::kLaidOut &&
             root.layout.then(candidate->operands[at(use.operand)]).is_view(x);
    };
    const auto readers = uses_.of(y);
    return !uses_.is_external(y) && std::all_of(readers.begin(), readers.end(), absorbs);
  }

  void offer_readers(ValueId value, const Permutation& layout) {
    for (const auto& use : uses_.of(value)) offer(use.node, use.operand, layout);
  }
  void offer_producer(ValueId value, const Permutation& layout) {
    if (graph_.value(value).producer != kNone) offer(graph_.value(value).producer, kResult, layout);
  }

  void offer(NodeId n, int where, const Permutation& layout) {
    const Node& node = graph_.node(n);
    if (found_[at(n)] || node.is(ops::kTranspose)) return;
    const ValueId value = where == kResult ? node.outputs[0] : node.inputs[at(where)];
    if (value == kNone || layout.is_identity()) return;
    found_[at(n)] = propagate_layout(graph_, node, where, layout);
    if (found_[at(n)]) reached_.push_back(n);
  }

  void spread(NodeId n) {
    const Node& node = graph_.node(n);
    const NodeLayout layout = *found_[at(n)];
    for (const ValueId id : node.outputs)
      if (id != kNone) offer_readers(id, layout.result);
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (layout.kinds[i] != Operand::kLaidOut) continue;
      offer_producer(node.inputs[i], layout.operands[i]);
      offer_readers(node.inputs[i], layout.operands[i]);
    }
  }

  const Graph& graph_;
  const graph::Uses& uses_;
  const std::vector<Root>& roots_;
  std::vector<std::optional<NodeLayout>> found_;
  std::vector<NodeId> reached_;  ///< nodes with a candidate, in the order of discovery
  std::size_t spread_ = 0;       ///< how many of them have offered it to their neighbours
};

/// The cost of all layouts as a cut problem.
class Problem {
 public:
  Problem(const Graph& graph, const std::vector<Root>& roots, const Candidates& candidates, bool readers_absorb)
      : graph_(graph), roots_(roots), candidates_(candidates), readers_absorb_(readers_absorb) {
    variables_.resize(graph.nodes.size(), -1);
    for (std::size_t n = 0; n < graph.nodes.size(); ++n)
      if (candidates.of(static_cast<NodeId>(n))) variables_[n] = cut_.add_variable();
    needs_.resize(graph.values.size());
    for (std::size_t n = 0; n < graph.nodes.size(); ++n) add_reader(static_cast<NodeId>(n));
    graph::for_each_result(graph, [&](ValueId id) { need_always(id); });
    for (std::size_t v = 0; v < needs_.size(); ++v)
      for (const auto& [layout, need] : needs_[v]) charge(static_cast<ValueId>(v), layout, need);
  }

  /// Whether each node takes its candidate; nothing when no choice is better than the present one.
  std::optional<std::vector<bool>> solve() {
    const std::vector<bool> ones = cut_.solve();
    std::vector<bool> taken(variables_.size(), false);
    for (std::size_t n = 0; n < taken.size(); ++n) taken[n] = variables_[n] >= 0 && ones[at(variables_[n])];
    if (std::none_of(taken.begin(), taken.end(), [](bool t) { return t; })) return std::nullopt;
    return taken;
  }

 private:
  /// Who wants a value in one order of axes: always, or by a node's choice.
  struct Need {
    bool always = false;
    std::vector<int> if_0;
    std::vector<int> if_1;
  };
  Need& need(const Root& root, const Permutation& layout) { return needs_[at(root.value)][layout]; }
  Permutation own_layout(const Root& root) const { return Permutation::identity(graph_.value(root.value).desc.rank); }
  void need_always(ValueId id) { need(roots_[at(id)], roots_[at(id)].layout).always = true; }

  void add_reader(NodeId n) {
    const Node& node = graph_.node(n);
    if (node.op == nullptr || node.is(ops::kTranspose)) return;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId id = node.inputs[i];
      if (id == kNone || graph_.is_constant(roots_[at(id)].value)) continue;
      const Root& root = roots_[at(id)];
      const auto& candidate = candidates_.of(n);
      if (!candidate) {
        if (!absorbs_transpose(graph_, node, i, root.layout)) need(root, root.layout).always = true;
        continue;
      }
      const Permutation other =
          candidate->kinds[i] == Operand::kLaidOut ? root.layout.then(candidate->operands[i]) : root.layout;
      Need& present = need(root, root.layout);
      Need& changed = need(root, other);
      if (&present == &changed) {
        present.always = true;
      } else {
        present.if_0.push_back(variables_[at(n)]);
        changed.if_1.push_back(variables_[at(n)]);
      }
      // Beside the operator that computes its operand a function may become its last step.
      if (node.is(ops::kUnary) && graph_.value(root.value).producer != kNone && other == own_layout(root))
        cut_.cost_of_0(variables_[at(n)], kViewCost);
      if (candidate->kinds[i] == Operand::kBroadcast) cut_.cost_of_1(variables_[at(n)], broadcast_cost(id, *candidate));
    }
  }

  /// A broadcast operand may have to be turned for this reader alone.
  Cost broadcast_cost(ValueId id, const NodeLayout& candidate) const {
    const TensorDesc& x = graph_.value(id).desc;
    TensorDesc extended = x;
    const int added = candidate.result.rank - x.rank;
    extended.rank = static_cast<std::uint8_t>(candidate.result.rank);
    std::fill_n(extended.dims, added, 1);
    std::copy_n(x.dims, x.rank, extended.dims + added);
    return candidate.result.is_view(extended) ? kViewCost : x.bytes() * kByteCost;
  }

  /// A variable that is 1 when any of `nodes` is.
  int any_of(const std::vector<int>& nodes) {
    if (nodes.size() == 1) return nodes[0];
    const int any = cut_.add_variable();
    for (const int n : nodes) cut_.cost_of_01(any, n, MinCut::kInfinite);
    return any;
  }
  /// A variable that is 1 only when all of `nodes` are.
  int all_of(const std::vector<int>& nodes) {
    if (nodes.size() == 1) return nodes[0];
    const int all = cut_.add_variable();
    for (const int n : nodes) cut_.cost_of_01(n, all, MinCut::kInfinite);
    return all;
  }

  /// What it takes to give `x`, stored in layout `from`, in layout `to`.
  static Cost turning_cost(const TensorDesc& x, const Permutation& from, const Permutation& to) {
    if (from == to) return 0;
    return from.order(x) == to.order(x) ? kViewCost : x.bytes() * kByteCost;
  }

  /// The cost of one transpose of `value` into `layout`, unless its producer gives that layout already.
  void charge(ValueId value, const Permutation& layout, const Need& need) {
    const TensorDesc& x = graph_.value(value).desc;
    const NodeId producer = graph_.value(value).producer;
    const int u = producer == kNone ? -1 : variables_[at(producer)];
    const Cost cost_0 = turning_cost(x, Permutation::identity(x.rank), layout);
    const Cost cost_1 = u >= 0 ? turning_cost(x, candidates_.of(producer)->result, layout) : cost_0;
    if (need.always) {
      if (u >= 0) cut_.cost_of_0(u, cost_0);
      if (u >= 0) cut_.cost_of_1(u, cost_1);
      return;
    }
    if (!need.if_1.empty()) charge_if_1(u, cost_0, cost_1, any_of(need.if_1));
    if (!need.if_0.empty()) charge_if_0(u, cost_0, cost_1, all_of(need.if_0));
  }

  /// Wanted when `any` is 1. "u = 1 and any = 1" is no cut function; both bounds are exact where u and any are 0.
  void charge_if_1(int u, Cost cost_0, Cost cost_1, int any) {
    cut_.cost_of_1(any, std::min(cost_0, cost_1));
    if (cost_0 > cost_1) cut_.cost_of_01(u, any, cost_0 - cost_1);
    if (cost_1 > cost_0) cut_.cost_of_1(readers_absorb_ ? u : any, cost_1 - cost_0);
  }

  /// Wanted when `all` is 0. "u = 0 and all = 0" is no cut function; both bounds are exact where u and all are 0.
  void charge_if_0(int u, Cost cost_0, Cost cost_1, int all) {
    cut_.cost_of_0(all, std::min(cost_0, cost_1));
    if (cost_1 > cost_0) cut_.cost_of_01(all, u, cost_1 - cost_0);
    if (cost_0 > cost_1) cut_.cost_of_0(readers_absorb_ ? all : u, cost_0 - cost_1);
  }

  const Graph& graph_;
  const std::vector<Root>& roots_;
  const Candidates& candidates_;
  bool readers_absorb_;
  MinCut cut_;
  std::vector<int> variables_;                      ///< by node, -1 for nodes that keep their layout
  std::vector<std::map<Permutation, Need>> needs_;  ///< by root value
};

/// Builds the node list anew with the chosen layouts.
class Relayout {
 public:
  Relayout(Graph& graph, const std::vector<Root>& roots, const Candidates& candidates, const std::vector<bool>& taken)
      : graph_(graph), roots_(roots), candidates_(candidates), taken_(taken), builder_(graph) {}

  Result<void> run() {
    stored_.resize(graph_.values.size());
    for (std::size_t i = 0; i < stored_.size(); ++i)
      stored_[i] = {static_cast<ValueId>(i), Permutation::identity(graph_.values[i].desc.rank)};
    std::vector<Node> old;
    old.swap(graph_.nodes);
    for (std::size_t n = 0; n < old.size(); ++n) {
      if (old[n].op == nullptr || old[n].is(ops::kTranspose)) continue;
      builder_.set_source(old[n].name, old[n].origin);
      auto done = taken_[n] ? lay_out(old[n], *candidates_.of(static_cast<NodeId>(n))) : keep(std::move(old[n]));
      if (!done) return done;
    }
    for (graph::Port& port : graph_.outputs)
      if (auto done = bind(port.value, port.name); !done) return done;
    for (graph::State& state : graph_.states)
      if (state.out != kNone)
        if (auto done = bind(state.out, state.name); !done) return done;
    for (graph::MeasuredSize& size : graph_.measured)
      if (auto done = bind(size.value, size.name); !done) return done;
    return {};
  }

 private:
  struct Stored {
    ValueId value = kNone;
    Permutation layout;
  };

  /// `id` in `layout`, transposed at most once for all readers.
  Result<ValueId> read(ValueId id, const Permutation& layout) {
    const Root& root = roots_[at(id)];
    const Permutation wanted = root.layout.then(layout);
    const Stored& stored = stored_[at(root.value)];
    if (stored.layout == wanted) return stored.value;
    const auto key = std::pair(root.value, wanted);
    if (const auto it = turned_.find(key); it != turned_.end()) return it->second;
    const Permutation perm = stored.layout.inverse().then(wanted);
    const TensorDesc& x = graph_.value(stored.value).desc;
    auto turned = perm.is_view(x) ? builder_.reshape(stored.value, dims_of(perm.apply(x)))
                                  : builder_.transpose(stored.value, perm.span());
    if (turned) turned_.emplace(key, *turned);
    return turned;
  }

  Result<void> keep(Node node) {
    for (ValueId& id : node.inputs) {
      if (id == kNone) continue;
      auto value = read(id, Permutation::identity(graph_.value(id).desc.rank));
      if (!value) return fail(std::move(value.error()));
      id = *value;
    }
    for (const ValueId id : node.outputs)
      if (id != kNone) graph_.value(id).producer = static_cast<NodeId>(graph_.nodes.size());
    graph_.nodes.push_back(std::move(node));
    return {};
  }

  Result<void> lay_out(const Node& node, const NodeLayout& layout) {
    std::vector<ValueId> inputs;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      auto value = operand(node.inputs[i], layout, i);
      if (!value) return fail(std::move(value.error()));
      inputs.push_back(*value);
    }
    auto results = builder_.emit(*node.op, lay_out_params(node, layout), std::move(inputs));
    if (!results) return fail(std::move(results.error()));
    for (std::size_t o = 0; o < results->size(); ++o) {
      const ValueId old = node.outputs[o];
      if (old == kNone) {
        const NodeId producer = graph_.value((*results)[o]).producer;
        if (producer != kNone) graph_.node(producer).outputs[o] = kNone;
        continue;
      }
      const ops::IntList& before = graph_.value(old).layout;
      graph_.value((*results)[o]).name = graph_.value(old).name;
      graph_.value((*results)[o]).layout =
          before.size == 0 ? layout.result.list() : Permutation::of(before).then(layout.result).list();
      graph_.value((*results)[o]).quantization = graph_.value(old).quantization;
      stored_[at(old)] = {(*results)[o], layout.result};
    }
    return {};
  }

  Result<ValueId> operand(ValueId id, const NodeLayout& layout, std::size_t i) {
    if (id == kNone) return kNone;
    if (layout.kinds[i] == Operand::kLaidOut) return read(id, layout.operands[i]);
    const TensorDesc x = graph_.value(id).desc;
    auto plain = read(id, Permutation::identity(x.rank));
    if (!plain || layout.kinds[i] == Operand::kPlain) return plain;
    std::vector<std::int64_t> dims(at(layout.result.rank - x.rank), 1);
    dims.insert(dims.end(), x.dims, x.dims + x.rank);
    auto extended = builder_.reshape(*plain, dims);
    if (!extended) return extended;
    const TensorDesc wide = graph_.value(*extended).desc;
    return layout.result.is_view(wide) ? builder_.reshape(*extended, dims_of(layout.result.apply(wide)))
                                       : builder_.transpose(*extended, layout.result.span());
  }

  /// What a port or a state reads keeps its axes and its name.
  Result<void> bind(ValueId& id, const std::string& name) {
    builder_.set_source(name, "layout");
    const std::size_t nodes = graph_.nodes.size();
    auto value = read(id, Permutation::identity(graph_.value(id).desc.rank));
    if (!value) return fail(std::move(value.error()));
    // A value that the model does not name is known by what it turned out to be.
    if (graph_.nodes.size() != nodes || graph_.value(*value).name.empty()) {
      graph_.value(*value).name = graph_.value(id).name;
      graph_.value(*value).layout = graph_.value(id).layout;
    }
    id = *value;
    return {};
  }

  Graph& graph_;
  const std::vector<Root>& roots_;
  const Candidates& candidates_;
  const std::vector<bool>& taken_;
  graph::Builder builder_;
  std::vector<Stored> stored_;  ///< by old value
  std::map<std::pair<ValueId, Permutation>, ValueId> turned_;
};

/// One choice of layouts. Returns whether it moved anything; the graph is as before when not.
Result<bool> improve(Graph& graph, Absorb absorb) {
  const bool any = std::any_of(graph.nodes.begin(), graph.nodes.end(),
                               [](const Node& node) { return node.op != nullptr && node.is(ops::kTranspose); });
  if (!any) return false;
  const graph::Uses uses(graph);
  const std::vector<Root> roots = find_roots(graph);
  const Candidates candidates(graph, uses, roots, absorb);
  const auto taken = Problem(graph, roots, candidates, absorb != Absorb::kProducers).solve();
  if (!taken) return false;
  if (auto done = Relayout(graph, roots, candidates, *taken).run(); !done) return fail(std::move(done.error()));
  if (auto done = remove_dead_code(graph); !done) return fail(std::move(done.error()));
  return true;
}

/// matmul(transpose(x), ...) -> matmul with a flag.
std::optional<ValueId> absorb_into_matmul(Rewriter& rewriter, const Node& node) {
  if (!node.is(ops::kMatmul)) return std::nullopt;
  auto params = node.as<ops::MatmulParams>();
  std::vector<ValueId> inputs = node.inputs;
  bool changed = false;
  for (const std::size_t i : {std::size_t{0}, std::size_t{1}}) {
    const Node* transpose = rewriter.producer(inputs[i], ops::kTranspose);
    if (transpose == nullptr) continue;
    const auto perm = Permutation::of(transpose->as<ops::TransposeParams>().perm);
    if (!absorbs_transpose(rewriter.graph(), node, i, perm)) continue;
    inputs[i] = transpose->inputs[0];
    (i == 0 ? params.transpose_a : params.transpose_b) ^= 1;
    changed = true;
  }
  return changed ? rewriter.emit(ops::kMatmul, params, std::move(inputs)) : std::nullopt;
}

}  // namespace

Result<bool> channels_last(Graph& graph) {
  auto named = name_turned(graph);
  if (!named) return named;
  bool changed = *named;
  int idle = 0;
  constexpr int kKinds = static_cast<int>(Absorb::kCount);
  for (int round = 0; round < kMaxRounds && idle < kKinds; ++round) {
    auto moved = improve(graph, static_cast<Absorb>(round % kKinds));
    if (!moved) return moved;
    idle = *moved ? 0 : idle + 1;
    changed = changed || *moved;
  }
  auto absorbed = Rewriter(graph).sweep(absorb_into_matmul);
  if (!absorbed) return absorbed;
  // The slices that take everything are gone already, unless they take less at other sizes.
  auto cleaned = remove_identities_at_any_size(graph);
  if (!cleaned) return cleaned;
  return changed || *absorbed || *cleaned;
}

}  // namespace bantam::passes
