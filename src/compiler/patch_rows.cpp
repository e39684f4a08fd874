#include "compiler/patch_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "compiler/row_rules.h"
#include "graph/builder.h"
#include "ops/data/concat/concat.h"
#include "ops/data/copy/copy.h"
#include "ops/data/slice/slice.h"

namespace bantam::compiler {
namespace {

using graph::Graph;
using graph::kNone;
using graph::Node;
using graph::NodeId;
using graph::ValueId;

/// Of an image with its channels outermost, gathered one by one.
constexpr std::int32_t kMaxPlanes = 8;

/// What one band does for a value of the stage.
struct ValueBand {
  RowRange computed;  ///< by this band; empty: nothing
  RowRange needed;    ///< by this band and, where rows are kept, by later ones
};

/// A value that the stage computes.
struct StageValue {
  int axis = -1;
  std::int64_t rows = 0;
  bool is_result = false;  ///< read outside the stage
  bool is_read = false;    ///< read inside
  std::vector<ValueBand> bands;
};

RowRange hull(const RowRange& a, const RowRange& b) {
  if (a.size() <= 0) return b;
  if (b.size() <= 0) return a;
  return {std::min(a.first, b.first), std::max(a.last, b.last)};
}

/// The stage's values, their axes, and which rows each band computes.
class Stage {
 public:
  Stage(const Graph& graph, const Patching& patching)
      : graph_(graph), patching_(patching), bands_(static_cast<std::size_t>(patching.bands)) {}

  /// False when the nodes are no stage.
  bool analyse() {
    for (NodeId n = patching_.first; n <= patching_.last; ++n) {
      const Node& node = graph_.node(n);
      if (node.op == nullptr || node.outputs.size() != 1 || node.outputs[0] == kNone || !node.bodies.empty() ||
          graph_.value(node.outputs[0]).desc.elements() == 0)
        return false;
      values_[node.outputs[0]] = {};
    }
    mark_readers();
    if (!find_axes()) return false;
    for (auto& [id, value] : values_) value.bands.assign(bands_, {});
    return (patching_.halo == Halo::kKeep ? follow_operands() : divide_results()) && spread_needs();
  }

  const std::map<ValueId, StageValue>& values() const { return values_; }
  const StageValue* find(ValueId id) const {
    const auto it = values_.find(id);
    return it == values_.end() ? nullptr : &it->second;
  }
  const StageValue& of(ValueId id) const { return values_.at(id); }

  /// The rule for these rows of a node's result; certain to have an answer after `analyse`.
  std::optional<RowBand> band_of(NodeId n, RowRange rows) const {
    const Node& node = graph_.node(n);
    return row_band(graph_, node, of(node.outputs[0]).axis, rows);
  }

 private:
  void mark_readers() {
    const graph::Uses uses(graph_);
    for (auto& [id, value] : values_) {
      value.is_result = uses.is_external(id);
      for (const graph::Uses::Use& use : uses.of(id)) {
        const bool inside = use.node >= patching_.first && use.node <= patching_.last;
        (inside ? value.is_read : value.is_result) = true;
      }
    }
  }

  bool give_axis(ValueId id, int axis, bool& changed) {
    const auto it = values_.find(id);
    if (it == values_.end()) return true;
    if (it->second.axis == axis) return true;
    if (it->second.axis != -1) return false;
    it->second.axis = axis;
    it->second.rows = graph_.value(id).desc.dims[axis];
    changed = true;
    return true;
  }

  /// Axes spread from windowed operators forward and backward until every value has one.
  bool find_axes() {
    for (bool changed = true; changed;) {
      changed = false;
      for (NodeId n = patching_.first; n <= patching_.last; ++n)
        if (!spread_axis(graph_.node(n), changed)) return false;
    }
    return std::ranges::all_of(values_, [](const auto& entry) { return entry.second.axis >= 0; });
  }

  bool spread_axis(const Node& node, bool& changed) {
    const ValueId result = node.outputs[0];
    if (values_.at(result).axis < 0) {
      int axis = own_row_axis(graph_, node);
      if (axis < 0) axis = axis_from_operands(node);
      if (axis < 0) return true;
      if (!give_axis(result, axis, changed)) return false;
    }
    const int axis = values_.at(result).axis;
    const auto band = row_band(graph_, node, axis, {0, graph_.value(result).desc.dims[axis]});
    if (!band) return false;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (!values_.contains(node.inputs[i])) continue;
      // A value of the stage that is needed whole exists only after the last band.
      if (band->operands[i].axis < 0 || !give_axis(node.inputs[i], band->operands[i].axis, changed)) return false;
    }
    return true;
  }

