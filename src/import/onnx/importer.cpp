#include "import/onnx/importer.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "import/onnx/ports.h"

namespace bantam::import::onnx {
namespace {

template <typename Pairs, typename Project>
std::vector<std::string> collect(const Pairs& items, Project&& project) {
  std::vector<std::string> names;
  for (const auto& item : items) names.emplace_back(project(item));
  return names;
}

/// Is it a symbolic dimension of an input?
bool is_symbol(const GraphProto& graph, std::string_view name) {
  return std::ranges::any_of(real_inputs(graph), [&](const ValueInfo* input) {
    return input->shape && std::ranges::find(*input->shape, name, &Dimension::symbol) != input->shape->end();
  });
}

}  // namespace

Result<graph::Graph> Importer::run() {
  if (model_.graph.outputs.empty())
    return fail(StatusCode::kInvalidModel, "the model has no outputs", "copy or export the file again");
  graph::Graph& graph = model_frame_.graph();
  graph.name = std::string(model_.graph.name);
  for (const auto& [key, value] : model_.metadata) graph.metadata.emplace_back(key, value);

  const std::vector<ValueId> outputs = lower_graph(model_.graph, nullptr);
  bind_outputs(outputs);
  check_option_names();
  if (!findings_.empty()) return fail(findings_.error());
  // Constants that only folding read, and values of inputs that became constants, are of no further use.
  graph::compact(graph);
  if (auto sorted = graph::sort_topologically(graph); !sorted) return fail(std::move(sorted.error()));
  return std::move(graph);
}

std::vector<ValueId> Importer::lower_graph(const GraphProto& graph, const Scope* outer,
                                           std::span<const ValueId> inputs) {
  Scope scope(outer);
  return lower_in_scope(graph, scope, inputs);
}

std::vector<ValueId> Importer::lower_body(const GraphProto& graph, const Scope& outer, Frame& frame,
                                          std::span<const ValueId> inputs) {
  Scope scope(&outer, &frame);
  Frame* const around = std::exchange(frame_, &frame);
  std::vector<ValueId> outputs = lower_in_scope(graph, scope, inputs);
  frame_ = around;
  return outputs;
}

std::vector<ValueId> Importer::lower_in_scope(const GraphProto& graph, Scope& scope, std::span<const ValueId> inputs) {
  std::vector<ValueId> unknown(graph.outputs.size(), kUnknown);
  auto order = order_nodes(graph);
  if (!order) {
    findings_.add(order.error());
    return unknown;
  }
  if (graph.has_sparse_initializer)
    findings_.add(StatusCode::kUnsupported, "sparse initializers are not supported; export dense weights");
  if (&graph == &model_.graph) add_inputs(scope);
  for (std::size_t i = 0; i < inputs.size() && i < graph.inputs.size(); ++i) scope.set(graph.inputs[i].name, inputs[i]);
  add_initializers(graph, order->used, scope);
  return lower_nodes(graph, *order, scope);
}

void Importer::add_inputs(Scope& scope) {
  const std::vector<const ValueInfo*> inputs = real_inputs(model_.graph);
  auto descs = resolve_shapes(inputs, options_);
  if (!descs) {
    findings_.add(descs.error());
    for (const ValueInfo* info : inputs) scope.set(info->name, kUnknown);
    for (const auto& [name, values] : options_.values) values_used_.insert(name);
    return;
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const std::string name(inputs[i]->name);
    const auto fixed = options_.values.find(name);
    const bool is_state = std::any_of(options_.states.begin(), options_.states.end(),
                                      [&](const auto& state) { return state.first == name; });
    if (fixed != options_.values.end()) {
      values_used_.insert(name);
      (*descs)[i].type = compute_type((*descs)[i].type);
      auto constant = constant_from_values((*descs)[i], fixed->second);
      if (!constant) {
        findings_.add(constant.error().code, fmt::format("--set {}: {}", name, constant.error().message));
        scope.set(inputs[i]->name, kUnknown);
        continue;
      }
      scope.set(inputs[i]->name, builder().constant(name, (*descs)[i], constant->bytes, constant->owner));
    } else {
      const ValueId port = is_state ? builder().state(name, (*descs)[i]) : builder().input(name, (*descs)[i]);
      scope.set(inputs[i]->name, converted(port, compute_type((*descs)[i].type)));
    }
  }
  add_counts(inputs, *descs, scope);
}

ValueId Importer::converted(ValueId id, ElementType type) {
  if (builder().desc(id).type == type) return id;
  builder().set_source(builder().graph().value(id).name, "Cast");
  auto result = builder().cast(id, type);
  if (result) return *result;
  findings_.add(result.error());
  return kUnknown;
}

void Importer::add_counts(const std::vector<const ValueInfo*>& inputs, std::span<const TensorDesc> descs,
                          const Scope& scope) {
  for (const auto& [name, text] : options_.counts) {
    const auto input = std::ranges::find(inputs, name, &ValueInfo::name);
    const auto largest = largest_count(text, inputs, descs);
    if (input == inputs.end() || !largest) {
      findings_.add(StatusCode::kInvalidArgument,
                    fmt::format("--count {}={}: an input and its largest count are expected, a number or a symbolic "
                                "dimension of an input",
                                name, text));
      continue;
    }
    const TensorDesc& desc = descs[static_cast<std::size_t>(input - inputs.begin())];
    auto constant = constant_from_values(desc, std::vector{static_cast<double>(*largest)});
    if (constant) {
      counts().set(*scope.find(name), std::move(*constant));
    } else {
      findings_.add(constant.error().code, fmt::format("--count {}: {}", name, constant.error().message));
    }
  }
}

void Importer::add_initializers(const GraphProto& graph, const std::unordered_set<std::string_view>& used,
                                Scope& scope) {
  for (const TensorProto& tensor : graph.initializers) {
    if (!used.contains(tensor.name)) continue;
    auto constant = constants_.read(tensor).map(in_compute_type);
    if (!constant) {
      findings_.add(constant.error());
      scope.set(tensor.name, kUnknown);
      continue;
    }
    scope.set(tensor.name, add_constant(std::string(tensor.name), *constant));
  }
}

ValueId Importer::add_constant(std::string name, const TensorConstant& constant) {
  const ValueId id = builder().constant(std::move(name), constant.desc, constant.data.bytes, constant.data.owner);
  if (constant.nibbles) frame_->mark_nibbles(id);
  return id;
}

std::vector<ValueId> Importer::lower_nodes(const GraphProto& graph, const NodeOrder& order, Scope& scope) {
  for (const std::size_t n : order.nodes) lower_node(graph.nodes[n], order.used, scope);
  std::vector<ValueId> outputs;
  for (const ValueInfo& output : graph.outputs) {
    const auto value = scope.find(output.name);
    if (!value)
      findings_.add(StatusCode::kInvalidModel,
                    fmt::format("output '{}' is produced by no node, input or initializer", printable(output.name)));
    outputs.push_back(value.value_or(kUnknown));
  }
  return outputs;
}

void Importer::lower_node(const NodeProto& node, const std::unordered_set<std::string_view>& used, Scope& scope) {
  const auto give_up = [&] {
    for (const std::string_view name : node.outputs)
      if (!name.empty()) scope.set(name, kUnknown);
  };
  const std::string label = node_label(node);
  const auto row = find_operator(node.domain, node.op_type, model_.opset(node.domain));
  if (!row) {
    findings_.add(row.error().code,
                  fmt::format("node '{}' ({}): {}", label, printable(node.op_type), row.error().message));
    return give_up();
  }
  bool known = true;
  for (const std::string_view name : node.inputs) {
    if (name.empty()) continue;
    const auto value = scope.find(name);
    if (!value)
      findings_.add(StatusCode::kInvalidModel,
                    fmt::format("node '{}' ({}) reads '{}', which no node, input or initializer produces", label,
                                printable(node.op_type), printable(name)));
    known = known && value.value_or(kUnknown) != kUnknown;
  }
  if (!known) return give_up();

  builder().set_source(label, printable(node.op_type));
  NodeLowering lowering(*this, node, scope, used);
  (*row)->handler(lowering);
  lowering.finish();
  if (lowering.failed()) return give_up();
  bind_results(lowering, scope);
}

void Importer::bind_results(const NodeLowering& lowering, Scope& scope) {
  const NodeProto& node = lowering.proto();
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    const std::string_view name = node.outputs[i];
    if (name.empty()) continue;
    ValueId id = lowering.results()[i];
    if (id == kNone) id = kUnknown;
    const auto fixed = options_.values.find(std::string(name));
    if (id != kUnknown && fixed != options_.values.end()) {
      values_used_.insert(fixed->first);
      const TensorDesc desc = builder().desc(id);
      auto constant = constant_from_values(desc, fixed->second);
      if (constant) {
        id = builder().constant(std::string(name), desc, constant->bytes, constant->owner);
      } else {
        findings_.add(constant.error().code, fmt::format("--set {}: {}", fixed->first, constant.error().message));
        id = kUnknown;
      }
    }
    graph::Graph& graph = frame_->graph();
    if (id != kUnknown && graph.value(id).name.empty()) graph.value(id).name = std::string(name);
    scope.set(name, id);
  }
}

