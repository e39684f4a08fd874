// Lowering of ONNX nodes to core operators: what a handler sees of its node, and the table that handlers stand in.
//
// A handler is a plain function that reads operands and attributes through NodeLowering and emits core operators. It
// does not check each step: the first failure is recorded with the node's name, everything after it does nothing and
// returns kNone (whose desc is empty), and the driver goes on with the next node. So every finding about a model is
// reported in one pass. Handlers must not divide by dimensions or index by them before asking failed().
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "graph/builder.h"
#include "import/import.h"
#include "import/onnx/body.h"
#include "import/onnx/constant.h"
#include "import/onnx/model.h"
#include "ops/elementwise/binary/binary.h"
#include "ops/elementwise/unary/function.h"
#include "ops/reduce/reduce/reduce.h"

namespace bantam::import::onnx {

using graph::format_desc;
using graph::kNone;
using graph::ValueId;

/// Stands for the result of a node that could not be lowered: its readers are skipped without further complaint.
inline constexpr ValueId kUnknown = -2;

using import::Options;

/// Names that are visible at a place in the model; nested graphs see those outside, bodies through their frame.
class Scope {
 public:
  /// `body`: the frame of the graph, when it is another one than that of the scope around.
  explicit Scope(const Scope* outer, Frame* body = nullptr) : outer_(outer), body_(body) {}
  void set(std::string_view name, ValueId id) { values_[name] = id; }
  std::optional<ValueId> find(std::string_view name) const {
    if (const auto found = values_.find(name); found != values_.end()) return found->second;
    if (outer_ == nullptr) return std::nullopt;
    const auto outside = outer_->find(name);
    return body_ == nullptr || !outside || *outside < 0 ? outside : body_->capture(*outside);
  }

 private:
  const Scope* outer_;
  Frame* body_;
  std::unordered_map<std::string_view, ValueId> values_;
};

/// What is wrong with a model, one line each; long lists are cut.
class Findings {
 public:
  void add(StatusCode code, const std::string& line);
  /// Adds the lines of an error and keeps its remedy.
  void add(const Error& error);
  bool empty() const noexcept { return count_ == 0; }
  Error error() const;

 private:
  StatusCode code_ = StatusCode::kOk;
  std::string text_;
  std::string remedy_;
  std::int64_t count_ = 0;
};

class Importer;

/// One node while it is lowered.
class NodeLowering {
 public:
  NodeLowering(Importer& importer, const NodeProto& proto, const Scope& scope,
               const std::unordered_set<std::string_view>& used);

  // Failing. The first failure counts.
  bool failed() const noexcept { return failed_; }
  void fail(std::string message, StatusCode code = StatusCode::kUnsupported);
  /// Calls f. If that fails the node, what f found is given back and the node is as if f had not been called; what it
  /// emitted stays, dead.
  std::optional<Findings> attempt(const std::function<void()>& f);
  /// Fails with what an attempt found.
  void fail_with(const Findings& findings);
  /// Records the error of a Result, or returns its value.
  ValueId take(Result<ValueId> result);

  std::int64_t opset() const noexcept { return opset_; }

  // Operands.
  int inputs() const noexcept { return static_cast<int>(proto_.inputs.size()); }
  bool has(int i) const noexcept { return i < inputs() && !proto_.inputs[static_cast<std::size_t>(i)].empty(); }
  ValueId input(int i);  ///< mandatory
  ValueId optional(int i) { return has(i) ? input(i) : kNone; }
  const TensorDesc& desc(ValueId id) const noexcept;  ///< an empty desc for kNone
  int rank(ValueId id) const noexcept { return desc(id).rank; }
  ElementType type(ValueId id) const noexcept { return desc(id).type; }
  std::vector<std::int64_t> dims(ValueId id) const;

  // Operands that must be constant; `what` names them in the message.
  /// Integers that are computed at run time are sizes that the graph measures, within the bounds that the user gives,
  /// or `most`; these are the numbers that shapes are made with.
  std::vector<std::int64_t> integers(int i, std::string_view what, std::optional<std::int64_t> most = std::nullopt);
  /// Exactly one element.
  std::int64_t integer(int i, std::string_view what, std::optional<std::int64_t> most = std::nullopt);
  std::vector<float> floats(int i, std::string_view what);
  bool is_constant(ValueId id) const;
  bool is_nibbles(ValueId id) const;  ///< a constant of 8-bit type whose numbers the model stores in 4 bits
  /// `id`, or the constant that it is for sizes when it only depends on counts (Options::counts); else `id` as it is.
  ValueId size_of(ValueId id);

