#include "import/trip_count.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "graph/builder.h"

namespace bantam::import {
namespace {

using graph::kNone;
using graph::ValueId;

// Counters are short chains over a few numbers; anything longer is computation.
constexpr std::size_t kMostNodes = 64;
constexpr std::int64_t kMostElements = 64;
constexpr std::int64_t kMostIterations = 1 << 14;

class Counter {
 public:
  Counter(const graph::Graph& body, std::span<const graph::Constant* const> initial) : body_(body), initial_(initial) {
    for (std::size_t i = 0; i < body.inputs.size(); ++i) position_[body.inputs[i].value] = i;
  }

  std::optional<std::int64_t> run() {
    const ValueId condition = body_.outputs[0].value;
    if (body_.is_constant(condition))
      return value_of(condition).bytes[0] == std::byte{0} ? std::optional<std::int64_t>(1) : std::nullopt;
    if (!need(condition)) return std::nullopt;
    for (std::size_t i = 0; i < initial_.size(); ++i)
      if (carried_.contains(i)) known_[body_.inputs[1 + i].value] = *initial_[i];
    for (std::int64_t count = 1; count <= kMostIterations; ++count) {
      const std::int64_t iteration = count - 1;
      auto number = std::make_shared<const std::int64_t>(iteration);
      known_[body_.inputs[0].value] = {std::as_bytes(std::span(number.get(), 1)), number};
      for (const graph::NodeId node : nodes_)
        if (!evaluate(body_.node(node))) return std::nullopt;
      if (value_of(condition).bytes[0] == std::byte{0}) return count;
      step();
    }
    return std::nullopt;
  }

 private:
  /// Notes the nodes that `id` is computed by, those of the carried values that it depends on too. False when something
  /// else is among them.
  bool need(ValueId id) {
    std::vector<ValueId> open = {id};
    while (!open.empty()) {
      const ValueId value = open.back();
      open.pop_back();
      if (value == kNone || body_.is_constant(value)) continue;
      if (body_.value(value).desc.elements() > kMostElements) return false;
      if (const auto input = position_.find(value); input != position_.end()) {
        if (input->second == 0) continue;
        const std::size_t carried = input->second - 1;
        if (carried >= initial_.size() || initial_[carried] == nullptr) return false;
        if (carried_.insert(carried).second) open.push_back(body_.outputs[1 + carried].value);
        continue;
      }
      const graph::NodeId producer = body_.value(value).producer;
      if (producer == kNone || !body_.node(producer).bodies.empty() || nodes_.size() >= kMostNodes) return false;
      if (!nodes_.insert(producer).second) continue;
      const graph::Node& node = body_.node(producer);
      open.insert(open.end(), node.inputs.begin(), node.inputs.end());
    }
    return true;
  }

  const graph::Constant& value_of(ValueId id) const {
    return body_.is_constant(id) ? *body_.value(id).constant : known_.at(id);
  }

  bool evaluate(const graph::Node& node) {
    graph::OperandTables tables = graph::operand_tables(body_, node);
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] == kNone) continue;
      // Operands are read only; Tensor has no const form.
      tables.inputs[i].data = const_cast<std::byte*>(value_of(node.inputs[i]).bytes.data());
    }
    std::vector<TensorDesc> descs;
    for (const ValueId output : node.outputs) {
      descs.push_back(output == kNone ? TensorDesc{} : body_.value(output).desc);
      if (descs.back().present() && descs.back().elements() > kMostElements) return false;
    }
    auto results = graph::evaluate(*node.op, node.params, tables.inputs, descs);
    if (!results) return false;
    for (std::size_t i = 0; i < node.outputs.size(); ++i)
      if (node.outputs[i] != kNone) known_[node.outputs[i]] = std::move((*results)[i]);
    return true;
  }

  /// The carried values become their next ones, all at once.
  void step() {
    std::vector<std::pair<ValueId, graph::Constant>> following;
    for (const std::size_t i : carried_)
      following.emplace_back(body_.inputs[1 + i].value, value_of(body_.outputs[1 + i].value));
    for (auto& [id, constant] : following) known_[id] = std::move(constant);
  }

  const graph::Graph& body_;
  std::span<const graph::Constant* const> initial_;
  std::map<ValueId, std::size_t> position_;  ///< of inputs
  std::set<graph::NodeId> nodes_;            ///< in order of execution
  std::set<std::size_t> carried_;            ///< values that the condition depends on
  std::map<ValueId, graph::Constant> known_;
};

}  // namespace

std::optional<std::int64_t> count_iterations(const graph::Graph& body,
                                             std::span<const graph::Constant* const> initial) {
  return Counter(body, initial).run();
}

}  // namespace bantam::import
