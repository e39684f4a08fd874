#include "compiler/storage.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "base/shape.h"
#include "compiler/select.h"
#include "package/format.h"

namespace bantam::compiler {
namespace {

using graph::Graph;
using graph::kNone;
using graph::Node;
using graph::NodeId;
using graph::ValueId;

constexpr std::int64_t kForever = std::numeric_limits<std::int64_t>::max() / 4;

/// A value's contents are needed from `def` (the step that writes it, -1 before the run) to `last` (the last step that
/// reads it), both included.
struct Span {
  std::int64_t def = 0;
  std::int64_t last = 0;
};

struct ByteRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;

  bool overlaps(const ByteRange& other) const { return begin < other.end && other.begin < end; }
};

bool is_anchored(const Storage& storage) { return storage.kind != StorageKind::kActivation; }

/// The one exception to "readers before writers": `input` may be overwritten at `step` by `output`.
struct Overwrite {
  ValueId input = kNone;
  ValueId output = kNone;
};

const ControlFlow kStraight;

class StorageMapper {
 public:
  StorageMapper(const Graph& graph, const std::vector<const ops::KernelVariant*>& variants,
                const StorageOptions& options)
      : graph_(graph),
        variants_(variants),
        options_(options),
        flow_(options.flow != nullptr ? *options.flow : kStraight),
        uses_(graph) {
    map_.elided.assign(graph.nodes.size(), false);
    map_.within.assign(graph.nodes.size(), 0);
    map_.copies.assign(graph.nodes.size(), CopyReason::kNone);
    for (const SizedGraph& instance : options.instances) sizes_.push_back(instance.sizes);
    contents_.resize(graph.values.size());
    std::iota(contents_.begin(), contents_.end(), 0);
  }

