#include "graph/testing/interpret.h"

#include <fmt/format.h>

#include <memory>

namespace bantam::graph::testing {
namespace {

constexpr TensorDesc kAbsent{};

Constant borrow(const HostTensor& tensor) { return {std::span<const std::byte>(tensor.bytes), nullptr}; }

}  // namespace

Interpreter::Interpreter(const Graph& graph) : graph_(graph), values_(graph.values.size()) { reset(); }

void Interpreter::reset() {
  states_.clear();
  for (const State& state : graph_.states) {
    HostTensor tensor{graph_.value(state.in).desc, {}};
    tensor.bytes.resize(static_cast<std::size_t>(tensor.desc.bytes()));
    if (state.initial) tensor.bytes.assign(state.initial->bytes.begin(), state.initial->bytes.end());
    states_.push_back(std::move(tensor));
  }
}

Result<void> Interpreter::bind_inputs(const std::map<std::string, HostTensor>& inputs) {
  for (const Port& port : graph_.inputs) {
    const auto given = inputs.find(port.name);
    const TensorDesc& desc = graph_.value(port.value).desc;
    if (given == inputs.end())
      return fail(StatusCode::kInvalidArgument, fmt::format("input '{}' is not given", port.name));
    if (!same_shape_and_type(given->second.desc, desc) ||
        static_cast<std::int64_t>(given->second.bytes.size()) != desc.bytes())
      return fail(StatusCode::kInvalidArgument, fmt::format("input '{}' is {}, expected {}", port.name,
                                                            format_desc(given->second.desc), format_desc(desc)));
    values_[static_cast<std::size_t>(port.value)] = borrow(given->second);
  }
  for (std::size_t i = 0; i < states_.size(); ++i)
    values_[static_cast<std::size_t>(graph_.states[i].in)] = borrow(states_[i]);
  for (std::size_t i = 0; i < graph_.values.size(); ++i)
    if (graph_.values[i].constant) values_[i] = *graph_.values[i].constant;
  return {};
}

Result<void> Interpreter::run_node(const Node& node) {
  std::vector<Tensor> operands;
  for (const ValueId id : node.inputs) {
    if (id == kNone) {
      operands.push_back({nullptr, &kAbsent});
      continue;
    }
    const Constant& value = values_[static_cast<std::size_t>(id)];
    // Kernels do not write to operands here: evaluate() gives every result memory of its own.
    operands.push_back({const_cast<std::byte*>(value.bytes.data()), &graph_.value(id).desc});
  }
  std::vector<TensorDesc> descs(static_cast<std::size_t>(node.op->outputs));
  const Status inferred = ops::infer(*node.op, node.params.data(), operands, descs);
  if (!inferred.ok()) return fail(error_from(inferred).in(fmt::format("node '{}' ({})", node.name, node.op->name)));
  auto results = evaluate(*node.op, node.params, operands, descs);
  if (!results) return fail(std::move(results.error()).in(fmt::format("node '{}' ({})", node.name, node.op->name)));
  for (std::size_t i = 0; i < node.outputs.size(); ++i)
    if (node.outputs[i] != kNone) values_[static_cast<std::size_t>(node.outputs[i])] = std::move((*results)[i]);
  return {};
}

Result<std::map<std::string, HostTensor>> Interpreter::run(const std::map<std::string, HostTensor>& inputs) {
  if (auto bound = bind_inputs(inputs); !bound) return fail(std::move(bound.error()));
  for (const Node& node : graph_.nodes) {
    if (node.op == nullptr) continue;
    if (auto done = run_node(node); !done) return fail(std::move(done.error()));
  }
  const auto copy = [&](ValueId id) {
    const auto bytes = values_[static_cast<std::size_t>(id)].bytes;
    return HostTensor{graph_.value(id).desc, {bytes.begin(), bytes.end()}};
  };
  std::map<std::string, HostTensor> outputs;
  for (const Port& port : graph_.outputs) outputs.emplace(port.name, copy(port.value));
  std::vector<HostTensor> next;
  for (const State& state : graph_.states) next.push_back(copy(state.out));
  states_ = std::move(next);
  return outputs;
}

Result<std::map<std::string, HostTensor>> interpret(const Graph& graph,
                                                    const std::map<std::string, HostTensor>& inputs) {
  return Interpreter(graph).run(inputs);
}

}  // namespace bantam::graph::testing
