// Control flow: IF and WHILE over other subgraphs.
//
// Where the condition is known the subgraph is walked in place. Else the node's bodies (graph/control.h) are the
// subgraphs; what they read is operands of the operator and the variables that they touch. Of these, those that a body
// assigns are results of the node too.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "graph/control.h"
#include "import/tflite/importer.h"
#include "import/tflite/operators.h"
#include "import/trip_count.h"

namespace bantam::import::tflite {
namespace {

using Argument = Importer::Argument;
using Arguments = std::vector<Argument>;

/// A boolean of one element that is known.
std::optional<bool> known_flag(const graph::Graph& graph, ValueId id) {
  const auto numbers = graph::constant_integers(graph, id);
  return numbers && numbers->size() == 1 ? std::optional(numbers->front() != 0) : std::nullopt;
}

/// Operands from `first` on; a finding where one is neither a value nor a known variable.
Arguments arguments_of(Lowering& op, int first) {
  Arguments arguments;
  for (int i = first; i < op.operands(); ++i) {
    arguments.push_back(op.importer().argument(op.in_index(i), op.in(i)));
    if (arguments.back().value == kNoValue && arguments.back().resource.empty())
      op.invalid(fmt::format("operand {} is absent", i), "a tensor or a variable");
  }
  return arguments;
}

/// What the loop or choice is called in reports and options.
std::string node_name(Lowering& op) {
  const std::string result = text(op.out_tensor().name());
  return result.empty() ? op.name() : result;
}

void set_results(Lowering& op, const Arguments& results) {
  if (static_cast<int>(results.size()) != op.results())
    return op.invalid(fmt::format("a subgraph of {} results", results.size()), std::to_string(op.results()));
  for (int i = 0; i < op.results(); ++i) op.importer().write(op.out_index(i), results[static_cast<std::size_t>(i)]);
}

bool require_flag(Lowering& op, const graph::Graph& graph, ValueId id) {
  if (graph.value(id).desc.type == ElementType::kBool && graph.value(id).desc.elements() == 1) return true;
  op.invalid(fmt::format("a condition of {}", graph::format_desc(graph.value(id).desc)), "one element of BOOL");
  return false;
}

/// What a value of the graph around is in a body: a constant, or an input.
ValueId bring_in(Body& body, const graph::Graph& around, ValueId id) {
  const graph::Value& value = around.value(id);
  const ValueId inside =
      value.constant ? body.builder.constant(value.name, value.desc, value.constant->bytes, value.constant->owner)
                     : body.builder.input(value.name, value.desc);
  body.graph.value(inside).quantization = value.quantization;
  return inside;
}

/// Walks a subgraph into a body.
Result<Arguments> call_in(Lowering& op, Body& body, std::int32_t subgraph, const Arguments& arguments) {
  Body* const around = op.importer().enter(&body);
  auto results = op.importer().call(subgraph, arguments);
  op.importer().enter(around);
  return results;
}

bool too_deep(Lowering& op) {
  int depth = 0;
  for (const Body* b = op.importer().body(); b != nullptr; b = b->outer) ++depth;
  if (depth < graph::kMaxBodyDepth) return false;
  op.unsupported(fmt::format("control flow {} deep", depth + 1), std::to_string(graph::kMaxBodyDepth));
  return true;
}

/// Every value among results that bodies give; a variable cannot be chosen at run time.
bool require_values(Lowering& op, const Arguments& results) {
  if (std::ranges::all_of(results, [](const Argument& a) { return a.resource.empty(); })) return true;
  op.unsupported("a variable as a result", "tensors");
  return false;
}

// ---- IF ----

class IfLowering {
 public:
  explicit IfLowering(Lowering& op)
      : op_(op),
        bodies_{Body(op.builder(), op.importer().body()), Body(op.builder(), op.importer().body())},
        operands_(arguments_of(op, 1)) {}