  StorageMap run() {
    find_regions();
    measure_spans();
    make_storages();
    share_control_values();
    update_states_in_place();
    for (const ControlCopy& copy : flow_.copies) leave_out(copy);
    for (std::size_t n = 0; n < options_.windows.size(); ++n)
      if (options_.windows[n]) grow_state(static_cast<NodeId>(n));
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) make_output_view(static_cast<NodeId>(n));
    // From the last on, so that a part of a part of a value finds its place.
    for (std::size_t n = graph_.nodes.size(); n-- > 0;) make_input_views(static_cast<NodeId>(n));
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n)
      if (options_.in_place && !is_apart(n)) write_in_place(static_cast<NodeId>(n));
    for (std::size_t n = 0; n < options_.overlaps.size(); ++n)
      if (options_.overlaps[n]) write_overlapping(static_cast<NodeId>(n));
    finish();
    return std::move(map_);
  }

 private:
  const Node& node(NodeId n) const { return graph_.node(n); }
  Member& member(ValueId id) { return map_.members[static_cast<std::size_t>(id)]; }
  const Member& member(ValueId id) const { return map_.members[static_cast<std::size_t>(id)]; }
  Storage& storage(ValueId id) { return map_.storages[static_cast<std::size_t>(member(id).storage)]; }
  Span& span(ValueId id) { return spans_[static_cast<std::size_t>(id)]; }
  const Span& span(ValueId id) const { return spans_[static_cast<std::size_t>(id)]; }
  bool placed(ValueId id) const { return id != kNone && member(id).storage >= 0; }

  /// One for a model without dimensions.
  std::size_t instances() const { return std::max<std::size_t>(options_.instances.size(), 1); }
  const Graph& graph(std::size_t instance) const { return instance == 0 ? graph_ : options_.instances[instance].graph; }
  Extent& extent(ValueId id, std::size_t instance) { return member(id).at(instance); }
  const Extent& extent(ValueId id, std::size_t instance) const { return member(id).at(instance); }

  ByteRange range(ValueId id, std::size_t instance) const {
    const Extent& e = extent(id, instance);
    return {e.offset, e.offset + storage_span(e.desc) * element_size(e.desc.type)};
  }

  /// Can a package express these numbers, one per instance, which say where `id` lies? A value must not move once it is
  /// there: what is known only after it was written may not be in the expression.
  bool follow_sizes(ValueId id, const std::vector<std::int64_t>& numbers, const std::vector<bool>& matters) const {
    if (sizes_.empty()) return true;
    const auto expression = fit_sizes(numbers, sizes_, matters);
    if (!expression) return false;
    return !known_too_late(expression->first, id) && !known_too_late(expression->second, id);
  }

  /// `dimension` as SizeExpression counts them.
  bool known_too_late(std::uint8_t dimension, ValueId id) const {
    if (dimension == 0 || dimension > options_.measured_by.size()) return false;
    const auto& by = options_.measured_by[dimension - 1U];
    return by && span(id).def <= *by;
  }

  bool strides_follow_sizes(ValueId id, const std::vector<TensorDesc>& views) const {
    std::vector<std::int64_t> numbers(views.size());
    std::vector<bool> matters(views.size());
    for (int d = 0; d < views.front().rank; ++d) {
      for (std::size_t k = 0; k < views.size(); ++k) {
        numbers[k] = views[k].strides[d];
        matters[k] = stride_matters(views[k], d);
      }
      if (!follow_sizes(id, numbers, matters)) return false;
    }
    return true;
  }

  bool is_dense(ValueId id) const {
    for (std::size_t k = 0; k < instances(); ++k)
      if (!extent(id, k).desc.is_dense()) return false;
    return true;
  }

  static bool are_dense(const std::vector<TensorDesc>& views) {
    return std::ranges::all_of(views, [](const TensorDesc& view) { return view.is_dense(); });
  }

  void set_descs(ValueId id, const std::vector<TensorDesc>& descs) {
    for (std::size_t k = 0; k < instances(); ++k) extent(id, k).desc = descs[k];
  }
  std::vector<TensorDesc> descs(ValueId id) const {
    std::vector<TensorDesc> result;
    for (std::size_t k = 0; k < instances(); ++k) result.push_back(extent(id, k).desc);
    return result;
  }

  ValueId contents(ValueId id) const {
    while (contents_[static_cast<std::size_t>(id)] != id) id = contents_[static_cast<std::size_t>(id)];
    return id;
  }
  void same_contents(ValueId a, ValueId b) { contents_[static_cast<std::size_t>(contents(a))] = contents(b); }

  /// Innermost loop and branch by node. Inner ones come first in the lists, so that they are written last.
  void find_regions() {
    if (flow_.kinds.empty()) return;
    loop_of_.assign(graph_.nodes.size(), kNone);
    for (std::size_t l = flow_.loops.size(); l-- > 0;) {
      const LoopRange& loop = flow_.loops[l];
      outer_loop_.resize(flow_.loops.size(), kNone);
      outer_loop_[l] = loop_of_[static_cast<std::size_t>(loop.first)];
      std::fill(loop_of_.begin() + loop.first, loop_of_.begin() + loop.last + 1, static_cast<std::int32_t>(l));
    }
    branch_of_.assign(graph_.nodes.size(), kNone);
    outer_branch_.assign(2 * flow_.exclusions.size(), kNone);
    for (std::size_t e = flow_.exclusions.size(); e-- > 0;) {
      const Exclusion& x = flow_.exclusions[e];
      const auto branch = static_cast<std::int32_t>(2 * e);
      outer_branch_[2 * e] = outer_branch_[2 * e + 1] = branch_of_[static_cast<std::size_t>(x.first)];
      std::fill(branch_of_.begin() + x.first, branch_of_.begin() + x.last, branch);
      std::fill(branch_of_.begin() + x.last, branch_of_.begin() + x.end, branch + 1);
    }
  }

  /// Until when a value defined at `def` must last to be read at `step`: a loop that did not make it reads it again.
  std::int64_t last_for(std::int64_t def, std::int64_t step) const {
    if (loop_of_.empty()) return step;
    std::int64_t last = step;
    for (std::int32_t l = loop_of_[static_cast<std::size_t>(step)]; l != kNone;
         l = outer_loop_[static_cast<std::size_t>(l)]) {
      const LoopRange& loop = flow_.loops[static_cast<std::size_t>(l)];
      if (def >= loop.first && def <= loop.last) break;
      last = loop.last;
    }
    return last;
  }

  /// Are these two made in opposite branches?
  bool exclusive(ValueId a, ValueId b) const {
    if (branch_of_.empty() || span(a).def < 0 || span(b).def < 0) return false;
    for (std::int32_t x = branch_of_[static_cast<std::size_t>(span(a).def)]; x != kNone;
         x = outer_branch_[static_cast<std::size_t>(x)])
      for (std::int32_t y = branch_of_[static_cast<std::size_t>(span(b).def)]; y != kNone;
           y = outer_branch_[static_cast<std::size_t>(y)])
        if ((x ^ 1) == y) return true;
    return false;
  }

  void measure_spans() {
    spans_.assign(graph_.values.size(), Span{-1, -1});
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      // What a join reads is its result from then on.
      const auto step = static_cast<std::int64_t>(n) - (flow_.kind(n) == FlatKind::kJoin ? 1 : 0);
      for (const ValueId id : graph_.nodes[n].inputs)
        if (id != kNone) span(id).last = std::max(span(id).last, last_for(span(id).def, step));
      for (const ValueId id : graph_.nodes[n].outputs) {
        if (id == kNone) continue;
        span(id).def = static_cast<std::int64_t>(n);
        span(id).last = std::max(span(id).last, span(id).def);
      }
    }
    for (const graph::Port& port : graph_.outputs) span(port.value).last = kForever;
    for (const graph::State& state : graph_.states) span(state.out).last = kForever;
    for (std::size_t i = 0; i < graph_.inputs.size(); ++i)
      if (i < options_.preserved_inputs.size() && options_.preserved_inputs[i])
        span(graph_.inputs[i].value).last = kForever;
  }

  void add_storage(ValueId id, StorageKind kind, std::int32_t index) {
    Storage s;
    s.kind = kind;
    s.index = index;
    member(id).storage = static_cast<std::int32_t>(map_.storages.size());
    map_.storages.push_back(std::move(s));
    last_reads_.emplace_back();
    append_member(member(id).storage, id);
  }

  void make_storages() {
    map_.members.resize(graph_.values.size());
    for (std::size_t i = 0; i < graph_.values.size(); ++i) {
      map_.members[i].resized.resize(instances() - 1);
      for (std::size_t k = 0; k < instances(); ++k) map_.members[i].at(k).desc = graph(k).values[i].desc;
    }
    for (std::size_t i = 0; i < graph_.inputs.size(); ++i)
      add_storage(graph_.inputs[i].value, StorageKind::kInput, static_cast<std::int32_t>(i));
    for (std::size_t i = 0; i < graph_.outputs.size(); ++i)
      add_storage(graph_.outputs[i].value, StorageKind::kOutput, static_cast<std::int32_t>(i));
    for (std::size_t i = 0; i < graph_.states.size(); ++i)
      add_storage(graph_.states[i].in, StorageKind::kState, static_cast<std::int32_t>(i));
    for (const Node& n : graph_.nodes)
      for (const ValueId id : n.outputs)
        if (id != kNone && member(id).storage < 0) add_storage(id, StorageKind::kActivation, -1);
  }

  /// May `later` be written where `earlier` lies, in time? Equal steps need the kernel's permission.
  bool dies_before(ValueId earlier, ValueId later, const Overwrite& overwrite) const {
    if (span(earlier).last < span(later).def) return true;
    return span(earlier).last == span(later).def && overwrite.input == earlier && overwrite.output == later;
  }

  /// Does a kernel that runs read `operand` and write `result`? Parts of one value may interleave in memory, as the
  /// channels of a concat do, but not the operand and the result of one kernel, unless it leaves the operand there.
  bool computed_from(ValueId result, ValueId operand) const {
    const NodeId n = graph_.value(result).producer;
    if (n == kNone || map_.elided[static_cast<std::size_t>(n)]) return false;
    for (std::size_t i = 0; i < node(n).inputs.size(); ++i)
      if (node(n).inputs[i] == operand && !is_within(n, i)) return true;
    return false;
  }

  /// Does operand i of node n lie in its place within the result?
  bool is_within(NodeId n, std::size_t i) const { return ((map_.within[static_cast<std::size_t>(n)] >> i) & 1U) != 0; }

  /// May a and b, at these byte ranges of one storage, live together?
  bool compatible(ValueId a, const ByteRange& at_a, ValueId b, const ByteRange& at_b,
                  const Overwrite& overwrite) const {
    if (!at_a.overlaps(at_b) || exclusive(a, b)) return true;
    if (contents(a) == contents(b)) return !computed_from(a, b) && !computed_from(b, a);
    return dies_before(a, b, overwrite) || dies_before(b, a, overwrite);
  }

  void append_member(std::int32_t storage_index, ValueId id) {
    std::vector<std::int64_t>& last_reads = last_reads_[static_cast<std::size_t>(storage_index)];
    last_reads.push_back(std::max(last_reads.empty() ? -1 : last_reads.back(), span(id).last));
    map_.storages[static_cast<std::size_t>(storage_index)].members.push_back(id);
  }

  /// May `a` live at these bytes, one range per instance, beside the members that the storage has? Members are looked
  /// at from the latest on; once all earlier ones are dead before `a` is written, none of them needs a look: long
  /// chains stay linear.
  bool fits_beside_members(ValueId a, const std::vector<ByteRange>& at, std::int32_t storage_index,
                           const Overwrite& overwrite) const {
    const auto& members = map_.storages[static_cast<std::size_t>(storage_index)].members;
    const auto& last_reads = last_reads_[static_cast<std::size_t>(storage_index)];
    for (std::size_t i = members.size(); i-- > 0;) {
      if (last_reads[i] < span(a).def) return true;
      for (std::size_t k = 0; k < instances(); ++k)
        if (!compatible(a, at[k], members[i], range(members[i], k), overwrite)) return false;
    }
    return true;
  }

  /// Memory that a caller binds to a port is aligned for the port's own elements, all other for every type.
  bool is_aligned(ValueId id, std::int64_t offset, const Storage& target) const {
    const std::int32_t size = element_size(graph_.value(id).desc.type);
    const bool is_port = target.kind == StorageKind::kInput || target.kind == StorageKind::kOutput;
    if (is_port && size > element_size(graph_.value(target.members.front()).desc.type)) return false;
    return offset % size == 0;
  }

  /// Where a member would lie after a shift; empty when it may not.
  std::vector<ByteRange> moved_range(ValueId id, const std::vector<std::int64_t>& shifts, const Storage& target) const {
    std::vector<ByteRange> moved;
    std::vector<std::int64_t> offsets;
    std::vector<bool> matters;
    for (std::size_t k = 0; k < instances(); ++k) {
      const ByteRange now = range(id, k);
      moved.push_back({now.begin + shifts[k], now.end + shifts[k]});
      if (moved[k].begin < 0 || !is_aligned(id, moved[k].begin, target)) return {};
      if (is_anchored(target) && moved[k].end > anchored_bytes(target, k)) return {};
      offsets.push_back(moved[k].begin);
      matters.push_back(now.begin != now.end);
    }
    return follow_sizes(id, offsets, matters) ? moved : std::vector<ByteRange>();
  }

  /// Moves all members of `from` into `into`, shifted by so many bytes at each instance, when that is sound. Anchored
  /// storages do not grow.
  bool merge(std::int32_t from, std::int32_t into, const std::vector<std::int64_t>& shifts,
             const Overwrite& overwrite) {
    if (from == into) return false;
    Storage& source = map_.storages[static_cast<std::size_t>(from)];
    Storage& target = map_.storages[static_cast<std::size_t>(into)];
    if (is_anchored(source)) return false;
    for (const ValueId a : source.members) {
      // The copy of a state that this invoke reads is never written: only views of it may join.
      if (target.kind == StorageKind::kSwapRead && contents(a) != contents(target.members.front())) return false;
      const std::vector<ByteRange> moved = moved_range(a, shifts, target);
      if (moved.empty() || !fits_beside_members(a, moved, into, overwrite)) return false;
    }
    for (const ValueId a : source.members) {
      member(a).storage = into;
      for (std::size_t k = 0; k < instances(); ++k) extent(a, k).offset += shifts[k];
      append_member(into, a);
    }
    source.members.clear();
    last_reads_[static_cast<std::size_t>(from)].clear();
    return true;
  }

  std::int64_t anchored_bytes(const Storage& s, std::size_t instance) const {
    return std::max(graph(instance).value(s.members.front()).desc.bytes(), s.room);
  }

  /// By how much `part` must move to lie at these bytes within `whole`.
  std::vector<std::int64_t> shifts_to(ValueId part, ValueId whole, const std::vector<std::int64_t>& offsets) const {
    std::vector<std::int64_t> shifts;
    for (std::size_t k = 0; k < instances(); ++k)
      shifts.push_back(extent(whole, k).offset + offsets[k] - extent(part, k).offset);
    return shifts;
  }

  /// Places value `part` at these bytes within value `whole`, merging their storages in whichever direction is legal.
  bool merge_values(ValueId part, ValueId whole, const std::vector<std::int64_t>& offsets, const Overwrite& overwrite) {
    std::vector<std::int64_t> shifts = shifts_to(part, whole, offsets);
    if (merge(member(part).storage, member(whole).storage, shifts, overwrite)) return true;
    for (std::int64_t& shift : shifts) shift = -shift;
    return merge(member(whole).storage, member(part).storage, shifts, overwrite);
  }

  /// Values that are the same bytes by control flow. Nothing else has been merged, so nothing is in the way: each is
  /// dead or not yet made while the others live.
  void share_control_values() {
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n)
      if (flow_.is_mark(n)) map_.elided[n] = true;
    for (const std::vector<ValueId>& same : flow_.shared)
      for (const ValueId id : same)
        merge(member(id).storage, member(same.front()).storage, std::vector<std::int64_t>(instances()), {});
  }

  void leave_out(const ControlCopy& copy) {
    const ValueId from = node(copy.node).inputs[0];
    const ValueId to = node(copy.node).outputs[0];
    if (!placed(from) || !is_dense(from)) return;
    const NodeId producer = graph_.value(from).producer;
    const Overwrite overwrite =
        copy.carried != kNone && producer != kNone ? permitted_overwrite(producer, from, copy.carried) : Overwrite{};
    const ValueId before = contents_[static_cast<std::size_t>(contents(to))];
    same_contents(to, from);
    map_.elided[static_cast<std::size_t>(copy.node)] = true;
    if (merge_values(to, from, std::vector<std::int64_t>(instances()), overwrite)) return;
    map_.elided[static_cast<std::size_t>(copy.node)] = false;
    contents_[static_cast<std::size_t>(before)] = before;
  }

  void update_states_in_place() {
    for (std::size_t i = 0; i < graph_.states.size(); ++i) {
      const graph::State& state = graph_.states[i];
      if (state.out == state.in) continue;
      const NodeId producer = graph_.value(state.out).producer;
      const Overwrite overwrite = permitted_overwrite(producer, state.out, state.in);
      if (merge(member(state.out).storage, member(state.in).storage, std::vector<std::int64_t>(instances()), overwrite))
        continue;
      storage(state.in).kind = StorageKind::kSwapRead;
      storage(state.out).kind = StorageKind::kSwapWrite;
      storage(state.out).index = static_cast<std::int32_t>(i);
    }
  }

  /// Lets a window, what a state holds and new rows behind it, lie where the state does: the rows are written there,
  /// and what the state keeps of them moves to its front.
  void grow_state(NodeId n) {
    const Node& x = node(n);
    if (x.op->input_view == nullptr || instances() != 1 || !placed(x.inputs[0])) return;
    const ValueId window = x.outputs[0];
    Storage& target = storage(x.inputs[0]);
    const std::optional<Views> views = input_views(n, 0);
    if (target.kind != StorageKind::kState || target.members.front() != x.inputs[0] || target.room != 0 || !views ||
        views->offsets[0] != 0 || !are_dense(views->descs) || (footprint(n).within & 1U) == 0 ||
        std::count(x.inputs.begin(), x.inputs.end(), x.inputs[0]) != 1 || storage(window).members.size() != 1)
      return;
    const ValueId next = graph_.states[static_cast<std::size_t>(target.index)].out;
    const Overwrite overwrite = permitted_overwrite(graph_.value(next).producer, next, window);
    target.room = graph_.value(window).desc.bytes();
    map_.within[static_cast<std::size_t>(n)] |= 1U;
    const ValueId before = contents_[static_cast<std::size_t>(contents(window))];
    same_contents(window, x.inputs[0]);
    if (merge(member(window).storage, member(x.inputs[0]).storage, {0}, overwrite)) return;
    contents_[static_cast<std::size_t>(before)] = before;
    map_.within[static_cast<std::size_t>(n)] &= ~std::uint64_t{1};
    target.room = 0;
  }

  /// What the kernel permits at every size.
  ops::Footprint footprint(NodeId n) const {
    ops::Footprint common;
    if (variants_[static_cast<std::size_t>(n)] == nullptr) return common;
    for (std::size_t k = 0; k < instances(); ++k) {
      const Node& node = graph(k).node(n);
      if (k > 0 && is_idle(graph(k), node)) continue;
      const graph::OperandTables tables = graph::operand_tables(graph(k), node);
      const ops::Footprint f =
          ops::footprint(*variants_[static_cast<std::size_t>(n)], tables.call(node), options_.threads);
      if (k == 0) common = f;
      for (std::size_t o = 0; o < std::size(f.overwrites); ++o) common.overwrites[o] &= f.overwrites[o];
      common.within &= f.within;
    }
    return common;
  }

  /// The permission to write `output` over `input` at step n, or nothing.
  Overwrite permitted_overwrite(NodeId n, ValueId output, ValueId input) const {
    const ops::Footprint f = footprint(n);
    for (std::size_t o = 0; o < node(n).outputs.size(); ++o) {
      if (node(n).outputs[o] != output) continue;
      for (std::size_t i = 0; i < node(n).inputs.size(); ++i) {
        // The same value twice among the operands is fine only if both may be overwritten.
        if (node(n).inputs[i] == input && ((f.overwrites[o] >> i) & 1U) == 0) return {};
      }
      return {input, output};
    }
    return {};
  }

  /// Do all kernels that touch `id` accept it with these strides? `except` is a node that will not run.
  bool accepted_strides(ValueId id, const std::vector<TensorDesc>& views, NodeId except) {
    const std::vector<TensorDesc> before = descs(id);
    set_descs(id, views);
    bool accepted = true;
    for (const graph::Uses::Use& use : uses_.of(id))
      accepted = accepted &&
                 (use.node == except || map_.elided[static_cast<std::size_t>(use.node)] || supports_current(use.node));
    const NodeId producer = graph_.value(id).producer;
    if (producer != kNone && producer != except && !map_.elided[static_cast<std::size_t>(producer)])
      accepted = accepted && supports_current(producer);
    set_descs(id, before);
    return accepted;
  }

  /// Does node n's variant support its operands with the strides they have now?
  bool supports_current(NodeId n) {
    if (variants_[static_cast<std::size_t>(n)] == nullptr) return false;
    for (std::size_t k = 0; k < instances(); ++k) {
      const Node& x = graph(k).node(n);
      if (k > 0 && is_idle(graph(k), x)) continue;
      graph::OperandTables tables = graph::operand_tables(graph(k), x);
      for (std::size_t i = 0; i < tables.inputs.size(); ++i)
        if (placed(x.inputs[i])) tables.inputs[i].desc = &extent(x.inputs[i], k).desc;
      for (std::size_t i = 0; i < tables.outputs.size(); ++i)
        if (placed(x.outputs[i])) tables.outputs[i].desc = &extent(x.outputs[i], k).desc;
      if (!ops::supports(*variants_[static_cast<std::size_t>(n)], tables.call(x))) return false;
    }
    return true;
  }

  /// A value that others outside the graph see, or whose strides something already relies on, must stay dense.
  bool must_be_dense(ValueId id) {
    if (uses_.is_external(id)) return true;
    for (const graph::Uses::Use& use : uses_.of(id))
      if (map_.elided[static_cast<std::size_t>(use.node)]) return true;
    return false;
  }

  /// Views of one operand at every instance, and the bytes at which they begin.
  struct Views {
    std::vector<TensorDesc> descs;
    std::vector<std::int64_t> offsets;
  };

  std::optional<Views> output_views(NodeId n) const {
    Views views;
    for (std::size_t k = 0; k < instances(); ++k) {
      const Node& x = graph(k).node(n);
      graph::OperandTables tables = graph::operand_tables(graph(k), x);
      tables.inputs[0].desc = &extent(x.inputs[0], k).desc;
      TensorDesc view = graph(k).value(x.outputs[0]).desc;
      std::int64_t offset = 0;
      if (!x.op->output_view(tables.call(x), &view, &offset)) return std::nullopt;
      views.descs.push_back(view);
      views.offsets.push_back(offset * element_size(view.type));
    }
    if (!strides_follow_sizes(node(n).outputs[0], views.descs)) return std::nullopt;
    return views;
  }

  /// Notes why a step stays that could have been a view.
  void copies(NodeId n, CopyReason reason) {
    CopyReason& known = map_.copies[static_cast<std::size_t>(n)];
    if (known == CopyReason::kNone) known = reason;
  }

  void make_output_view(NodeId n) {
    const Node& x = node(n);
    if (map_.elided[static_cast<std::size_t>(n)] || x.op->output_view == nullptr || x.inputs.empty()) return;
    const ValueId input = x.inputs[0];
    const ValueId output = x.outputs[0];
    if (!placed(input)) return copies(n, CopyReason::kConstant);
    const std::optional<Views> views = output_views(n);
    if (!views) return copies(n, CopyReason::kElements);
    if (!are_dense(views->descs)) {
      if (must_be_dense(output)) return copies(n, CopyReason::kDense);
      if (!accepted_strides(output, views->descs, n)) return copies(n, CopyReason::kKernel);
    }
    const ValueId before = contents_[static_cast<std::size_t>(contents(output))];
    same_contents(output, input);
    const std::vector<TensorDesc> dense = descs(output);
    set_descs(output, views->descs);
    map_.elided[static_cast<std::size_t>(n)] = true;
    if (merge_values(output, input, views->offsets, {})) return;
    map_.elided[static_cast<std::size_t>(n)] = false;
    set_descs(output, dense);
    contents_[static_cast<std::size_t>(before)] = before;
    const bool anchored = is_anchored(storage(input)) || is_anchored(storage(output));
    copies(n, anchored ? CopyReason::kAnchored : CopyReason::kOccupied);
  }

  /// True when nothing in the value's storage lies outside the value.
  bool fills_storage(ValueId id) {
    const auto& members = storage(id).members;
    for (std::size_t k = 0; k < instances(); ++k) {
      const ByteRange own = range(id, k);
      if (!std::ranges::all_of(members, [&](ValueId other) {
            return range(other, k).begin >= own.begin && range(other, k).end <= own.end;
          }))
        return false;
    }
    return true;
  }

  std::optional<Views> input_views(NodeId n, std::size_t i) const {
    Views views;
    for (std::size_t k = 0; k < instances(); ++k) {
      const Node& x = graph(k).node(n);
      graph::OperandTables tables = graph::operand_tables(graph(k), x);
      tables.outputs[0].desc = &extent(x.outputs[0], k).desc;
      TensorDesc view = graph(k).value(x.inputs[i]).desc;
      std::int64_t offset = 0;
      if (!x.op->input_view(tables.call(x), static_cast<int>(i), &view, &offset)) return std::nullopt;
      views.descs.push_back(view);
      views.offsets.push_back(offset * element_size(view.type));
    }
    if (!strides_follow_sizes(node(n).inputs[i], views.descs)) return std::nullopt;
    return views;
  }

  bool wants_input_views(NodeId n) const {
    const auto at = static_cast<std::size_t>(n);
    return options_.concat_views != (at < options_.other_views.size() && options_.other_views[at]);
  }

  void make_input_views(NodeId n) {
    const Node& x = node(n);
    if (x.op->input_view == nullptr || map_.elided[static_cast<std::size_t>(n)]) return;
    if (!wants_input_views(n)) return copies(n, CopyReason::kPreferred);
    const std::uint64_t permitted = footprint(n).within;
    for (std::size_t i = 0; i < x.inputs.size(); ++i) {
      if (((permitted >> i) & 1U) == 0 || is_within(n, i)) continue;
      const CopyReason reason = put_within(n, i);
      if (reason != CopyReason::kNone) copies(n, reason);
    }
    map_.elided[static_cast<std::size_t>(n)] = is_filled(n);
  }

  /// Do the operands that lie within the result make up all of it?
  bool is_filled(NodeId n) const {
    for (std::size_t k = 0; k < instances(); ++k) {
      const Node& x = graph(k).node(n);
      std::int64_t missing = graph(k).value(x.outputs[0]).desc.elements();
      for (std::size_t i = 0; i < x.inputs.size(); ++i)
        if (is_within(n, i)) missing -= graph(k).value(x.inputs[i]).desc.elements();
      if (missing != 0) return false;
    }
    return map_.within[static_cast<std::size_t>(n)] != 0;
  }

  /// May a value with nothing else in its storage but what is a part of it get these strides?
  CopyReason obstacle(NodeId n, ValueId id, const std::vector<TensorDesc>& views) {
    if (is_anchored(storage(id))) return CopyReason::kAnchored;
    if (!is_dense(id) || !fills_storage(id)) return CopyReason::kPart;
    if (are_dense(views)) return CopyReason::kNone;
    if (storage(id).members.size() != 1 || must_be_dense(id)) return CopyReason::kPart;
    return accepted_strides(id, views, n) ? CopyReason::kNone : CopyReason::kKernel;
  }

  /// Lets operand i of node n be produced where it lies within the result, or says why not.
  CopyReason put_within(NodeId n, std::size_t i) {
    const Node& x = node(n);
    const ValueId input = x.inputs[i];
    const ValueId output = x.outputs[0];
    if (!placed(input)) return CopyReason::kConstant;
    if (std::count(x.inputs.begin(), x.inputs.end(), input) != 1) return CopyReason::kTwice;
    const std::optional<Views> views = input_views(n, i);
    if (!views) return CopyReason::kElements;
    if (const CopyReason reason = obstacle(n, input, views->descs); reason != CopyReason::kNone) return reason;
    const ValueId before = contents_[static_cast<std::size_t>(contents(input))];
    same_contents(input, output);
    const std::vector<TensorDesc> dense = descs(input);
    set_descs(input, views->descs);
    const std::uint64_t bit = std::uint64_t{1} << i;
    map_.within[static_cast<std::size_t>(n)] |= bit;
    if (merge(member(input).storage, member(output).storage, shifts_to(input, output, views->offsets), {}))
      return CopyReason::kNone;
    map_.within[static_cast<std::size_t>(n)] &= ~bit;
    set_descs(input, dense);
    contents_[static_cast<std::size_t>(before)] = before;
    return CopyReason::kOccupied;
  }

  bool is_apart(std::size_t n) const { return n < options_.apart.size() && options_.apart[n]; }

  void write_in_place(NodeId n) {
    if (map_.elided[static_cast<std::size_t>(n)]) return;
    const Node& x = node(n);
    const ops::Footprint f = footprint(n);
    for (std::size_t o = 0; o < x.outputs.size(); ++o) {
      for (std::size_t i = 0; i < x.inputs.size() && f.overwrites[o] != 0; ++i) {
        if (((f.overwrites[o] >> i) & 1U) == 0 || !placed(x.inputs[i]) || x.outputs[o] == kNone) continue;
        const Overwrite overwrite = permitted_overwrite(n, x.outputs[o], x.inputs[i]);
        if (overwrite.input == kNone) continue;
        // Element for element: both must walk memory alike.
        if (!is_dense(x.inputs[i]) || !is_dense(x.outputs[o])) continue;
        if (merge_values(x.outputs[o], x.inputs[i], std::vector<std::int64_t>(instances()), overwrite)) break;
      }
    }
  }

  /// The result begins before its operand, which the kernel consumes from front to back.
  void write_overlapping(NodeId n) {
    const Node& x = node(n);
    if (map_.elided[static_cast<std::size_t>(n)] || x.inputs.empty() || x.outputs.empty() || instances() != 1) return;
    const ValueId input = x.inputs[0];
    const ValueId output = x.outputs[0];
    if (!placed(input) || !placed(output) || std::ranges::count(x.inputs, input) != 1) return;
    const std::int64_t lead = footprint(n).lead_bytes;
    if (lead == ops::Footprint::kNoOverlap || !is_dense(input) || !is_dense(output)) return;
    const std::int64_t behind = align_up(std::max<std::int64_t>(lead, 0), format::kBufferAlignment);
    if (merge_values(output, input, {-behind}, {input, output})) overlapped_.push_back(output);
  }

  /// The bytes of a storage of one size that are needed at each step.
  void find_parts(Storage& s) {
    for (std::int64_t step = s.lower; step < s.upper; ++step) {
      ByteRange needed{INT64_MAX, 0};
      for (const ValueId id : s.members) {
        if (step < span(id).def || step > span(id).last) continue;
        needed.begin = std::min(needed.begin, range(id, 0).begin);
        needed.end = std::max(needed.end, range(id, 0).end);
      }
      if (needed.begin >= needed.end) continue;
      const std::int64_t bytes = needed.end - needed.begin;
      Part* last = s.parts.empty() ? nullptr : &s.parts.back();
      if (last != nullptr && last->upper == step && last->offset == needed.begin && last->bytes == bytes) {
        ++last->upper;
      } else {
        s.parts.push_back({step, step + 1, needed.begin, bytes});
      }
    }
  }

  void finish() {
    const auto end = static_cast<std::int64_t>(std::max<std::size_t>(graph_.nodes.size(), 1));
    for (Storage& s : map_.storages) {
      if (s.members.empty()) continue;
      s.lower = end;
      for (const ValueId id : s.members) {
        for (std::size_t k = 0; k < instances(); ++k) s.bytes = std::max(s.bytes, range(id, k).end);
        s.lower = std::min(s.lower, std::max<std::int64_t>(span(id).def, 0));
        s.upper = std::max(s.upper, std::min(span(id).last + 1, end));
      }
      s.upper = std::max(s.upper, s.lower + 1);
      if (s.kind == StorageKind::kInput) s.lower = 0;
      if (s.kind == StorageKind::kState || s.kind == StorageKind::kSwapRead || s.kind == StorageKind::kSwapWrite) {
        s.lower = 0;
        s.upper = end;
      }
    }
    for (const ValueId id : overlapped_)
      if (!is_anchored(storage(id)) && storage(id).parts.empty()) find_parts(storage(id));
  }

  const Graph& graph_;
  const std::vector<const ops::KernelVariant*>& variants_;
  const StorageOptions& options_;
  std::vector<Sizes> sizes_;  ///< of the instances; none for a model without dimensions
  const ControlFlow& flow_;
  graph::Uses uses_;
  std::vector<std::int32_t> loop_of_;       ///< by node: the innermost loop, or none; empty without control flow
  std::vector<std::int32_t> outer_loop_;    ///< by loop
  std::vector<std::int32_t> branch_of_;     ///< by node: 2 e for the first part of exclusion e, 2 e + 1 for the second
  std::vector<std::int32_t> outer_branch_;  ///< by branch
  std::vector<Span> spans_;
  std::vector<ValueId> overlapped_;  ///< results that overlap their operands
  std::vector<ValueId> contents_;    ///< union-find without ranks: values whose contents are parts of one another
  StorageMap map_;
  /// By storage and member: the last read of that member and of all before it.
  std::vector<std::vector<std::int64_t>> last_reads_;
};

}  // namespace

std::string_view describe(CopyReason reason) {
  switch (reason) {
    case CopyReason::kNone: return "";
    case CopyReason::kElements: return "rows of the result do not lie in the operand so";
    case CopyReason::kConstant: return "an operand is a constant";
    case CopyReason::kTwice: return "an operand is needed in two places";
    case CopyReason::kAnchored: return "an input, output or state has memory of its own";
    case CopyReason::kPart: return "an operand is part of another value";
    case CopyReason::kDense: return "an output, or another view, needs it without gaps";
    case CopyReason::kKernel: return "a kernel does not take the strides";
    case CopyReason::kOccupied: return "the memory is needed for other values";
    case CopyReason::kPreferred: return "the plan needs less with the copy";
  }
  return "";
}

StorageMap map_storage(const Graph& graph, const std::vector<const ops::KernelVariant*>& variants,
                       const StorageOptions& options) {
  return StorageMapper(graph, variants, options).run();
}

}  // namespace bantam::compiler
