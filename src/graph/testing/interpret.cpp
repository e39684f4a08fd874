#include "graph/testing/interpret.h"

#include <fmt/format.h>

#include <memory>

#include "graph/control.h"

namespace bantam::graph::testing {
namespace {

constexpr TensorDesc kAbsent{};

Constant zeros(const TensorDesc& desc) {
  const auto bytes = std::make_shared<const std::vector<std::byte>>(static_cast<std::size_t>(desc.bytes()));
  return {*bytes, bytes};
}

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
  bind_constants();
  return {};
}

void Interpreter::bind_constants() {
  for (std::size_t i = 0; i < graph_.values.size(); ++i)
    if (graph_.values[i].constant) values_[i] = *graph_.values[i].constant;
}

Result<std::vector<Constant>> Interpreter::run_body(const Graph& body, const std::vector<Constant>& inputs) {
  Interpreter inside(body);
  for (std::size_t i = 0; i < inputs.size(); ++i)
    inside.values_[static_cast<std::size_t>(body.inputs[i].value)] = inputs[i];
  inside.bind_constants();
  for (const Node& node : body.nodes)
    if (node.op != nullptr)
      if (auto done = inside.run_node(node); !done) return fail(std::move(done.error()));
  std::vector<Constant> outputs;
  for (const Port& port : body.outputs) outputs.push_back(inside.values_[static_cast<std::size_t>(port.value)]);
  return outputs;
}

Result<void> Interpreter::run_control(const Node& node) {
  const auto flag = [](const Constant& c) { return c.bytes[0] != std::byte{0}; };
  std::vector<Constant> operands;
  for (const ValueId id : node.inputs)
    operands.push_back(id == kNone ? Constant{} : values_[static_cast<std::size_t>(id)]);
  for (std::size_t i = 2; node.is(kLoop) && i < leading_operands(node); ++i)
    if (node.inputs[i] == kNone) operands[i] = zeros(control_result(node, i - 2));
  std::vector<Constant> results;
  if (node.is(kIf)) {
    auto taken = run_body(node.bodies[flag(operands[0]) ? 0 : 1], {operands.begin() + 1, operands.end()});
    if (!taken) return fail(std::move(taken.error()));
    results = std::move(*taken);
  } else {
    auto carried = run_loop(node, operands);
    if (!carried) return fail(std::move(carried.error()));
    results = std::move(*carried);
  }
  for (std::size_t i = 0; i < node.outputs.size(); ++i)
    if (node.outputs[i] != kNone) values_[static_cast<std::size_t>(node.outputs[i])] = results[i];
  return {};
}

Result<std::vector<Constant>> Interpreter::run_loop(const Node& node, const std::vector<Constant>& operands) {
  const auto captures = static_cast<std::ptrdiff_t>(leading_operands(node));
  std::vector<Constant> carried(operands.begin() + 2, operands.begin() + captures);
  std::int64_t trips = node.as<LoopParams>().limit;
  if (node.inputs[0] != kNone) std::memcpy(&trips, operands[0].bytes.data(), sizeof trips);
  bool going = node.inputs[1] == kNone || operands[1].bytes[0] != std::byte{0};
  for (std::int64_t i = 0; i < trips && going; ++i) {
    if (i >= node.as<LoopParams>().limit) return fail(StatusCode::kOutOfRange, "the loop exceeds its limit");
    const auto iteration = std::make_shared<const std::int64_t>(i);
    std::vector<Constant> inputs = {{std::as_bytes(std::span(iteration.get(), 1)), iteration}};
    inputs.insert(inputs.end(), carried.begin(), carried.end());
    inputs.insert(inputs.end(), operands.begin() + captures, operands.end());
    auto next = run_body(node.bodies.front(), inputs);
    if (!next) return next;
    going = next->front().bytes[0] != std::byte{0};
    carried.assign(next->begin() + 1, next->end());
  }
  return carried;
}

Result<void> Interpreter::run_node(const Node& node) {
  if (!node.bodies.empty()) return run_control(node);
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