  /// The axis of the result that an operand's axis, already known, becomes.
  int axis_from_operands(const Node& node) const {
    const TensorDesc& result = graph_.value(node.outputs[0]).desc;
    for (int axis = 0; axis < result.rank; ++axis) {
      const auto band = row_band(graph_, node, axis, {0, result.dims[axis]});
      if (!band) continue;
      for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        const StageValue* x = find(node.inputs[i]);
        if (x != nullptr && x->axis >= 0 && band->operands[i].axis == x->axis) return axis;
      }
    }
    return -1;
  }

  std::int64_t share(std::int64_t rows, std::size_t band) const {
    return (rows * static_cast<std::int64_t>(band) + patching_.bands - 1) / patching_.bands;
  }

  /// The results' rows are divided evenly; everything else follows from what they need.
  bool divide_results() {
    for (auto& [id, value] : values_) {
      if (!value.is_result) continue;
      if (value.rows < patching_.bands) return false;
      for (std::size_t b = 0; b < bands_; ++b)
        value.bands[b].computed = {share(value.rows, b), share(value.rows, b + 1)};
    }
    return true;
  }

  /// The rows of what the stage reads are divided evenly. Each band goes on where the one before it ended and computes
  /// every row that those allow, so that no more rows wait than windows overlap.
  bool follow_operands() {
    for (NodeId n = patching_.first; n <= patching_.last; ++n) {
      StageValue& value = values_.at(graph_.node(n).outputs[0]);
      std::int64_t done = 0;
      for (std::size_t b = 0; b < bands_; ++b) {
        std::int64_t end = done;
        // The last row that can be computed, by bisection.
        for (std::int64_t beyond = value.rows + 1; beyond - end > 1;) {
          const std::int64_t middle = (end + beyond) / 2;
          (can_compute(n, middle, b) ? end : beyond) = middle;
        }
        value.bands[b].computed = {done, end};
        done = end;
      }
      if (done != value.rows) return false;
    }
    return true;
  }

  /// Are the operands of the first `rows` rows there in band b?
  bool can_compute(NodeId n, std::int64_t rows, std::size_t b) const {
    const Node& node = graph_.node(n);
    const auto band = band_of(n, {rows - 1, rows});
    if (!band) return false;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const RowOperand& x = band->operands[i];
      if (x.axis < 0 || graph_.is_constant(node.inputs[i])) continue;
      const StageValue* inside = find(node.inputs[i]);
      const std::int64_t there = inside != nullptr ? inside->bands[b].computed.last
                                                   : share(graph_.value(node.inputs[i]).desc.dims[x.axis], b + 1);
      if (x.rows.last > there) return false;
    }
    return true;
  }

  bool spread_needs() {
    for (NodeId n = patching_.last; n >= patching_.first; --n) {
      StageValue& value = values_.at(graph_.node(n).outputs[0]);
      if (patching_.halo == Halo::kRecompute) {
        for (ValueBand& band : value.bands) band.computed = band.needed = hull(band.computed, band.needed);
      } else {
        keep_until_read(value);
      }
      for (std::size_t b = 0; b < bands_; ++b)
        if (value.bands[b].computed.size() > 0 && !need_operands(n, b)) return false;
    }
    return true;
  }

  /// Rows stay until the last band that reads them.
  static void keep_until_read(StageValue& value) {
    std::int64_t first = value.rows;
    for (std::size_t b = value.bands.size(); b-- > 0;) {
      ValueBand& band = value.bands[b];
      if (band.needed.size() > 0) first = std::min(first, band.needed.first);
      // A result that is read inside the stage stays whole.
      band.needed = {value.is_result ? 0 : std::min(first, band.computed.last), band.computed.last};
    }
  }

  bool need_operands(NodeId n, std::size_t b) {
    const Node& node = graph_.node(n);
    const auto band = band_of(n, values_.at(node.outputs[0]).bands[b].computed);
    if (!band) return false;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const auto it = values_.find(node.inputs[i]);
      if (it != values_.end()) it->second.bands[b].needed = hull(it->second.bands[b].needed, band->operands[i].rows);
    }
    return true;
  }

  const Graph& graph_;
  const Patching& patching_;
  std::size_t bands_;
  std::map<ValueId, StageValue> values_;
};

/// Emits the bands behind the graph's other nodes, then moves them to where the stage was.
class Patcher {
 public:
  Patcher(const Graph& graph, const Patching& patching, const Stage& stage)
      : patching_(patching), stage_(stage), graph_(graph), builder_(graph_) {}

