#include "compiler/flatten.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "graph/control.h"
#include "ops/data/copy/copy.h"

namespace bantam::compiler {
namespace {

using graph::Graph;
using graph::kNone;
using graph::Node;
using graph::NodeId;
using graph::ValueId;

// What flat nodes that jump are called. They have no kernels: the runtime does what they say.
const ops::OpDef kBranch{.name = "branch"};
const ops::OpDef kJump{.name = "jump"};
const ops::OpDef kJoin{.name = "join"};
const ops::OpDef kLoopBegin{.name = "loop_begin"};
const ops::OpDef kEnter{.name = "enter"};
const ops::OpDef kLoopEnd{.name = "loop_end"};
const ops::OpDef kExit{.name = "exit"};

/// By FlatKind.
const ops::OpDef* const kFlatOps[] = {nullptr, &kBranch, &kJump, &kJoin, &kLoopBegin, &kEnter, &kLoopEnd, &kExit};

std::size_t index_of(std::int32_t index) { return static_cast<std::size_t>(index); }

class Flattener {
 public:
  explicit Flattener(Graph graph) : nodes_(std::exchange(graph.nodes, {})) { flat_.graph = std::move(graph); }

  FlatGraph run() {
    for (source_ = 0; index_of(source_) < nodes_.size(); ++source_) {
      Node& node = nodes_[index_of(source_)];
      if (node.bodies.empty()) {
        append(std::move(node), FlatKind::kCompute);
      } else {
        add_control(std::move(node));
      }
    }
    return std::move(flat_);
  }

 private:
  /// A constant condition that always holds needs no test.
  bool is_true(ValueId id) const {
    return flat_.graph.is_constant(id) && flat_.graph.value(id).constant->bytes[0] != std::byte{0};
  }

  std::int32_t next() const { return static_cast<std::int32_t>(flat_.graph.nodes.size()); }
  ControlFlow& flow() { return flat_.flow; }

  NodeId append(Node node, FlatKind kind) {
    const NodeId id = next();
    for (const ValueId value : node.outputs)
      if (value != kNone) flat_.graph.value(value).producer = id;
    flat_.graph.nodes.push_back(std::move(node));
    flow().kinds.push_back(kind);
    flow().targets.push_back(kNone);
    flow().limits.push_back(0);
    flat_.sources.push_back(source_);
    return id;
  }

  NodeId append_control(FlatKind kind, const Node& of, std::vector<ValueId> inputs, std::vector<ValueId> outputs) {
    Node node;
    node.op = kFlatOps[static_cast<std::size_t>(kind)];
    node.name = of.name;
    node.origin = of.origin;
    node.inputs = std::move(inputs);
    node.outputs = std::move(outputs);
    return append(std::move(node), kind);
  }

  ValueId new_value(const graph::Value& like, std::string name) {
    graph::Value value;
    value.name = std::move(name);
    value.desc = like.desc;
    value.quantization = like.quantization;
    return flat_.graph.add_value(std::move(value));
  }

  /// A copy of `value` in bytes of its own, for the control flow of `of`.
  ValueId append_copy(const Node& of, ValueId value) {
    const ValueId result = new_value(flat_.graph.value(value), {});
    Node node;
    node.op = &ops::kCopy;
    node.params = graph::Params(ops::kCopy);
    node.name = of.name;
    node.origin = of.origin;
    node.inputs = {value};
    node.outputs = {result};
    append(std::move(node), FlatKind::kCompute);
    return result;
  }

  /// The same, but where the storage rules allow nothing is copied.
  ValueId append_control_copy(const Node& of, ValueId value, ValueId carried) {
    const ValueId result = append_copy(of, value);
    flow().copies.push_back({next() - 1, carried});
    return result;
  }

  void add_control(Node node) { node.is(graph::kIf) ? add_if(node) : add_loop(node); }

  /// Appends a body whose inputs are these values; gives its outputs.
  std::vector<ValueId> add_body(const Node& of, Graph& body, std::span<const ValueId> inputs) {
    std::vector<ValueId> ids(body.values.size(), kNone);
    for (std::size_t i = 0; i < inputs.size(); ++i) ids[index_of(body.inputs[i].value)] = inputs[i];
    const auto flat_id = [&](ValueId id) {
      if (id == kNone) return kNone;
      ValueId& known = ids[index_of(id)];
      if (known != kNone) return known;
      graph::Value& value = body.value(id);
      if (!value.name.empty()) value.name = of.name + "/" + value.name;  // names of bodies are not the model's
      value.producer = kNone;
      return known = flat_.graph.add_value(std::move(value));
    };
    for (Node& node : body.nodes) {
      if (node.op == nullptr) continue;
      for (ValueId& id : node.inputs) id = flat_id(id);
      for (ValueId& id : node.outputs) id = flat_id(id);
      if (node.bodies.empty()) {
        append(std::move(node), FlatKind::kCompute);
      } else {
        add_control(std::move(node));
      }
    }
    std::vector<ValueId> outputs;
    for (const graph::Port& port : body.outputs) outputs.push_back(flat_id(port.value));
    return outputs;
  }

