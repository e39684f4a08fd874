// ONNX operators that take parts of tensors or join them: Slice, Split, Concat, Pad, Tile ...
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

#include "import/onnx/lowering.h"
#include "ops/data/gather/gather.h"
#include "ops/data/pad/pad.h"
#include "ops/data/reverse_sequence/reverse_sequence.h"
#include "ops/data/slice/slice.h"
#include "ops/data/tile/tile.h"

namespace bantam::import::onnx {
namespace {

struct SliceRange {
  std::int32_t start = 0;
  std::int32_t step = 1;
  std::int32_t size = 0;
};

/// Python's rules: negative positions count from the end, positions beyond the ends are clamped.
SliceRange clamp_range(std::int64_t dim, std::int64_t start, std::int64_t end, std::int64_t step) {
  constexpr std::int64_t kFar = std::numeric_limits<std::int32_t>::max();
  step = std::clamp(step, -kFar, kFar);
  if (start < 0) start += dim;
  if (end < 0) end += dim;
  SliceRange r;
  r.step = static_cast<std::int32_t>(step);
  if (dim == 0) return r;
  std::int64_t size = 0;
  if (step > 0) {
    start = std::clamp<std::int64_t>(start, 0, dim);
    end = std::clamp<std::int64_t>(end, 0, dim);
    size = (end - start + step - 1) / step;
  } else {
    start = std::clamp<std::int64_t>(start, 0, dim - 1);
    end = std::clamp<std::int64_t>(end, -1, dim - 1);
    size = (start - end - step - 1) / -step;
  }
  r.size = static_cast<std::int32_t>(std::max<std::int64_t>(size, 0));
  // Where the size is zero any start will do; this one follows the same rule at every size.
  r.start = static_cast<std::int32_t>(step > 0 || r.size > 0 ? start : 0);
  return r;
}

void emit_slice(NodeLowering& n, ValueId x, const std::vector<std::int64_t>& starts,
                const std::vector<std::int64_t>& ends, std::vector<std::int64_t> axes,
                const std::vector<std::int64_t>& steps) {
  if (n.failed()) return;
  if (axes.empty()) {
    axes.resize(starts.size());
    std::iota(axes.begin(), axes.end(), 0);
  }
  if (ends.size() != starts.size() || axes.size() != starts.size() || (!steps.empty() && steps.size() != starts.size()))
    return n.fail(fmt::format("{} starts, {} ends, {} axes and {} steps do not belong together", starts.size(),
                              ends.size(), axes.size(), steps.size()),
                  StatusCode::kInvalidModel);
  n.axes(axes, n.rank(x));  // refuses repeated and wrong axes
  if (n.failed()) return;
  const TensorDesc& d = n.desc(x);
  ops::SliceParams params;
  params.starts.size = params.steps.size = params.sizes.size = d.rank;
  for (int i = 0; i < d.rank; ++i) {
    params.steps.v[i] = 1;
    params.sizes.v[i] = d.dims[i];
  }
  bool whole = true;
  for (std::size_t k = 0; k < starts.size(); ++k) {
    const std::int64_t step = steps.empty() ? 1 : steps[k];
    if (step == 0) return n.fail("a step is zero", StatusCode::kInvalidModel);
    const int axis = n.axis(axes[k], d.rank);
    const SliceRange r = clamp_range(d.dims[axis], starts[k], ends[k], step);
    params.starts.v[axis] = r.start;
    params.steps.v[axis] = r.step;
    params.sizes.v[axis] = r.size;
    whole = whole && r.step == 1 && r.size == d.dims[axis];
  }
  n.set_output(0, whole && !n.measures_sizes() ? x : n.emit(ops::kSlice, params, {x}));
}

void lower_slice_attributes(NodeLowering& n) {
  emit_slice(n, n.input(0), n.attr_ints("starts"), n.attr_ints("ends"), n.attr_ints("axes"), {});
}

/// A window of constant size whose start is computed at run time becomes a gather of consecutive indices. Where ONNX
/// would clamp a window that leaves the tensor (and so change the size of the result), the gather reports a fault;
/// a start between -dim and -1 reads from the end.
ValueId moving_window(NodeLowering& n, ValueId x, int axis, ValueId start, std::int64_t size) {
  if (size > n.desc(x).dims[axis]) {
    n.fail(fmt::format("a window of {} does not fit axis {} of {}", size, axis, format_desc(n.desc(x))));
    return kNone;
  }
  std::vector<std::int64_t> steps_ahead(static_cast<std::size_t>(size));
  std::iota(steps_ahead.begin(), steps_ahead.end(), 0);
  const ValueId from = n.cast(n.reshape(start, {1}), ElementType::kI64);
  const ValueId indices = n.binary(ops::BinaryFunction::kAdd, from, n.integers_constant(steps_ahead));
  return n.emit(ops::kGather, ops::GatherParams{axis, 0}, {x, indices});
}

/// Element k of an integer tensor as a scalar.
ValueId element_of(NodeLowering& n, ValueId id, std::int64_t k) {
  const ValueId flat = n.reshape(n.cast(id, ElementType::kI64), {n.desc(id).elements()});
  return n.failed() ? kNone : n.reshape(n.slice(flat, 0, k, 1), {});
}

/// A position within an axis as a scalar that is computed at run time: from the end when it is negative, clamped.
ValueId clamped_position(NodeLowering& n, ValueId position, std::int64_t dim) {
  const auto number = [&](std::int64_t value) { return n.reshape(n.integers_constant(std::array{value}), {}); };
  const ValueId negative = n.cast(n.binary(ops::BinaryFunction::kLess, position, number(0)), ElementType::kI64);
  const ValueId from_end = n.binary(ops::BinaryFunction::kMul, negative, number(dim));
  const ValueId counted = n.binary(ops::BinaryFunction::kAdd, position, from_end);
  return n.binary(ops::BinaryFunction::kMax, n.binary(ops::BinaryFunction::kMin, counted, number(dim)), number(0));
}

/// The part from start to end along one axis, element k of operands 1 and 2, one of which is computed at run time. Its
/// size is measured, except where both move together.
ValueId slice_at_run_time(NodeLowering& n, ValueId x, int axis, std::int64_t k) {
  const ValueId starts = n.input(1);
  const ValueId ends = n.input(2);
  const auto [first, from] = n.trace_element(starts, k);
  const auto [last, to] = n.trace_element(ends, k);
  std::int64_t size = 0;
  if (first != kNone && first == last && !__builtin_sub_overflow(to, from, &size) && size >= 0)
    return moving_window(n, x, axis, element_of(n, starts, k), size);
  const std::int64_t dim = n.desc(x).dims[axis];
  const auto end = last == kNone ? std::optional(to) : n.known_size(2, ends, k);
  if (first == kNone && end) {
    const SliceRange r = clamp_range(dim, from, *end, 1);
    return n.slice(x, axis, r.start, r.size);
  }
  const ValueId begin = clamped_position(n, element_of(n, starts, k), dim);
  const ValueId length = n.binary(ops::BinaryFunction::kSub, clamped_position(n, element_of(n, ends, k), dim), begin);
  const ValueId positive = n.binary(ops::BinaryFunction::kMax, length, n.scalar(ElementType::kI64, 0));
  const std::int64_t constant_start = clamp_range(dim, from, dim, 1).start;
  size = n.size_element(2, "ends", positive, 0, first == kNone ? dim - constant_start : dim);
  if (n.failed()) return kNone;
  return first == kNone ? n.slice(x, axis, constant_start, size) : moving_window(n, x, axis, begin, size);
}

void lower_slice_at_run_time(NodeLowering& n, const std::vector<std::int64_t>& steps) {
  ValueId x = n.input(0);
  const std::int64_t count = n.desc(n.input(1)).elements();
  auto axes = n.has(3) ? n.integers(3, "axes") : std::vector<std::int64_t>();
  if (n.failed()) return;
  if (!n.has(3)) axes.resize(static_cast<std::size_t>(std::min<std::int64_t>(count, kMaxRank)));
  if (!n.has(3)) std::iota(axes.begin(), axes.end(), 0);
  if (n.desc(n.input(2)).elements() != count || static_cast<std::int64_t>(axes.size()) != count)
    return n.fail("starts, ends and axes do not belong together", StatusCode::kInvalidModel);
  if (std::ranges::any_of(steps, [](std::int64_t step) { return step != 1; }))
    return n.fail("starts and ends that are computed at run time are supported with steps of 1 only");
  n.axes(axes, n.rank(x));  // refuses repeated and wrong axes
  for (std::size_t k = 0; k < axes.size() && !n.failed(); ++k)
    x = slice_at_run_time(n, x, n.axis(axes[k], n.rank(x)), static_cast<std::int64_t>(k));
  n.set_output(0, x);
}

void lower_slice(NodeLowering& n) {
  const ValueId x = n.input(0);
  const ValueId start = n.size_of(n.input(1));
  const ValueId end = n.size_of(n.input(2));
  if (n.failed()) return;
  if (!n.is_constant(start) || !n.is_constant(end))
    return lower_slice_at_run_time(n, n.has(4) ? n.integers(4, "steps") : std::vector<std::int64_t>());
  const auto axes = n.has(3) ? n.integers(3, "axes") : std::vector<std::int64_t>();
  const auto steps = n.has(4) ? n.integers(4, "steps") : std::vector<std::int64_t>();
  emit_slice(n, x, n.integers(1, "starts"), n.integers(2, "ends"), axes, steps);
}

/// Sizes of the parts: listed as attribute or operand, or equal (the last smaller when they do not come out even).
std::vector<std::int64_t> split_sizes(NodeLowering& n, std::int64_t dim) {
  if (n.has_attr("split")) return n.attr_ints("split");
  if (n.has(1)) return n.integers(1, "split");
  const std::int64_t parts = n.attr_int("num_outputs", n.outputs());
  if (parts < 1 || parts != n.outputs()) {
    n.fail(fmt::format("attribute 'num_outputs' = {}, but there are {} results", parts, n.outputs()),
           StatusCode::kInvalidModel);
    return {};
  }
  const std::int64_t size = (dim + parts - 1) / parts;
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(parts), size);
  sizes.back() = dim - size * (parts - 1);
  return sizes;
}

void lower_split(NodeLowering& n) {
  const ValueId x = n.input(0);
  const int axis = n.axis(n.attr_int("axis", 0), n.rank(x));
  if (n.failed()) return;
  const std::int64_t dim = n.desc(x).dims[axis];
  const auto sizes = split_sizes(n, dim);
  if (n.failed()) return;
  std::int64_t sum = 0;
  for (const std::int64_t size : sizes)
    if (size < 0 || __builtin_add_overflow(sum, size, &sum)) sum = -1;
  if (sum != dim || sizes.size() != static_cast<std::size_t>(n.outputs()))
    return n.fail(fmt::format("parts of [{}] do not make up axis {} of {} with {} results", fmt::join(sizes, ","), axis,
                              format_desc(n.desc(x)), n.outputs()),
                  StatusCode::kInvalidModel);
  std::int64_t start = 0;
  for (int i = 0; i < n.outputs(); ++i) {
    const std::int64_t size = sizes[static_cast<std::size_t>(i)];
    if (n.wants(i)) n.set_output(i, n.slice(x, axis, start, size));
    start += size;
  }
}

void lower_concat(NodeLowering& n) {
  const ValueId first = n.input(0);
  const int axis = n.axis(n.attr_int("axis", 1), n.rank(first));
  std::vector<ValueId> parts;
  for (int i = 0; i < n.inputs(); ++i) parts.push_back(n.input(i));
  n.set_output(0, n.concat(std::move(parts), axis));
}

ops::PadMode pad_mode(NodeLowering& n) {
  const std::string_view mode = n.attr_string("mode", "constant");
  if (mode == "constant") return ops::PadMode::kConstant;
  if (mode == "reflect") return ops::PadMode::kReflect;
  if (mode == "edge") return ops::PadMode::kEdge;
  if (mode == "wrap") return ops::PadMode::kWrap;
  n.fail(
      fmt::format("attribute 'mode' = '{}' is not supported, only constant, reflect, edge and wrap", printable(mode)));
  return ops::PadMode::kConstant;
}

void emit_pad(NodeLowering& n, ValueId x, const std::vector<std::int64_t>& pads, const std::vector<std::int64_t>& axes,
              ValueId value) {
  const int rank = n.rank(x);
  ops::PadParams params;
  params.mode = pad_mode(n);
  params.before.size = params.after.size = rank;
  n.axes(axes, rank);  // refuses repeated and wrong axes
  if (n.failed()) return;
  if (pads.size() != 2 * axes.size())
    return n.fail(fmt::format("{} pads are given for {} axes", pads.size(), axes.size()), StatusCode::kInvalidModel);
  bool any = false;
  for (std::size_t k = 0; k < axes.size(); ++k) {
    const int axis = n.axis(axes[k], rank);
    const std::int64_t before = pads[k];
    const std::int64_t after = pads[k + axes.size()];
    constexpr std::int64_t kLimit = std::numeric_limits<std::int32_t>::max();
    if (before < -kLimit || before > kLimit || after < -kLimit || after > kLimit)
      return n.fail(fmt::format("pads of {} and {} are out of range", before, after), StatusCode::kInvalidModel);
    // What negative pads remove is gone before the rest is repeated.
    const std::int64_t kept =
        n.desc(x).dims[axis] + std::min<std::int64_t>(before, 0) + std::min<std::int64_t>(after, 0);
    const bool crop = params.mode != ops::PadMode::kConstant && kept >= 0 && (before < 0 || after < 0);
    if (crop) x = n.slice(x, axis, -std::min<std::int64_t>(before, 0), kept);
    params.before.v[axis] = static_cast<std::int32_t>(crop ? std::max<std::int64_t>(before, 0) : before);
    params.after.v[axis] = static_cast<std::int32_t>(crop ? std::max<std::int64_t>(after, 0) : after);
    any = any || params.before.v[axis] != 0 || params.after.v[axis] != 0;
  }
  n.set_output(0, any ? n.emit(ops::kPad, params, {x, value}) : x);
}

std::vector<std::int64_t> all_axes(const NodeLowering& n, ValueId x) {
  std::vector<std::int64_t> axes(static_cast<std::size_t>(n.rank(x)));
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

void lower_pad_attributes(NodeLowering& n) {
  const ValueId x = n.input(0);
  emit_pad(n, x, n.attr_ints("pads"), all_axes(n, x), n.scalar(n.type(x), n.attr_float("value", 0.0F)));
}

void lower_pad(NodeLowering& n) {
  const ValueId x = n.input(0);
  const ValueId value = n.has(2) ? n.reshape(n.input(2), {}) : kNone;
  emit_pad(n, x, n.integers(1, "pads"), n.has(3) ? n.integers(3, "axes") : all_axes(n, x), value);
}

/// Crops and pads around the centre; the odd element is removed and added at the end.
void lower_center_crop_pad(NodeLowering& n) {
  ValueId y = n.input(0);
  const auto shape = n.integers(1, "shape");
  const auto axes = n.has_attr("axes") ? n.attr_ints("axes") : all_axes(n, y);
  n.axes(axes, n.rank(y));  // refuses repeated and wrong axes
  if (n.failed()) return;
  if (shape.size() != axes.size())
    return n.fail(fmt::format("shape has {} entries for {} axes", shape.size(), axes.size()),
                  StatusCode::kInvalidModel);
  for (std::size_t i = 0; i < axes.size() && !n.failed(); ++i) {
    const int axis = n.axis(axes[i], n.rank(y));
    const std::int64_t dim = n.desc(y).dims[axis];
    if (shape[i] < 0) return n.fail(fmt::format("size {} is negative", shape[i]), StatusCode::kInvalidModel);
    y = shape[i] < dim ? n.slice(y, axis, (dim - shape[i]) / 2, shape[i])
                       : n.pad(y, axis, (shape[i] - dim) / 2, shape[i] - dim - (shape[i] - dim) / 2);
  }
  n.set_output(0, y);
}

void lower_reverse_sequence(NodeLowering& n) {
  const ValueId x = n.input(0);
  ops::ReverseSequenceParams params;
  params.batch_axis = n.axis(n.attr_int("batch_axis", 1), n.rank(x));
  params.time_axis = n.axis(n.attr_int("time_axis", 0), n.rank(x));
  n.set_output(0, n.emit(ops::kReverseSequence, params, {x, n.input(1)}));
}

void lower_tile(NodeLowering& n) {
  const ValueId x = n.input(0);
  const auto repeats = n.integers(1, "repeats");
  if (n.failed()) return;
  if (repeats.size() != static_cast<std::size_t>(n.rank(x)))
    return n.fail(fmt::format("{} repeats are given for {}", repeats.size(), format_desc(n.desc(x))),
                  StatusCode::kInvalidModel);
  ops::TileParams params;
  params.repeats.size = n.rank(x);
  bool any = false;
  for (std::size_t i = 0; i < repeats.size(); ++i) {
    if (repeats[i] < 0 || repeats[i] > std::numeric_limits<std::int32_t>::max())
      return n.fail(fmt::format("{} repeats are out of range", repeats[i]), StatusCode::kInvalidModel);
    params.repeats.v[i] = static_cast<std::int32_t>(repeats[i]);
    any = any || repeats[i] != 1;
  }
  n.set_output(0, any ? n.emit(ops::kTile, params, {x}) : x);
}

constexpr OperatorRow kSlicingOperators[] = {
    {"", "CenterCropPad", 18, kNewest, lower_center_crop_pad},
    {"", "Concat", 4, kNewest, lower_concat},
    {"", "Pad", 2, 10, lower_pad_attributes},
    {"", "Pad", 11, kNewest, lower_pad},
    {"", "ReverseSequence", 10, kNewest, lower_reverse_sequence},
    {"", "Slice", 1, 9, lower_slice_attributes},
    {"", "Slice", 10, kNewest, lower_slice},
    {"", "Split", 2, kNewest, lower_split},
    {"", "Tile", 6, kNewest, lower_tile},
};

}  // namespace

std::span<const OperatorRow> slicing_operators() { return kSlicingOperators; }

}  // namespace bantam::import::onnx
