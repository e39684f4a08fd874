// Turns gathers and scatters with regular constant indices into slices, concats and reshapes, and merges chains of
// them.
//
// Slices with step 1, concats and reshapes cost nothing when the planner makes them views; gathers and scatters always
// move bytes. Rules, all exact:
//   gather with indices that form an arithmetic sequence  -> slice (and reshape)
//   slice of slice                                        -> slice
//   slice within one operand of a concat                  -> slice of that operand
//   concat of neighbouring slices of one value            -> slice
//   scatter_nd that replaces a box spanning all axes but one -> concat of what is before, the updates, what is after
// Each rule looks backward at producers, so a sweep in execution order collapses chains. Checking constant indices is
// linear in their number.
#include <algorithm>
#include <numeric>

#include "ops/data/concat/concat.h"
#include "ops/data/gather/gather.h"
#include "ops/data/reshape/reshape.h"
#include "ops/data/scatter_nd/scatter_nd.h"
#include "ops/data/slice/slice.h"
#include "passes/list.h"
#include "passes/rewriter.h"

namespace bantam::passes {
namespace {

using graph::Node;
using graph::ValueId;
using Replacement = std::optional<ValueId>;

/// The slice that takes everything.
ops::SliceParams whole(const TensorDesc& x) {
  ops::SliceParams p;
  p.starts.size = p.steps.size = p.sizes.size = x.rank;
  std::fill_n(p.steps.v, x.rank, 1);
  std::copy_n(x.dims, x.rank, p.sizes.v);
  return p;
}

Replacement emit_slice(Rewriter& rewriter, ValueId x, const ops::SliceParams& p) {
  const ops::SliceParams all = whole(rewriter.desc(x));
  if (std::equal(p.sizes.v, p.sizes.v + p.sizes.size, all.sizes.v) &&
      std::equal(p.steps.v, p.steps.v + p.steps.size, all.steps.v))
    return x;
  return rewriter.emit(ops::kSlice, p, {x});
}

struct Sequence {
  std::int64_t start = 0;
  std::int64_t step = 1;
};

/// The arithmetic sequence that in-range indices form, counted from the front.
std::optional<Sequence> sequence_of(std::vector<std::int64_t> indices, std::int64_t dim) {
  if (indices.empty()) return std::nullopt;
  for (std::int64_t& index : indices) {
    if (index < -dim || index >= dim) return std::nullopt;
    if (index < 0) index += dim;
  }
  Sequence s{indices[0], indices.size() > 1 ? indices[1] - indices[0] : 1};
  if (s.step == 0) return std::nullopt;
  for (std::size_t i = 1; i < indices.size(); ++i)
    if (indices[i] - indices[i - 1] != s.step) return std::nullopt;
  return s;
}

Replacement gather(Rewriter& rewriter, const Node& node) {
  const auto& p = node.as<ops::GatherParams>();
  if (p.batch_dims != 0) return std::nullopt;
  const auto indices = graph::constant_integers(rewriter.graph(), node.inputs[1]);
  if (!indices) return std::nullopt;
  const TensorDesc& x = rewriter.desc(node.inputs[0]);
  const auto sequence = sequence_of(*indices, x.dims[p.axis]);
  if (!sequence || x.elements() == 0) return std::nullopt;
  ops::SliceParams slice = whole(x);
  slice.starts.v[p.axis] = static_cast<std::int32_t>(sequence->start);
  slice.steps.v[p.axis] = static_cast<std::int32_t>(sequence->step);
  slice.sizes.v[p.axis] = static_cast<std::int32_t>(indices->size());
  const auto sliced = emit_slice(rewriter, node.inputs[0], slice);
  return sliced ? rewriter.reshape(*sliced, rewriter.desc(node.outputs[0])) : std::nullopt;
}

Replacement slice_of_slice(Rewriter& rewriter, const Node& node, const Node& inner, bool any_size) {
  const auto& outer_params = node.as<ops::SliceParams>();
  ops::SliceParams p = inner.as<ops::SliceParams>();
  if (rewriter.desc(node.outputs[0]).elements() == 0) return std::nullopt;
  for (int i = 0; i < p.starts.size; ++i) {
    const std::int64_t step = std::int64_t{p.steps.v[i]} * outer_params.steps.v[i];
    if (step != static_cast<std::int32_t>(step)) return std::nullopt;
    p.starts.v[i] += outer_params.starts.v[i] * p.steps.v[i];
    p.steps.v[i] = static_cast<std::int32_t>(step);
    p.sizes.v[i] = outer_params.sizes.v[i];
  }
  return any_size ? rewriter.emit(ops::kSlice, p, {inner.inputs[0]}) : emit_slice(rewriter, inner.inputs[0], p);
}

Replacement slice_of_concat(Rewriter& rewriter, const Node& node, const Node& concat) {
  ops::SliceParams p = node.as<ops::SliceParams>();
  const int axis = concat.as<ops::ConcatParams>().axis;
  if (rewriter.desc(node.outputs[0]).elements() == 0) return std::nullopt;
  const std::int32_t first = p.starts.v[axis];
  const std::int32_t last = first + (p.sizes.v[axis] - 1) * p.steps.v[axis];
  std::int32_t begin = 0;
  for (const ValueId part : concat.inputs) {
    const std::int32_t end = begin + rewriter.desc(part).dims[axis];
    if (std::min(first, last) >= begin && std::max(first, last) < end) {
      p.starts.v[axis] -= begin;
      return emit_slice(rewriter, part, p);
    }
    begin = end;
  }
  return std::nullopt;
}

/// `any_size`: what a slice takes of a concat's operands may differ at other sizes.
Replacement slice(Rewriter& rewriter, const Node& node, bool any_size) {
  if (const Node* inner = rewriter.producer(node.inputs[0], ops::kSlice))
    return slice_of_slice(rewriter, node, *inner, any_size);
  const Node* concat = any_size ? nullptr : rewriter.producer(node.inputs[0], ops::kConcat);
  return concat != nullptr ? slice_of_concat(rewriter, node, *concat) : std::nullopt;
}

/// The slice that covers `a` and then `b` along `axis`, when they are neighbours of equal step.
std::optional<ops::SliceParams> joined(ops::SliceParams a, const ops::SliceParams& b, int axis) {
  for (int i = 0; i < a.starts.size; ++i) {
    if (a.steps.v[i] != b.steps.v[i]) return std::nullopt;
    if (i == axis) continue;
    if (a.starts.v[i] != b.starts.v[i] || a.sizes.v[i] != b.sizes.v[i]) return std::nullopt;
  }
  if (b.starts.v[axis] != a.starts.v[axis] + a.sizes.v[axis] * a.steps.v[axis]) return std::nullopt;
  a.sizes.v[axis] += b.sizes.v[axis];
  return a;
}

/// Merges runs of neighbouring slices among the operands.
Replacement merge_parts(Rewriter& rewriter, const Node& node) {
  const int axis = node.as<ops::ConcatParams>().axis;
  struct Piece {
    ValueId value;                          ///< the operand, or what it is a slice of
    std::optional<ops::SliceParams> slice;  ///< set for slices
    ValueId operand;                        ///< the operand itself while nothing was joined to it
  };
  std::vector<Piece> parts;
  bool merged = false;
  for (const ValueId id : node.inputs) {
    const Node* producer = rewriter.producer(id, ops::kSlice);
    Piece part{id, std::nullopt, id};
    if (producer != nullptr) part = {producer->inputs[0], producer->as<ops::SliceParams>(), id};
    if (!parts.empty() && part.slice && parts.back().slice && parts.back().value == part.value) {
      if (const auto both = joined(*parts.back().slice, *part.slice, axis)) {
        parts.back().slice = both;
        parts.back().operand = graph::kNone;
        merged = true;
        continue;
      }
    }
    parts.push_back(part);
  }
  if (!merged) return std::nullopt;
  if (parts.size() > Rewriter::kMaxEmitted / 2) return std::nullopt;
  std::vector<ValueId> operands;
  for (const Piece& part : parts) {
    if (part.operand != graph::kNone) {
      operands.push_back(part.operand);
      continue;
    }
    const auto sliced = emit_slice(rewriter, part.value, *part.slice);
    if (!sliced) return std::nullopt;
    operands.push_back(*sliced);
  }
  if (operands.size() == 1) return operands[0];
  return rewriter.emit(ops::kConcat, node.params, std::move(operands));
}

struct Box {
  std::vector<std::int64_t> starts;
  std::vector<std::int64_t> sizes;
};

/// The box that index tuples list in row-major order, each exactly once; `dims` are those of the indexed axes.
std::optional<Box> box_of(const std::vector<std::int64_t>& indices, std::span<const std::int32_t> dims) {
  const std::size_t tuple = dims.size();
  const std::size_t count = tuple == 0 ? 0 : indices.size() / tuple;
  if (count == 0) return std::nullopt;
  const auto at = [&](std::size_t i, std::size_t axis) {
    const std::int64_t index = indices[i * tuple + axis];
    return index < 0 ? index + dims[axis] : index;
  };
  Box box;
  for (std::size_t axis = 0; axis < tuple; ++axis) {
    box.starts.push_back(at(0, axis));
    box.sizes.push_back(at(count - 1, axis) - at(0, axis) + 1);
    if (box.starts[axis] < 0 || box.sizes[axis] <= 0 || box.starts[axis] + box.sizes[axis] > dims[axis])
      return std::nullopt;
  }
  for (std::size_t i = 0; i < count; ++i) {
    auto rest = static_cast<std::int64_t>(i);
    for (std::size_t axis = tuple; axis-- > 0;) {
      if (at(i, axis) != box.starts[axis] + rest % box.sizes[axis]) return std::nullopt;
      rest /= box.sizes[axis];
    }
    if (rest != 0) return std::nullopt;
  }
  const auto cells = std::accumulate(box.sizes.begin(), box.sizes.end(), std::int64_t{1}, std::multiplies<>());
  return cells == static_cast<std::int64_t>(count) ? std::optional(box) : std::nullopt;
}

Replacement scatter_nd(Rewriter& rewriter, const Node& node) {
  if (node.as<ops::ScatterNdParams>().reduction != ops::ScatterReduction::kNone) return std::nullopt;
  const auto indices = graph::constant_integers(rewriter.graph(), node.inputs[1]);
  const TensorDesc& x = rewriter.desc(node.inputs[0]);
  const TensorDesc& tuples = rewriter.desc(node.inputs[1]);
  if (!indices || tuples.rank == 0 || x.elements() == 0) return std::nullopt;
  const auto box = box_of(*indices, {x.dims, static_cast<std::size_t>(tuples.last(0))});
  if (!box) return std::nullopt;

  TensorDesc replaced = x;
  int axis = -1;
  for (std::size_t i = 0; i < box->sizes.size(); ++i) {
    replaced.dims[i] = static_cast<std::int32_t>(box->sizes[i]);
    if (replaced.dims[i] == x.dims[i]) continue;
    if (axis >= 0) return std::nullopt;  // partial along two axes: not a concat
    axis = static_cast<int>(i);
  }
  replaced.set_dense_strides();
  const auto updates = rewriter.reshape(node.inputs[2], replaced);
  if (!updates || axis < 0) return updates;

  const auto start = static_cast<std::int32_t>(box->starts[static_cast<std::size_t>(axis)]);
  const std::int32_t end = start + replaced.dims[axis];
  std::vector<ValueId> parts;
  const auto add_rest = [&](std::int32_t from, std::int32_t to) {
    if (from == to) return true;
    ops::SliceParams p = whole(x);
    p.starts.v[axis] = from;
    p.sizes.v[axis] = to - from;
    const auto part = emit_slice(rewriter, node.inputs[0], p);
    if (part) parts.push_back(*part);
    return part.has_value();
  };
  if (!add_rest(0, start)) return std::nullopt;
  parts.push_back(*updates);
  if (!add_rest(end, x.dims[axis])) return std::nullopt;
  return rewriter.emit(ops::kConcat, ops::ConcatParams{axis}, std::move(parts));
}

Result<bool> merge_once(graph::Graph& graph, bool any_size) {
  return Rewriter(graph).sweep([any_size](Rewriter& rewriter, const Node& node) -> Replacement {
    if (node.is(ops::kGather)) return gather(rewriter, node);
    if (node.is(ops::kSlice)) return slice(rewriter, node, any_size);
    if (node.is(ops::kConcat)) return merge_parts(rewriter, node);
    if (node.is(ops::kScatterNd)) return scatter_nd(rewriter, node);
    return std::nullopt;
  });
}

}  // namespace

Result<bool> merge_slices(graph::Graph& graph) { return merge_once(graph, false); }

Result<bool> merge_slices_at_any_size(graph::Graph& graph) { return merge_once(graph, true); }

}  // namespace bantam::passes