  Result<PatchedGraph> run() {
    const auto begin = static_cast<NodeId>(graph_.nodes.size());
    find_last_readers();
    for (std::size_t b = 0; b < static_cast<std::size_t>(patching_.bands); ++b) {
      for (NodeId n = patching_.first; n <= patching_.last; ++n) {
        if (auto done = emit_band(n, b); !done) return fail(std::move(done.error()));
        for (const ValueId id : last_reads_[n])
          if (auto done = keep_rows(id, b + 1); !done) return fail(std::move(done.error()));
      }
    }
    for (const auto& [id, value] : stage_.values())
      if (value.is_result)
        if (auto done = join(id); !done) return fail(std::move(done.error()));
    PatchedGraph patched;
    patched.cost.work = work_of(graph_, begin, static_cast<NodeId>(graph_.nodes.size()) - 1);
    patched.cost.copied_bytes = copied_bytes_;
    patched.first = patching_.first;
    patched.last = patching_.first + static_cast<NodeId>(graph_.nodes.size()) - begin - 1;
    replace_stage(begin);
    patched.graph = std::move(graph_);
    return patched;
  }

 private:
  /// The rows of a value that the band can read.
  struct Window {
    ValueId value = kNone;
    RowRange rows;
  };

  Result<ValueId> take_rows(ValueId id, int axis, std::int64_t first, std::int64_t count) {
    const TensorDesc& desc = builder_.desc(id);
    if (first == 0 && count == desc.dims[axis]) return id;
    ops::SliceParams params;
    params.starts.size = params.steps.size = params.sizes.size = desc.rank;
    for (int d = 0; d < desc.rank; ++d) {
      params.steps.v[d] = 1;
      params.sizes.v[d] = desc.dims[d];
    }
    params.starts.v[axis] = static_cast<std::int32_t>(first);
    params.sizes.v[axis] = static_cast<std::int32_t>(count);
    return builder_.emit1(ops::kSlice, params, {id});
  }

  /// Rows of what the stage reads. Those of an image with its channels outermost lie apart: gathered by a copy, they
  /// free each channel's part of the image as it is consumed.
  Result<ValueId> take_operand_rows(ValueId id, int axis, std::int64_t first, std::int64_t count) {
    const TensorDesc desc = builder_.desc(id);
    if (axis != 2 || desc.rank != 4 || desc.dims[0] != 1 || desc.dims[1] < 2 || desc.dims[1] > kMaxPlanes)
      return take_rows(id, axis, first, count);
    std::vector<ValueId> planes;
    for (std::int32_t c = 0; c < desc.dims[1]; ++c) {
      ops::SliceParams params;
      params.starts = {4, {0, c, static_cast<std::int32_t>(first), 0}};
      params.steps = {4, {1, 1, 1, 1}};
      params.sizes = {4, {1, 1, static_cast<std::int32_t>(count), desc.dims[3]}};
      const auto plane = builder_.emit1(ops::kSlice, params, {id});
      if (!plane) return plane;
      planes.push_back(*plane);
    }
    copied_bytes_ += desc.bytes() / desc.dims[2] * count;
    return builder_.emit1(ops::kConcat, ops::ConcatParams{1}, std::move(planes));
  }

