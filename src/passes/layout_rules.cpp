#include "passes/layout_rules.h"

#include <algorithm>
#include <string_view>

#include "ops/data/concat/concat.h"
#include "ops/data/expand/expand.h"
#include "ops/data/gather/gather.h"
#include "ops/data/pad/pad.h"
#include "ops/data/reshape/reshape.h"
#include "ops/data/slice/slice.h"
#include "ops/data/tile/tile.h"
#include "ops/elementwise/dequantize/dequantize.h"
#include "ops/elementwise/quantize/quantize.h"
#include "ops/nn/norm/norm.h"
#include "ops/nn/resize/resize.h"
#include "ops/nn/resize_affine/resize_affine.h"
#include "ops/nn/softmax/softmax.h"
#include "ops/reduce/arg_reduce/arg_reduce.h"
#include "ops/reduce/cumsum/cumsum.h"
#include "ops/reduce/reduce/reduce.h"
#include "ops/reduce/reduce_affine/reduce_affine.h"
#include "ops/reduce/topk/topk.h"

namespace bantam::passes {
namespace {

using graph::Graph;
using graph::Node;
using graph::Params;
using ops::IntList;
using Operand = NodeLayout::Operand;

const TensorDesc& operand_desc(const Graph& graph, const Node& node, std::size_t i) {
  return graph.value(node.inputs[i]).desc;
}

const TensorDesc& result_desc(const Graph& graph, const Node& node) {
  const auto present =
      std::find_if(node.outputs.begin(), node.outputs.end(), [](auto id) { return id != graph::kNone; });
  return graph.value(*present).desc;
}

// Parameter edits. `layout.result` is the new order of axes.

void permute(IntList& list, const Permutation& p) {
  const IntList old = list;
  for (int i = 0; i < p.rank; ++i) list.v[i] = old.v[p[i]];
}

void permute(float (&list)[kMaxRank], const Permutation& p) {
  float old[kMaxRank];
  std::copy_n(list, kMaxRank, old);
  for (int i = 0; i < p.rank; ++i) list[i] = old[p[i]];
}

void move_axis(std::int32_t& axis, const Permutation& p) { axis = p.position(axis < 0 ? axis + p.rank : axis); }

void move_axes(IntList& axes, const Permutation& p) {
  for (int i = 0; i < axes.size; ++i) axes.v[i] = p.position(axes.v[i]);
  std::sort(axes.v, axes.v + axes.size);
}

using Edit = void (*)(Params&, const NodeLayout&);

void keep_params(Params& /*params*/, const NodeLayout& /*layout*/) {}

/// For operators whose parameter struct P has an `axis` of the operand.
template <typename P>
void edit_axis(Params& params, const NodeLayout& layout) {
  move_axis(params.as<P>().axis, layout.operands[0]);
}

template <typename P>
void edit_axes(Params& params, const NodeLayout& layout) {
  move_axes(params.as<P>().axes, layout.operands[0]);
}

/// The axis of quantised tensors is unused, and may be anything, when there is one scale for all.
template <typename P>
void edit_quantized_axis(Params& params, const NodeLayout& layout) {
  auto& axis = params.as<P>().axis;
  if (axis >= 0 && axis < layout.result.rank) move_axis(axis, layout.result);
}

void edit_pad(Params& params, const NodeLayout& layout) {
  auto& p = params.as<ops::PadParams>();
  permute(p.before, layout.result);
  permute(p.after, layout.result);
}

void edit_slice(Params& params, const NodeLayout& layout) {
  auto& p = params.as<ops::SliceParams>();
  permute(p.starts, layout.result);
  permute(p.steps, layout.result);
  permute(p.sizes, layout.result);
}

void permute_axes(ops::ResizeParams& p, const NodeLayout& layout) {
  permute(p.sizes, layout.result);
  permute(p.scales, layout.result);
  permute(p.roi_start, layout.result);
  permute(p.roi_end, layout.result);
  for (ops::IntList* first : {&p.first_output, &p.first_input})
    if (first->size != 0) permute(*first, layout.result);
}

void edit_resize(Params& params, const NodeLayout& layout) { permute_axes(params.as<ops::ResizeParams>(), layout); }

void edit_resize_affine(Params& params, const NodeLayout& layout) {
  permute_axes(params.as<ops::ResizeAffineParams>().resize, layout);
}

template <auto Member, typename P>
void edit_list(Params& params, const NodeLayout& layout) {
  permute(params.as<P>().*Member, layout.result);
}

// Rules for the layouts themselves.

using Propagate = std::optional<NodeLayout> (*)(const Graph&, const Node&, int, const Permutation&, int);

/// Every laid-out operand has the result's rank and layout; operands of lower rank broadcast; the operands from
/// `data_operands` on are plain.
std::optional<NodeLayout> same_layout(const Graph& graph, const Node& node, int where, const Permutation& layout,
                                      int data_operands) {
  const int rank = result_desc(graph, node).rank;
  if (layout.rank != rank || where >= data_operands) return std::nullopt;
  NodeLayout result{{}, {}, layout};
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    Operand kind = Operand::kPlain;
    if (static_cast<int>(i) < data_operands && node.inputs[i] != graph::kNone) {
      const TensorDesc& x = operand_desc(graph, node, i);
      if (x.rank == rank) {
        kind = Operand::kLaidOut;
      } else if (x.elements() != 1) {
        kind = Operand::kBroadcast;
      }
    }
    result.kinds.push_back(kind);
    result.operands.push_back(layout);
  }
  if (where >= 0 && result.kinds[static_cast<std::size_t>(where)] != Operand::kLaidOut) return std::nullopt;
  return result;
}

/// Whether the axes that a layout stores are normalised together, for those of more than one element.
std::vector<bool> normalised_axes(const TensorDesc& desc, const IntList& axes, const Permutation& layout) {
  std::vector<bool> normalised;
  for (const int axis : layout.order(desc))
    normalised.push_back(std::find(axes.v, axes.v + axes.size, axis) != axes.v + axes.size);
  return normalised;
}

/// Elements that are normalised apart behind rows that are not, and what each of them has of its own: columns.
std::int64_t columns_of(const TensorDesc& desc, const IntList& axes, const Permutation& layout) {
  const std::vector<int> order = layout.order(desc);
  const std::vector<bool> normalised = normalised_axes(desc, axes, layout);
  auto first = std::find(normalised.begin(), normalised.end(), true);
  first = std::find(first, normalised.end(), false);
  std::int64_t columns = 1;
  for (auto i = first; i != normalised.end(); ++i)
    columns *= desc.dims[order[static_cast<std::size_t>(i - normalised.begin())]];
  return columns;
}

/// How often an axis follows one that is normalised otherwise; before the first lies one that is not.
int changes_in(const std::vector<bool>& normalised) {
  int changes = 0;
  bool last = false;
  for (const bool is : normalised) {
    changes += is != last ? 1 : 0;
    last = is;
  }
  return changes;
}

/// Rows are normalised fastest where they are contiguous; as columns, or as groups of columns, if a few vectors of them
/// are: axes that are innermost stay so unless as many columns take their place. Kernels know two runs of axes at most,
/// the second one innermost.
std::optional<NodeLayout> norm_layout(const Graph& graph, const Node& node, int where, const Permutation& layout,
                                      int data_operands) {
  constexpr std::int64_t kFewColumns = 32;
  constexpr int kRows = 1;
  constexpr int kGroups = 3;
  auto result = same_layout(graph, node, where, layout, data_operands);
  if (!result) return result;
  const TensorDesc& desc = result_desc(graph, node);
  const IntList& axes = node.as<ops::NormParams>().axes;
  const int was = changes_in(normalised_axes(desc, axes, Permutation::identity(desc.rank)));
  const int is = changes_in(normalised_axes(desc, axes, layout));
  if (is > kGroups && is > was) return std::nullopt;
  return was <= kRows && is > kRows && columns_of(desc, axes, layout) < kFewColumns ? std::nullopt : result;
}

/// Works along the innermost axis only.
std::optional<NodeLayout> innermost_kept(const Graph& graph, const Node& node, int where, const Permutation& layout,
                                         int data_operands) {
  if (layout.rank == 0 || layout[layout.rank - 1] != layout.rank - 1) return std::nullopt;
  return same_layout(graph, node, where, layout, data_operands);
}

/// One operand in a layout of its own, the others plain.
NodeLayout first_operand(const Node& node, const Permutation& operand, const Permutation& result) {
  NodeLayout layout{std::vector(node.inputs.size(), Operand::kPlain), std::vector(node.inputs.size(), operand), result};
  layout.kinds[0] = Operand::kLaidOut;
  return layout;
}

/// Axes that go away: the others keep their order. The result's layout does not say where they were.
std::optional<NodeLayout> without_axes(const Graph& graph, const Node& node, int where, const Permutation& layout,
                                       const IntList& axes) {
  const int rank = operand_desc(graph, node, 0).rank;
  if (where != 0 || layout.rank != rank) return std::nullopt;
  std::array<int, kMaxRank> renumbered{};
  int kept = 0;
  for (int a = 0; a < rank; ++a)
    renumbered[static_cast<std::size_t>(a)] =
        std::find(axes.v, axes.v + axes.size, a) == axes.v + axes.size ? kept++ : graph::kNone;
  Permutation result;
  for (int i = 0; i < rank; ++i)
    if (const int axis = renumbered[static_cast<std::size_t>(layout[i])]; axis >= 0)
      result.v[static_cast<std::size_t>(result.rank++)] = axis;
  return first_operand(node, layout, result);
}

template <typename P>
std::optional<NodeLayout> reduce_layout(const Graph& graph, const Node& node, int where, const Permutation& layout,
                                        int data_operands) {
  const auto& p = node.as<P>();
  if (p.keep_dims != 0 || p.axes.size == 0) return same_layout(graph, node, where, layout, data_operands);
  return without_axes(graph, node, where, layout, p.axes);
}

std::optional<NodeLayout> arg_reduce_layout(const Graph& graph, const Node& node, int where, const Permutation& layout,
                                            int data_operands) {
  const auto& p = node.as<ops::ArgReduceParams>();
  if (p.keep_dims != 0) return same_layout(graph, node, where, layout, data_operands);
  const int rank = operand_desc(graph, node, 0).rank;
  const IntList axes{1, {p.axis < 0 ? p.axis + rank : p.axis}};
  return without_axes(graph, node, where, layout, axes);
}

/// The gathered axis is replaced by the indices' axes, which stay together.
std::optional<NodeLayout> gather_layout(const Graph& graph, const Node& node, int where, const Permutation& layout,
                                        int /*data_operands*/) {
  const auto& p = node.as<ops::GatherParams>();
  const int rank = operand_desc(graph, node, 0).rank;
  const int block = operand_desc(graph, node, 1).rank;
  if (p.batch_dims != 0 || where > 0) return std::nullopt;
  const auto to_result = [&](int axis) { return axis > p.axis ? axis + block - 1 : axis; };
  if (where == 0) {
    if (layout.rank != rank) return std::nullopt;
    Permutation result;
    for (int i = 0; i < rank; ++i) {
      const int copies = layout[i] == p.axis ? block : 1;
      for (int k = 0; k < copies; ++k) result.v[static_cast<std::size_t>(result.rank++)] = to_result(layout[i]) + k;
    }
    return first_operand(node, layout, result);
  }
  if (block == 0 || layout.rank != rank + block - 1) return std::nullopt;
  Permutation operand;
  for (int i = 0; i < layout.rank; ++i) {
    const int axis = layout[i];
    if (axis > p.axis && axis < p.axis + block) {
      if (i == 0 || layout[i - 1] != axis - 1) return std::nullopt;
      continue;
    }
    operand.v[static_cast<std::size_t>(operand.rank++)] = axis >= p.axis + block ? axis - block + 1 : axis;
  }
  return first_operand(node, operand, layout);
}

/// Runs of axes of two shapes that hold the same elements; axes of one element belong to none.
struct AxisGroup {
  std::vector<int> from;
  std::vector<int> to;
};

std::vector<AxisGroup> group_axes(const TensorDesc& from, const TensorDesc& to) {
  std::vector<AxisGroup> groups;
  int i = 0;
  int j = 0;
  const auto skip_ones = [](const TensorDesc& x, int& axis) {
    while (axis < x.rank && x.dims[axis] == 1) ++axis;
  };
  for (skip_ones(from, i), skip_ones(to, j); i < from.rank && j < to.rank; skip_ones(from, i), skip_ones(to, j)) {
    AxisGroup group{{i}, {j}};
    std::int64_t a = from.dims[i++];
    std::int64_t b = to.dims[j++];
    while (a != b) {
      const bool grow_from = a < b;
      int& axis = grow_from ? i : j;
      const TensorDesc& x = grow_from ? from : to;
      if (axis == x.rank) return {};
      if (x.dims[axis] != 1) {
        (grow_from ? a : b) *= x.dims[axis];
        (grow_from ? group.from : group.to).push_back(axis);
      }
      ++axis;
    }
    groups.push_back(std::move(group));
  }
  return groups;
}

/// Axes of one element, which may lie anywhere, follow the axis before them.
Permutation with_ones(std::vector<int> order, const TensorDesc& x) {
  for (int axis = 0; axis < x.rank; ++axis) {
    if (x.dims[axis] != 1) continue;
    const auto before = axis == 0 ? order.end() : std::find(order.begin(), order.end(), axis - 1);
    order.insert(before == order.end() ? order.begin() : before + 1, axis);
  }
  return Permutation::of(order);
}

/// The layout of `to` that a reshape of `from` in `layout` gives: groups of axes move as a whole.
std::optional<Permutation> through_reshape(const TensorDesc& from, const TensorDesc& to, const Permutation& layout) {
  if (from.elements() == 0 || layout.rank != from.rank) return std::nullopt;
  const std::vector<int> stored = layout.order(from);
  const std::vector<AxisGroup> groups = group_axes(from, to);
  std::vector<int> order;
  for (std::size_t i = 0; i < stored.size();) {
    const auto group =
        std::find_if(groups.begin(), groups.end(), [&](const AxisGroup& g) { return g.from.front() == stored[i]; });
    if (group == groups.end() || stored.size() - i < group->from.size() ||
        !std::equal(group->from.begin(), group->from.end(), stored.begin() + static_cast<std::ptrdiff_t>(i)))
      return std::nullopt;
    order.insert(order.end(), group->to.begin(), group->to.end());
    i += group->from.size();
  }
  return with_ones(std::move(order), to);
}

std::optional<NodeLayout> reshape_layout(const Graph& graph, const Node& node, int where, const Permutation& layout,
                                         int /*data_operands*/) {
  const TensorDesc& x = operand_desc(graph, node, 0);
  const TensorDesc& y = result_desc(graph, node);
  const auto other = where == 0 ? through_reshape(x, y, layout) : through_reshape(y, x, layout);
  if (!other) return std::nullopt;
  return where == 0 ? first_operand(node, layout, *other) : first_operand(node, *other, layout);
}

/// All elements give scalars, wherever they lie.
std::optional<NodeLayout> any_layout(const Graph& /*graph*/, const Node& node, int where, const Permutation& layout,
                                     int /*data_operands*/) {
  return where == 0 ? std::optional(first_operand(node, layout, Permutation{})) : std::nullopt;
}

void edit_gather(Params& params, const NodeLayout& layout) { edit_axis<ops::GatherParams>(params, layout); }

constexpr int kAllOperands = 1 << 30;

struct Rule {
  std::string_view op;
  Propagate propagate;
  Edit edit;
  int data_operands = 1;
};

constexpr Rule kRules[] = {
    {"arg_reduce", arg_reduce_layout, edit_axis<ops::ArgReduceParams>},
    {"binary", same_layout, keep_params, kAllOperands},
    {"binary_affine", same_layout, keep_params, kAllOperands},
    {"binary_q", same_layout, keep_params, kAllOperands},
    {"cast", same_layout, keep_params},
    {"concat", same_layout, edit_axis<ops::ConcatParams>, kAllOperands},
    {"copy", same_layout, keep_params},
    {"cumsum", same_layout, edit_axis<ops::CumsumParams>},
    {"dequantize", same_layout, edit_quantized_axis<ops::DequantizeParams>},
    {"expand", same_layout, edit_list<&ops::ExpandParams::shape, ops::ExpandParams>},
    {"gather", gather_layout, edit_gather},
    {"lookup8", same_layout, keep_params},
    {"norm", norm_layout, edit_axes<ops::NormParams>, kAllOperands},
    {"pad", same_layout, edit_pad},
    {"quantization_range", any_layout, keep_params},
    {"quantize", same_layout, edit_quantized_axis<ops::QuantizeParams>},
    {"reduce", reduce_layout<ops::ReduceParams>, edit_axes<ops::ReduceParams>},
    {"reduce_affine", reduce_layout<ops::ReduceAffineParams>, edit_axes<ops::ReduceAffineParams>},
    {"requantize", same_layout, keep_params},
    {"reshape", reshape_layout, edit_list<&ops::ReshapeParams::shape, ops::ReshapeParams>},
    {"resize", same_layout, edit_resize},
    {"resize_affine", same_layout, edit_resize_affine},
    {"select", same_layout, keep_params, kAllOperands},
    {"slice", same_layout, edit_slice},
    {"softmax", same_layout, edit_axis<ops::SoftmaxParams>},
    {"softmax_q", innermost_kept, keep_params},
    {"tile", same_layout, edit_list<&ops::TileParams::repeats, ops::TileParams>},
    {"topk", same_layout, edit_axis<ops::TopkParams>},
    {"unary", same_layout, keep_params},
};

const Rule* find_rule(std::string_view op) {
  const auto rule = std::lower_bound(std::begin(kRules), std::end(kRules), op,
                                     [](const Rule& r, std::string_view name) { return r.op < name; });
  return rule != std::end(kRules) && rule->op == op ? rule : nullptr;
}

}  // namespace

std::optional<NodeLayout> propagate_layout(const Graph& graph, const Node& node, int where, const Permutation& layout) {
  const Rule* rule = find_rule(node.op->name);
  return rule != nullptr ? rule->propagate(graph, node, where, layout, rule->data_operands) : std::nullopt;
}

Params lay_out_params(const Node& node, const NodeLayout& layout) {
  Params params = node.params;
  find_rule(node.op->name)->edit(params, layout);
  return params;
}

}  // namespace bantam::passes
