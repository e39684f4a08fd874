// Operators that change or report shapes, fill, repeat, rearrange blocks and resample.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/shape.h"
#include "import/tflite/operators.h"
#include "ops/data/expand/expand.h"
#include "ops/data/pad/pad.h"
#include "ops/data/range/range.h"
#include "ops/data/tile/tile.h"
#include "ops/nn/resize/resize.h"
#include "ops/nn/resize_bilinear_q/resize_bilinear_q.h"

namespace bantam::import::tflite {
namespace {

using enum ElementType;

void lower_reshape(Lowering& op) {
  Dims shape = op.has(1) ? op.constant_operand(1, "shape") : integers(op.options<schema::ReshapeOptions>().new_shape());
  if (op.failed()) return;
  const std::int64_t elements = op.in_desc(0).elements();
  // Old converters write the shape of a scalar as [0].
  if (shape == Dims{0} && elements == 1) shape.clear();
  if (shape.size() > static_cast<std::size_t>(kMaxRank))
    return op.unsupported(fmt::format("a shape of rank {}", shape.size()), fmt::format("ranks to {}", kMaxRank));
  std::int64_t known = 1;
  for (const std::int64_t d : shape)
    if (d >= 0) known = std::min(checked_multiply(known, d).value_or(kMaxElements + 1), kMaxElements + 1);
  const auto open = std::find(shape.begin(), shape.end(), -1);
  if (open != shape.end() && known > 0) *open = elements / known;
  op.result(0, op.reshape(op.in(0), shape));
}

void lower_squeeze(Lowering& op) {
  const auto listed = op.axes(integers(op.options<schema::SqueezeOptions>().squeeze_dims()), op.rank(0));
  if (op.failed()) return;
  const Dims dims = op.dims(op.in(0));
  Dims shape;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const bool named = std::binary_search(listed.begin(), listed.end(), static_cast<int>(i));
    if (!(listed.empty() ? dims[i] == 1 : named)) shape.push_back(dims[i]);
  }
  op.result(0, op.reshape(op.in(0), shape));
}

void lower_expand_dims(Lowering& op) {
  const Dims axis = op.constant_operand(1, "axis", 1);
  const int position = op.axis(axis[0], op.rank(0) + 1);
  if (op.failed()) return;
  Dims shape = op.dims(op.in(0));
  shape.insert(shape.begin() + position, 1);
  op.result(0, op.reshape(op.in(0), shape));
}

void lower_shape_of(Lowering& op) { op.result(0, op.integers(op.dims(op.in(0)), op.out_type())); }

void lower_rank(Lowering& op) { op.result(0, op.reshape(op.integers({op.rank(0)}, op.out_type()), {})); }

void lower_transpose(Lowering& op) {
  const Dims perm = op.constant_operand(1, "perm");
  std::vector<int> order;
  for (const std::int64_t p : perm) order.push_back(op.axis(p, op.rank(0)));
  if (!op.failed()) op.result(0, op.transpose(op.in(0), order));
}

ValueId expand(Lowering& op, ValueId x, const Dims& shape) {
  if (op.failed()) return kNoValue;
  TensorDesc wanted;
  const Status status = make_desc(op.desc(x).type, shape.data(), static_cast<int>(shape.size()), &wanted);
  if (!status.ok()) {
    op.invalid(fmt::format("a result shape of {} dimensions: {}", shape.size(), status.message), "a valid shape");
    return kNoValue;
  }
  if (shape == op.dims(x)) return x;
  return op.emit(ops::kExpand, ops::ExpandParams{int_list(shape)}, {x});
}

void lower_broadcast_to(Lowering& op) { op.result(0, expand(op, op.in(0), op.constant_operand(1, "shape"))); }

void lower_fill(Lowering& op) {
  const Dims shape = op.constant_operand(0, "dims");
  if (op.in_desc(1).elements() != 1) op.invalid("a value of several elements", "one element");
  op.result(0, expand(op, op.reshape(op.in(1), {}), shape));
}

void lower_zeros_like(Lowering& op) {
  if (op.require_type(0, {kF32, kI8, kU8, kI16, kI32, kI64, kBool}))
    op.result(0, expand(op, op.scalar(op.in_type(0), 0.0), op.dims(op.in(0))));
}

void lower_broadcast_args(Lowering& op) {
  Dims a = op.constant_operand(0, "shape");
  Dims b = op.constant_operand(1, "shape");
  if (op.failed()) return;
  if (a.size() < b.size()) std::swap(a, b);
  b.insert(b.begin(), a.size() - b.size(), 1);
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] != b[i] && a[i] != 1 && b[i] != 1)
      return op.invalid(fmt::format("dimensions {} and {}", a[i], b[i]), "equal dimensions or 1");
    if (a[i] == 1) a[i] = b[i];
  }
  op.result(0, op.integers(a, op.out_type()));
}

