// ONNX Loop and Scan: unrolled where the iterations are few and known, else a loop in the graph (graph/control.h).
//
// Scan outputs become carried values: a tensor for all iterations, into which each writes its row, in place once
// planned. So they need a number of iterations that is known when the model is imported, and a loop that does not end
// early: else their size would depend on data.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "base/shape.h"
#include "graph/control.h"
#include "import/onnx/lowering.h"
#include "import/onnx/order.h"
#include "import/trip_count.h"
#include "ops/data/gather/gather.h"
#include "ops/data/scatter_nd/scatter_nd.h"

namespace bantam::import::onnx {
namespace {

/// Loops of at most so many nodes in all, body times iterations, are unrolled: their shape arithmetic then folds.
constexpr std::int64_t kUnrolledNodes = 512;
/// The same for loops that are not supported otherwise: whose values grow, or whose bodies need the iteration's number.
constexpr std::int64_t kMostUnrolledNodes = 1 << 14;
constexpr std::int64_t kMostIterations = std::numeric_limits<std::int32_t>::max();

template <typename Integer>
std::size_t at(Integer i) {
  return static_cast<std::size_t>(i);
}

TensorDesc scalar_desc(ElementType type) {
  TensorDesc desc;
  desc.type = type;
  return desc;
}

/// A condition that holds.
ValueId always(graph::Builder& builder) {
  const bool yes = true;
  return builder.constant<bool>("", {}, std::span(&yes, 1));
}

/// Nodes of a graph, those of its bodies included. The depth is bounded by kMaxGraphDepth.
std::int64_t count_nodes(const GraphProto& graph) {
  std::int64_t count = 0;
  for (const NodeProto& node : graph.nodes) {
    ++count;
    for (const AttributeProto& attribute : node.attributes)
      if (attribute.graph) count += count_nodes(*attribute.graph);
  }
  return count;
}

/// The one element of a constant of integers or booleans.
std::optional<std::int64_t> known_number(const graph::Graph& graph, ValueId id) {
  if (id < 0) return std::nullopt;
  const auto numbers = graph::constant_integers(graph, id);
  return numbers && numbers->size() == 1 ? std::optional(numbers->front()) : std::nullopt;
}

/// A body in the making, with the values of the loop's own inputs.
class LoopBody {
 public:
  explicit LoopBody(NodeLowering& n) : n_(n), frame_(n.frame()) {
    iteration_ = frame_.builder().input("iteration", scalar_desc(ElementType::kI64));
  }

  /// A value that the loop carries from one iteration to the next, from `initial` on (kNone: unspecified).
  ValueId carry(const std::string& name, const TensorDesc& desc, ValueId initial) {
    initial_.push_back(initial);
    const ValueId id = frame_.builder().input(name, desc);
    auto& inputs = frame_.graph().inputs;
    // Carried values come before captures.
    std::rotate(inputs.begin() + static_cast<std::ptrdiff_t>(initial_.size()), inputs.end() - 1, inputs.end());
    return id;
  }

  Frame& frame() { return frame_; }
  graph::Builder& builder() { return frame_.builder(); }
  ValueId iteration() const { return iteration_; }

  /// Emission into the body: a failure is the node's.
  ValueId emit(const ops::OpDef& op, graph::Params params, std::vector<ValueId> inputs) {
    builder().set_source(node_label(n_.proto()), printable(n_.proto().op_type));
    return n_.take(builder().emit1(op, std::move(params), std::move(inputs)));
  }
  ValueId reshape(ValueId x, std::span<const std::int64_t> dims) {
    builder().set_source(node_label(n_.proto()), printable(n_.proto().op_type));
    return n_.take(builder().reshape(x, dims));
  }

  /// The next value of what was carried first, second ...
  void set_next(ValueId id) { builder().output(builder().graph().value(id).name, id); }
  void set_next_condition(ValueId id) { builder().output("condition", id); }

  /// The loop's node; its results.
  std::vector<ValueId> finish(ValueId trips, ValueId condition, std::int64_t limit) {
    std::vector<ValueId> inputs = {trips, condition};
    inputs.insert(inputs.end(), initial_.begin(), initial_.end());
    inputs.insert(inputs.end(), frame_.captures().begin(), frame_.captures().end());
    frame_.graph().name = "body";
    std::vector<graph::Graph> bodies;
    bodies.push_back(std::move(frame_.graph()));
    const graph::LoopParams params{static_cast<std::int32_t>(std::clamp<std::int64_t>(limit, 1, kMostIterations))};
    return n_.emit_control(graph::kLoop, graph::Params::of(params), std::move(inputs), std::move(bodies));
  }

