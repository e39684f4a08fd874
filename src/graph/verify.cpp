#include <fmt/format.h>

#include "base/shape.h"
#include "graph/control.h"
#include "graph/graph.h"

namespace bantam::graph {
namespace {

class Verifier {
 public:
  Verifier(const Graph& graph, int depth) : graph_(graph), depth_(depth), defined_(graph.values.size(), false) {}

  Result<void> run() {
    for (std::size_t i = 0; i < graph_.values.size(); ++i)
      if (auto ok = check_value(static_cast<ValueId>(i)); !ok) return ok;
    for (const Port& port : graph_.inputs)
      if (auto ok = define(port.value, fmt::format("input '{}'", port.name)); !ok) return ok;
    for (const State& state : graph_.states)
      if (auto ok = define(state.in, fmt::format("state '{}'", state.name)); !ok) return ok;
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n)
      if (auto ok = check_node(static_cast<NodeId>(n)); !ok) return ok;
    for (const Port& port : graph_.outputs)
      if (auto ok = use(port.value, fmt::format("output '{}'", port.name)); !ok) return ok;
    for (const State& state : graph_.states)
      if (auto ok = check_state(state); !ok) return ok;
    for (const MeasuredSize& size : graph_.measured)
      if (auto ok = check_measured(size); !ok) return ok;
    return {};
  }

 private:
  static tl::unexpected<Error> broken(const std::string& message) { return fail(StatusCode::kInvalidModel, message); }
  bool exists(ValueId id) const { return id >= 0 && static_cast<std::size_t>(id) < graph_.values.size(); }

  Result<void> check_value(ValueId id) {
    const Value& v = graph_.value(id);
    if (const Status s = check_shape(v.desc); !s.ok())
      return fail(error_from(s).in(fmt::format("value {} '{}'", id, v.name)));
    if (!v.desc.is_dense()) return broken(fmt::format("value {} '{}' is not dense", id, v.name));
    if (!v.constant && element_size(v.desc.type) == 0)
      return broken(fmt::format("value {} '{}' is {}: only constants may have elements smaller than a byte", id, v.name,
                                format_desc(v.desc)));
    if (!v.constant) return {};
    if (static_cast<std::int64_t>(v.constant->bytes.size()) != v.desc.bytes())
      return broken(fmt::format("constant {} '{}' has {} bytes, {} needs {}", id, v.name, v.constant->bytes.size(),
                                format_desc(v.desc), v.desc.bytes()));
    defined_[static_cast<std::size_t>(id)] = true;
    return {};
  }

  Result<void> define(ValueId id, const std::string& by) {
    if (!exists(id)) return broken(fmt::format("{} names no value", by));
    if (defined_[static_cast<std::size_t>(id)])
      return broken(fmt::format("value {} '{}' is defined twice, again by {}", id, graph_.value(id).name, by));
    defined_[static_cast<std::size_t>(id)] = true;
    return {};
  }

  Result<void> check_measured(const MeasuredSize& size) const {
    const std::string by = fmt::format("size '{}'", size.name);
    if (auto ok = use(size.value, by); !ok) return ok;
    const TensorDesc& desc = graph_.value(size.value).desc;
    const bool counts = desc.type == ElementType::kI32 || desc.type == ElementType::kI64;
    if (!counts || desc.elements() != 1)
      return broken(fmt::format("{} is measured as {}, expected one i32 or i64", by, format_desc(desc)));
    if (size.bound < 1) return broken(fmt::format("{} has the bound {}, expected at least 1", by, size.bound));
    return {};
  }

  Result<void> use(ValueId id, const std::string& by) const {
    if (!exists(id)) return broken(fmt::format("{} names no value", by));
    if (!defined_[static_cast<std::size_t>(id)])
      return broken(fmt::format("{} reads value {} '{}' before it is defined", by, id, graph_.value(id).name));
    return {};
  }

  Result<void> check_node(NodeId n) {
    const Node& node = graph_.node(n);
    if (node.op == nullptr) return {};
    const std::string label = fmt::format("node {} '{}' ({})", n, node.name, node.op->name);
    if (node.params.size() != node.op->params_bytes)
      return broken(
          fmt::format("{} has {} bytes of parameters, {} needed", label, node.params.size(), node.op->params_bytes));
    for (const ValueId id : node.inputs)
      if (id != kNone)
        if (auto ok = use(id, label); !ok) return ok;
    if (find_control_op(node.op->name) == node.op) return check_control_node(n, label);
    if (node.outputs.size() != static_cast<std::size_t>(node.op->outputs))
      return broken(fmt::format("{} has {} results, {} needed", label, node.outputs.size(), node.op->outputs));
    const OperandTables tables = operand_tables(graph_, node);
    std::vector<TensorDesc> inferred(node.outputs.size());
    if (const Status s = ops::infer(*node.op, node.params.data(), tables.inputs, inferred); !s.ok())
      return fail(error_from(s).in(label));
    for (std::size_t o = 0; o < node.outputs.size(); ++o)
      if (auto ok = check_result(n, o, inferred[o], label); !ok) return ok;
    return {};
  }

  Result<void> check_control_node(NodeId n, const std::string& label) {
    const Node& node = graph_.node(n);
    if (auto ok = check_control(graph_, node, depth_); !ok) return fail(std::move(ok.error()).in(label));
    for (std::size_t o = 0; o < node.outputs.size(); ++o)
      if (auto ok = check_result(n, o, control_result(node, o), label); !ok) return ok;
    return {};
  }

  Result<void> check_result(NodeId n, std::size_t o, const TensorDesc& inferred, const std::string& label) {
    const ValueId id = graph_.node(n).outputs[o];
    if (id == kNone) return {};
    if (auto ok = define(id, label); !ok) return ok;
    if (graph_.value(id).producer != n)
      return broken(fmt::format("value {} does not name {} as its producer", id, label));
    if (!same_shape_and_type(graph_.value(id).desc, inferred))
      return broken(fmt::format("{}: result {} is {}, the operator gives {}", label, o,
                                format_desc(graph_.value(id).desc), format_desc(inferred)));
    return {};
  }

  Result<void> check_state(const State& state) const {
    const std::string label = fmt::format("state '{}'", state.name);
    if (state.out == kNone) return {};
    if (auto ok = use(state.out, label); !ok) return ok;
    const TensorDesc& in = graph_.value(state.in).desc;
    const TensorDesc& out = graph_.value(state.out).desc;
    if (!same_shape_and_type(in, out))
      return broken(fmt::format("{} is {} but its next value is {}", label, format_desc(in), format_desc(out)));
    if (state.initial && static_cast<std::int64_t>(state.initial->bytes.size()) != in.bytes())
      return broken(fmt::format("{} starts with {} bytes, {} needs {}", label, state.initial->bytes.size(),
                                format_desc(in), in.bytes()));
    return {};
  }

  const Graph& graph_;
  int depth_;  ///< bodies around the graph
  std::vector<bool> defined_;
};

}  // namespace

Result<void> verify(const Graph& graph) { return verify_body(graph, 0); }

Result<void> verify_body(const Graph& graph, int depth) { return Verifier(graph, depth).run(); }

}  // namespace bantam::graph