  /// The copies at the end of a branch, one per result that somebody wants.
  std::vector<ValueId> add_branch(const Node& node, Graph& body) {
    const std::vector<ValueId> given = add_body(node, body, std::span(node.inputs).subspan(1));
    std::vector<ValueId> results;
    for (std::size_t i = 0; i < node.outputs.size(); ++i)
      if (node.outputs[i] != kNone) results.push_back(append_control_copy(node, given[i], kNone));
    return results;
  }

  void add_if(Node& node) {
    const NodeId branch = append_control(FlatKind::kBranch, node, {node.inputs[0]}, {});
    const std::vector<ValueId> of_then = add_branch(node, node.bodies[0]);
    const NodeId jump = append_control(FlatKind::kJump, node, {}, {});
    const std::vector<ValueId> of_else = add_branch(node, node.bodies[1]);
    std::vector<ValueId> results;
    std::ranges::copy_if(node.outputs, std::back_inserter(results), [](ValueId id) { return id != kNone; });
    std::vector<ValueId> inputs = of_then;
    inputs.insert(inputs.end(), of_else.begin(), of_else.end());
    const NodeId join = append_control(FlatKind::kJoin, node, std::move(inputs), results);
    flow().targets[index_of(branch)] = jump + 1;
    flow().targets[index_of(jump)] = join;
    flow().exclusions.push_back({branch + 1, jump + 1, join});
    for (std::size_t i = 0; i < results.size(); ++i) flow().shared.push_back({results[i], of_then[i], of_else[i]});
  }

  void add_loop(Node& node) {
    Graph& body = node.bodies.front();
    const std::size_t count = node.outputs.size();
    const std::int32_t limit = node.as<graph::LoopParams>().limit;
    const ValueId iteration = new_value(body.value(body.inputs[0].value), {});
    std::vector<ValueId> trips = {node.inputs[0], is_true(node.inputs[1]) ? kNone : node.inputs[1]};
    std::vector<ValueId> initial;
    std::vector<ValueId> begin_inputs = trips;
    for (std::size_t i = 0; i < count; ++i) {
      const ValueId from = node.inputs[2 + i];
      initial.push_back(from == kNone ? kNone : append_control_copy(node, from, kNone));
      if (from != kNone) begin_inputs.push_back(initial.back());
    }
    const NodeId begin = append_control(FlatKind::kLoopBegin, node, std::move(begin_inputs), {iteration});

    std::vector<ValueId> inputs = {iteration};
    for (std::size_t i = 0; i < count; ++i) inputs.push_back(new_value(body.value(body.inputs[1 + i].value), {}));
    const std::vector<ValueId> carried(inputs.begin() + 1, inputs.end());
    const NodeId enter = append_control(FlatKind::kEnter, node, {}, carried);
    inputs.insert(inputs.end(), node.inputs.begin() + 2 + static_cast<std::ptrdiff_t>(count), node.inputs.end());
    std::vector<ValueId> given = add_body(node, body, inputs);
    const std::vector<ValueId> following = add_next_values(node, carried, given);

    std::vector<ValueId> end_inputs = {trips[0], is_true(given[0]) ? kNone : given[0], iteration};
    end_inputs.insert(end_inputs.end(), following.begin(), following.end());
    const NodeId end = append_control(FlatKind::kLoopEnd, node, std::move(end_inputs), {});
    std::vector<ValueId> results = node.outputs;
    for (std::size_t i = 0; i < count; ++i)
      if (results[i] == kNone) results[i] = new_value(flat_.graph.value(carried[i]), {});
    append_control(FlatKind::kExit, node, {}, results);
    flow().targets[index_of(begin)] = end + 1;
    flow().targets[index_of(end)] = enter;
    flow().limits[index_of(begin)] = flow().limits[index_of(end)] = limit;
    flow().loops.push_back({enter, end});
    for (std::size_t i = 0; i < count; ++i) {
      flow().shared.push_back({results[i], carried[i], following[i]});
      if (initial[i] != kNone) flow().shared.back().push_back(initial[i]);
    }
  }

  /// The copies at the end of a loop's body. A carried value that becomes another one is saved first: the copies
  /// overwrite the carried values one by one.
  std::vector<ValueId> add_next_values(const Node& node, const std::vector<ValueId>& carried,
                                       std::vector<ValueId>& given) {
    for (std::size_t i = 0; i < carried.size(); ++i) {
      ValueId& next = given[1 + i];
      if (next != carried[i] && std::ranges::find(carried, next) != carried.end()) next = append_copy(node, next);
    }
    // The condition is read after the copies.
    if (std::ranges::find(carried, given[0]) != carried.end()) given[0] = append_copy(node, given[0]);
    std::vector<ValueId> following;
    for (std::size_t i = 0; i < carried.size(); ++i)
      following.push_back(given[1 + i] == carried[i] ? carried[i]
                                                     : append_control_copy(node, given[1 + i], carried[i]));
    return following;
  }

  std::vector<Node> nodes_;
  NodeId source_ = 0;
  FlatGraph flat_;
};

}  // namespace

FlatGraph flatten(Graph graph) {
  if (!graph::has_control(graph)) return {std::move(graph), {}, {}};
  return Flattener(std::move(graph)).run();
}

}  // namespace bantam::compiler
