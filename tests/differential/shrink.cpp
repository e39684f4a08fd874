// Makes a failing sample small: outputs, nodes and states are taken away as long as it still fails.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "differential/random_graph.h"
#include "graph/text.h"
#include "ops/testing/test_tensor.h"

namespace bantam::testing {
namespace {

bool is_unread(const graph::Uses& uses, graph::ValueId id) {
  return id == graph::kNone || (uses.of(id).empty() && !uses.is_external(id));
}

/// Drops nodes whose results nobody reads.
Sample without_dead_nodes(Sample sample) {
  for (bool dropped = true; dropped;) {
    dropped = false;
    const graph::Uses uses(sample.graph);
    for (graph::Node& node : sample.graph.nodes)
      if (node.op != nullptr && std::ranges::all_of(node.outputs, [&](auto id) { return is_unread(uses, id); })) {
        node = {};
        dropped = true;
      }
  }
  return sample;
}

void drop_unread_inputs(graph::Graph& graph) {
  const graph::Uses uses(graph);
  std::erase_if(graph.states, [&](const graph::State& s) { return s.in == s.out && uses.of(s.in).empty(); });
  std::erase_if(graph.inputs, [&](const graph::Port& port) { return is_unread(uses, port.value); });
  graph::compact(graph);
}

/// The value becomes an input with the data it had.
bool make_input(Sample& sample, graph::ValueId id, const std::vector<Tensors>& values) {
  if (values.size() != sample.rounds.size()) return false;
  const std::string name = fmt::format("was{}", sample.graph.inputs.size());
  for (const graph::Port& port : sample.graph.inputs)
    if (port.name == name) return false;
  const std::string key = fmt::format("v{}", id);
  for (std::size_t r = 0; r < values.size(); ++r) {
    const auto found = values[r].find(key);
    if (found == values[r].end()) return false;
    sample.rounds[r][name] = found->second;
  }
  sample.graph.value(id).producer = graph::kNone;
  sample.graph.inputs.push_back({name, id});
  return true;
}

/// The sample without node `n`, whose results become inputs.
Sample without_node(const Sample& sample, std::size_t n, const std::vector<Tensors>& values) {
  Sample smaller = sample;
  const graph::Node node = smaller.graph.nodes[n];
  smaller.graph.nodes[n] = {};
  for (const graph::ValueId id : node.outputs)
    if (id != graph::kNone && !make_input(smaller, id, values)) return sample;
  return smaller;
}

Sample without_state(const Sample& sample, std::size_t s, const std::vector<Tensors>& values) {
  Sample smaller = sample;
  const graph::ValueId id = smaller.graph.states[s].in;
  smaller.graph.states.erase(smaller.graph.states.begin() + static_cast<std::ptrdiff_t>(s));
  return make_input(smaller, id, values) ? smaller : sample;
}

Sample with_output(const Sample& sample, std::size_t o) {
  Sample smaller = sample;
  smaller.graph.outputs = {sample.graph.outputs[o]};
  return smaller;
}

Sample without_output(const Sample& sample, std::size_t o) {
  Sample smaller = sample;
  smaller.graph.outputs.erase(smaller.graph.outputs.begin() + static_cast<std::ptrdiff_t>(o));
  return smaller;
}

std::size_t size_of(const Sample& sample) {
  const graph::Graph& g = sample.graph;
  return 100 * g.nodes.size() + 10 * (g.outputs.size() + g.states.size()) + g.inputs.size() + sample.rounds.size();
}

/// Everything that is one step smaller.
std::vector<Sample> smaller_ones(const Sample& sample) {
  std::vector<Sample> candidates;
  const auto values = all_values(sample);
  for (std::size_t o = 0; o < sample.graph.outputs.size(); ++o) candidates.push_back(with_output(sample, o));
  if (sample.graph.outputs.size() > 1)
    for (std::size_t o = 0; o < sample.graph.outputs.size(); ++o) candidates.push_back(without_output(sample, o));
  for (std::size_t n = sample.graph.nodes.size(); n-- > 0;) candidates.push_back(without_node(sample, n, values));
  for (std::size_t s = 0; s < sample.graph.states.size(); ++s) candidates.push_back(without_state(sample, s, values));
  if (sample.rounds.size() > 1) {
    candidates.push_back(sample);
    candidates.back().rounds.pop_back();
  }
  candidates.push_back(without_dead_nodes(sample));
  for (Sample& candidate : candidates) drop_unread_inputs(candidate.graph);
  return candidates;
}

}  // namespace

std::vector<Tensors> all_values(const Sample& sample) {
  graph::Graph graph = sample.graph;
  graph.outputs.clear();
  for (std::size_t id = 0; id < graph.values.size(); ++id)
    if (graph.values[id].producer != graph::kNone || !graph.values[id].constant)
      graph.outputs.push_back({fmt::format("v{}", id), static_cast<graph::ValueId>(id)});
  graph::testing::Interpreter interpreter(graph);
  std::vector<Tensors> rounds;
  for (const Tensors& inputs : sample.rounds) {
    auto values = interpreter.run(inputs);
    if (!values) break;
    rounds.push_back(std::move(*values));
  }
  return rounds;
}

Sample shrink(Sample sample, const std::function<std::string(const Sample&)>& fails) {
  for (bool shrunk = true; shrunk;) {
    shrunk = false;
    for (Sample& candidate : smaller_ones(sample)) {
      if (size_of(candidate) >= size_of(sample) || !graph::verify(candidate.graph) || fails(candidate).empty())
        continue;
      sample = std::move(candidate);
      shrunk = true;
      break;
    }
  }
  return sample;
}

std::string describe(const Sample& sample) {
  std::string text = graph::to_text(sample.graph);
  for (std::size_t r = 0; r < sample.rounds.size(); ++r)
    for (const graph::Port& port : sample.graph.inputs) {
      ops::testing::TestTensor tensor(sample.graph.value(port.value).desc);
      tensor.set_packed(sample.rounds[r].at(port.name).bytes);
      text += fmt::format("round {}, {}:", r, port.name);
      const auto numbers = tensor.to_doubles();
      for (std::size_t i = 0; i < numbers.size() && i < 40; ++i) text += fmt::format(" {}", numbers[i]);
      text += numbers.size() > 40 ? " ...\n" : "\n";
    }
  return text;
}

}  // namespace bantam::testing