void Importer::bind_outputs(std::vector<ValueId> outputs) {
  const auto& declared = model_.graph.outputs;
  for (std::size_t i = 0; i < declared.size(); ++i) {
    const ElementType type = element_type(declared[i].data_type);
    if (outputs[i] != kUnknown && builder().desc(outputs[i]).type == ElementType::kF32 &&
        compute_type(type) == ElementType::kF32)
      outputs[i] = converted(outputs[i], type);
  }
  const auto names = collect(declared, [](const ValueInfo& o) { return o.name; });
  std::vector<bool> is_state(declared.size(), false);
  std::vector<graph::State>& states = model_frame_.graph().states;
  for (const auto& [in, out] : options_.states) {
    const auto position = std::find(names.begin(), names.end(), out);
    const auto state =
        std::find_if(states.begin(), states.end(), [&name = in](const graph::State& s) { return s.name == name; });
    if (position == names.end()) {
      findings_.add(StatusCode::kInvalidArgument,
                    fmt::format("--state {}={}: the model has no such output; it has: {}", in, out, list_names(names)));
      continue;
    }
    const auto index = static_cast<std::size_t>(position - names.begin());
    if (state == states.end() || outputs[index] == kUnknown) continue;
    if (state->out != graph::kNone || is_state[index]) {
      findings_.add(StatusCode::kInvalidArgument,
                    fmt::format("--state {}={}: the input or the output belongs to another state already", in, out));
      continue;
    }
    is_state[index] = true;
    state->out = outputs[index];
    const TensorDesc& from = builder().desc(state->out);
    const TensorDesc& to = builder().desc(state->in);
    if (!same_shape_and_type(from, to))
      findings_.add(StatusCode::kInvalidArgument,
                    fmt::format("--state {}={}: the input is {}, the output is {}; they must agree", in, out,
                                graph::format_desc(to), graph::format_desc(from)));
  }
  for (std::size_t i = 0; i < declared.size(); ++i)
    if (!is_state[i] && outputs[i] != kUnknown) builder().output(names[i], outputs[i]);
}

