// ONNX operators that choose or pass on: If, Identity, Dropout.
#include "graph/control.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "import/onnx/lowering.h"

namespace bantam::import::onnx {
namespace {

void lower_identity(NodeLowering& n) { n.set_output(0, n.input(0)); }

/// Dropout does nothing in inference, nor in training where it drops nothing; its mask is all true.
void lower_dropout(NodeLowering& n) {
  n.ignore({"ratio", "seed", "is_test"});
  const ValueId x = n.input(0);
  if (n.has(2) && n.integer(2, "training_mode") != 0) {
    constexpr float kDefaultRatio = 0.5F;
    const std::vector<float> ratio = n.has(1) ? n.floats(1, "ratio") : std::vector<float>{kDefaultRatio};
    if (ratio.size() != 1 || ratio.front() != 0.0F)
      n.fail("training_mode would drop numbers at random; only a ratio of 0 is supported there");
  }
  n.set_output(0, x);
  if (n.wants(1)) n.set_output(1, n.expand(n.cast(n.scalar(1.0F), ElementType::kBool), n.dims(x)));
}

void take_branch(NodeLowering& n, const GraphProto& taken) {
  if (static_cast<int>(taken.outputs.size()) < n.outputs())
    return n.fail(fmt::format("the branch has {} results, the node {}", taken.outputs.size(), n.outputs()),
                  StatusCode::kInvalidModel);
  const auto outputs = n.nested(taken);
  for (int i = 0; i < n.outputs(); ++i) n.set_output(i, outputs[static_cast<std::size_t>(i)]);
}

constexpr const char* kFixCondition = "the condition is computed at run time, so both branches must be supported";

/// A branch as a body; its captures are inputs of its own so far.
bool import_branch(NodeLowering& n, const GraphProto& branch, Frame& frame) {
  if (static_cast<int>(branch.outputs.size()) < n.outputs()) {
    n.fail(fmt::format("a branch has {} results, the node {}", branch.outputs.size(), n.outputs()),
           StatusCode::kInvalidModel);
    return false;
  }
  const auto outputs = n.nested_body(branch, frame, {});
  for (int i = 0; i < n.outputs(); ++i) {
    const ValueId id = outputs[static_cast<std::size_t>(i)];
    if (id < 0) {
      n.fail(fmt::format("{}; --set '{}' to choose one", kFixCondition, printable(n.proto().inputs[0])));
      return false;
    }
    frame.builder().output(std::string(n.proto().outputs[static_cast<std::size_t>(i)]), id);
  }
  return true;
}

bool results_agree(NodeLowering& n, Frame& then_frame, Frame& else_frame) {
  for (int i = 0; i < n.outputs(); ++i) {
    const auto desc_in = [&](Frame& frame) {
      return frame.builder().desc(frame.graph().outputs[static_cast<std::size_t>(i)].value);
    };
    if (same_shape_and_type(desc_in(then_frame), desc_in(else_frame))) continue;
    n.fail(
        fmt::format("result {} is {} in the then branch and {} in the else branch; {} with equal shapes: --set '{}' "
                    "to choose one",
                    i, format_desc(desc_in(then_frame)), format_desc(desc_in(else_frame)), kFixCondition,
                    printable(n.proto().inputs[0])));
    return false;
  }
  return true;
}

void choose_at_run_time(NodeLowering& n, ValueId condition, const GraphProto& then_branch,
                        const GraphProto& else_branch) {
  if (n.type(condition) != ElementType::kBool || n.desc(condition).elements() != 1)
    return n.fail(fmt::format("the condition is {}, expected one element of bool", format_desc(n.desc(condition))),
                  StatusCode::kInvalidModel);
  if (n.frame().is_deepest()) return n.fail("too many bodies inside one another at run time");
  Frame then_frame(n.frame());
  Frame else_frame(n.frame());
  if (!import_branch(n, then_branch, then_frame) || !import_branch(n, else_branch, else_frame)) return;
  if (!results_agree(n, then_frame, else_frame)) return;
  // Both bodies have the same inputs: first what the one reads, then what only the other does.
  std::vector<ValueId> inputs = {condition};
  for (Frame* frame : {&then_frame, &else_frame})
    for (const ValueId id : frame->captures())
      if (std::find(inputs.begin() + 1, inputs.end(), id) == inputs.end()) inputs.push_back(id);
  for (Frame* frame : {&then_frame, &else_frame}) {
    std::vector<graph::Port> ports;
    for (std::size_t i = 1; i < inputs.size(); ++i)
      ports.push_back({n.builder().graph().value(inputs[i]).name, frame->capture(inputs[i])});
    frame->graph().inputs = std::move(ports);
  }
  std::vector<graph::Graph> bodies;
  bodies.push_back(std::move(then_frame.graph()));
  bodies.push_back(std::move(else_frame.graph()));
  bodies[0].name = "then";
  bodies[1].name = "else";
  const auto results = n.emit_control(graph::kIf, {}, std::move(inputs), std::move(bodies));
  for (int i = 0; i < n.outputs(); ++i) n.set_output(i, results[static_cast<std::size_t>(i)]);
}

/// Where the condition is known only the branch that is taken is imported, in the scope around the node.
void lower_if(NodeLowering& n) {
  const GraphProto* then_branch = n.attr_graph("then_branch");
  const GraphProto* else_branch = n.attr_graph("else_branch");
  const ValueId condition = n.size_of(n.input(0));
  if (n.failed()) return;
  if (!n.is_constant(condition)) return choose_at_run_time(n, condition, *then_branch, *else_branch);
  const std::int64_t known = n.integer(0, "condition");
  if (!n.failed()) take_branch(n, known != 0 ? *then_branch : *else_branch);
}

constexpr OperatorRow kControlOperators[] = {
    {"", "Dropout", 6, kNewest, lower_dropout},
    {"", "Identity", 1, kNewest, lower_identity},
    {"", "If", 1, kNewest, lower_if},
};

}  // namespace

std::span<const OperatorRow> control_operators() { return kControlOperators; }

}  // namespace bantam::import::onnx