 private:
  NodeLowering& n_;
  Frame frame_;
  ValueId iteration_ = kNone;
  std::vector<ValueId> initial_;
};

/// index + offset in a body, an i64 scalar: `count - 1 - iteration` for a backward direction.
ValueId row_index(NodeLowering& n, LoopBody& body, std::int64_t count, bool backward) {
  if (!backward) return body.iteration();
  const std::int64_t last = count - 1;
  const ValueId constant = body.builder().constant<std::int64_t>("", {}, std::span(&last, 1));
  return n.failed() ? kNone
                    : body.emit(ops::kBinary, graph::Params::of(ops::BinaryParams{ops::BinaryFunction::kSub, {}}),
                                {constant, body.iteration()});
}

/// Adds a carried tensor of `count` rows like `row`, into which the body writes one per iteration. Gives its next
/// value.
ValueId collect_rows(NodeLowering& n, LoopBody& body, ValueId row, std::int64_t count, bool backward, ValueId initial) {
  std::vector<std::int64_t> dims = {count};
  const TensorDesc row_desc = body.builder().desc(row);
  dims.insert(dims.end(), row_desc.dims, row_desc.dims + row_desc.rank);
  TensorDesc desc;
  if (const Status status = make_desc(row_desc.type, dims.data(), static_cast<int>(dims.size()), &desc); !status.ok()) {
    n.fail(error_from(status).message, status.code);
    return kNone;
  }
  const ValueId rows = body.carry("rows", desc, initial);
  const std::int64_t one_index[] = {1, 1};
  dims[0] = 1;
  const ValueId index = body.reshape(row_index(n, body, count, backward), one_index);
  if (n.failed()) return kNone;
  const ValueId update = body.reshape(row, dims);
  return n.failed() ? kNone
                    : body.emit(ops::kScatterNd, graph::Params::of(ops::ScatterNdParams{}), {rows, index, update});
}

/// x[.., index, ..] without that axis.
ValueId take_row(LoopBody& body, ValueId x, int axis, ValueId index) {
  return body.emit(ops::kGather, graph::Params::of(ops::GatherParams{axis, 0}), {x, index});
}

// ---- Loop ----

class LoopLowering {
 public:
  explicit LoopLowering(NodeLowering& n) : n_(n), body_(n.attr_graph("body")) {}

  void run() {
    if (n_.failed()) return;
    const int operands = static_cast<int>(n_.proto().inputs.size());
    carried_ = operands - 2;
    scans_ = n_.outputs() - carried_;
    if (carried_ < 0 || scans_ < 0 || body_->inputs.size() != at(2 + carried_) ||
        body_->outputs.size() != at(1 + n_.outputs()))
      return n_.fail(
          fmt::format("the body has {} inputs and {} outputs; {} operands and {} results need {} and {}",
                      body_->inputs.size(), body_->outputs.size(), operands, n_.outputs(), operands, 1 + n_.outputs()),
          StatusCode::kInvalidModel);
    read_counts();
    if (n_.failed()) return;
    if (most_ == 0) return skip();
    const std::int64_t each = std::max<std::int64_t>(count_nodes(*body_), 1);
    const bool counted = exact_ && condition_ == kNone;
    if (counted && *most_ <= kUnrolledNodes / each && unroll()) return;
    const bool may_unroll = counted && *most_ <= kMostUnrolledNodes / each && !n_.failed();
    if (!may_unroll) return import_loop();
    const std::optional<Findings> why = n_.attempt([&] { import_loop(); });
    if (why && !unroll()) n_.fail_with(*why);
  }

