// Sizes below the bound. A sample's graph stands for a family: every input dimension of the size `free_dim` is the one
// symbolic dimension, and so is every multiple of it in a list of sizes. What the family is at another size follows by
// inference; where infer refuses, the importer would have.
#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "compiler/legalize.h"
#include "compiler/sized_model.h"
#include "compiler/testing/compile_text.h"
#include "compiler/testing/placed_fleet.h"
#include "differential/checks.h"

namespace bantam::testing {
namespace {

using compiler::Sizes;
using graph::testing::HostTensor;

bool resize_desc(TensorDesc& desc, std::int64_t from, std::int64_t to) {
  bool changed = false;
  for (int i = 0; i < desc.rank; ++i)
    if (desc.dims[i] == from) {
      desc.dims[i] = static_cast<std::int32_t>(to);
      changed = true;
    }
  desc.set_dense_strides();
  return changed;
}

/// Lists of sizes, as reshape, expand, slice and resize have them.
void resize_lists(graph::Node& node, std::int64_t from, std::int64_t to) {
  for (const ops::ParamField& field : node.op->fields) {
    if (field.kind != ops::ParamField::Kind::kIntList || (field.name != "shape" && field.name != "sizes")) continue;
    ops::IntList list;
    std::memcpy(&list, node.params.data() + field.offset, sizeof list);
    for (int i = 0; i < list.size; ++i)
      if (list.v[i] % from == 0) list.v[i] = static_cast<std::int32_t>(list.v[i] / from * to);
    std::memcpy(node.params.data() + field.offset, &list, sizeof list);
  }
}

Result<graph::Graph> resized(graph::Graph graph, std::int64_t from, std::int64_t to) {
  for (graph::Value& value : graph.values)
    if (value.producer == graph::kNone && value.constant && resize_desc(value.desc, from, from))
      return fail(StatusCode::kUnsupported, "a constant has the size");
  for (const graph::State& state : graph.states)
    if (resize_desc(graph.value(state.in).desc, from, from))
      return fail(StatusCode::kUnsupported, "a state has the size");
  for (const graph::Port& port : graph.inputs) resize_desc(graph.value(port.value).desc, from, to);
  for (graph::Node& node : graph.nodes) {
    resize_lists(node, from, to);
    const graph::OperandTables tables = graph::operand_tables(graph, node);
    std::vector<TensorDesc> descs(static_cast<std::size_t>(node.op->outputs));
    const Status inferred = ops::infer(*node.op, node.params.data(), tables.inputs, descs);
    if (!inferred.ok()) return fail(error_from(inferred));
    for (std::size_t o = 0; o < descs.size(); ++o)
      if (node.outputs[o] != graph::kNone) graph.value(node.outputs[o]).desc = descs[o];
  }
  if (auto sound = graph::verify(graph); !sound) return fail(std::move(sound.error()));
  return graph;
}

Result<void> prepare(graph::Graph& graph, bool /*any_size*/) {
  if (auto legal = compiler::legalize(graph); !legal) return legal;
  graph::compact(graph);
  return {};
}

/// An input of another size, filled with the sample's elements over and over.
HostTensor resized_input(const HostTensor& from, const TensorDesc& desc) {
  HostTensor result{desc, std::vector<std::byte>(static_cast<std::size_t>(desc.bytes()))};
  for (std::size_t i = 0; i < result.bytes.size() && !from.bytes.empty(); ++i)
    result.bytes[i] = from.bytes[i % from.bytes.size()];
  return result;
}

/// Empty when the session says at this size what the interpreter says of the graph made for it.
std::string run_at(Session& session, const Sample& sample, std::int64_t size) {
  const auto graph = resized(sample.graph, sample.free_dim, size);
  if (!graph) return fmt::format("the session takes it, infer does not: {}", graph.error().message);
  session.reset();
  graph::testing::Interpreter interpreter(*graph);
  for (const Tensors& round : sample.rounds) {
    Tensors inputs;
    for (std::size_t i = 0; i < session.input_count(); ++i) {
      const std::string name(session.input_info(i).name);
      const HostTensor& tensor = inputs[name] = resized_input(round.at(name), *session.input_info(i).desc);
      if (!tensor.bytes.empty()) std::memcpy(session.input(i).data, tensor.bytes.data(), tensor.bytes.size());
    }
    const auto expected = interpreter.run(inputs);
    const Status status = session.invoke();
    if (!expected) return {};  // where nobody reads what faults, the session does not run it
    if (!status.ok()) return fmt::format("the session faults, the interpreter does not: {}", status.message);
    const auto found = compiler::testing::outputs_of(session);
    for (std::size_t o = 0; o < found.size(); ++o) {
      const auto& tensor = expected->at(graph->outputs[o].name);
      if (!same_shape_and_type(*session.output(o).desc, tensor.desc) || found[o] != tensor.bytes)
        return fmt::format("output {} differs", o);
    }
  }
  return {};
}

}  // namespace

std::string smaller_sizes(const Sample& sample) {
  if (sample.free_dim == 0) return {};
  const auto sized = compiler::size_model(
      {{"T", sample.free_dim}},
      [&](const Sizes& sizes) { return resized(sample.graph, sample.free_dim, sizes.front()); }, prepare);
  if (!sized) return {};  // not every family can be expressed; those that are refused are refused by name
  compiler::PlanOptions options{.backend = Backend::kReference, .search_steps = 20'000};
  options.dimensions = sized->dimensions;
  options.instances = sized->instances;
  const auto compiled = compiler::testing::compile_graph(sized->instances.front().graph, options);
  if (!compiled) return compiled.error().code == StatusCode::kUnsupported ? "" : compiled.error().message;
  auto placed = compiler::testing::place_package(compiled->package.bytes());
  if (!placed) return "the runtime refuses the package";
  Session& session = *placed->fleet->session(0);
  for (const std::int64_t size :
       {sample.free_dim, std::int64_t{5}, std::int64_t{1}, std::int64_t{0}, std::int64_t{12}}) {
    if (size < session.dim_least(0)) continue;
    if (const Status set = session.set_dim("T", size); !set.ok()) return fmt::format("size {}: {}", size, set.message);
    if (auto problem = run_at(session, sample, size); !problem.empty())
      return fmt::format("size {}: {}", size, problem);
  }
  return placed->arena.intact() ? "" : "a byte outside the arena was written";
}

}  // namespace bantam::testing
