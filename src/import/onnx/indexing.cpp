// ONNX operators that read or write at positions given by index tensors.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "import/onnx/lowering.h"
#include "ops/data/gather/gather.h"
#include "ops/data/gather_elements/gather_elements.h"
#include "ops/data/gather_nd/gather_nd.h"
#include "ops/data/one_hot/one_hot.h"
#include "ops/data/scatter_elements/scatter_elements.h"
#include "ops/data/scatter_nd/scatter_nd.h"
#include "ops/data/trilu/trilu.h"
#include "ops/reduce/arg_reduce/arg_reduce.h"
#include "ops/reduce/cumsum/cumsum.h"
#include "ops/reduce/topk/topk.h"

namespace bantam::import::onnx {
namespace {

constexpr std::int64_t kMaxDepth = 0x7fffffff;

void lower_gather(NodeLowering& n) {
  const ValueId x = n.input(0);
  const ops::GatherParams params{n.axis(n.attr_int("axis", 0), n.rank(x)), 0};
  n.set_output(0, n.emit(ops::kGather, params, {x, n.input(1)}));
}

void lower_gather_elements(NodeLowering& n) {
  const ValueId x = n.input(0);
  const ops::GatherElementsParams params{n.axis(n.attr_int("axis", 0), n.rank(x))};
  n.set_output(0, n.emit(ops::kGatherElements, params, {x, n.input(1)}));
}

void lower_gather_nd(NodeLowering& n) {
  const ops::GatherNdParams params{n.attr_int32("batch_dims", 0)};
  n.set_output(0, n.emit(ops::kGatherNd, params, {n.input(0), n.input(1)}));
}

ops::ScatterReduction scatter_reduction(NodeLowering& n) {
  const std::string_view name = n.attr_string("reduction", "none");
  if (name == "none") return ops::ScatterReduction::kNone;
  if (name == "add") return ops::ScatterReduction::kAdd;
  if (name == "mul") return ops::ScatterReduction::kMul;
  if (name == "min") return ops::ScatterReduction::kMin;
  if (name == "max") return ops::ScatterReduction::kMax;
  n.fail(
      fmt::format("attribute 'reduction' = '{}' is not supported, only none, add, mul, min and max", printable(name)));
  return ops::ScatterReduction::kNone;
}

void lower_scatter_elements(NodeLowering& n) {
  const ValueId x = n.input(0);
  const ops::ScatterElementsParams params{n.axis(n.attr_int("axis", 0), n.rank(x)), scatter_reduction(n)};
  n.set_output(0, n.emit(ops::kScatterElements, params, {x, n.input(1), n.input(2)}));
}

void lower_scatter_nd(NodeLowering& n) {
  const ops::ScatterNdParams params{scatter_reduction(n)};
  n.set_output(0, n.emit(ops::kScatterNd, params, {n.input(0), n.input(1), n.input(2)}));
}

void lower_one_hot(NodeLowering& n) {
  ValueId indices = n.input(0);
  const auto depth_values = graph::constant_integers(n.builder().graph(), n.cast(n.input(1), ElementType::kI64));
  const ValueId values = n.input(2);
  if (n.failed()) return;
  if (!depth_values || depth_values->size() != 1 || depth_values->front() < 0 || depth_values->front() > kMaxDepth)
    return n.fail("operand 1 (depth) must be one number that is known when the model is imported");
  if (n.rank(values) != 1 || n.desc(values).dims[0] != 2)
    return n.fail(fmt::format("operand 2 (values) must be [off, on], it is {}", format_desc(n.desc(values))),
                  StatusCode::kInvalidModel);
  if (n.type(indices) != ElementType::kI32 && n.type(indices) != ElementType::kF32)
    indices = n.cast(indices, ElementType::kI64);
  ops::OneHotParams params;
  params.axis = n.axis(n.attr_int("axis", -1), n.rank(indices) + 1);
  params.depth = static_cast<std::int32_t>(depth_values->front());
  const ValueId off = n.reshape(n.slice(values, 0, 0, 1), {});
  const ValueId on = n.reshape(n.slice(values, 0, 1, 1), {});
  n.set_output(0, n.emit(ops::kOneHot, params, {indices, off, on}));
}

void lower_trilu(NodeLowering& n) {
  const std::int64_t k = n.has(1) ? n.integer(1, "k") : 0;
  ops::TriluParams params;
  params.upper = n.attr_int("upper", 1) != 0 ? 1 : 0;
  // Beyond the largest dimension every diagonal keeps the same elements.
  params.diagonal = static_cast<std::int32_t>(std::clamp<std::int64_t>(k, -kMaxDepth, kMaxDepth));
  n.set_output(0, n.emit(ops::kTrilu, params, {n.input(0)}));
}

void lower_cumsum(NodeLowering& n) {
  const ValueId x = n.input(0);
  ops::CumsumParams params;
  params.axis = n.axis(n.integer(1, "axis"), n.rank(x));
  params.exclusive = n.attr_int("exclusive", 0) != 0 ? 1 : 0;
  params.reverse = n.attr_int("reverse", 0) != 0 ? 1 : 0;
  n.set_output(0, n.emit(ops::kCumsum, params, {x}));
}

void lower_topk(NodeLowering& n) {
  n.ignore({"sorted"});  // sorted order is one of the orders that "unsorted" allows
  const ValueId x = n.input(0);
  ops::TopkParams params;
  params.axis = n.axis(n.attr_int("axis", -1), n.rank(x));
  if (n.failed()) return;
  const std::int64_t length = n.desc(x).dims[params.axis];
  const std::int64_t k = n.opset() < 10 ? n.attr_int("k", 0) : n.integer(1, "K", length);
  params.largest = n.attr_int("largest", 1) != 0 ? 1 : 0;
  if (k < 0 || k > kMaxDepth) n.fail(fmt::format("K = {} is out of range", k), StatusCode::kInvalidModel);
  params.k = static_cast<std::int32_t>(k);
  const auto results = n.emit_all(ops::kTopk, graph::Params::of(params), {x});
  if (n.failed()) return;
  n.set_output(0, results[0]);
  n.set_output(1, results[1]);
}

template <bool minimum>
void lower_arg_reduce(NodeLowering& n) {
  const ValueId x = n.input(0);
  ops::ArgReduceParams params;
  params.minimum = minimum ? 1 : 0;
  params.axis = n.axis(n.attr_int("axis", 0), n.rank(x));
  params.keep_dims = n.attr_int("keepdims", 1) != 0 ? 1 : 0;
  params.select_last = n.attr_int("select_last_index", 0) != 0 ? 1 : 0;
  n.set_output(0, n.emit(ops::kArgReduce, params, {x}));
}

constexpr OperatorRow kIndexingOperators[] = {
    {"", "ArgMax", 1, kNewest, lower_arg_reduce<false>},
    {"", "ArgMin", 1, kNewest, lower_arg_reduce<true>},
    {"", "CumSum", 11, kNewest, lower_cumsum},
    {"", "Gather", 1, kNewest, lower_gather},
    {"", "GatherElements", 11, kNewest, lower_gather_elements},
    {"", "GatherND", 11, kNewest, lower_gather_nd},
    {"", "OneHot", 9, kNewest, lower_one_hot},
    {"", "Scatter", 9, kNewest, lower_scatter_elements},
    {"", "ScatterElements", 11, kNewest, lower_scatter_elements},
    {"", "ScatterND", 11, kNewest, lower_scatter_nd},
    {"", "TopK", 1, kNewest, lower_topk},
    {"", "Trilu", 14, kNewest, lower_trilu},
};

}  // namespace

std::span<const OperatorRow> indexing_operators() { return kIndexingOperators; }

}  // namespace bantam::import::onnx