std::optional<std::int64_t> Importer::given_iterations(const std::string& node) {
  const auto given = options_.iterations.find(node);
  if (given == options_.iterations.end()) return std::nullopt;
  iterations_used_.insert(node);
  return given->second;
}

void Importer::check_option_names() {
  for (const auto& [node, most] : options_.iterations) {
    if (most < 1 || most > std::numeric_limits<std::int32_t>::max())
      findings_.add(StatusCode::kInvalidArgument,
                    fmt::format("--iterations {}={}: a number of iterations is expected", node, most));
    if (!iterations_used_.contains(node))
      findings_.add(StatusCode::kInvalidArgument,
                    fmt::format("--iterations {}: the model has no loop of that name that needs a limit", node));
  }
  const auto inputs = collect(real_inputs(model_.graph), [](const ValueInfo* i) { return i->name; });
  const auto is_input = [&](const std::string& name) {
    return std::find(inputs.begin(), inputs.end(), name) != inputs.end();
  };
  for (const auto& [name, values] : options_.values)
    if (!values_used_.contains(name))
      findings_.add(
          StatusCode::kInvalidArgument,
          fmt::format("--set {}: the model has no such input or value; its inputs are: {}", name, list_names(inputs)));
  for (const auto& [name, bound] : options_.bounds)
    if (!model_frame_.measured().is_known(name) && !is_symbol(model_.graph, name))
      findings_.add(StatusCode::kInvalidArgument,
                    fmt::format("--bound {}: the model has no such dimension, and computes no such size", name));
  for (const graph::MeasuredSize& size : model_frame_.graph().measured)
    if (options_.dims.contains(size.name) && !options_.bounds.contains(size.name))
      findings_.add(
          StatusCode::kInvalidArgument,
          fmt::format("--dim {}: the model computes this size; give a bound: --bound {}=N", size.name, size.name));
  for (const auto& [in, out] : options_.states) {
    if (!is_input(in))
      findings_.add(StatusCode::kInvalidArgument,
                    fmt::format("--state {}={}: the model has no such input; it has: {}", in, out, list_names(inputs)));
    if (options_.values.contains(in))
      findings_.add(StatusCode::kInvalidArgument,
                    fmt::format("--state {}={}: the input has a fixed value and cannot be a state", in, out));
  }
}

}  // namespace bantam::import::onnx