  void run(const schema::IfOptions& o) {
    if (op_.failed() || !require_flag(op_, op_.graph(), op_.in(0)) || too_deep(op_)) return;
    const std::int32_t subgraphs[] = {o.then_subgraph_index(), o.else_subgraph_index()};
    for (std::size_t b = 0; b < 2; ++b) {
      auto results = call_in(op_, bodies_[b], subgraphs[b], brought_in(bodies_[b]));
      if (!results) return op_.fail_with(std::move(results.error()));
      if (!require_values(op_, *results)) return;
      results_[b] = std::move(*results);
    }
    if (static_cast<int>(results_[0].size()) != op_.results() || results_[1].size() != results_[0].size())
      return op_.invalid(fmt::format("branches of {} and {} results", results_[0].size(), results_[1].size()),
                         std::to_string(op_.results()));
    if (share_variables()) emit();
  }

 private:
  Arguments brought_in(Body& body) {
    Arguments inside = operands_;
    for (Argument& a : inside)
      if (a.resource.empty()) a.value = bring_in(body, op_.graph(), a.value);
    return inside;
  }

  /// Both branches have all variables that either has.
  bool share_variables() {
    for (std::size_t b = 0; b < 2; ++b)
      for (const Body::Touched& t : bodies_[b].touched) {
        const TensorDesc desc = bodies_[b].builder.desc(t.before);
        const auto read = op_.importer().read_variable(&bodies_[1 - b], *t.variable, desc);
        if (read) continue;
        op_.fail_with(read.error());
        return false;
      }
    return true;
  }

  void emit() {
    std::vector<ValueId> inputs = {op_.in(0)};
    for (const Argument& a : operands_)
      if (a.resource.empty() && !op_.graph().is_constant(a.value)) inputs.push_back(a.value);
    const std::size_t formals = inputs.size() - 1;
    std::vector<Variable*> assigned;
    for (const Body::Touched& t : bodies_[0].touched) {
      inputs.push_back(t.outside);
      if (t.now != t.before || bodies_[1].find(*t.variable)->now != bodies_[1].find(*t.variable)->before)
        assigned.push_back(t.variable);
    }
    std::vector<graph::Graph> graphs;
    for (std::size_t b = 0; b < 2; ++b) {
      Body& body = bodies_[b];
      body.graph.inputs.resize(formals);
      for (const Body::Touched& t : bodies_[0].touched)
        body.graph.inputs.push_back({t.variable->name, body.find(*t.variable)->before});
      for (const Argument& a : results_[b]) body.builder.output(body.graph.value(a.value).name, a.value);
      for (const Variable* v : assigned) body.builder.output(v->name, body.find(*v)->now);
      body.graph.name = b == 0 ? "then" : "else";
      graphs.push_back(std::move(body.graph));
    }
    for (std::size_t i = 0; i < graphs[0].outputs.size(); ++i) {
      const TensorDesc& a = graphs[0].value(graphs[0].outputs[i].value).desc;
      const TensorDesc& b = graphs[1].value(graphs[1].outputs[i].value).desc;
      if (!same_shape_and_type(a, b))
        return op_.unsupported(fmt::format("result {} that is {} in one branch and {} in the other", i,
                                           graph::format_desc(a), graph::format_desc(b)),
                               "branches of equal shapes, or a condition that is fixed: --set");
    }
    op_.builder().set_source(node_name(op_), "IF");
    auto results = op_.builder().emit_control(graph::kIf, {}, std::move(inputs), std::move(graphs));
    if (!results) return op_.fail_with(std::move(results.error()));
    for (int i = 0; i < op_.results(); ++i) op_.result(i, (*results)[static_cast<std::size_t>(i)]);
    for (std::size_t v = 0; v < assigned.size(); ++v) {
      const ValueId value = (*results)[static_cast<std::size_t>(op_.results()) + v];
      if (auto written = op_.importer().write_variable(*assigned[v], value); !written)
        return op_.fail_with(written.error());
    }
  }

  Lowering& op_;
  Body bodies_[2];
  Arguments operands_;
  Arguments results_[2];
};

void lower_if(Lowering& op) {
  const auto& o = op.options<schema::IfOptions>();
  if (op.in(0) == kNoValue) return op.invalid("operand 0 is a variable", "a condition");
  if (const auto condition = known_flag(op.graph(), op.in(0))) {
    const Arguments arguments = arguments_of(op, 1);
    if (op.failed()) return;
    auto results = op.importer().call(*condition ? o.then_subgraph_index() : o.else_subgraph_index(), arguments);
    return results ? set_results(op, *results) : op.fail_with(std::move(results.error()));
  }
  IfLowering(op).run(o);
}

// ---- WHILE ----

class WhileLowering {
 public:
  explicit WhileLowering(Lowering& op)
      : op_(op), name_(node_name(op)), body_(op.builder(), op.importer().body()), operands_(arguments_of(op, 0)) {}

