// ONNX pooling over windows and over whole images.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "import/onnx/spatial.h"
#include "ops/nn/pool2d/pool2d.h"

namespace bantam::import::onnx {
namespace {

void lower_pool(NodeLowering& n, ops::PoolKind kind) {
  const ValueId x = n.input(0);
  const int rank = n.rank(x);
  if (!n.has_attr("kernel_shape")) n.fail("attribute 'kernel_shape' is missing", StatusCode::kInvalidModel);
  const auto kernel = read_spatial(n, "kernel_shape", rank, 1);
  const Window window = read_window(n, x, kernel);
  ops::Pool2dParams params;
  set_window(params, window);
  params.kind = kind;
  params.kernel_h = kernel[0];
  params.kernel_w = kernel[1];
  params.ceil_mode = n.attr_int("ceil_mode", 0) != 0 ? 1 : 0;
  params.count_include_pad = n.attr_int("count_include_pad", 0) != 0 ? 1 : 0;
  if (n.type(x) == ElementType::kU8) {
    params.minimum = 0;
    params.maximum = std::numeric_limits<std::uint8_t>::max();
  }
  const ValueId y = n.emit(ops::kPool2d, params, {to_channels_last(n, x)});
  n.set_output(0, from_channels_last(n, y, rank));
}

void lower_average_pool(NodeLowering& n) { lower_pool(n, ops::PoolKind::kAverage); }

void lower_max_pool(NodeLowering& n) {
  n.ignore({"storage_order"});  // concerns the indices only, whose absence is reported where they are read
  lower_pool(n, ops::PoolKind::kMax);
}

/// All axes but batch and channel.
template <ops::ReduceFunction function>
void lower_global_pool(NodeLowering& n) {
  const ValueId x = n.input(0);
  std::vector<int> axes;
  for (int i = 2; i < n.rank(x); ++i) axes.push_back(i);
  n.set_output(0, n.reduce(function, x, axes, true));
}

void lower_global_lp_pool(NodeLowering& n) {
  const std::int64_t p = n.attr_int("p", 2);
  if (p == 1) return lower_global_pool<ops::ReduceFunction::kL1>(n);
  if (p == 2) return lower_global_pool<ops::ReduceFunction::kL2>(n);
  n.fail(fmt::format("attribute 'p' = {} is not supported, only 1 and 2", p));
}

/// The p-norm of each window, from the average of |x|^p over the window counted with its padding.
void lower_lp_pool(NodeLowering& n) {
  const ValueId x = n.input(0);
  const std::int64_t p = n.attr_int("p", 2);
  const int rank = n.rank(x);
  if (p != 1 && p != 2) n.fail(fmt::format("attribute 'p' = {} is not supported, only 1 and 2", p));
  n.require("ceil_mode", 0);
  const auto kernel = read_spatial(n, "kernel_shape", rank, 1);
  ops::Pool2dParams params;
  set_window(params, read_window(n, x, kernel));
  params.kind = ops::PoolKind::kAverage;
  params.kernel_h = kernel[0];
  params.kernel_w = kernel[1];
  params.count_include_pad = 1;
  const ValueId powers = n.unary(p == 1 ? ops::UnaryFunction::kAbs : ops::UnaryFunction::kSquare, x);
  const ValueId mean = from_channels_last(n, n.emit(ops::kPool2d, params, {to_channels_last(n, powers)}), rank);
  const float count = static_cast<float>(kernel[0]) * static_cast<float>(kernel[1]);
  const ValueId sum = n.binary(ops::BinaryFunction::kMul, mean, n.scalar(count));
  n.set_output(0, p == 1 ? sum : n.unary(ops::UnaryFunction::kSqrt, sum));
}

constexpr std::int64_t kNewest = OperatorRow::kNewest;
constexpr OperatorRow kRows[] = {
    {"", "AveragePool", 1, kNewest, lower_average_pool},
    {"", "GlobalAveragePool", 1, kNewest, lower_global_pool<ops::ReduceFunction::kMean>},
    {"", "GlobalLpPool", 2, kNewest, lower_global_lp_pool},
    {"", "GlobalMaxPool", 1, kNewest, lower_global_pool<ops::ReduceFunction::kMax>},
    {"", "LpPool", 2, kNewest, lower_lp_pool},
    {"", "MaxPool", 1, kNewest, lower_max_pool},
};

}  // namespace

std::span<const OperatorRow> pooling_operators() { return kRows; }

}  // namespace bantam::import::onnx