  // Sizes that are known at run time only (measured.h).
  /// Element `index` of operand `i`, or of a value `id` that was made from it: a number when it is a constant or has a
  /// bound, given by the user or `most`; a failure that says how to give one otherwise.
  std::int64_t size_element(int i, std::string_view what, ValueId id, std::int64_t index,
                            std::optional<std::int64_t> most);
  /// The number for that element where there is one without `most`; nothing otherwise.
  std::optional<std::int64_t> known_size(int i, ValueId id, std::int64_t index);
  /// Where element `index` of an integer tensor comes from: the only element of `first` plus `second`; a constant when
  /// `first` is kNone.
  std::pair<ValueId, std::int64_t> trace_element(ValueId id, std::int64_t index);
  /// True when shapes are made with numbers that will be others at run time: what is whole now may be a part then.
  bool measures_sizes() const;
  /// What an operator found in its operands.
  struct Found {
    std::vector<ValueId> results;  ///< of which the last says how many there are; the others have room for the most
    std::int64_t count = 0;        ///< that shapes are made with
  };
  /// Emits an operator with a `capacity`, which finds at most `most` things.
  template <typename P>
  Found find_items(const ops::OpDef& op, P params, const std::vector<ValueId>& inputs, std::int64_t most) {
    params.capacity = 0;
    const auto [name, bound] = announce(op, graph::Params::of(params), inputs, most);
    // With room to spare what is filled is a part at every size, so that the graph is the same one at all of them.
    params.capacity = static_cast<std::int32_t>(bound + kSpareCapacity);
    return found(name, bound, emit_all(op, graph::Params::of(params), inputs));
  }

  // Attributes. A wrong kind is a failure; attributes that nobody asked for are reported after the handler.
  bool has_attr(std::string_view name) const;
  std::int64_t attr_int(std::string_view name, std::int64_t otherwise);
  std::int32_t attr_int32(std::string_view name, std::int32_t otherwise);  ///< out of range: a failure
  float attr_float(std::string_view name, float otherwise);
  std::string_view attr_string(std::string_view name, std::string_view otherwise);
  std::vector<std::int64_t> attr_ints(std::string_view name);  ///< empty when absent
  std::vector<float> attr_floats(std::string_view name);
  std::vector<std::string_view> attr_strings(std::string_view name);
  ValueId attr_tensor(std::string_view name);           ///< kNone when absent
  const GraphProto* attr_graph(std::string_view name);  ///< a failure when absent
  /// Attributes that do not change the results of inference.
  void ignore(std::initializer_list<std::string_view> names);
  /// Fails unless the attribute is absent or has this value.
  void require(std::string_view name, std::int64_t supported);

  /// An axis counted from the front; outside [-rank, rank) is a failure.
  int axis(std::int64_t value, int rank);
  /// Distinct axes, ascending.
  std::vector<int> axes(std::span<const std::int64_t> values, int rank);

  // Emission. All results may be constants, because the builder folds.
  graph::Builder& builder() noexcept;
  std::vector<ValueId> emit_all(const ops::OpDef& op, graph::Params params, std::vector<ValueId> inputs);
  template <typename P>
  ValueId emit(const ops::OpDef& op, const P& params, const std::vector<ValueId>& inputs) {
    return emit_all(op, graph::Params::of(params), inputs).front();
  }
  ValueId emit(const ops::OpDef& op, std::vector<ValueId> inputs) {
    return emit_all(op, graph::Params{}, std::move(inputs)).front();
  }
  /// Appends a node with bodies, whose results are as many kNone after a failure.
  std::vector<ValueId> emit_control(const ops::OpDef& op, graph::Params params, std::vector<ValueId> inputs,
                                    std::vector<graph::Graph> bodies);
  ValueId transpose(ValueId x, std::span<const int> perm);
  ValueId transpose(ValueId x, std::initializer_list<int> perm) {
    return transpose(x, std::span<const int>(perm.begin(), perm.size()));
  }
  ValueId reshape(ValueId x, std::span<const std::int64_t> dims);
  ValueId reshape(ValueId x, std::initializer_list<std::int64_t> dims) {
    return reshape(x, std::span<const std::int64_t>(dims.begin(), dims.size()));
  }
  ValueId cast(ValueId x, ElementType to);
  ValueId unary(ops::UnaryFunction function, ValueId x, float a = 0.0F, float b = 0.0F);
  ValueId binary(ops::BinaryFunction function, ValueId a, ValueId b);
  ValueId reduce(ops::ReduceFunction function, ValueId x, std::span<const int> axes, bool keep_dims);
  /// `size` elements along the axis, `step` >= 1 apart; the range lies within the operand.
  ValueId slice(ValueId x, int axis, std::int64_t start, std::int64_t size, std::int32_t step = 1);
  /// Zeros before and after along the axis; negative counts remove elements.
  ValueId pad(ValueId x, int axis, std::int64_t before, std::int64_t after);
  ValueId expand(ValueId x, std::span<const std::int64_t> dims);
  ValueId concat(std::vector<ValueId> parts, int axis);
  /// A rank-0 constant of a numeric type of at least 8 bits.
  ValueId scalar(ElementType type, double value);
  ValueId scalar(float value) { return scalar(ElementType::kF32, value); }
  ValueId integers_constant(std::span<const std::int64_t> values);

