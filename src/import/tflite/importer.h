// The state of one import: which graph value each tensor of the file currently is.
//
// import_tflite walks the operators of the main subgraph in file order and hands each to its row of the operator table
// (operators.h). Initialisation subgraphs (CALL_ONCE) are walked the same way while `initialising`, where everything
// folds. Subgraphs of IF and WHILE are walked into graphs of their own (Body), or in place where the branch is known;
// variables that they touch are operands and results of the node. An operator that cannot be lowered leaves results of
// the stored shape, so that the rest of the model is still looked at and all findings come in one Error.
// Single-threaded; dies with the import.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "graph/builder.h"
#include "import/import.h"
#include "import/tflite/model_file.h"

namespace bantam::import::tflite {

/// A resource variable, or a tensor marked is_variable: a state of the graph once it is read or written.
struct Variable {
  std::string name;
  TensorDesc desc{};                      ///< kNone until known
  graph::ValueId initial = graph::kNone;  ///< constant; kNone: zero
  graph::ValueId in = graph::kNone;       ///< what the invoke found
  graph::ValueId current = graph::kNone;  ///< what a read gives now
};

/// A graph that becomes the body of a control node, with the variables that it has touched.
struct Body {
  struct Touched {
    Variable* variable = nullptr;
    graph::ValueId outside = graph::kNone;  ///< its value around the node
    graph::ValueId before = graph::kNone;   ///< the body's input
    graph::ValueId now = graph::kNone;
  };

  Body(const graph::Builder& around, Body* outer_body) : outer(outer_body), builder(graph, around) {}
  Body(const Body&) = delete;
  Body& operator=(const Body&) = delete;
  Touched* find(const Variable& variable);

  Body* outer;
  graph::Graph graph;
  graph::Builder builder;
  std::vector<Touched> touched;
};

class Importer {
 public:
  Importer(const ModelFile& file, const Options& options, graph::Graph& graph)
      : file_(file), options_(options), builder_(graph) {}

  /// Lowers the model into the graph. On failure the graph is of no use.
  Result<void> run();

  /// Of the graph that operators are lowered into at present.
  graph::Builder& builder() noexcept { return body_ != nullptr ? body_->builder : builder_; }
  const Options& options() const noexcept { return options_; }
  const ModelFile& file() const noexcept { return file_; }
  const schema::SubGraph& subgraph() const noexcept { return *scope_->subgraph; }
  bool initialising() const noexcept { return initialising_; }

  /// The value of a tensor now. Fails when nothing has produced it or its type or data are unusable.
  Result<graph::ValueId> read(std::int32_t tensor);
  void write(std::int32_t tensor, graph::ValueId value);

  // Variables.
  void bind_resource(std::int32_t tensor, const std::string& key);
  Result<Variable*> resource(std::int32_t tensor);
  /// The variable tensor's variable.
  Variable& variable_tensor(std::int32_t tensor, const TensorDesc& desc);
  /// What an operator keeps from invoke to invoke without saying so in the file; `name` is the operator's and a role.
  Variable& operator_variable(const std::string& name);
  /// The value of a variable; `desc` is what it has if nobody initialised or wrote it.
  Result<graph::ValueId> read_variable(Variable& variable, const TensorDesc& desc);
  Result<void> write_variable(Variable& variable, graph::ValueId value);

  /// The same in a body (null: the model's graph), whether or not operators are lowered into it at present.
  Result<graph::ValueId> read_variable(Body* body, Variable& variable, const TensorDesc& desc);

  /// Walks initialisation subgraph `index`, once.
  Result<void> call_once(std::int32_t index);

  /// A subgraph's operand: a value, or the name of a variable.
  struct Argument {
    graph::ValueId value = graph::kNone;
    std::string resource{};
  };
  /// Operand i of an operator of the current subgraph as an argument; `value` is what has been read.
  Argument argument(std::int32_t tensor, graph::ValueId value) const;
  /// Walks subgraph `index` on these arguments and gives its results.
  Result<std::vector<Argument>> call(std::int32_t index, const std::vector<Argument>& arguments);
  /// Subgraph `index`; an Error when there is none that operators may call.
  Result<const schema::SubGraph*> callable(std::int32_t index) const;
  Body* body() noexcept { return body_; }
  /// Lowers into `body` (null: the model's graph) from now on; gives the one before.
  Body* enter(Body* body) noexcept { return std::exchange(body_, body); }
  /// Result `tensor` of a control operator is this.
  void write(std::int32_t tensor, const Argument& result);
  /// The user's limit for the loop of that name.
  std::optional<std::int64_t> given_iterations(const std::string& name);

 private:
  struct Scope {
    const schema::SubGraph* subgraph = nullptr;
    std::vector<graph::ValueId> values;  ///< by tensor; kNone: not known yet
    std::vector<bool> tainted;           ///< by tensor: comes from an operator that failed
    std::map<std::int32_t, std::string> resources;
    std::map<std::int32_t, Variable> variables;
  };

  Result<void> check_options();
  Result<void> bind_inputs();
  Result<void> bind_input(std::size_t position, std::int32_t tensor, const std::string& name);
  Result<void> bind_outputs();
  Result<void> bind_states();
  Result<void> finish_variables();
  Result<void> finish_variable(Variable& variable);
  void walk(const schema::SubGraph& subgraph);
  void lower(const schema::Operator& op, std::uint32_t index);
  void leave_placeholders(const schema::Operator& op);
  bool reads_tainted(const schema::Operator& op) const;
  Result<TensorDesc> stored_desc(std::int32_t tensor) const;
  Result<graph::ValueId> read_constant(std::int32_t tensor, const TensorDesc& desc);
  void report(Error error);
  Result<void> findings() const;

  const ModelFile& file_;
  const Options& options_;
  graph::Builder builder_;
  Scope main_;
  Scope* scope_ = nullptr;
  bool initialising_ = false;
  std::map<std::string, Variable> variables_;
  std::map<std::int32_t, bool> called_;
  Body* body_ = nullptr;
  int calls_ = 0;            ///< subgraphs inside one another
  std::int64_t walked_ = 0;  ///< operators of called subgraphs
  std::set<std::string> iterations_used_;
  std::map<std::string, graph::ValueId> ports_;  ///< input name -> value, for states
  std::vector<std::string> findings_;
  std::size_t hidden_findings_ = 0;
  StatusCode finding_code_ = StatusCode::kUnsupported;
};

}  // namespace bantam::import::tflite
