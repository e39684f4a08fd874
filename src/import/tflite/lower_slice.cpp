// Operators that cut, join, pad and pick elements.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/shape.h"
#include "import/tflite/operators.h"
#include "ops/data/expand/expand.h"
#include "ops/data/gather/gather.h"
#include "ops/data/gather_nd/gather_nd.h"
#include "ops/data/one_hot/one_hot.h"
#include "ops/data/pad/pad.h"
#include "ops/data/scatter_nd/scatter_nd.h"
#include "ops/data/update_slice/update_slice.h"
#include "ops/elementwise/dequantize/dequantize.h"

namespace bantam::import::tflite {
namespace {

using enum ElementType;

bool is_quantized(const Lowering& op, int i) { return type_range(op.in_type(i)).has_value() && op.is_quantized_in(i); }

/// Operand `i` on the scale of the result.
ValueId on_result_scale(Lowering& op, int i) {
  if (!is_quantized(op, i)) return op.in(i);
  const Affine input = op.in_affine(i);
  const Affine output = op.out_affine();
  if (op.failed() || input == output) return op.in(i);
  if (op.in_type(i) == kU8) return op.lookup(op.in(i), kU8, concatenation_table(input, output));
  return op.in(i);  // the format joins stored values
}

void lower_concatenation(Lowering& op) {
  const auto& o = op.options<schema::ConcatenationOptions>();
  const int axis = op.axis(o.axis(), op.rank(0));
  std::vector<ValueId> parts;
  for (int i = 0; i < op.operands() && !op.failed(); ++i) {
    if (!op.has(i)) return op.invalid(fmt::format("operand {} is absent", i), "a tensor");
    parts.push_back(on_result_scale(op, i));
  }
  if (o.activation() != schema::Activation::NONE && op.in_type(0) != kF32)
    return op.unsupported("a fused activation on integers", "NONE");
  op.result(0, op.apply(op.concat(std::move(parts), axis), op.float_activation(o.activation())));
}

void lower_slice(Lowering& op) {
  const auto rank = static_cast<std::size_t>(op.rank(0));
  const Dims starts = op.constant_operand(1, "begin", rank);
  Dims sizes = op.constant_operand(2, "size", rank);
  const Dims x = op.dims(op.in(0));
  for (std::size_t i = 0; i < rank && !op.failed(); ++i) {
    const bool inside = starts[i] >= 0 && starts[i] <= x[i];
    if (inside && sizes[i] == -1) sizes[i] = x[i] - starts[i];
    if (!inside || sizes[i] < 0 || sizes[i] > x[i] - starts[i])
      op.invalid(fmt::format("begin {} and size {} of dimension {}", starts[i], sizes[i], x[i]), "a part of it");
  }
  if (op.failed()) return;
  Dims first = starts;
  for (std::size_t i = 0; i < rank; ++i)
    if (sizes[i] == 0) first[i] = 0;
  op.result(0, op.slice(op.in(0), first, sizes));
}

/// A strided slice after its masks were spread over the operand's dimensions.
struct StridedSlice {
  Dims starts;
  Dims sizes;
  Dims steps;
  Dims shape;  ///< of the result: shrunk axes gone, new axes inserted
};

/// One dimension of a Python slice. `begin` and `end` are absent where a mask says so.
void slice_dimension(StridedSlice& s, std::int64_t dim, std::optional<std::int64_t> begin,
                     std::optional<std::int64_t> end, std::int64_t step) {
  const std::int64_t lowest = step > 0 ? 0 : -1;
  const std::int64_t highest = step > 0 ? dim : dim - 1;
  const auto place = [&](std::int64_t p) { return std::clamp(p < 0 ? p + dim : p, lowest, highest); };
  const std::int64_t first = begin ? place(*begin) : (step > 0 ? 0 : dim - 1);
  const std::int64_t last = end ? place(*end) : (step > 0 ? dim : -1);
  const std::int64_t distance = step > 0 ? last - first : first - last;
  const std::int64_t stride = step > 0 ? step : -step;
  const std::int64_t size = distance > 0 ? (distance - 1) / stride + 1 : 0;
  s.starts.push_back(size == 0 ? 0 : first);
  s.sizes.push_back(size);
  s.steps.push_back(size <= 1 ? 1 : step);
  s.shape.push_back(size);
}

bool bit(std::int32_t mask, std::size_t i) { return i < 32 && ((static_cast<std::uint32_t>(mask) >> i) & 1U) != 0; }

StridedSlice spread_masks(Lowering& op, const schema::StridedSliceOptions& o) {
  StridedSlice s;
  const Dims begin = op.constant_operand(1, "begin");
  const Dims end = op.constant_operand(2, "end", begin.size());
  const Dims steps = op.constant_operand(3, "strides", begin.size());
  const Dims x = op.dims(op.in(0));
  if (op.failed()) return s;
  std::size_t named = 0;  // dimensions of the operand that the lists speak of
  std::size_t ellipses = 0;
  for (std::size_t i = 0; i < begin.size(); ++i) {
    if (bit(o.ellipsis_mask(), i)) {
      ++ellipses;
    } else if (!bit(o.new_axis_mask(), i)) {
      ++named;
    }
  }
  if (named > x.size() || ellipses > 1) {
    op.invalid(fmt::format("{} slices and {} ellipses for rank {}", named, ellipses, x.size()), "at most its rank");
    return s;
  }
  std::size_t d = 0;
  const auto take_whole = [&](std::size_t n) {
    for (; n > 0; --n, ++d) slice_dimension(s, x[d], std::nullopt, std::nullopt, 1);
  };
  for (std::size_t i = 0; i < begin.size(); ++i) {
    if (bit(o.ellipsis_mask(), i)) {
      take_whole(x.size() - named);
    } else if (bit(o.new_axis_mask(), i)) {
      s.shape.push_back(1);
    } else if (bit(o.shrink_axis_mask(), i)) {
      const std::int64_t at = begin[i] < 0 ? begin[i] + x[d] : begin[i];
      if (at < 0 || at >= x[d]) op.invalid(fmt::format("index {} of dimension {}", begin[i], x[d]), "one inside");
      s.starts.push_back(at);
      s.sizes.push_back(1);
      s.steps.push_back(1);
      ++d;
    } else {
      if (steps[i] == 0 || steps[i] != static_cast<std::int32_t>(steps[i]))
        op.invalid(fmt::format("stride {}", steps[i]), "a non-zero stride");
      if (op.failed()) return s;
      const std::int64_t last = o.offset() ? begin[i] + end[i] : end[i];
      slice_dimension(s, x[d++], bit(o.begin_mask(), i) ? std::nullopt : std::optional(begin[i]),
                      bit(o.end_mask(), i) ? std::nullopt : std::optional(last), steps[i]);
    }
  }
  take_whole(x.size() - d);
  return s;
}

/// Bounds reach far beyond any tensor, but their sums must not leave int64.
bool bounds_are_sane(Lowering& op) {
  for (int i = 1; i <= 2; ++i)
    for (const std::int64_t v : op.constant_operand(i, i == 1 ? "begin" : "end"))
      if (v != static_cast<std::int32_t>(v)) op.invalid(fmt::format("bound {}", v), "a 32-bit number");
  return !op.failed();
}

void lower_strided_slice(Lowering& op) {
  if (!bounds_are_sane(op)) return;
  const StridedSlice s = spread_masks(op, op.options<schema::StridedSliceOptions>());
  if (!op.failed()) op.result(0, op.reshape(op.slice(op.in(0), s.starts, s.sizes, s.steps), s.shape));
}

void split_into(Lowering& op, ValueId x, int axis, const Dims& sizes) {
  std::int64_t start = 0;
  for (std::size_t i = 0; i < sizes.size() && !op.failed(); ++i) {
    op.result(static_cast<int>(i), op.slice_axis(x, axis, sizes[i] == 0 ? 0 : start, sizes[i]));
    start += sizes[i];
  }
}

void lower_split(Lowering& op) {
  const Dims axis_operand = op.constant_operand(0, "axis", 1);
  const int axis = op.axis(axis_operand[0], op.rank(1));
  if (op.failed()) return;
  const std::int64_t dim = op.in_desc(1).dims[axis];
  const std::int64_t parts = op.results();
  // Operators have at least one result here: Importer::lower has seen to it.
  if (dim % parts != 0 ||  // NOLINT(clang-analyzer-core.DivideZero)
      op.options<schema::SplitOptions>().num_splits() != parts)
    return op.invalid(fmt::format("dimension {} split into {}", dim, parts), "equal parts, one per result");
  split_into(op, op.in(1), axis, Dims(static_cast<std::size_t>(parts), dim / parts));
}

void lower_split_v(Lowering& op) {
  Dims sizes = op.constant_operand(1, "size_splits", static_cast<std::size_t>(op.results()));
  const Dims axis_operand = op.constant_operand(2, "axis", 1);
  const int axis = op.axis(axis_operand[0], op.rank(0));
  if (op.failed()) return;
  const std::int64_t dim = op.in_desc(0).dims[axis];
  std::int64_t listed = 0;
  for (const std::int64_t s : sizes) {
    if (s < -1 || s > dim) return op.invalid(fmt::format("part {} of dimension {}", s, dim), "a size within it");
    if (s > 0) listed += s;  // at most one dimension per result: no overflow
  }
  if (const auto rest = std::find(sizes.begin(), sizes.end(), -1); rest != sizes.end()) {
    *rest = dim - listed;
    listed = dim;
  }
  if (listed != dim || std::any_of(sizes.begin(), sizes.end(), [](auto s) { return s < 0; }))
    return op.invalid(fmt::format("parts of {} together", listed), std::to_string(dim));
  split_into(op, op.in(0), axis, sizes);
}

void lower_pack(Lowering& op) {
  const auto& o = op.options<schema::PackOptions>();
  const int axis = op.axis(o.axis(), op.rank(0) + 1);
  std::vector<ValueId> parts;
  for (int i = 0; i < op.operands() && !op.failed(); ++i) {
    if (!op.has(i) || op.rank(i) != op.rank(0)) return op.invalid(fmt::format("operand {} differs", i), "equal shapes");
    Dims shape = op.dims(op.in(i));
    shape.insert(shape.begin() + axis, 1);
    parts.push_back(op.reshape(op.in(i), shape));
  }
  op.result(0, op.concat(std::move(parts), axis));
}

void lower_unpack(Lowering& op) {
  const int axis = op.axis(op.options<schema::UnpackOptions>().axis(), op.rank(0));
  if (op.failed()) return;
  Dims shape = op.dims(op.in(0));
  if (shape[static_cast<std::size_t>(axis)] != op.results())
    return op.invalid(fmt::format("dimension {} with {} results", shape[static_cast<std::size_t>(axis)], op.results()),
                      "one result per element");
  shape.erase(shape.begin() + axis);
  for (int i = 0; i < op.results(); ++i) op.result(i, op.reshape(op.slice_axis(op.in(0), axis, i, 1), shape));
}

void lower_reverse_v2(Lowering& op) {
  const auto axes = op.axes(op.constant_operand(1, "axis"), op.rank(0));
  if (op.failed()) return;
  const Dims sizes = op.dims(op.in(0));
  Dims starts(sizes.size(), 0);
  Dims steps(sizes.size(), 1);
  for (const int a : axes) {
    const auto i = static_cast<std::size_t>(a);
    if (sizes[i] <= 1) continue;
    starts[i] = sizes[i] - 1;
    steps[i] = -1;
  }
  op.result(0, op.slice(op.in(0), starts, sizes, steps));
}

/// The [rank,2] operand of the padding operators.
ops::PadParams pad_params(Lowering& op, ops::PadMode mode) {
  ops::PadParams params;
  params.mode = mode;
  const Dims pairs = op.constant_operand(1, "paddings", 2 * static_cast<std::size_t>(op.rank(0)));
  params.before.size = params.after.size = op.rank(0);
  for (int i = 0; i < op.rank(0) && !op.failed(); ++i) {
    const std::int64_t before = pairs[2 * static_cast<std::size_t>(i)];
    const std::int64_t after = pairs[2 * static_cast<std::size_t>(i) + 1];
    if (before < 0 || after < 0 || before > kMaxElements || after > kMaxElements)
      op.invalid(fmt::format("paddings {}, {}", before, after), "counts");
    params.before.v[i] = static_cast<std::int32_t>(before);
    params.after.v[i] = static_cast<std::int32_t>(after);
  }
  return params;
}

/// PAD fills with real zero, PADV2 with operand 2.
void lower_pad(Lowering& op) {
  const ops::PadParams params = pad_params(op, ops::PadMode::kConstant);
  std::vector<ValueId> operands{op.in(0)};
  if (is_quantized(op, 0)) op.require_same_quantization(0);
  if (op.has(2)) {
    if (op.in_desc(2).elements() != 1) op.invalid("a padding value of several elements", "one element");
    operands.push_back(op.reshape(op.in(2), {}));
  } else if (is_quantized(op, 0)) {
    operands.push_back(op.scalar(op.in_type(0), op.out_affine().zero_point));
  }
  op.result(0, op.emit(ops::kPad, params, std::move(operands)));
}

void lower_mirror_pad(Lowering& op) {
  const bool symmetric = op.options<schema::MirrorPadOptions>().mode() == schema::MirrorPadMode::SYMMETRIC;
  const auto params = pad_params(op, symmetric ? ops::PadMode::kSymmetric : ops::PadMode::kReflect);
  op.result(0, op.emit(ops::kPad, params, {op.in(0)}));
}

/// Core operators take indices of 32 and 64 bits.
ValueId indices(Lowering& op, int i) {
  return op.require_type(i, {kI16, kI32, kI64}) ? (op.in_type(i) == kI16 ? op.cast(op.in(i), kI32) : op.in(i))
                                                : kNoValue;
}

void lower_gather(Lowering& op) {
  const auto& o = op.options<schema::GatherOptions>();
  ops::GatherParams params;
  params.axis = op.axis(o.axis(), op.rank(0));
  params.batch_dims = o.batch_dims() < 0 ? o.batch_dims() + op.rank(1) : o.batch_dims();
  op.result(0, op.emit(ops::kGather, params, {op.in(0), indices(op, 1)}));
}

void lower_gather_nd(Lowering& op) {
  op.result(0, op.emit(ops::kGatherNd, ops::GatherNdParams{}, {op.in(0), indices(op, 1)}));
}

/// Rows of a table; 8-bit ones become numbers where the result is float.
void lower_embedding_lookup(Lowering& op) {
  if (!op.require_rank(0, 1, 1) || !op.require_type(0, {kI32}) || !op.require_rank(1, 1, kMaxRank)) return;
  ops::GatherParams params;
  const ValueId rows = op.emit(ops::kGather, params, {op.in(1), op.in(0)});
  if (op.in_type(1) != kI8 || op.out_type() != kF32) return op.result(0, rows);
  const Affine table = op.in_affine(1);
  if (op.failed()) return;
  if (table.zero_point != 0) return op.unsupported(fmt::format("a table with zero point {}", table.zero_point), "0");
  op.result(0, op.emit(ops::kDequantize, ops::DequantizeParams{}, {rows, op.scalar(kF32, table.scale)}));
}

void lower_dynamic_update_slice(Lowering& op) {
  op.result(0, op.emit(ops::kUpdateSlice, {op.in(0), op.in(1), op.in(2)}));
}

/// Updates that meet add up, as TFLite has it.
void lower_scatter_nd(Lowering& op) {
  const Dims shape = op.constant_operand(2, "shape");
  if (!op.require_type(1, {kF32, kI8, kU8, kI32, kI64})) return;
  if (shape.size() > static_cast<std::size_t>(kMaxRank) ||
      std::any_of(shape.begin(), shape.end(), [](auto d) { return d < 0 || d > kMaxElements; }))
    return op.invalid(fmt::format("a shape of {} dimensions", shape.size()), "a valid shape");
  const ValueId zeros = op.emit(ops::kExpand, ops::ExpandParams{int_list(shape)}, {op.scalar(op.in_type(1), 0.0)});
  op.result(0, op.emit(ops::kScatterNd, ops::ScatterNdParams{ops::ScatterReduction::kAdd},
                       {zeros, indices(op, 0), op.in(1)}));
}

void lower_one_hot(Lowering& op) {
  const Dims depth = op.constant_operand(1, "depth", 1);
  ops::OneHotParams params;
  params.axis = op.axis(op.options<schema::OneHotOptions>().axis(), op.rank(0) + 1);
  if (depth[0] < 0 || depth[0] > kMaxElements) return op.invalid(fmt::format("depth {}", depth[0]), "a count");
  params.depth = static_cast<std::int32_t>(depth[0]);
  op.result(0, op.emit(ops::kOneHot, params, {indices(op, 0), op.reshape(op.in(3), {}), op.reshape(op.in(2), {})}));
}

using enum schema::BuiltinOperator;

constexpr OperatorRow kSliceOperators[] = {
    {CONCATENATION, 1, kAnyNumber, 1, lower_concatenation},
    {SLICE, 3, 3, 1, lower_slice},
    {STRIDED_SLICE, 4, 4, 1, lower_strided_slice},
    {SPLIT, 2, 2, kAnyNumber, lower_split},
    {SPLIT_V, 3, 3, kAnyNumber, lower_split_v},
    {PACK, 1, kAnyNumber, 1, lower_pack},
    {UNPACK, 1, 1, kAnyNumber, lower_unpack},
    {REVERSE_V2, 2, 2, 1, lower_reverse_v2},
    {PAD, 2, 2, 1, lower_pad},
    {PADV2, 3, 3, 1, lower_pad},
    {MIRROR_PAD, 2, 2, 1, lower_mirror_pad},
    {GATHER, 2, 2, 1, lower_gather},
    {GATHER_ND, 2, 2, 1, lower_gather_nd},
    {EMBEDDING_LOOKUP, 2, 2, 1, lower_embedding_lookup},
    {DYNAMIC_UPDATE_SLICE, 3, 3, 1, lower_dynamic_update_slice},
    {SCATTER_ND, 3, 3, 1, lower_scatter_nd},
    {ONE_HOT, 4, 4, 1, lower_one_hot},
};

}  // namespace

std::span<const OperatorRow> slice_operators() noexcept { return kSliceOperators; }

}  // namespace bantam::import::tflite