  /// Lowers a nested graph in this node's scope. Entries are kUnknown where it failed.
  std::vector<ValueId> nested(const GraphProto& graph);
  /// The same with values for the graph's inputs, those of this node's frame.
  std::vector<ValueId> nested(const GraphProto& graph, std::span<const ValueId> inputs);
  /// Lowers a nested graph into `frame`, a frame within this node's, with values of that frame for its inputs.
  std::vector<ValueId> nested_body(const GraphProto& graph, Frame& frame, std::span<const ValueId> inputs);
  Frame& frame() noexcept;
  const Options& options() const noexcept;
  /// True while all loops of the model together may unroll so many nodes more.
  bool spend_unrolling(std::int64_t nodes);
  /// The most iterations that the user gives for this node.
  std::optional<std::int64_t> given_iterations();

  // Results.
  int outputs() const noexcept { return static_cast<int>(proto_.outputs.size()); }
  /// True when result i has a name that something reads.
  bool wants(int i) const;
  void set_output(int i, ValueId id);

  const NodeProto& proto() const noexcept { return proto_; }
  const std::vector<ValueId>& results() const noexcept { return results_; }
  /// Reports attributes and results that the handler did not deal with.
  void finish();

 private:
  const AttributeProto* find(std::string_view name, AttributeProto::Kind kind);
  /// For operators without a form in double precision: the same in float, its float results as doubles. Nothing when
  /// there is no double among the operands, or the operator refuses float, too.
  std::optional<std::vector<ValueId>> emit_in_float(const ops::OpDef& op, graph::Params params,
                                                    std::vector<ValueId> inputs);
  void report(StatusCode code, const std::string& line);
  static constexpr std::int64_t kSpareCapacity = 4;
  std::pair<std::string, std::int64_t> announce(const ops::OpDef& op, const graph::Params& params,
                                                const std::vector<ValueId>& inputs, std::int64_t most);
  std::string size_name(int i, ValueId base, std::int64_t index);
  Found found(const std::string& name, std::int64_t bound, std::vector<ValueId> results);

  Importer& importer_;
  const NodeProto& proto_;
  const Scope& scope_;
  const std::unordered_set<std::string_view>& used_;
  std::int64_t opset_;
  std::vector<bool> attribute_seen_;
  std::vector<ValueId> results_;
  bool failed_ = false;
};

using Handler = void (*)(NodeLowering& n);

/// The last operator set version: rows that no later version has ended.
inline constexpr std::int64_t kNewest = 1 << 20;

/// How one ONNX operator, over a range of operator set versions, is lowered.
struct OperatorRow {
  std::string_view domain;  ///< "" is ONNX's own
  std::string_view name;
  std::int64_t since = 1;
  std::int64_t until = kNewest;  ///< inclusive
  Handler handler = nullptr;
};

/// The operators of one file each; operators.cpp joins them.
std::span<const OperatorRow> attention_operators();
std::span<const OperatorRow> constant_operators();
std::span<const OperatorRow> control_operators();
std::span<const OperatorRow> convolution_operators();
std::span<const OperatorRow> einsum_operators();
std::span<const OperatorRow> elementwise_operators();
std::span<const OperatorRow> indexing_operators();
std::span<const OperatorRow> loop_operators();
std::span<const OperatorRow> loss_operators();
std::span<const OperatorRow> matmul_operators();
std::span<const OperatorRow> normalization_operators();
std::span<const OperatorRow> pooling_operators();
std::span<const OperatorRow> quantized_microsoft_operators();
std::span<const OperatorRow> quantized_operators();
std::span<const OperatorRow> recurrent_operators();
std::span<const OperatorRow> reduction_operators();
std::span<const OperatorRow> resize_operators();
std::span<const OperatorRow> sampling_operators();
std::span<const OperatorRow> selection_operators();
std::span<const OperatorRow> shape_operators();
std::span<const OperatorRow> signal_operators();
std::span<const OperatorRow> slicing_operators();

/// Every row of every family, for documentation.
std::vector<const OperatorRow*> all_operators();

/// The row for an operator at an operator set version, or what to say when there is none.
Result<const OperatorRow*> find_operator(std::string_view domain, std::string_view name, std::int64_t opset);

}  // namespace bantam::import::onnx
