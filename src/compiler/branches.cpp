#include "compiler/branches.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "passes/list.h"

namespace bantam::compiler {
namespace {

using graph::Graph;
using graph::kNone;
using graph::ValueId;

/// As many names as a message can bear.
constexpr std::size_t kNamesShown = 12;

std::size_t at(ValueId id) { return static_cast<std::size_t>(id); }

const graph::Port* find_port(const std::vector<graph::Port>& ports, const std::string& name) {
  const auto it = std::ranges::find(ports, name, &graph::Port::name);
  return it == ports.end() ? nullptr : &*it;
}

/// The value of that name that steps compute or callers give; constants have no step to wait for.
ValueId find_tensor(const Graph& graph, const std::string& name) {
  for (std::size_t i = 0; i < graph.values.size(); ++i)
    if (graph.values[i].name == name && !graph.values[i].constant) return static_cast<ValueId>(i);
  return kNone;
}

/// The model's outputs, and the tensors whose names share the most with what was asked for.
std::string known_names(const Graph& graph, const std::string& wanted) {
  std::string text;
  for (const graph::Port& port : graph.outputs) text += (text.empty() ? "outputs " : ", ") + port.name;
  std::size_t shown = 0;
  for (const graph::Value& value : graph.values) {
    if (value.name.empty() || value.constant || value.name.find(wanted) == std::string::npos) continue;
    if (shown == kNamesShown) return text + ", ...";
    text += (shown++ == 0 ? "; tensors with that in their names " : ", ") + value.name;
  }
  return text;
}

class OutputChooser {
 public:
  explicit OutputChooser(Graph& graph) : graph_(graph) {}

  void add(const std::string& name, const char* option) {
    if (find_port(chosen_, name) != nullptr) return;
    const graph::Port* port = find_port(graph_.outputs, name);
    const ValueId value = port != nullptr ? port->value : find_tensor(graph_, name);
    if (value != kNone) {
      chosen_.push_back({name, value});
    } else {
      findings_ += fmt::format("{}{}: the model has no tensor '{}'; it has {}", findings_.empty() ? "" : "\n", option,
                               name, known_names(graph_, name));
    }
  }
  void add_outputs() { chosen_ = graph_.outputs; }

  Result<void> finish() {
    if (!findings_.empty())
      return fail(StatusCode::kInvalidArgument, findings_,
                  "use names that `bantam inspect MODEL --text --stop-after dead-code` shows");
    graph_.outputs = std::move(chosen_);
    return {};
  }

 private:
  Graph& graph_;
  std::vector<graph::Port> chosen_;
  std::string findings_;
};

/// By value: does an output need it, directly or as a state of an earlier invoke?
std::vector<bool> needed_values(const Graph& graph) {
  std::vector<bool> needed(graph.values.size(), false);
  for (const graph::Port& port : graph.outputs) needed[at(port.value)] = true;
  for (const graph::MeasuredSize& size : graph.measured) needed[at(size.value)] = true;
  for (bool changed = true; changed;) {
    for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
      const bool used = std::ranges::any_of(node->outputs, [&](ValueId id) { return id != kNone && needed[at(id)]; });
      for (const ValueId id : node->inputs)
        if (used && id != kNone) needed[at(id)] = true;
    }
    // A state that is read makes what gives its next value needed, which may read further states.
    changed = false;
    for (const graph::State& state : graph.states) {
      if (state.out == kNone || !needed[at(state.in)] || needed[at(state.out)]) continue;
      needed[at(state.out)] = true;
      changed = true;
    }
  }
  return needed;
}

}  // namespace

Result<void> choose_outputs(Graph& graph, const std::vector<std::string>& outputs,
                            const std::vector<std::string>& keep) {
  if (outputs.empty() && keep.empty()) return {};
  OutputChooser chooser(graph);
  if (outputs.empty()) chooser.add_outputs();
  for (const std::string& name : outputs) chooser.add(name, "outputs");
  for (const std::string& name : keep) chooser.add(name, "keep");
  if (auto chosen = chooser.finish(); !chosen || outputs.empty()) return chosen;
  const std::vector<bool> needed = needed_values(graph);
  std::erase_if(graph.inputs, [&](const graph::Port& port) { return !needed[at(port.value)]; });
  std::erase_if(graph.states, [&](const graph::State& state) { return !needed[at(state.in)]; });
  if (auto pruned = passes::remove_dead_code(graph); !pruned) return fail(std::move(pruned.error()));
  return {};
}

std::vector<std::uint64_t> output_marks(const Graph& graph) {
  std::vector<std::uint64_t> values(graph.values.size(), 0);
  for (std::size_t o = 0; o < graph.outputs.size(); ++o)
    values[at(graph.outputs[o].value)] |= OutputSet().add(o).marks();
  for (const graph::State& state : graph.states)
    if (state.out != kNone) values[at(state.out)] = OutputSet::all().marks();
  for (const graph::MeasuredSize& size : graph.measured) values[at(size.value)] = OutputSet::all().marks();
  std::vector<std::uint64_t> nodes(graph.nodes.size(), 0);
  for (std::size_t n = graph.nodes.size(); n-- > 0;) {
    for (const ValueId id : graph.nodes[n].outputs)
      if (id != kNone) nodes[n] |= values[at(id)];
    for (const ValueId id : graph.nodes[n].inputs)
      if (id != kNone) values[at(id)] |= nodes[n];
  }
  return nodes;
}

}  // namespace bantam::compiler