 private:
  void read_counts() {
    for (int i = 0; i < carried_; ++i) initial_.push_back(n_.input(2 + i));
    if (n_.has(0)) {
      trips_ = n_.input(0);
      if (n_.failed()) return;
      if (n_.type(trips_) != ElementType::kI64 || n_.desc(trips_).elements() != 1)
        return n_.fail(fmt::format("the trip count is {}, expected one element of int64", format_desc(n_.desc(trips_))),
                       StatusCode::kInvalidModel);
      exact_ = n_.is_constant(trips_);
      most_ = known_number(n_.builder().graph(), n_.size_of(trips_));
      if (most_) most_ = std::max<std::int64_t>(*most_, 0);
      // The largest number stands for no limit at all.
      if (exact_ && *most_ > kMostIterations) trips_ = kNone;
      if (most_ && *most_ > kMostIterations) most_.reset();
    }
    if (n_.has(1)) {
      condition_ = n_.input(1);
      if (n_.failed()) return;
      if (n_.type(condition_) != ElementType::kBool || n_.desc(condition_).elements() != 1)
        return n_.fail(
            fmt::format("the condition is {}, expected one element of bool", format_desc(n_.desc(condition_))),
            StatusCode::kInvalidModel);
      const auto known = known_number(n_.builder().graph(), condition_);
      if (known && *known == 0) most_ = 0;
      if (known) condition_ = kNone;
    }
    exact_ = exact_ && most_.has_value();
  }

  /// A loop that never runs.
  void skip() {
    for (int i = 0; i < carried_; ++i) n_.set_output(i, initial_[at(i)]);
    if (scans_ == 0) return;
    LoopBody body(n_);
    const std::vector<ValueId> results = lower_into(body);
    for (int i = carried_; i < n_.outputs() && !n_.failed(); ++i) {
      TensorDesc row = body.builder().desc(results[at(1 + i)]);
      std::vector<std::int64_t> dims = {0};
      dims.insert(dims.end(), row.dims, row.dims + row.rank);
      if (const Status status = make_desc(row.type, dims.data(), static_cast<int>(dims.size()), &row); !status.ok())
        return n_.fail(error_from(status).message, status.code);
      n_.set_output(i, n_.builder().constant("", row, {}, nullptr));
    }
  }

  std::vector<ValueId> lower_into(LoopBody& body) {
    if (n_.frame().is_deepest()) {
      n_.fail("too many bodies inside one another at run time");
      return {};
    }
    std::vector<ValueId> inputs = {body.iteration(), always(body.builder())};
    for (int i = 0; i < carried_; ++i)
      inputs.push_back(
          body.carry(std::string(body_->inputs[at(2 + i)].name), n_.desc(initial_[at(i)]), initial_[at(i)]));
    std::vector<ValueId> results = n_.nested_body(*body_, body.frame(), inputs);
    if (std::ranges::any_of(results, [](ValueId id) { return id < 0; })) n_.fail("the body is not supported");
    return results;
  }

  void import_loop() {
    LoopBody body(n_);
    const std::vector<ValueId> results = lower_into(body);
    if (n_.failed()) return;
    std::vector<ValueId> following(results.begin() + 1, results.end());
    for (int i = 0; i < carried_; ++i) {
      const TensorDesc& before = n_.desc(initial_[at(i)]);
      const TensorDesc& after = body.builder().desc(following[at(i)]);
      if (same_shape_and_type(before, after)) continue;
      return n_.fail(
          fmt::format("value {} '{}', carried from one iteration to the next, is {} before the first and {} "
                      "after it; a value that changes its shape needs a loop whose iterations are few and "
                      "known: --set '{}'",
                      i, printable(body_->inputs[at(2 + i)].name), format_desc(before), format_desc(after),
                      printable(n_.has(0) ? n_.proto().inputs[0] : n_.proto().inputs[1])));
    }
    body.set_next_condition(results[0]);
    for (int i = 0; i < carried_; ++i) body.set_next(following[at(i)]);
    const auto goes_on = known_number(body.builder().graph(), results[0]);
    const bool runs_all = condition_ == kNone && goes_on && *goes_on != 0;
    if (!runs_all) count_from_constants(body);
    if (scans_ > 0 && !(runs_all && most_) && !counted_)
      return n_.fail(
          fmt::format("result {} '{}' has a row per iteration, and how many there are is known only at run "
                      "time: fix the trip count: --set '{}'; the loop must not end before",
                      carried_, printable(n_.proto().outputs[at(carried_)]),
                      n_.has(0) ? printable(n_.proto().inputs[0]) : "the condition"));
    for (int i = carried_; i < n_.outputs() && !n_.failed(); ++i)
      body.set_next(collect_rows(n_, body, following[at(i)], *most_, false, unwritten_rows(body, following[at(i)])));
    const auto limit = limit_of_iterations();
    if (n_.failed()) return;
    const auto all = body.finish(trips_, condition_, limit);
    for (int i = 0; i < n_.outputs(); ++i) n_.set_output(i, all[at(i)]);
  }

