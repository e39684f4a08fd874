#include "import/tflite/importer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/shape.h"
#include "import/tflite/lowering.h"
#include "import/tflite/operators.h"
#include "io/array.h"

namespace bantam::import::tflite {
namespace {

constexpr std::size_t kMaxFindings = 50;

/// Called subgraphs inside one another, and operators in all of them together: what files may make the host walk.
constexpr int kMaxCalls = 16;
constexpr std::int64_t kMaxWalked = 1 << 18;

Error invalid_model(std::string message) {
  return {StatusCode::kInvalidModel, std::move(message), "the file breaks the rules of its format; export it again"};
}

bool in_range(std::int64_t index, std::uint32_t n) { return index >= 0 && index < static_cast<std::int64_t>(n); }

/// Every index in `indices` (null: none) names a tensor, or is -1 where that is allowed.
bool are_tensors(const flatbuffers::Vector<std::int32_t>* indices, const schema::SubGraph& graph, bool optional) {
  for (std::uint32_t i = 0; i < count(indices); ++i) {
    const std::int32_t index = indices->Get(i);
    if (!in_range(index, count(graph.tensors())) && !(optional && index == -1)) return false;
  }
  return true;
}

using SharedBytes = std::shared_ptr<const std::vector<std::byte>>;

/// Elements given by the user (or one for all), converted to the input's type.
Result<SharedBytes> stored_values(const std::vector<double>& values, const TensorDesc& desc) {
  TensorDesc wide = desc;
  wide.type = ElementType::kF64;
  auto array = io::make_array(wide);
  if (!array) return fail(std::move(array.error()));
  const auto elements = io::elements_of<double>(*array);
  if (values.size() == 1) {
    std::fill(elements.begin(), elements.end(), values[0]);
  } else {
    std::copy(values.begin(), values.end(), elements.begin());
  }
  auto converted = io::convert(*array, desc.type);
  if (!converted) return fail(std::move(converted.error()));
  return std::make_shared<const std::vector<std::byte>>(std::move(converted->data));
}

std::vector<std::string> port_names(const schema::SubGraph& graph, const flatbuffers::Vector<std::int32_t>* ports,
                                    std::string_view kind) {
  std::vector<std::string> names;
  for (std::uint32_t i = 0; i < count(ports); ++i)
    names.push_back(port_name(*graph.tensors()->Get(static_cast<std::uint32_t>(ports->Get(i))), kind, i));
  return names;
}

Result<void> check_name(const std::string& name, const std::vector<std::string>& valid, std::string_view kind) {
  if (std::find(valid.begin(), valid.end(), name) != valid.end()) return {};
  std::vector<std::string> shown;
  for (const std::string& v : valid) shown.push_back(shown_name(v));
  return fail(StatusCode::kNotFound, fmt::format("the model has no {} {}", kind, shown_name(name)),
              fmt::format("use one of: {}", fmt::join(shown, ", ")));
}

}  // namespace

Result<void> Importer::run() {
  const auto* subgraphs = file_.model().subgraphs();
  if (count(subgraphs) == 0) return fail(invalid_model("the model has no subgraph"));
  main_.subgraph = subgraphs->Get(0);
  scope_ = &main_;
  if (!are_tensors(subgraph().inputs(), subgraph(), false) || !are_tensors(subgraph().outputs(), subgraph(), false))
    return fail(invalid_model("an input or output of the model is a tensor that does not exist"));
  builder_.graph().name = text(subgraph().name());
  main_.values.assign(count(subgraph().tensors()), graph::kNone);
  main_.tainted.assign(main_.values.size(), false);
  if (auto checked = check_options(); !checked) return checked;
  if (auto bound = bind_inputs(); !bound) return bound;
  walk(subgraph());
  if (auto clean = findings(); !clean) return clean;
  if (auto bound = bind_outputs(); !bound) return bound;
  for (const auto& [name, most] : options_.iterations)
    if (!iterations_used_.contains(name))
      return fail(StatusCode::kNotFound, fmt::format("the model has no loop {} that needs a limit", shown_name(name)),
                  "leave the limit out");
  return finish_variables();
}

Result<void> Importer::check_options() {
  const auto inputs = port_names(subgraph(), subgraph().inputs(), "in");
  const auto outputs = port_names(subgraph(), subgraph().outputs(), "out");
  if (!options_.dims.empty())
    return fail(StatusCode::kNotFound,
                fmt::format("TensorFlow Lite models name no dimensions, so {} cannot be set",
                            shown_name(options_.dims.begin()->first)),
                fmt::format("give the whole shape of an input instead; inputs: {}", fmt::join(inputs, ", ")));
  if (!options_.counts.empty())
    return fail(StatusCode::kUnsupported,
                fmt::format("no size of a TensorFlow Lite model depends on counts, so that of {} cannot be set",
                            shown_name(options_.counts.begin()->first)),
                "leave the count out");
  for (const auto& [name, shape] : options_.shapes)
    if (auto known = check_name(name, inputs, "input"); !known) return known;
  for (const auto& [name, values] : options_.values)
    if (auto known = check_name(name, inputs, "input"); !known) return known;
  for (const auto& [input, output] : options_.states) {
    if (auto known = check_name(input, inputs, "input"); !known) return known;
    if (auto known = check_name(output, outputs, "output"); !known) return known;
  }
  return {};
}

Result<void> Importer::bind_inputs() {
  const auto* inputs = subgraph().inputs();
  const auto names = port_names(subgraph(), inputs, "in");
  for (std::uint32_t i = 0; i < count(inputs); ++i) {
    const auto tensor = static_cast<std::size_t>(inputs->Get(i));
    if (main_.values[tensor] != graph::kNone)
      return fail(invalid_model(fmt::format("input {} names the same tensor as another input", shown_name(names[i]))));
    if (auto bound = bind_input(i, inputs->Get(i), names[i]); !bound) return bound;
  }
  return {};
}

Result<void> Importer::bind_input(std::size_t position, std::int32_t tensor, const std::string& name) {
  const auto context = fmt::format("input {} {}", position, shown_name(name));
  const schema::Tensor& t = *subgraph().tensors()->Get(static_cast<std::uint32_t>(tensor));
  const ElementType type = element_type(t.type());
  if (type == ElementType::kNone || type == ElementType::kI4)
    return fail(StatusCode::kUnsupported, fmt::format("{}: type {} is not supported", context, type_name(t.type())),
                "supported: floats, integers of 8 to 64 bits, BOOL");
  Dims dims = integers(t.shape());
  if (const auto given = options_.shapes.find(name); given != options_.shapes.end()) {
    if (given->second.size() != dims.size())
      return fail(StatusCode::kInvalidArgument,
                  fmt::format("{}: a shape of {} dimensions was given", context, given->second.size()),
                  fmt::format("give {} dimensions, e.g. {}", dims.size(), fmt::join(dims, "x")));
    dims = given->second;
  }
  if (std::any_of(dims.begin(), dims.end(), [](std::int64_t d) { return d < 0; }))
    return fail(StatusCode::kInvalidArgument,
                fmt::format("{}: shape {} has an open dimension", context, fmt::join(dims, "x")),
                fmt::format("fix it: --shape {}=...", name));
  TensorDesc desc;
  if (const Status status = make_desc(type, dims.data(), static_cast<int>(dims.size()), &desc); !status.ok())
    return fail(error_from(status).in(context));

  graph::ValueId value = graph::kNone;
  const auto is_state = [&](const auto& state) { return state.first == name; };
  if (const auto given = options_.values.find(name); given != options_.values.end()) {
    if (given->second.size() != 1 && static_cast<std::int64_t>(given->second.size()) != desc.elements())
      return fail(
          StatusCode::kInvalidArgument,
          fmt::format("{}: {} values were given for {}", context, given->second.size(), graph::format_desc(desc)),
          fmt::format("give {} values, or one for all", desc.elements()));
    auto stored = stored_values(given->second, desc);
    if (!stored) return fail(std::move(stored.error()).in(context));
    value = builder_.constant(name, desc, **stored, *stored);
  } else if (std::any_of(options_.states.begin(), options_.states.end(), is_state)) {
    value = builder_.state(name, desc);
    ports_[name] = value;
  } else {
    value = builder_.input(name, desc);
  }
  builder_.graph().value(value).quantization = port_quantization(t);
  write(tensor, value);
  return {};
}

Result<void> Importer::bind_outputs() {
  const auto* outputs = subgraph().outputs();
  const auto names = port_names(subgraph(), outputs, "out");
  for (std::uint32_t i = 0; i < count(outputs); ++i) {
    auto value = read(outputs->Get(i));
    if (!value) return fail(std::move(value.error()).in(fmt::format("output {} {}", i, shown_name(names[i]))));
    const auto state = std::find_if(options_.states.begin(), options_.states.end(),
                                    [&](const auto& s) { return s.second == names[i]; });
    if (state == options_.states.end()) {
      builder_.output(names[i], *value);
      continue;
    }
    graph::Graph& g = builder_.graph();
    const graph::ValueId in = ports_[state->first];
    if (!same_shape_and_type(g.value(in).desc, g.value(*value).desc))
      return fail(
          StatusCode::kInvalidArgument,
          fmt::format("state {}: output {} is {}, the input is {}", shown_name(state->first), shown_name(names[i]),
                      graph::format_desc(g.value(*value).desc), graph::format_desc(g.value(in).desc)),
          "pair an input with an output of the same shape and type");
    std::find_if(g.states.begin(), g.states.end(), [&](const graph::State& s) { return s.in == in; })->out = *value;
  }
  return {};
}

void Importer::walk(const schema::SubGraph& subgraph) {
  for (std::uint32_t i = 0; i < count(subgraph.operators()); ++i) lower(*subgraph.operators()->Get(i), i);
}

void Importer::lower(const schema::Operator& op, std::uint32_t index) {
  const std::string where =
      initialising_ ? fmt::format("{} of {}", index, shown_name(text(subgraph().name()))) : std::to_string(index);
  const auto* codes = file_.model().operator_codes();
  if (op.opcode_index() >= count(codes) || !are_tensors(op.inputs(), subgraph(), true) ||
      !are_tensors(op.outputs(), subgraph(), false))
    return report(invalid_model(fmt::format("node {}: its operator or an operand does not exist", where)));

  const std::string result_name =
      count(op.outputs()) == 0
          ? std::string{}
          : text(subgraph().tensors()->Get(static_cast<std::uint32_t>(op.outputs()->Get(0)))->name());
  const std::string name = result_name.empty() ? where : fmt::format("{} {}", where, shown_name(result_name));
  const schema::OperatorCode& code = *codes->Get(op.opcode_index());
  const std::string kind = operator_name(code);
  const auto reject = [&](Error error) {
    report(std::move(error));
    leave_placeholders(op);
  };
  const OperatorRow* row = find_operator(code);
  if (row == nullptr)
    return reject({StatusCode::kUnsupported, fmt::format("node {}: operator {} is not supported", name, kind), ""});
  const auto operands = static_cast<int>(count(op.inputs()));
  const auto results = static_cast<int>(count(op.outputs()));
  bool complete = operands >= row->min_operands && operands <= row->max_operands && results <= row->max_results &&
                  results >= std::min(row->max_results, 1);
  for (int i = 0; complete && i < row->min_operands; ++i)
    complete = op.inputs()->Get(static_cast<std::uint32_t>(i)) >= 0;
  if (!complete)
    return reject(
        invalid_model(fmt::format("node {} ({}) has {} operands and {} results, expected {} to {} and up to {}", name,
                                  kind, operands, results, row->min_operands, row->max_operands, row->max_results)));

  builder().set_source(result_name.empty() ? fmt::format("{}_{}", kind, index) : result_name, kind);
  const bool tainted = reads_tainted(op);
  Lowering lowering(*this, op, name, kind);
  if (!lowering.failed()) row->lower(lowering);
  if (lowering.failed()) {
    // Behind an operator that failed, shapes are guesses: only what Bantam cannot do in any shape is worth reporting.
    if (!tainted || lowering.error()->code == StatusCode::kUnsupported) report(*lowering.error());
    leave_placeholders(op);
  } else if (tainted) {
    for (std::uint32_t i = 0; i < count(op.outputs()); ++i)
      scope_->tainted[static_cast<std::size_t>(op.outputs()->Get(i))] = true;
  }
}

bool Importer::reads_tainted(const schema::Operator& op) const {
  for (std::uint32_t i = 0; i < count(op.inputs()); ++i)
    if (op.inputs()->Get(i) >= 0 && scope_->tainted[static_cast<std::size_t>(op.inputs()->Get(i))]) return true;
  return false;
}

void Importer::leave_placeholders(const schema::Operator& op) {
  for (std::uint32_t i = 0; i < count(op.outputs()); ++i) {
    const std::int32_t tensor = op.outputs()->Get(i);
    if (auto desc = stored_desc(tensor)) {
      graph::Value placeholder;
      placeholder.desc = *desc;
      write(tensor, builder().graph().add_value(std::move(placeholder)));
    }
    scope_->tainted[static_cast<std::size_t>(tensor)] = true;
  }
}

Result<TensorDesc> Importer::stored_desc(std::int32_t tensor) const {
  const schema::Tensor& t = *scope_->subgraph->tensors()->Get(static_cast<std::uint32_t>(tensor));
  const auto context = fmt::format("tensor {} {}", tensor, shown_name(text(t.name())));
  const ElementType type = element_type(t.type());
  if (type == ElementType::kNone)
    return fail(StatusCode::kUnsupported, fmt::format("{}: type {} is not supported", context, type_name(t.type())));
  if (t.sparsity() != nullptr)
    return fail(StatusCode::kUnsupported, fmt::format("{}: sparse tensors are not supported", context));
  const Dims dims = integers(t.shape());
  TensorDesc desc;
  if (const Status status = make_desc(type, dims.data(), static_cast<int>(dims.size()), &desc); !status.ok())
    return fail(error_from(status).in(context));
  return desc;
}

Result<graph::ValueId> Importer::read(std::int32_t tensor) {
  graph::ValueId& value = scope_->values[static_cast<std::size_t>(tensor)];
  if (value != graph::kNone) return value;
  auto desc = stored_desc(tensor);
  if (!desc) return fail(std::move(desc.error()));
  if (scope_->subgraph->tensors()->Get(static_cast<std::uint32_t>(tensor))->is_variable())
    return read_variable(variable_tensor(tensor, *desc), *desc);
  auto constant = read_constant(tensor, *desc);
  if (constant) value = *constant;
  return constant;
}

Result<graph::ValueId> Importer::read_constant(std::int32_t tensor, const TensorDesc& desc) {
  const schema::Tensor& t = *scope_->subgraph->tensors()->Get(static_cast<std::uint32_t>(tensor));
  const auto context = fmt::format("tensor {} {}", tensor, shown_name(text(t.name())));
  if (t.external_buffer() != 0)
    return fail(StatusCode::kUnsupported, fmt::format("{}: data in another file is not supported", context));
  auto bytes = file_.buffer(t.buffer());
  if (!bytes) return fail(std::move(bytes.error()).in(context));
  if (bytes->empty() && desc.elements() > 0)
    return fail(invalid_model(fmt::format("{} is read before any operator writes it", context)));
  if (static_cast<std::int64_t>(bytes->size()) != desc.bytes())
    return fail(invalid_model(fmt::format("{}: {} needs {} bytes, the file holds {}", context, graph::format_desc(desc),
                                          desc.bytes(), bytes->size())));
  const graph::ValueId value = builder().constant(text(t.name()), desc, *bytes, file_.owner());
  builder().graph().value(value).quantization = port_quantization(t);
  return value;
}

void Importer::write(std::int32_t tensor, graph::ValueId value) {
  scope_->values[static_cast<std::size_t>(tensor)] = value;
}

void Importer::bind_resource(std::int32_t tensor, const std::string& key) {
  scope_->resources[tensor] = key;
  Variable& variable = variables_[key];
  if (variable.name.empty()) variable.name = key;
}

Result<Variable*> Importer::resource(std::int32_t tensor) {
  const auto key = scope_->resources.find(tensor);
  if (key != scope_->resources.end()) return &variables_[key->second];
  return fail(invalid_model(fmt::format("tensor {} is used as a variable, but no VAR_HANDLE makes it one", tensor)));
}

Variable& Importer::variable_tensor(std::int32_t tensor, const TensorDesc& desc) {
  Variable& variable = scope_->variables[tensor];
  if (!variable.name.empty()) return variable;
  const schema::Tensor& t = *scope_->subgraph->tensors()->Get(static_cast<std::uint32_t>(tensor));
  variable.name = text(t.name());
  if (variable.name.empty()) variable.name = fmt::format("variable{}", tensor);
  variable.desc = desc;
  // An i8 variable begins as the real number zero, others as zero bytes.
  const auto quantization = desc.type == ElementType::kI8 ? port_quantization(t) : std::nullopt;
  if (quantization && quantization->zero_point != 0) {
    const auto zero = static_cast<std::byte>(static_cast<unsigned char>(quantization->zero_point));
    auto bytes = std::make_shared<const std::vector<std::byte>>(static_cast<std::size_t>(desc.bytes()), zero);
    variable.initial = builder_.constant({}, desc, *bytes, bytes);
  }
  return variable;
}

Variable& Importer::operator_variable(const std::string& name) {
  // Not a key that a resource can have: those are texts of the file.
  Variable& variable = variables_[std::string(1, '\0') + name];
  variable.name = name;
  return variable;
}

Result<graph::ValueId> Importer::read_variable(Variable& variable, const TensorDesc& desc) {
  if (initialising_) {
    if (variable.initial != graph::kNone) return variable.initial;
    return fail(invalid_model(fmt::format("variable {} is read before it is initialised", shown_name(variable.name))));
  }
  return read_variable(body_, variable, desc);
}

Result<graph::ValueId> Importer::read_variable(Body* body, Variable& variable, const TensorDesc& desc) {
  if (body != nullptr) {
    if (const Body::Touched* touched = body->find(variable)) return touched->now;
    const auto outside = read_variable(body->outer, variable, desc);
    if (!outside) return outside;
    const graph::Builder& around = body->outer != nullptr ? body->outer->builder : builder_;
    const graph::ValueId inside = body->builder.input(variable.name, around.desc(*outside));
    body->touched.push_back({&variable, *outside, inside, inside});
    return inside;
  }
  if (variable.current == graph::kNone) {
    variable.desc = variable.initial != graph::kNone ? builder_.desc(variable.initial) : desc;
    variable.in = builder_.state(variable.name, variable.desc);
    variable.current = variable.in;
  }
  return variable.current;
}

Result<void> Importer::write_variable(Variable& variable, graph::ValueId value) {
  if (!initialising_) {
    if (body_ == nullptr) {
      variable.current = value;
      return {};
    }
    // Whether the body runs is not known: the variable is read before, so that it has a value in either case.
    const TensorDesc desc = builder().desc(value);
    if (auto before = read_variable(body_, variable, desc); !before) return fail(std::move(before.error()));
    body_->find(variable)->now = value;
    return {};
  }
  if (!builder_.graph().is_constant(value))
    return fail(StatusCode::kUnsupported,
                fmt::format("variable {} is initialised by a value that is not constant", shown_name(variable.name)));
  variable.initial = value;
  return {};
}

Result<void> Importer::call_once(std::int32_t index) {
  const auto* subgraphs = file_.model().subgraphs();
  if (index <= 0 || !in_range(index, count(subgraphs)))
    return fail(invalid_model(fmt::format("subgraph {} does not exist", index)));
  if (initialising_)
    return fail(StatusCode::kUnsupported, "CALL_ONCE inside an initialisation subgraph is not supported");
  if (std::exchange(called_[index], true)) return {};
  Scope scope;
  scope.subgraph = subgraphs->Get(static_cast<std::uint32_t>(index));
  if (count(scope.subgraph->inputs()) > 0)
    return fail(StatusCode::kUnsupported, fmt::format("initialisation subgraph {} has inputs", index));
  scope.values.assign(count(scope.subgraph->tensors()), graph::kNone);
  scope.tainted.assign(scope.values.size(), false);
  Scope* const caller = std::exchange(scope_, &scope);
  Body* const around = enter(nullptr);
  initialising_ = true;
  walk(*scope.subgraph);
  initialising_ = false;
  enter(around);
  scope_ = caller;
  return {};
}

Body::Touched* Body::find(const Variable& variable) {
  const auto it = std::ranges::find(touched, &variable, &Touched::variable);
  return it == touched.end() ? nullptr : &*it;
}

Importer::Argument Importer::argument(std::int32_t tensor, graph::ValueId value) const {
  const auto resource = scope_->resources.find(tensor);
  return resource == scope_->resources.end() ? Argument{value} : Argument{graph::kNone, resource->second};
}

void Importer::write(std::int32_t tensor, const Argument& result) {
  if (result.resource.empty()) {
    write(tensor, result.value);
  } else {
    scope_->resources[tensor] = result.resource;
  }
}

std::optional<std::int64_t> Importer::given_iterations(const std::string& name) {
  const auto given = options_.iterations.find(name);
  if (given == options_.iterations.end()) return std::nullopt;
  iterations_used_.insert(name);
  return given->second;
}

Result<const schema::SubGraph*> Importer::callable(std::int32_t index) const {
  const auto* subgraphs = file_.model().subgraphs();
  if (index <= 0 || !in_range(index, count(subgraphs)))
    return fail(invalid_model(fmt::format("subgraph {} does not exist", index)));
  const schema::SubGraph& subgraph = *subgraphs->Get(static_cast<std::uint32_t>(index));
  if (!are_tensors(subgraph.inputs(), subgraph, false) || !are_tensors(subgraph.outputs(), subgraph, false))
    return fail(invalid_model(fmt::format("an input or output of subgraph {} is a tensor that does not exist", index)));
  return &subgraph;
}

Result<std::vector<Importer::Argument>> Importer::call(std::int32_t index, const std::vector<Argument>& arguments) {
  const auto subgraph = callable(index);
  if (!subgraph) return fail(subgraph.error());
  if (initialising_)
    return fail(StatusCode::kUnsupported, "control flow in an initialisation subgraph is not supported");
  if (count((*subgraph)->inputs()) != arguments.size())
    return fail(invalid_model(
        fmt::format("subgraph {} has {} inputs, {} are given", index, count((*subgraph)->inputs()), arguments.size())));
  walked_ += count((*subgraph)->operators());
  if (calls_ >= kMaxCalls || walked_ > kMaxWalked)
    return fail(StatusCode::kUnsupported,
                fmt::format("subgraphs call one another more than {} deep, or too often", kMaxCalls));
  Scope scope;
  scope.subgraph = *subgraph;
  scope.values.assign(count(scope.subgraph->tensors()), graph::kNone);
  scope.tainted.assign(scope.values.size(), false);
  Scope* const caller = std::exchange(scope_, &scope);
  ++calls_;
  for (std::uint32_t i = 0; i < arguments.size(); ++i) write(scope.subgraph->inputs()->Get(i), arguments[i]);
  walk(*scope.subgraph);
  std::vector<Argument> results;
  std::optional<Error> error;
  for (std::uint32_t i = 0; i < count(scope.subgraph->outputs()) && !error; ++i) {
    const std::int32_t tensor = scope.subgraph->outputs()->Get(i);
    if (scope.resources.contains(tensor)) {
      results.push_back(argument(tensor, graph::kNone));
    } else if (auto value = read(tensor)) {
      results.push_back({*value});
    } else {
      error = std::move(value.error());
    }
  }
  if (!scope.variables.empty())
    error = Error{StatusCode::kUnsupported, "variable tensors in a subgraph of control flow are not supported", ""};
  --calls_;
  scope_ = caller;
  if (error) return fail(std::move(*error));
  return results;
}

Result<void> Importer::finish_variables() {
  for (auto& [key, variable] : variables_)
    if (auto finished = finish_variable(variable); !finished) return finished;
  for (auto& [tensor, variable] : main_.variables)
    if (auto finished = finish_variable(variable); !finished) return finished;
  return {};
}

Result<void> Importer::finish_variable(Variable& variable) {
  if (variable.in == graph::kNone) return {};  // nothing reads it
  graph::Graph& g = builder_.graph();
  const auto state =
      std::find_if(g.states.begin(), g.states.end(), [&](const graph::State& s) { return s.in == variable.in; });
  const auto mismatch = [&](graph::ValueId other, std::string_view what) {
    return fail(
        invalid_model(fmt::format("variable {} holds {} but is {} {}", shown_name(variable.name),
                                  graph::format_desc(variable.desc), what, graph::format_desc(g.value(other).desc))));
  };
  if (!same_shape_and_type(variable.desc, g.value(variable.current).desc))
    return mismatch(variable.current, "assigned");
  if (variable.initial != graph::kNone) {
    if (!same_shape_and_type(variable.desc, g.value(variable.initial).desc))
      return mismatch(variable.initial, "initialised with");
    state->initial = g.value(variable.initial).constant;
  }
  state->out = variable.current;
  return {};
}

void Importer::report(Error error) {
  if (error.code != StatusCode::kUnsupported) finding_code_ = StatusCode::kInvalidModel;
  if (findings_.size() < kMaxFindings) {
    findings_.push_back(std::move(error.message));
  } else {
    ++hidden_findings_;
  }
}

Result<void> Importer::findings() const {
  if (findings_.empty()) return {};
  std::string message = fmt::format("{}", fmt::join(findings_, "\n"));
  if (hidden_findings_ > 0) message += fmt::format("\n... and {} more", hidden_findings_);
  return fail(finding_code_, std::move(message),
              finding_code_ == StatusCode::kUnsupported ? "convert the model to the supported forms named above"
                                                        : "the file breaks the rules of its format; export it again");
}

}  // namespace bantam::import::tflite

namespace bantam::import {

Result<graph::Graph> import_tflite(const Source& source, const Options& options) {
  auto file = tflite::ModelFile::open(source);
  if (!file) return fail(std::move(file.error()));
  graph::Graph graph;
  graph.metadata = file->metadata();
  tflite::Importer importer(*file, options, graph);
  if (auto done = importer.run(); !done) return fail(std::move(done.error()));
  graph::compact(graph);
  if (auto valid = graph::verify(graph); !valid) return fail(std::move(valid.error()));
  return graph;
}

}  // namespace bantam::import