void lower_range(Lowering& op) {
  for (int i = 0; i < 3; ++i)
    if (!op.graph().is_constant(op.in(i))) return op.unsupported("a bound that is computed at run time", "constants");
  op.result(0, op.emit(ops::kRange, {op.reshape(op.in(0), {}), op.reshape(op.in(1), {}), op.reshape(op.in(2), {})}));
}

bool all_int32(const Dims& values) {
  return std::all_of(values.begin(), values.end(), [](auto v) { return v == static_cast<std::int32_t>(v); });
}

void lower_tile(Lowering& op) {
  const Dims repeats = op.constant_operand(1, "multiples", static_cast<std::size_t>(op.rank(0)));
  if (!all_int32(repeats)) return op.invalid("a multiple beyond 2^31", "small counts");
  op.result(0, op.emit(ops::kTile, ops::TileParams{int_list(repeats)}, {op.in(0)}));
}

void lower_space_to_depth(Lowering& op) {
  const std::int64_t b = op.options<schema::SpaceToDepthOptions>().block_size();
  if (!op.require_rank(0, 4, 4)) return;
  const Dims x = op.dims(op.in(0));
  if (b <= 0 || x[1] % b != 0 || x[2] % b != 0)
    return op.invalid(fmt::format("block_size {} for an image of {}x{}", b, x[1], x[2]), "a divisor of both");
  const ValueId blocks = op.reshape(op.in(0), {x[0], x[1] / b, b, x[2] / b, b, x[3]});
  op.result(0, op.reshape(op.transpose(blocks, {0, 1, 3, 2, 4, 5}), {x[0], x[1] / b, x[2] / b, b * b * x[3]}));
}

void lower_depth_to_space(Lowering& op) {
  const std::int64_t b = op.options<schema::DepthToSpaceOptions>().block_size();
  if (!op.require_rank(0, 4, 4)) return;
  const Dims x = op.dims(op.in(0));
  if (b <= 0 || x[3] % (b * b) != 0)
    return op.invalid(fmt::format("block_size {} for {} channels", b, x[3]), "its square to divide the channels");
  const std::int64_t channels = x[3] / (b * b);
  const ValueId blocks = op.reshape(op.in(0), {x[0], x[1], x[2], b, b, channels});
  op.result(0, op.reshape(op.transpose(blocks, {0, 1, 3, 2, 4, 5}), {x[0], x[1] * b, x[2] * b, channels}));
}

/// Block shape (operand 1) and the [m,2] paddings or crops (operand 2) of m spatial dimensions.
struct Blocks {
  std::size_t m = 0;
  Dims block;
  Dims before;
  Dims after;
};

Blocks read_blocks(Lowering& op, std::string_view role) {
  Blocks blocks;
  blocks.block = op.constant_operand(1, "block_shape");
  blocks.m = blocks.block.size();
  const Dims pairs = op.constant_operand(2, role, 2 * blocks.m);
  if (op.failed()) return {};
  // m block factors beside rank dimensions must stay within kMaxRank while they are apart.
  if (static_cast<int>(blocks.m) >= op.rank(0) || op.rank(0) + static_cast<int>(blocks.m) > kMaxRank) {
    op.unsupported(fmt::format("{} block dimensions of rank {}", blocks.m, op.rank(0)), "images and sequences");
    return {};
  }
  for (std::size_t i = 0; i < blocks.m; ++i) {
    blocks.before.push_back(pairs[2 * i]);
    blocks.after.push_back(pairs[2 * i + 1]);
    if (blocks.block[i] <= 0 || blocks.before[i] < 0 || blocks.after[i] < 0 || !all_int32(blocks.block) ||
        !all_int32(pairs))
      op.invalid(fmt::format("block {} with {} {}, {}", blocks.block[i], role, blocks.before[i], blocks.after[i]),
                 "positive blocks");
  }
  return blocks;
}