  Result<void> emit_band(NodeId n, std::size_t b) {
    const Node node = graph_.node(n);  // a copy: emitting moves nodes
    const ValueId result = node.outputs[0];
    const StageValue& value = stage_.of(result);
    const RowRange rows = value.bands[b].computed;
    if (rows.size() <= 0) return {};
    // Names stay as they are: the user's patterns for backends name nodes.
    builder_.set_source(node.name, fmt::format("{} rows {}..{}", node.origin, rows.first, rows.last - 1));
    const auto band = stage_.band_of(n, rows);
    std::vector<ValueId> inputs = node.inputs;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const RowOperand& x = band->operands[i];
      if (x.axis < 0) continue;
      const Window* window = stage_.find(inputs[i]) != nullptr ? &windows_[inputs[i]] : nullptr;
      const auto taken = window != nullptr
                             ? take_rows(window->value, x.axis, x.rows.first - window->rows.first, x.rows.size())
                             : take_operand_rows(inputs[i], x.axis, x.rows.first, x.rows.size());
      if (!taken) return fail(taken.error());
      inputs[i] = *taken;
    }
    const auto computed = builder_.emit1(*node.op, band->params, std::move(inputs));
    if (!computed) return fail(computed.error());
    graph_.value(*computed).layout = graph_.value(result).layout;
    graph_.value(*computed).quantization = graph_.value(result).quantization;
    return patching_.halo == Halo::kKeep ? append(result, b, *computed) : collect(result, b, *computed);
  }

  /// Every band is a value of its own; results take their share of it.
  Result<void> collect(ValueId result, std::size_t b, ValueId computed) {
    const StageValue& value = stage_.of(result);
    const RowRange rows = value.bands[b].computed;
    windows_[result] = {computed, rows};
    if (!value.is_result) return {};
    const std::int64_t begin = joined_[result];
    const std::int64_t end = (value.rows * static_cast<std::int64_t>(b + 1) + patching_.bands - 1) / patching_.bands;
    const auto piece = take_rows(computed, value.axis, begin - rows.first, end - begin);
    if (!piece) return fail(piece.error());
    pieces_[result].push_back(*piece);
    joined_[result] = end;
    return {};
  }

  /// By node: the values that no later node of the stage reads.
  void find_last_readers() {
    std::map<ValueId, NodeId> last;
    for (NodeId n = patching_.first; n <= patching_.last; ++n)
      for (const ValueId id : graph_.node(n).inputs)
        if (stage_.find(id) != nullptr) last[id] = n;
    for (const auto& [id, n] : last) last_reads_[n].push_back(id);
  }

  Result<ValueId> copy_rows(ValueId id) {
    copied_bytes_ += builder_.desc(id).bytes();
    return builder_.emit1(ops::kCopy, graph::Params(ops::kCopy), {id});
  }

  /// What band b will put its new rows of a value behind: the rows that are needed once more, copied as soon as the
  /// band before it has no use for the others.
  Result<void> keep_rows(ValueId id, std::size_t b) {
    const StageValue& value = stage_.of(id);
    if (patching_.halo != Halo::kKeep || b >= value.bands.size()) return {};
    const ValueBand& band = value.bands[b];
    const auto window = windows_.find(id);
    const std::int64_t kept = band.computed.first - band.needed.first;
    if (window == windows_.end() || band.computed.size() <= 0 || kept <= 0) return {};
    builder_.set_source(graph_.node(graph_.value(id).producer).name, "kept rows");
    auto rows = take_rows(window->second.value, value.axis, band.needed.first - window->second.rows.first, kept);
    if (!rows) return fail(rows.error());
    // A result stays where it is: the next rows are written behind it.
    if (!value.is_result) {
      rows = copy_rows(*rows);
      if (!rows) return fail(rows.error());
    }
    kept_[id] = *rows;
    return {};
  }

  /// The new rows, behind those kept.
  Result<void> append(ValueId result, std::size_t b, ValueId computed) {
    const StageValue& value = stage_.of(result);
    const ValueBand& band = value.bands[b];
    if (!value.is_read) {
      pieces_[result].push_back(computed);
      return {};
    }
    const auto kept = kept_.find(result);
    if (kept == kept_.end()) {
      windows_[result] = {computed, band.computed};
      return {};
    }
    const auto rows = copy_rows(kept->second);
    if (!rows) return fail(rows.error());
    const auto joined = builder_.emit1(ops::kConcat, ops::ConcatParams{value.axis}, {*rows, computed});
    if (!joined) return fail(joined.error());
    windows_[result] = {*joined, {band.needed.first, band.computed.last}};
    kept_.erase(kept);
    return {};
  }

  /// The whole of a result takes the place of the value that it was.
  Result<void> join(ValueId result) {
    const StageValue& value = stage_.of(result);
    builder_.set_source(graph_.node(graph_.value(result).producer).name, "joined rows");
    auto& pieces = pieces_[result];
    if (pieces.empty()) pieces.push_back(windows_[result].value);
    // An operator takes so many operands and no more.
    while (pieces.size() > 1) {
      std::vector<ValueId> fewer;
      for (std::size_t i = 0; i < pieces.size(); i += ops::kMaxInputs) {
        const std::size_t end = std::min(i + ops::kMaxInputs, pieces.size());
        const auto joined = builder_.emit1(
            ops::kConcat, ops::ConcatParams{value.axis},
            {pieces.begin() + static_cast<std::ptrdiff_t>(i), pieces.begin() + static_cast<std::ptrdiff_t>(end)});
        if (!joined) return fail(joined.error());
        fewer.push_back(*joined);
      }
      pieces = std::move(fewer);
    }
    Node& last = graph_.node(graph_.value(pieces.front()).producer);
    last.outputs[0] = result;
    renamed_[pieces.front()] = result;
    return {};
  }

  void replace_stage(NodeId begin) {
    for (std::size_t n = static_cast<std::size_t>(begin); n < graph_.nodes.size(); ++n)
      for (ValueId& id : graph_.nodes[n].inputs)
        if (const auto it = renamed_.find(id); it != renamed_.end()) id = it->second;
    auto& nodes = graph_.nodes;
    const auto at = [&](NodeId n) { return nodes.begin() + n; };
    std::rotate(at(patching_.first), at(begin), nodes.end());
    const auto bands = static_cast<NodeId>(nodes.size()) - begin;
    nodes.erase(at(patching_.first + bands), at(patching_.last + bands + 1));
    for (std::size_t n = 0; n < nodes.size(); ++n)
      for (const ValueId id : nodes[n].outputs)
        if (id != kNone) graph_.value(id).producer = static_cast<NodeId>(n);
    graph::compact(graph_);
  }

  const Patching& patching_;
  const Stage& stage_;
  Graph graph_;
  graph::Builder builder_;
  std::map<NodeId, std::vector<ValueId>> last_reads_;
  std::map<ValueId, Window> windows_;               ///< of the stage's values, up to the present band
  std::map<ValueId, ValueId> kept_;                 ///< rows for the next band
  std::map<ValueId, std::vector<ValueId>> pieces_;  ///< of its results
  std::map<ValueId, std::int64_t> joined_;          ///< rows in the pieces
  std::map<ValueId, ValueId> renamed_;
  std::int64_t copied_bytes_ = 0;
};