  /// A loop that ends by its condition may still run a number of times that follows from constants.
  void count_from_constants(LoopBody& body) {
    if (condition_ != kNone || (trips_ != kNone && !exact_)) return;
    std::vector<const graph::Constant*> constants;
    for (const ValueId id : initial_) {
      const auto& constant = n_.builder().graph().value(id).constant;
      constants.push_back(constant ? &*constant : nullptr);
    }
    const auto count = count_iterations(body.builder().graph(), constants);
    counted_ = count.has_value();
    if (count) most_ = std::min(*count, most_.value_or(*count));
    exact_ = exact_ || counted_;
  }

  /// Rows that a loop may leave unwritten, because its count is only known to be at most something, are zero.
  ValueId unwritten_rows(LoopBody& body, ValueId row) {
    if (exact_) return kNone;
    const TensorDesc desc = body.builder().desc(row);
    std::vector<std::int64_t> dims = {*most_};
    dims.insert(dims.end(), desc.dims, desc.dims + desc.rank);
    return n_.expand(n_.cast(n_.scalar(0.0F), desc.type), dims);
  }

  std::int64_t limit_of_iterations() {
    if (const auto given = n_.given_iterations()) return std::min(*given, most_.value_or(kMostIterations));
    if (most_) return *most_;
    n_.fail(fmt::format("how often the loop runs is known only at run time; give the most: --iterations '{}=N'",
                        node_label(n_.proto())));
    return 0;
  }

  /// False when an iteration decides only at run time whether there is another one; what it emitted is dead.
  bool unroll() {
    std::vector<ValueId> carried = initial_;
    std::vector<std::vector<ValueId>> rows(at(scans_));
    const ValueId yes = always(n_.builder());
    const std::int64_t each = std::max<std::int64_t>(count_nodes(*body_), 1);
    for (std::int64_t i = 0; i < *most_; ++i) {
      if (!n_.spend_unrolling(each)) return false;
      std::vector<ValueId> inputs = {n_.builder().constant<std::int64_t>("", {}, std::span(&i, 1)), yes};
      inputs.insert(inputs.end(), carried.begin(), carried.end());
      const std::vector<ValueId> results = n_.nested(*body_, inputs);
      if (std::ranges::any_of(results, [](ValueId id) { return id < 0; })) return true;  // findings say why
      const auto goes_on = known_number(n_.builder().graph(), results[0]);
      if (!goes_on && i + 1 < *most_) return false;
      carried.assign(results.begin() + 1, results.begin() + 1 + carried_);
      for (int s = 0; s < scans_; ++s) rows[at(s)].push_back(as_row(results[at(1 + carried_ + s)]));
      if (goes_on && *goes_on == 0) break;
    }
    for (int i = 0; i < carried_; ++i) n_.set_output(i, carried[at(i)]);
    for (int s = 0; s < scans_; ++s) n_.set_output(carried_ + s, n_.concat(rows[at(s)], 0));
    return true;
  }

  ValueId as_row(ValueId x) {
    std::vector<std::int64_t> dims = n_.dims(x);
    dims.insert(dims.begin(), 1);
    return n_.reshape(x, dims);
  }

  NodeLowering& n_;
  const GraphProto* body_;
  int carried_ = 0;
  int scans_ = 0;
  std::vector<ValueId> initial_;
  ValueId trips_ = kNone;               ///< none: no count
  ValueId condition_ = kNone;           ///< none: it holds
  std::optional<std::int64_t> most_{};  ///< iterations
  bool exact_ = false;                  ///< most_ is a constant of the model
  bool counted_ = false;                ///< it ends by a condition, after exactly most_
};

void lower_loop(NodeLowering& n) { LoopLowering(n).run(); }

// ---- Scan ----

/// Axes or directions, one per scanned operand or result; zero where the attribute is absent.
std::vector<std::int64_t> scan_attribute(NodeLowering& n, std::string_view name, int count) {
  std::vector<std::int64_t> values = n.attr_ints(name);
  if (values.empty()) values.assign(at(count), 0);
  if (values.size() != at(count))
    n.fail(fmt::format("attribute '{}' has {} entries, {} needed", name, values.size(), count),
           StatusCode::kInvalidModel);
  return values;
}

class ScanLowering {
 public:
  explicit ScanLowering(NodeLowering& n) : n_(n), body_(n.attr_graph("body")) {}

