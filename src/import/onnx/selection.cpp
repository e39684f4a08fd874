// ONNX operators that find things: how many there are depends on the data. The core operators give results with room
// for the most, and the number; what follows reads the part that is filled (import/onnx/measured.h).
#include <fmt/format.h>

#include <algorithm>

#include "import/onnx/lowering.h"
#include "ops/data/gather/gather.h"
#include "ops/data/nonzero/nonzero.h"
#include "ops/data/unique/unique.h"
#include "ops/vision/non_max_suppression/non_max_suppression.h"

namespace bantam::import::onnx {
namespace {

/// Coordinates of the elements that are not zero, one row each.
ValueId positions(NodeLowering& n, ValueId x) {
  const auto found = n.find_items(ops::kNonzero, ops::NonzeroParams{}, {x}, n.desc(x).elements());
  return n.slice(found.results[0], 0, 0, found.count);
}

void lower_nonzero(NodeLowering& n) {
  const ValueId x = n.input(0);
  if (n.failed()) return;
  n.set_output(0, n.transpose(positions(n, x), {1, 0}));
}

void lower_compress(NodeLowering& n) {
  ValueId x = n.input(0);
  const ValueId condition = n.input(1);
  if (!n.has_attr("axis")) x = n.reshape(x, {n.desc(x).elements()});
  const int axis = n.axis(n.attr_int("axis", 0), n.rank(x));
  if (n.failed()) return;
  const TensorDesc& c = n.desc(condition);
  if (c.rank != 1 || c.dims[0] > n.desc(x).dims[axis])
    return n.fail(fmt::format("operand 1 (condition) is {}, expected at most one element for each along axis {} of {}",
                              format_desc(c), axis, format_desc(n.desc(x))),
                  StatusCode::kInvalidModel);
  const ValueId rows = positions(n, condition);
  const ValueId indices = n.reshape(rows, {n.desc(rows).dims[0]});
  n.set_output(0, n.emit(ops::kGather, ops::GatherParams{axis, 0}, {x, indices}));
}

/// A type that `unique` orders like `type`.
ElementType ordered_type(ElementType type) {
  switch (type) {
    case ElementType::kBool: return ElementType::kU8;
    case ElementType::kF16:
    case ElementType::kBF16: return ElementType::kF32;
    case ElementType::kI16:
    case ElementType::kU16: return ElementType::kI32;
    case ElementType::kU32: return ElementType::kI64;
    default: return type;
  }
}

void lower_unique(NodeLowering& n) {
  ValueId x = n.input(0);
  if (!n.has_attr("axis")) x = n.reshape(x, {n.desc(x).elements()});
  ops::UniqueParams params;
  params.axis = n.axis(n.attr_int("axis", 0), n.rank(x));
  params.sorted = n.attr_int("sorted", 1) != 0 ? 1 : 0;
  if (n.failed()) return;
  const std::int64_t length = n.desc(x).dims[params.axis];
  const auto found = n.find_items(ops::kUnique, params, {n.cast(x, ordered_type(n.type(x)))}, length);
  const ValueId first = n.slice(found.results[0], 0, 0, found.count);
  if (n.wants(0)) n.set_output(0, n.emit(ops::kGather, ops::GatherParams{params.axis, 0}, {x, first}));
  if (n.wants(1)) n.set_output(1, first);
  if (n.wants(2)) n.set_output(2, found.results[1]);
  if (n.wants(3)) n.set_output(3, n.slice(found.results[2], 0, 0, found.count));
}

/// The most boxes that can be selected: what the operand says where it is a constant, else all.
std::int64_t most_per_class(NodeLowering& n, ValueId most, std::int64_t boxes) {
  if (most == kNone) return 0;
  const auto known = graph::constant_integers(n.builder().graph(), most);
  return known && known->size() == 1 ? std::clamp<std::int64_t>(known->front(), 0, boxes) : boxes;
}

void lower_non_max_suppression(NodeLowering& n) {
  const ValueId boxes = n.cast(n.input(0), ElementType::kF32);
  const ValueId scores = n.cast(n.input(1), ElementType::kF32);
  const ValueId most = n.optional(2);
  const ValueId iou = n.has(3) ? n.cast(n.input(3), ElementType::kF32) : kNone;
  const ValueId score = n.has(4) ? n.cast(n.input(4), ElementType::kF32) : kNone;
  ops::NonMaxSuppressionParams params;
  params.center_point_box = n.attr_int("center_point_box", 0) != 0 ? 1 : 0;
  if (n.failed()) return;
  if (n.rank(boxes) != 3 || n.rank(scores) != 3)
    return n.fail(fmt::format("boxes and scores are {} and {}, expected [batch, boxes, 4] and [batch, classes, boxes]",
                              format_desc(n.desc(boxes)), format_desc(n.desc(scores))),
                  StatusCode::kInvalidModel);
  const TensorDesc& s = n.desc(scores);
  // Both factors are sizes of tensors; what leaves the limits is refused by the operator.
  const std::int64_t lists = std::int64_t{s.dims[0]} * s.dims[1];
  const auto found = n.find_items(ops::kNonMaxSuppression, params, {boxes, scores, most, iou, score},
                                  lists * most_per_class(n, most, s.dims[2]));
  n.set_output(0, n.slice(found.results[0], 0, 0, found.count));
}

constexpr OperatorRow kSelectionOperators[] = {
    {"", "Compress", 9, kNewest, lower_compress},
    {"", "NonMaxSuppression", 10, kNewest, lower_non_max_suppression},
    {"", "NonZero", 9, kNewest, lower_nonzero},
    {"", "Unique", 11, kNewest, lower_unique},
};

}  // namespace

std::span<const OperatorRow> selection_operators() { return kSelectionOperators; }

}  // namespace bantam::import::onnx
