#include "import/tflite/testing/graph_runner.h"

namespace bantam::import::tflite::testing {

GraphRunner::GraphRunner(const graph::Graph& graph) : graph_(graph) { reset(); }

void GraphRunner::reset() {
  states_.clear();
  for (const graph::State& state : graph_.states) {
    if (state.initial) {
      states_.emplace_back(state.initial->bytes.begin(), state.initial->bytes.end());
    } else {
      states_.emplace_back(static_cast<std::size_t>(graph_.value(state.in).desc.bytes()));
    }
  }
}

Result<std::map<std::string, std::vector<std::byte>>> GraphRunner::run(
    const std::map<std::string, std::vector<std::byte>>& inputs) {
  std::vector<std::vector<std::byte>> values(graph_.values.size());
  for (std::size_t i = 0; i < values.size(); ++i)
    if (const auto& constant = graph_.values[i].constant)
      values[i].assign(constant->bytes.begin(), constant->bytes.end());
  for (const graph::Port& port : graph_.inputs) {
    const auto given = inputs.find(port.name);
    const auto wanted = static_cast<std::size_t>(graph_.value(port.value).desc.bytes());
    if (given == inputs.end() || given->second.size() != wanted)
      return fail(StatusCode::kInvalidArgument, "input '" + port.name + "' is missing or of the wrong size");
    values[static_cast<std::size_t>(port.value)] = given->second;
  }
  for (std::size_t i = 0; i < states_.size(); ++i) values[static_cast<std::size_t>(graph_.states[i].in)] = states_[i];

  for (const graph::Node& node : graph_.nodes) {
    graph::OperandTables tables = graph::operand_tables(graph_, node);
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      if (node.inputs[i] != graph::kNone)
        tables.inputs[i].data = values[static_cast<std::size_t>(node.inputs[i])].data();
    std::vector<TensorDesc> descs;
    for (const Tensor& t : tables.outputs) descs.push_back(*t.desc);
    auto results = graph::evaluate(*node.op, node.params, tables.inputs, descs);
    if (!results) return fail(std::move(results.error()).in("node " + node.name));
    for (std::size_t i = 0; i < node.outputs.size(); ++i)
      if (node.outputs[i] != graph::kNone)
        values[static_cast<std::size_t>(node.outputs[i])].assign((*results)[i].bytes.begin(),
                                                                 (*results)[i].bytes.end());
  }
  for (std::size_t i = 0; i < states_.size(); ++i) states_[i] = values[static_cast<std::size_t>(graph_.states[i].out)];
  std::map<std::string, std::vector<std::byte>> outputs;
  for (const graph::Port& port : graph_.outputs) outputs[port.name] = values[static_cast<std::size_t>(port.value)];
  return outputs;
}

}  // namespace bantam::import::tflite::testing
