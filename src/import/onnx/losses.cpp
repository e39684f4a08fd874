// ONNX losses, which inference meets when a model reports how well it predicts: NegativeLogLikelihoodLoss and
// SoftmaxCrossEntropyLoss.
#include <fmt/format.h>

#include <numeric>

#include "import/onnx/lowering.h"
#include "ops/data/gather/gather.h"
#include "ops/data/gather_elements/gather_elements.h"
#include "ops/elementwise/select/select.h"
#include "ops/nn/softmax/softmax.h"

namespace bantam::import::onnx {
namespace {

using ops::BinaryFunction;
using ops::ReduceFunction;
using ops::UnaryFunction;

enum class Reduction : std::uint8_t { kNone, kSum, kMean };

Reduction read_reduction(NodeLowering& n) {
  const std::string_view name = n.attr_string("reduction", "mean");
  if (name == "none") return Reduction::kNone;
  if (name == "sum") return Reduction::kSum;
  if (name != "mean")
    n.fail(fmt::format("attribute 'reduction' = '{}' is not one of none, sum and mean", printable(name)),
           StatusCode::kInvalidModel);
  return Reduction::kMean;
}

ValueId sum_of_all(NodeLowering& n, ValueId x) {
  std::vector<int> axes(static_cast<std::size_t>(n.rank(x)));
  std::iota(axes.begin(), axes.end(), 0);
  return n.reduce(ReduceFunction::kSum, x, axes, false);
}

/// -weight[target] * log_probability[target] for every target but the ignored ones, reduced. log_probability is
/// [N,C,...], target [N,...].
void lower_likelihood(NodeLowering& n, ValueId log_probability, ValueId target, ValueId weight) {
  const Reduction reduction = read_reduction(n);
  const bool ignores = n.has_attr("ignore_index");
  const std::int64_t ignored_index = n.attr_int("ignore_index", 0);
  if (n.failed()) return;
  const TensorDesc& d = n.desc(log_probability);
  if (d.rank < 2 || n.rank(target) != d.rank - 1)
    return n.fail(
        fmt::format("scores {} and targets {} do not belong together", format_desc(d), format_desc(n.desc(target))),
        StatusCode::kInvalidModel);
  const ElementType type = n.type(log_probability);
  const ElementType index = n.type(target);
  const auto shape = n.dims(target);
  ValueId ignored = kNone;
  if (ignores) {
    ignored = n.binary(BinaryFunction::kEqual, target, n.scalar(index, static_cast<double>(ignored_index)));
    target = n.emit(ops::kSelect, {ignored, n.scalar(index, 0), target});
  }
  auto column = shape;
  column.insert(column.begin() + 1, 1);
  const ValueId picked =
      n.emit(ops::kGatherElements, ops::GatherElementsParams{1}, {log_probability, n.reshape(target, column)});
  ValueId loss = n.unary(UnaryFunction::kNeg, n.reshape(picked, shape));
  ValueId share = kNone;  // of each element in the mean; none: all the same
  if (weight != kNone) share = n.emit(ops::kGather, ops::GatherParams{}, {weight, target});
  if (ignores) share = n.emit(ops::kSelect, {ignored, n.scalar(type, 0), share != kNone ? share : n.scalar(type, 1)});
  if (share != kNone) loss = n.binary(BinaryFunction::kMul, loss, share);
  if (reduction == Reduction::kNone) return n.set_output(0, loss);
  const ValueId sum = sum_of_all(n, loss);
  if (reduction == Reduction::kSum) return n.set_output(0, sum);
  const ValueId count =
      share != kNone ? sum_of_all(n, share) : n.scalar(type, static_cast<double>(n.desc(loss).elements()));
  n.set_output(0, n.binary(BinaryFunction::kDiv, sum, count));
}

void lower_negative_log_likelihood(NodeLowering& n) { lower_likelihood(n, n.input(0), n.input(1), n.optional(2)); }

void lower_softmax_cross_entropy(NodeLowering& n) {
  const ValueId scores = n.input(0);
  const ValueId log_probability = n.emit(ops::kSoftmax, ops::SoftmaxParams{n.axis(1, n.rank(scores)), 1}, {scores});
  n.set_output(1, log_probability);
  lower_likelihood(n, log_probability, n.input(1), n.optional(2));
}

constexpr OperatorRow kLossOperators[] = {
    {"", "NegativeLogLikelihoodLoss", 12, kNewest, lower_negative_log_likelihood},
    {"", "SoftmaxCrossEntropyLoss", 12, kNewest, lower_softmax_cross_entropy},
};

}  // namespace

std::span<const OperatorRow> loss_operators() { return kLossOperators; }

}  // namespace bantam::import::onnx