/// Pads with the number that stands for zero.
ValueId pad_blocks(Lowering& op, const Blocks& blocks) {
  ops::PadParams params;
  params.before.size = params.after.size = op.rank(0);
  for (std::size_t i = 0; i < blocks.m; ++i) {
    params.before.v[i + 1] = static_cast<std::int32_t>(blocks.before[i]);
    params.after.v[i + 1] = static_cast<std::int32_t>(blocks.after[i]);
  }
  std::vector<ValueId> operands{op.in(0)};
  if (type_range(op.in_type(0)) && op.is_quantized_in(0))
    operands.push_back(op.scalar(op.in_type(0), op.in_affine(0).zero_point));
  return op.emit(ops::kPad, params, operands);
}

void lower_space_to_batch_nd(Lowering& op) {
  const Blocks blocks = read_blocks(op, "paddings");
  if (op.failed()) return;
  const ValueId padded = pad_blocks(op, blocks);
  if (op.failed()) return;
  const Dims x = op.dims(padded);
  Dims apart{x[0]};
  Dims together{x[0]};
  std::vector<int> perm;
  for (std::size_t i = 0; i < blocks.m; ++i) {
    if (x[i + 1] % blocks.block[i] != 0)
      return op.invalid(fmt::format("padded size {} with block {}", x[i + 1], blocks.block[i]), "a multiple");
    apart.insert(apart.end(), {x[i + 1] / blocks.block[i], blocks.block[i]});
    together[0] = std::min(together[0] * blocks.block[i], kMaxElements + 1);
    together.push_back(x[i + 1] / blocks.block[i]);
    perm.push_back(static_cast<int>(2 * i + 2));
  }
  perm.push_back(0);
  for (std::size_t i = 0; i < blocks.m; ++i) perm.push_back(static_cast<int>(2 * i + 1));
  for (std::size_t i = blocks.m + 1; i < x.size(); ++i) {
    perm.push_back(static_cast<int>(apart.size()));
    apart.push_back(x[i]);
    together.push_back(x[i]);
  }
  op.result(0, op.reshape(op.transpose(op.reshape(padded, apart), perm), together));
}

void lower_batch_to_space_nd(Lowering& op) {
  const Blocks blocks = read_blocks(op, "crops");
  if (op.failed()) return;
  const Dims x = op.dims(op.in(0));
  const auto m = static_cast<int>(blocks.m);
  std::int64_t factor = 1;
  for (const std::int64_t b : blocks.block) factor = std::min(factor * b, kMaxElements + 1);
  if (x[0] % factor != 0) return op.invalid(fmt::format("batch {} with blocks of {}", x[0], factor), "a multiple");
  Dims apart(blocks.block);  // [b1..bm, N, s1..sm, rest]
  apart.push_back(x[0] / factor);
  apart.insert(apart.end(), x.begin() + 1, x.end());
  std::vector<int> perm{m};
  Dims together{x[0] / factor};
  for (int i = 0; i < m; ++i) {
    perm.insert(perm.end(), {m + 1 + i, i});
    together.push_back(x[static_cast<std::size_t>(i) + 1] * blocks.block[static_cast<std::size_t>(i)]);
  }
  for (int i = 2 * m + 1; i < static_cast<int>(apart.size()); ++i) perm.push_back(i);
  together.insert(together.end(), x.begin() + 1 + m, x.end());
  const ValueId joined = op.reshape(op.transpose(op.reshape(op.in(0), apart), perm), together);
  Dims starts(together.size(), 0);
  Dims sizes = together;
  for (std::size_t i = 0; i < blocks.m; ++i) {
    starts[i + 1] = blocks.before[i];
    sizes[i + 1] -= blocks.before[i] + blocks.after[i];
    if (sizes[i + 1] < 0) return op.invalid("crops beyond the image", "smaller crops");
    if (sizes[i + 1] == 0) starts[i + 1] = 0;
  }
  op.result(0, op.slice(joined, starts, sizes));
}

void lower_resize(Lowering& op, ops::ResizeMode mode, bool align_corners, bool half_pixel) {
  const Dims size = op.constant_operand(1, "size", 2);
  if (!op.require_rank(0, 4, 4)) return;
  if (align_corners && half_pixel) return op.unsupported("align_corners with half_pixel_centers", "either of them");
  const TensorDesc x = op.in_desc(0);
  if (!all_int32(size) || size[0] <= 0 || size[1] <= 0 || x.elements() == 0)
    return op.invalid(fmt::format("size {}x{}", size[0], size[1]), "positive sizes");
  ops::ResizeParams params;
  params.mode = mode;
  params.coordinates = align_corners ? ops::ResizeCoordinates::kAlignCorners
                       : half_pixel  ? ops::ResizeCoordinates::kHalfPixel
                                     : ops::ResizeCoordinates::kAsymmetric;
  // TFLite takes floor((i + 1/2) s) for half pixels, which is (i + 1/2) s - 1/2 rounded up at one half.
  params.nearest = align_corners || half_pixel ? ops::ResizeNearest::kRoundPreferCeil : ops::ResizeNearest::kFloor;
  params.sizes = int_list(Dims{x.dims[0], size[0], size[1], x.dims[3]});
  for (int i = 1; i <= 2; ++i) params.scales[i] = static_cast<float>(params.sizes.v[i]) / static_cast<float>(x.dims[i]);
  op.result(0, op.emit(ops::kResize, params, {op.in(0)}));
}