  void run(const schema::WhileOptions& o) {
    if (op_.failed()) return;
    if (op_.operands() != op_.results())
      return op_.invalid(fmt::format("{} operands and {} results", op_.operands(), op_.results()), "as many of both");
    if (too_deep(op_)) return;
    auto first = op_.importer().call(o.cond_subgraph_index(), operands_);
    if (!first) return op_.fail_with(std::move(first.error()));
    if (first->size() != 1 || !first->front().resource.empty())
      return op_.invalid(fmt::format("a condition of {} results", first->size()), "one");
    condition_ = first->front().value;
    if (!require_flag(op_, op_.graph(), condition_)) return;
    const auto known = known_flag(op_.graph(), condition_);
    if (known && !*known) return set_results(op_, operands_);
    if (walk_body(o) && split_variables()) emit(known.has_value());
  }

 private:
  /// Operands that the body gives back as they are, known by looking at it, are nothing that changes.
  void find_unchanging(const schema::SubGraph& body) {
    for (std::uint32_t i = 0; i < operands_.size(); ++i)
      carried_.push_back(operands_[i].resource.empty() && i < count(body.inputs()) && i < count(body.outputs()) &&
                         body.inputs()->Get(i) != body.outputs()->Get(i));
  }

  bool walk_body(const schema::WhileOptions& o) {
    const auto subgraph = op_.importer().callable(o.body_subgraph_index());
    if (!subgraph) return fail(subgraph.error());
    find_unchanging(**subgraph);
    TensorDesc counter;
    counter.type = ElementType::kI64;
    body_.builder.input("iteration", counter);
    Arguments inside = operands_;
    // Carried values come before everything else.
    for (std::size_t i = 0; i < inside.size(); ++i)
      if (carried_[i]) {
        const graph::Value& value = op_.graph().value(operands_[i].value);
        inside[i].value = body_.builder.input(value.name, value.desc);
        body_.graph.value(inside[i].value).quantization = value.quantization;
        initial_.push_back(operands_[i].value);
      }
    for (std::size_t i = 0; i < inside.size(); ++i)
      if (!carried_[i] && inside[i].resource.empty()) {
        inside[i].value = bring_in(body_, op_.graph(), operands_[i].value);
        if (!op_.graph().is_constant(operands_[i].value)) captures_.push_back(operands_[i].value);
      }
    auto results = call_in(op_, body_, o.body_subgraph_index(), inside);
    if (!results) return fail(results.error());
    if (results->size() != operands_.size()) {
      op_.invalid(fmt::format("a body of {} results", results->size()), std::to_string(operands_.size()));
      return false;
    }
    for (std::size_t i = 0; i < results->size(); ++i) {
      if (!operands_[i].resource.empty()) (*results)[i] = inside[i];
      if (carried_[i]) following_.push_back((*results)[i].value);
    }
    if (!require_same_shapes()) return false;
    auto condition = call_in(op_, body_, o.cond_subgraph_index(), *results);
    if (!condition) return fail(condition.error());
    goes_on_ = condition->front().value;
    return require_flag(op_, body_.graph, goes_on_);
  }

  bool require_same_shapes() {
    for (std::size_t i = 0; i < following_.size(); ++i) {
      const TensorDesc& before = op_.graph().value(initial_[i]).desc;
      const bool is_value = following_[i] != kNoValue;
      if (is_value && same_shape_and_type(before, body_.builder.desc(following_[i]))) continue;
      op_.unsupported(
          fmt::format("value {} that is {} before an iteration and {} after it", i, graph::format_desc(before),
                      is_value ? graph::format_desc(body_.builder.desc(following_[i])) : "a variable"),
          "values that keep their shape");
      return false;
    }
    return true;
  }