bool is_range(const Graph& graph, const Patching& patching) {
  return patching.first >= 0 && patching.first <= patching.last && patching.bands >= 2 &&
         patching.last < static_cast<NodeId>(graph.nodes.size());
}

}  // namespace

std::string describe(const Graph& graph, const Patching& patching) {
  return fmt::format("layers '{}' to '{}' in {} bands of rows, {}", graph.node(patching.first).name,
                     graph.node(patching.last).name, patching.bands,
                     patching.halo == Halo::kKeep ? "rows kept" : "rows computed again");
}

std::int64_t work_of(const Graph& graph, NodeId first, NodeId last) {
  std::int64_t sum = 0;
  for (NodeId n = first; n <= last; ++n) {
    const Node& node = graph.node(n);
    if (node.op == nullptr || node.op->work == nullptr) continue;
    const graph::OperandTables tables = graph::operand_tables(graph, node);
    sum += node.op->work(tables.call(node));
  }
  return sum;
}

std::int64_t work_of(const Graph& graph) { return work_of(graph, 0, static_cast<NodeId>(graph.nodes.size()) - 1); }

std::optional<StageBytes> estimate_stage(const Graph& graph, const Patching& patching) {
  if (!is_range(graph, patching)) return std::nullopt;
  Stage stage(graph, patching);
  if (!stage.analyse()) return std::nullopt;
  std::int64_t windows = 0;
  std::int64_t results = 0;
  std::int64_t transient = 0;
  for (const auto& [id, value] : stage.values()) {
    const std::int64_t row = graph.value(id).desc.bytes() / std::max<std::int64_t>(value.rows, 1);
    std::int64_t computed = 0;
    std::int64_t held = 0;
    for (const ValueBand& band : value.bands) {
      computed = std::max(computed, band.computed.size());
      held = std::max(held, band.needed.size());
    }
    transient = std::max(transient, computed * row);
    if (value.is_result) {
      results += graph.value(id).desc.bytes();
    } else if (patching.halo == Halo::kKeep) {
      windows += held * row;
    }
  }
  std::int64_t operands = 0;
  std::vector<ValueId> seen;
  for (NodeId n = patching.first; n <= patching.last; ++n) {
    for (const ValueId id : graph.node(n).inputs) {
      if (id == kNone || graph.is_constant(id) || stage.find(id) != nullptr || std::ranges::count(seen, id) > 0)
        continue;
      seen.push_back(id);
      operands += graph.value(id).desc.bytes();
    }
  }
  const std::int64_t bands = patching.bands;
  const std::int64_t inner = windows + 2 * transient;
  return StageBytes{inner, inner + std::max(operands + results / bands, results + operands / bands)};
}

Result<std::optional<PatchedGraph>> patch_rows(const Graph& graph, const Patching& patching) {
  if (!is_range(graph, patching)) return std::nullopt;
  Stage stage(graph, patching);
  if (!stage.analyse()) return std::nullopt;
  auto patched = Patcher(graph, patching, stage).run();
  if (!patched) return fail(std::move(patched.error()).in("patching rows"));
  return std::move(*patched);
}

}  // namespace bantam::compiler