  /// Operator sets from 9 on.
  void run() {
    read_common(0);
    if (n_.failed()) return;
    axes_in_ = scan_attribute(n_, "scan_input_axes", scanned_);
    backward_in_ = scan_attribute(n_, "scan_input_directions", scanned_);
    axes_out_ = scan_attribute(n_, "scan_output_axes", n_.outputs() - states_);
    backward_out_ = scan_attribute(n_, "scan_output_directions", n_.outputs() - states_);
    std::vector<ValueId> operands;
    for (int i = 0; i < states_ + scanned_; ++i) operands.push_back(n_.input(i));
    const std::vector<ValueId> results = scan(operands);
    for (int i = 0; i < n_.outputs() && !n_.failed(); ++i) n_.set_output(i, results[at(i)]);
  }

  /// Operator set 8: operands have a batch axis before that of the sequence, and may have lengths, which are not
  /// supported.
  void run_batched() {
    if (n_.has(0)) n_.fail("sequence lengths are not supported");
    read_common(1);
    if (n_.failed()) return;
    backward_in_ = scan_attribute(n_, "directions", scanned_);
    axes_in_.assign(at(scanned_), 0);
    axes_out_ = backward_out_ = std::vector<std::int64_t>(at(n_.outputs() - states_), 0);
    std::vector<ValueId> batched;
    for (int i = 0; i < states_ + scanned_; ++i) batched.push_back(n_.input(1 + i));
    if (n_.failed()) return;
    const std::int64_t batch = n_.rank(batched.back()) > 0 ? n_.dims(batched.back())[0] : 0;
    std::vector<std::vector<ValueId>> results(at(n_.outputs()));
    for (std::int64_t b = 0; b < batch && !n_.failed(); ++b) {
      std::vector<ValueId> operands;
      for (const ValueId id : batched) operands.push_back(entry(id, b, batch));
      const std::vector<ValueId> of_entry = scan(operands);
      for (int i = 0; i < n_.outputs() && !n_.failed(); ++i) {
        std::vector<std::int64_t> dims = n_.dims(of_entry[at(i)]);
        dims.insert(dims.begin(), 1);
        results[at(i)].push_back(n_.reshape(of_entry[at(i)], dims));
      }
    }
    if (batch == 0) n_.fail("the batch is empty");
    for (int i = 0; i < n_.outputs() && !n_.failed(); ++i) n_.set_output(i, n_.concat(results[at(i)], 0));
  }

 private:
  /// How many states and scanned operands there are; `first` operands come before them.
  void read_common(int first) {
    const std::int64_t scanned = n_.attr_int("num_scan_inputs", 0);
    if (n_.failed()) return;
    const auto operands = static_cast<std::int64_t>(n_.proto().inputs.size()) - first;
    if (scanned < 1 || scanned > operands || operands - scanned > n_.outputs() ||
        static_cast<std::int64_t>(body_->inputs.size()) != operands || body_->outputs.size() != at(n_.outputs()))
      return n_.fail(fmt::format("{} of {} operands are scanned by a body of {} inputs and {} outputs for {} results",
                                 scanned, operands, body_->inputs.size(), body_->outputs.size(), n_.outputs()),
                     StatusCode::kInvalidModel);
    scanned_ = static_cast<int>(scanned);
    states_ = static_cast<int>(operands - scanned);
  }

  /// Entry b of a batch.
  ValueId entry(ValueId x, std::int64_t b, std::int64_t batch) {
    if (n_.failed()) return kNone;
    std::vector<std::int64_t> dims = n_.dims(x);
    if (dims.empty() || dims[0] != batch) {
      n_.fail(fmt::format("an operand is {}, expected a batch of {}", format_desc(n_.desc(x)), batch),
              StatusCode::kInvalidModel);
      return kNone;
    }
    dims.erase(dims.begin());
    return n_.reshape(n_.slice(x, 0, b, 1), dims);
  }