  /// Variables that the body assigns are carried, others captured.
  bool split_variables() {
    const auto first = static_cast<std::ptrdiff_t>(1 + initial_.size());
    std::vector<graph::Port> ports(body_.graph.inputs.begin(), body_.graph.inputs.begin() + first);
    std::vector<graph::Port> captured(
        body_.graph.inputs.begin() + first,
        body_.graph.inputs.begin() + first + static_cast<std::ptrdiff_t>(captures_.size()));
    for (const Body::Touched& t : body_.touched) {
      const graph::Port port{t.variable->name, t.before};
      if (t.now == t.before) {
        captures_.push_back(t.outside);
        captured.push_back(port);
      } else {
        if (!same_shape_and_type(body_.builder.desc(t.before), body_.builder.desc(t.now))) {
          op_.invalid(
              fmt::format("variable '{}' assigned {}", t.variable->name, graph::format_desc(body_.builder.desc(t.now))),
              graph::format_desc(body_.builder.desc(t.before)));
          return false;
        }
        initial_.push_back(t.outside);
        following_.push_back(t.now);
        assigned_.push_back(t.variable);
        ports.push_back(port);
      }
    }
    ports.insert(ports.end(), captured.begin(), captured.end());
    body_.graph.inputs = std::move(ports);
    return true;
  }

  /// What the user says, else what follows from constants. Only the latter where the first iteration is known to run.
  std::optional<std::int64_t> limit_of_iterations(bool first_runs) {
    if (const auto given = op_.importer().given_iterations(name_)) return *given;
    if (!first_runs) return std::nullopt;
    std::vector<const graph::Constant*> constants;
    for (const ValueId id : initial_) {
      const auto& constant = op_.graph().value(id).constant;
      constants.push_back(constant ? &*constant : nullptr);
    }
    return count_iterations(body_.graph, constants);
  }

  void emit(bool first_runs) {
    body_.builder.output("condition", goes_on_);
    for (const ValueId id : following_) body_.builder.output(body_.graph.value(id).name, id);
    body_.graph.name = "body";
    const auto limit = limit_of_iterations(first_runs);
    if (!limit || *limit < 1 || *limit > std::numeric_limits<std::int32_t>::max())
      return op_.unsupported(limit ? fmt::format("a limit of {} iterations", *limit) : "a loop of unknown length",
                             fmt::format("a limit given with --iterations '{}=N'", name_));
    std::vector<ValueId> inputs = {graph::kNone, first_runs ? graph::kNone : condition_};
    inputs.insert(inputs.end(), initial_.begin(), initial_.end());
    inputs.insert(inputs.end(), captures_.begin(), captures_.end());
    std::vector<graph::Graph> bodies;
    bodies.push_back(std::move(body_.graph));
    op_.builder().set_source(name_, "WHILE");
    auto results = op_.builder().emit_control(graph::kLoop,
                                              graph::Params::of(graph::LoopParams{static_cast<std::int32_t>(*limit)}),
                                              std::move(inputs), std::move(bodies));
    if (!results) return op_.fail_with(std::move(results.error()));
    std::size_t next = 0;
    for (int i = 0; i < op_.results(); ++i) {
      const auto n = static_cast<std::size_t>(i);
      if (carried_[n]) {
        op_.result(i, (*results)[next++]);
      } else {
        op_.importer().write(op_.out_index(i), operands_[n]);
      }
    }
    for (Variable* v : assigned_)
      if (auto written = op_.importer().write_variable(*v, (*results)[next++]); !written)
        return op_.fail_with(written.error());
  }

  bool fail(const Error& error) {
    op_.fail_with(error);
    return false;
  }

  Lowering& op_;
  std::string name_;
  Body body_;
  Arguments operands_;
  std::vector<bool> carried_;       ///< by operand
  std::vector<ValueId> initial_;    ///< of what the loop carries: operands, then variables
  std::vector<ValueId> following_;  ///< the same after an iteration, in the body
  std::vector<ValueId> captures_;
  std::vector<Variable*> assigned_;
  ValueId condition_ = kNoValue;
  ValueId goes_on_ = kNoValue;
};

void lower_while(Lowering& op) { WhileLowering(op).run(op.options<schema::WhileOptions>()); }

using enum schema::BuiltinOperator;

constexpr OperatorRow kControlOperators[] = {
    {IF, 1, kAnyNumber, kAnyNumber, lower_if},
    {WHILE, 1, kAnyNumber, kAnyNumber, lower_while},
};

}  // namespace

std::span<const OperatorRow> control_operators() noexcept { return kControlOperators; }

}  // namespace bantam::import::tflite
