// ONNX reductions, and the determinant.
#include <fmt/format.h>

#include <numeric>

#include "import/onnx/lowering.h"
#include "ops/nn/det/det.h"

namespace bantam::import::onnx {
namespace {

using ops::ReduceFunction;

/// Axes are an attribute in older operator sets and an operand in newer ones. Without axes all are reduced, or none.
template <ReduceFunction function>
void lower_reduce(NodeLowering& n) {
  const ValueId x = n.input(0);
  const bool keep_dims = n.attr_int("keepdims", 1) != 0;
  const bool noop = n.attr_int("noop_with_empty_axes", 0) != 0;
  const auto values = n.has_attr("axes") ? n.attr_ints("axes")
                      : n.has(1)         ? n.integers(1, "axes")
                                         : std::vector<std::int64_t>();
  if (n.failed()) return;
  std::vector<int> axes = n.axes(values, n.rank(x));
  // Without an axis "noop" still computes, each element being a group of its own: magnitudes, squares, logarithms.
  if (values.empty() && !noop) {
    axes.resize(static_cast<std::size_t>(n.rank(x)));
    std::iota(axes.begin(), axes.end(), 0);
  }
  n.set_output(0, n.reduce(function, x, axes, keep_dims));
}

/// Boolean maxima and minima are "any" and "all".
template <ReduceFunction function, ReduceFunction boolean>
void lower_extremum(NodeLowering& n) {
  if (n.type(n.input(0)) == ElementType::kBool) return lower_reduce<boolean>(n);
  lower_reduce<function>(n);
}

void lower_det(NodeLowering& n) { n.set_output(0, n.emit(ops::kDet, {n.input(0)})); }

constexpr OperatorRow kReductionOperators[] = {
    {"", "Det", 11, kNewest, lower_det},
    {"", "ReduceL1", 1, kNewest, lower_reduce<ReduceFunction::kL1>},
    {"", "ReduceL2", 1, kNewest, lower_reduce<ReduceFunction::kL2>},
    {"", "ReduceLogSum", 1, kNewest, lower_reduce<ReduceFunction::kLogSum>},
    {"", "ReduceLogSumExp", 1, kNewest, lower_reduce<ReduceFunction::kLogSumExp>},
    {"", "ReduceMax", 1, kNewest, lower_extremum<ReduceFunction::kMax, ReduceFunction::kAny>},
    {"", "ReduceMean", 1, kNewest, lower_reduce<ReduceFunction::kMean>},
    {"", "ReduceMin", 1, kNewest, lower_extremum<ReduceFunction::kMin, ReduceFunction::kAll>},
    {"", "ReduceProd", 1, kNewest, lower_reduce<ReduceFunction::kProd>},
    {"", "ReduceSum", 1, kNewest, lower_reduce<ReduceFunction::kSum>},
    {"", "ReduceSumSquare", 1, kNewest, lower_reduce<ReduceFunction::kSumSquare>},
};

}  // namespace

std::span<const OperatorRow> reduction_operators() { return kReductionOperators; }

}  // namespace bantam::import::onnx
