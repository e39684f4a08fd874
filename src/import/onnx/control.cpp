// ONNX operators that choose or pass on: If, Identity, Dropout.
#include <fmt/format.h>

#include "import/onnx/lowering.h"

namespace bantam::import::onnx {
namespace {

void lower_identity(NodeLowering& n) { n.set_output(0, n.input(0)); }

/// Dropout does nothing in inference; its mask is all true.
void lower_dropout(NodeLowering& n) {
  n.ignore({"ratio", "seed", "is_test"});
  const ValueId x = n.input(0);
  if (n.has(2) && n.integer(2, "training_mode") != 0) n.fail("training_mode is not supported");
  n.set_output(0, x);
  if (n.wants(1)) n.set_output(1, n.expand(n.cast(n.scalar(1.0F), ElementType::kBool), n.dims(x)));
}

/// Only the branch that is taken is imported, in the scope around the node.
void lower_if(NodeLowering& n) {
  const std::int64_t condition = n.integer(0, "condition");
  const GraphProto* then_branch = n.attr_graph("then_branch");
  const GraphProto* else_branch = n.attr_graph("else_branch");
  if (n.failed()) return;
  const GraphProto& taken = condition != 0 ? *then_branch : *else_branch;
  if (taken.outputs.size() < n.proto().outputs.size())
    return n.fail(fmt::format("the branch has {} results, the node {}", taken.outputs.size(), n.outputs()),
                  StatusCode::kInvalidModel);
  const auto outputs = n.nested(taken);
  for (int i = 0; i < n.outputs(); ++i) n.set_output(i, outputs[static_cast<std::size_t>(i)]);
}

constexpr std::int64_t kNewest = OperatorRow::kNewest;
constexpr OperatorRow kRows[] = {
    {"", "Dropout", 7, kNewest, lower_dropout},
    {"", "Identity", 1, kNewest, lower_identity},
    {"", "If", 1, kNewest, lower_if},
};

}  // namespace

std::span<const OperatorRow> control_operators() { return kRows; }

}  // namespace bantam::import::onnx