  std::vector<ValueId> scan(const std::vector<ValueId>& operands) {
    std::vector<int> axes;
    for (int i = 0; i < scanned_ && !n_.failed(); ++i) {
      axes.push_back(n_.axis(axes_in_[at(i)], n_.rank(operands[at(states_ + i)])));
      const std::int64_t size = n_.failed() ? 0 : n_.dims(operands[at(states_ + i)])[at(axes.back())];
      if (i == 0) length_ = size;
      if (size != length_)
        n_.fail(fmt::format("scanned operands have {} and {} entries along their axes", length_, size),
                StatusCode::kInvalidModel);
    }
    if (!n_.failed() && length_ < 1) n_.fail("the scanned axis is empty");
    if (!n_.failed() && n_.frame().is_deepest()) n_.fail("too many bodies inside one another at run time");
    if (n_.failed()) return {};
    LoopBody body(n_);
    const std::vector<ValueId> following = lower_into(body, operands, axes);
    if (n_.failed()) return {};
    const ValueId trips = n_.builder().constant<std::int64_t>("", {}, std::span(&length_, 1));
    body.set_next_condition(always(body.builder()));
    for (const ValueId id : following) body.set_next(id);
    std::vector<ValueId> results = body.finish(trips, kNone, length_);
    for (int i = states_; i < n_.outputs() && !n_.failed(); ++i)
      results[at(i)] = move_rows(results[at(i)], axes_out_[at(i - states_)]);
    return results;
  }

  /// The next values of what the loop carries: states, then rows.
  std::vector<ValueId> lower_into(LoopBody& body, const std::vector<ValueId>& operands, const std::vector<int>& axes) {
    std::vector<ValueId> inputs;
    for (int i = 0; i < states_; ++i)
      inputs.push_back(body.carry(std::string(body_->inputs[at(i)].name), n_.desc(operands[at(i)]), operands[at(i)]));
    for (int i = 0; i < scanned_ && !n_.failed(); ++i)
      inputs.push_back(take_row(body, body.frame().capture(operands[at(states_ + i)]), axes[at(i)],
                                row_index(n_, body, length_, backward_in_[at(i)] != 0)));
    if (n_.failed()) return {};
    std::vector<ValueId> following = n_.nested_body(*body_, body.frame(), inputs);
    if (std::ranges::any_of(following, [](ValueId id) { return id < 0; })) n_.fail("the body is not supported");
    for (int i = 0; i < states_ && !n_.failed(); ++i) {
      const TensorDesc& before = n_.desc(operands[at(i)]);
      const TensorDesc& after = body.builder().desc(following[at(i)]);
      if (!same_shape_and_type(before, after))
        n_.fail(fmt::format("state {} is {} before an iteration and {} after it", i, format_desc(before),
                            format_desc(after)));
    }
    for (int i = states_; i < n_.outputs() && !n_.failed(); ++i)
      following[at(i)] = collect_rows(n_, body, following[at(i)], length_, backward_out_[at(i - states_)] != 0, kNone);
    return following;
  }

  /// The first axis moved to `axis`.
  ValueId move_rows(ValueId x, std::int64_t axis) {
    const int to = n_.axis(axis, n_.rank(x));
    std::vector<int> perm;
    for (int i = 1; i < n_.rank(x); ++i) perm.push_back(i);
    perm.insert(perm.begin() + to, 0);
    return n_.transpose(x, perm);
  }

  NodeLowering& n_;
  const GraphProto* body_;
  int states_ = 0;
  int scanned_ = 0;
  std::int64_t length_ = 0;
  std::vector<std::int64_t> axes_in_;
  std::vector<std::int64_t> backward_in_;
  std::vector<std::int64_t> axes_out_;
  std::vector<std::int64_t> backward_out_;
};

void lower_scan(NodeLowering& n) { ScanLowering(n).run(); }
void lower_batched_scan(NodeLowering& n) { ScanLowering(n).run_batched(); }

constexpr OperatorRow kLoopOperators[] = {
    {"", "Loop", 1, kNewest, lower_loop},
    {"", "Scan", 8, 8, lower_batched_scan},
    {"", "Scan", 9, kNewest, lower_scan},
};

}  // namespace

std::span<const OperatorRow> loop_operators() { return kLoopOperators; }

}  // namespace bantam::import::onnx
