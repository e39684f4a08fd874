// ONNX pooling over windows and over whole images.
#include "import/onnx/pooling.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/shape.h"
#include "import/onnx/spatial.h"
#include "ops/data/scatter_elements/scatter_elements.h"
#include "ops/nn/max_pool_indices/max_pool_indices.h"
#include "ops/nn/pool2d/pool2d.h"

namespace bantam::import::onnx {
namespace {

ValueId pool_planes(NodeLowering& n, ValueId x, ops::Pool2dParams params, const WindowAxis& vertical,
                    const WindowAxis& horizontal) {
  set_window(params, vertical, horizontal);
  params.kernel_h = vertical.kernel;
  params.kernel_w = horizontal.kernel;
  return n.emit(ops::kPool2d, params, {x});
}

/// Pools x [N,...,C]. Maxima and averages of boxes are those of rows of rows, padding and all: more than two axes are
/// pooled two at a time, the last ones first.
ValueId pool(NodeLowering& n, ValueId x, const ops::Pool2dParams& params, std::span<const WindowAxis> window) {
  if (n.failed()) return kNone;
  if (window.size() == 2) return pool_planes(n, x, params, window[0], window[1]);
  const TensorDesc d = n.desc(x);
  const ValueId inner = pool(n, merge_first_axes(n, x), params, window.subspan(1));
  auto dims = n.dims(inner);
  if (n.failed()) return kNone;
  std::int64_t positions = 1;
  for (std::size_t i = 1; i + 1 < dims.size(); ++i) positions *= dims[i];
  const ValueId columns = n.reshape(inner, {d.dims[0], d.dims[1], positions, dims.back()});
  const ValueId y = pool_planes(n, columns, params, window.front(), {});
  if (n.failed()) return kNone;
  dims[0] = d.dims[0];
  dims.insert(dims.begin() + 1, n.desc(y).dims[1]);
  return n.reshape(y, dims);
}

std::vector<std::int32_t> read_kernel(NodeLowering& n, int rank) {
  if (!n.has_attr("kernel_shape")) n.fail("attribute 'kernel_shape' is missing", StatusCode::kInvalidModel);
  return read_spatial(n, "kernel_shape", rank, 1);
}

ValueId pool_windows(NodeLowering& n, ValueId x, ops::PoolKind kind) {
  const int rank = n.rank(x);
  const auto window = read_window(n, x, read_kernel(n, rank));
  ops::Pool2dParams params;
  params.kind = kind;
  params.ceil_mode = n.attr_int("ceil_mode", 0) != 0 ? 1 : 0;
  params.count_include_pad = n.attr_int("count_include_pad", 0) != 0 ? 1 : 0;
  if (n.type(x) == ElementType::kU8) {
    params.minimum = 0;
    params.maximum = std::numeric_limits<std::uint8_t>::max();
  }
  return from_channels_last(n, pool(n, to_channels_last(n, x), params, window), rank);
}

void lower_average_pool(NodeLowering& n) { n.set_output(0, average_pool(n, n.input(0))); }

/// Maxima together with where they stand.
void lower_max_pool_indices(NodeLowering& n) {
  const ValueId x = n.input(0);
  auto window = read_window(n, x, read_kernel(n, n.rank(x)));
  ops::MaxPoolIndicesParams params;
  params.ceil_mode = n.attr_int("ceil_mode", 0) != 0 ? 1 : 0;
  params.column_major = n.attr_int("storage_order", 0) != 0 ? 1 : 0;
  if (n.failed()) return;
  if (n.rank(x) == 3) window.erase(window.begin());
  for (const WindowAxis& axis : window) {
    params.kernel.v[params.kernel.size++] = axis.kernel;
    params.strides.v[params.strides.size++] = axis.stride;
    params.dilations.v[params.dilations.size++] = axis.dilation;
    params.before.v[params.before.size++] = axis.pad_before;
    params.after.v[params.after.size++] = axis.pad_after;
  }
  const auto results = n.emit_all(ops::kMaxPoolIndices, graph::Params::of(params), {x});
  if (n.failed()) return;
  n.set_output(0, results[0]);
  n.set_output(1, results[1]);
}

void lower_max_pool(NodeLowering& n) {
  if (n.wants(1)) return lower_max_pool_indices(n);
  n.ignore({"storage_order"});  // concerns the indices only
  n.set_output(0, pool_windows(n, n.input(0), ops::PoolKind::kMax));
}

/// The shape whose elements MaxUnpool's indices count: that of the operand of MaxPool, as far as it can be known.
std::vector<std::int64_t> unpooled_shape(NodeLowering& n, ValueId x) {
  auto dims = n.dims(x);
  const auto window = read_window(n, x, read_kernel(n, n.rank(x)));
  for (std::size_t i = 2; i < dims.size() && !n.failed(); ++i) {
    const WindowAxis& axis = window[window.size() + i - dims.size()];
    dims[i] = (dims[i] - 1) * axis.stride - axis.pad_before - axis.pad_after + axis.kernel;
    if (dims[i] < 0 || dims[i] > kMaxElements)
      n.fail(fmt::format("axis {} of the result would have {} elements", i, dims[i]), StatusCode::kInvalidModel);
  }
  return dims;
}

/// The shape whose elements the indices count: that of MaxPool's operand where it can be seen, else what kernel,
/// strides and pads imply, which may be smaller at the ends.
std::vector<std::int64_t> indexed_shape(NodeLowering& n, ValueId x, ValueId indices) {
  auto dims = unpooled_shape(n, x);
  if (n.failed()) return dims;
  const graph::Graph& graph = n.builder().graph();
  const graph::NodeId producer = graph.value(indices).producer;
  if (producer != kNone && graph.node(producer).is(ops::kMaxPoolIndices)) dims = n.dims(graph.node(producer).inputs[0]);
  return dims;
}

/// Puts every element where its index says, zeros elsewhere. A larger output_shape adds zeros at the ends of the axes.
void lower_max_unpool(NodeLowering& n) {
  const ValueId x = n.input(0);
  const ValueId indices = n.input(1);
  const auto dims = indexed_shape(n, x, indices);
  const auto wanted = n.has(2) ? n.integers(2, "output_shape") : unpooled_shape(n, x);
  if (n.failed()) return;
  if (wanted.size() != dims.size())
    return n.fail(fmt::format("output_shape has {} entries, expected {}", wanted.size(), dims.size()),
                  StatusCode::kInvalidModel);
  std::int64_t elements = 1;
  for (const std::int64_t dim : dims) elements = std::min(elements * dim, kMaxElements + 1);
  const std::int64_t flat[] = {elements};
  const ValueId zeros = n.expand(n.scalar(n.type(x), 0), flat);
  const std::int64_t count = n.desc(x).elements();
  const ValueId y = n.emit(ops::kScatterElements, ops::ScatterElementsParams{},
                           {zeros, n.reshape(indices, {count}), n.reshape(x, {count})});
  ValueId result = n.reshape(y, dims);
  for (std::size_t i = 0; i < dims.size(); ++i) result = n.pad(result, static_cast<int>(i), 0, wanted[i] - dims[i]);
  n.set_output(0, result);
}

/// All axes but batch and channel.
template <ops::ReduceFunction function>
void lower_global_pool(NodeLowering& n) {
  const ValueId x = n.input(0);
  std::vector<int> axes;
  for (int i = 2; i < n.rank(x); ++i) axes.push_back(i);
  n.set_output(0, n.reduce(function, x, axes, true));
}

/// The p-norm from p-th powers and their sum.
ValueId power(NodeLowering& n, ValueId x, std::int64_t p) {
  const ValueId magnitude = n.unary(ops::UnaryFunction::kAbs, x);
  if (p == 1) return magnitude;
  if (p == 2) return n.unary(ops::UnaryFunction::kSquare, x);
  return n.binary(ops::BinaryFunction::kPow, magnitude, n.scalar(n.type(x), static_cast<double>(p)));
}

ValueId root(NodeLowering& n, ValueId x, std::int64_t p) {
  if (p == 1) return x;
  if (p == 2) return n.unary(ops::UnaryFunction::kSqrt, x);
  return n.binary(ops::BinaryFunction::kPow, x, n.scalar(n.type(x), 1.0 / static_cast<double>(p)));
}

std::int64_t read_exponent(NodeLowering& n) {
  const std::int64_t p = n.attr_int("p", 2);
  if (p < 1) n.fail(fmt::format("attribute 'p' = {} is not positive", p), StatusCode::kInvalidModel);
  return std::max<std::int64_t>(p, 1);
}

void lower_global_lp_pool(NodeLowering& n) {
  const std::int64_t p = read_exponent(n);
  if (p == 1) return lower_global_pool<ops::ReduceFunction::kL1>(n);
  if (p == 2) return lower_global_pool<ops::ReduceFunction::kL2>(n);
  const ValueId x = n.input(0);
  std::vector<int> axes;
  for (int i = 2; i < n.rank(x); ++i) axes.push_back(i);
  n.set_output(0, root(n, n.reduce(ops::ReduceFunction::kSum, power(n, x, p), axes, true), p));
}

/// The p-norm of each window, from the average of |x|^p over the window counted with its padding.
void lower_lp_pool(NodeLowering& n) {
  const ValueId x = n.input(0);
  const std::int64_t p = read_exponent(n);
  const int rank = n.rank(x);
  const bool ceil_mode = n.attr_int("ceil_mode", 0) != 0;
  auto window = read_window(n, x, read_kernel(n, rank));
  float count = 1.0F;
  for (std::size_t i = 0; i < window.size() && !n.failed(); ++i) {
    WindowAxis& axis = window[i];
    count *= static_cast<float>(axis.kernel);
    if (!ceil_mode) continue;
    // Padding up to the end of the last window makes all windows whole; on a first axis of size 1 there is none.
    const std::int64_t extent = rank == 3 && i == 0 ? 1 : n.desc(x).dims[i + 2 - (rank == 3 ? 1 : 0)];
    const std::int64_t last = (positions(n, axis, extent, true) - 1) * axis.stride;
    const std::int64_t reach = std::int64_t{axis.dilation} * (axis.kernel - 1) + 1;
    const std::int64_t beyond = last + reach - extent - axis.pad_before - axis.pad_after;
    axis.pad_after += static_cast<std::int32_t>(std::clamp<std::int64_t>(beyond, 0, 1 << 30));
  }
  ops::Pool2dParams params;
  params.kind = ops::PoolKind::kAverage;
  params.count_include_pad = 1;
  const ValueId mean = from_channels_last(n, pool(n, to_channels_last(n, power(n, x, p)), params, window), rank);
  n.set_output(0, root(n, n.binary(ops::BinaryFunction::kMul, mean, n.scalar(count)), p));
}

constexpr OperatorRow kPoolingOperators[] = {
    {"", "AveragePool", 1, kNewest, lower_average_pool},
    {"", "GlobalAveragePool", 1, kNewest, lower_global_pool<ops::ReduceFunction::kMean>},
    {"", "GlobalLpPool", 2, kNewest, lower_global_lp_pool},
    {"", "GlobalMaxPool", 1, kNewest, lower_global_pool<ops::ReduceFunction::kMax>},
    {"", "LpPool", 2, kNewest, lower_lp_pool},
    {"", "MaxPool", 1, kNewest, lower_max_pool},
    {"", "MaxUnpool", 9, kNewest, lower_max_unpool},
};

}  // namespace

ValueId average_pool(NodeLowering& n, ValueId x) { return pool_windows(n, x, ops::PoolKind::kAverage); }

std::span<const OperatorRow> pooling_operators() { return kPoolingOperators; }

}  // namespace bantam::import::onnx