/// Pixels of the operand per pixel of the result, in 1/1024, rounded to nearest.
std::int32_t integer_scale(std::int64_t from, std::int64_t to, bool align_corners) {
  const bool between = align_corners && to > 1;
  const std::int64_t steps = between ? to - 1 : to;
  return static_cast<std::int32_t>(((from - (between ? 1 : 0)) * 1024 + steps / 2) / steps);
}

void lower_quantized_resize_bilinear(Lowering& op, bool align_corners, bool half_pixel) {
  constexpr std::int64_t kLargest = 1 << 20;
  const Dims size = op.constant_operand(1, "size", 2);
  if (!op.require_rank(0, 4, 4)) return;
  if (align_corners && half_pixel) return op.unsupported("align_corners with half_pixel_centers", "either of them");
  const Dims x = op.dims(op.in(0));
  if (size[0] <= 0 || size[1] <= 0 || std::max({size[0], size[1], x[1], x[2]}) > kLargest)
    return op.invalid(fmt::format("{}x{} resized to {}x{}", x[1], x[2], size[0], size[1]), "sizes of 1 to 2^20");
  const ops::ResizeBilinearQParams params{static_cast<std::int32_t>(size[0]), static_cast<std::int32_t>(size[1]),
                                          integer_scale(x[1], size[0], align_corners),
                                          integer_scale(x[2], size[1], align_corners), half_pixel ? 1 : 0};
  op.result(0, op.emit(ops::kResizeBilinearQ, params, {op.in(0)}));
}

void lower_resize_bilinear(Lowering& op) {
  const auto& o = op.options<schema::ResizeBilinearOptions>();
  if (op.in_type(0) == kI8) return lower_quantized_resize_bilinear(op, o.align_corners(), o.half_pixel_centers());
  if (op.require_type(0, {kF32})) lower_resize(op, ops::ResizeMode::kLinear, o.align_corners(), o.half_pixel_centers());
}

void lower_resize_nearest_neighbor(Lowering& op) {
  const auto& o = op.options<schema::ResizeNearestNeighborOptions>();
  if (op.require_type(0, {kF32, kI8, kU8, kI16}))
    lower_resize(op, ops::ResizeMode::kNearest, o.align_corners(), o.half_pixel_centers());
}

using enum schema::BuiltinOperator;

constexpr OperatorRow kShapeOperators[] = {
    {RESHAPE, 1, 2, 1, lower_reshape},
    {SQUEEZE, 1, 1, 1, lower_squeeze},
    {EXPAND_DIMS, 2, 2, 1, lower_expand_dims},
    {SHAPE, 1, 1, 1, lower_shape_of},
    {RANK, 1, 1, 1, lower_rank},
    {TRANSPOSE, 2, 2, 1, lower_transpose},
    {BROADCAST_TO, 2, 2, 1, lower_broadcast_to},
    {BROADCAST_ARGS, 2, 2, 1, lower_broadcast_args},
    {FILL, 2, 2, 1, lower_fill},
    {ZEROS_LIKE, 1, 1, 1, lower_zeros_like},
    {RANGE, 3, 3, 1, lower_range},
    {TILE, 2, 2, 1, lower_tile},
    {SPACE_TO_DEPTH, 1, 1, 1, lower_space_to_depth},
    {DEPTH_TO_SPACE, 1, 1, 1, lower_depth_to_space},
    {SPACE_TO_BATCH_ND, 3, 3, 1, lower_space_to_batch_nd},
    {BATCH_TO_SPACE_ND, 3, 3, 1, lower_batch_to_space_nd},
    {RESIZE_BILINEAR, 2, 2, 1, lower_resize_bilinear},
    {RESIZE_NEAREST_NEIGHBOR, 2, 2, 1, lower_resize_nearest_neighbor},
};

}  // namespace

std::span<const OperatorRow> shape_operators() noexcept { return kShapeOperators; }

}  // namespace bantam::import::tflite
