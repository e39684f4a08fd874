#include "compiler/order_costs.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/shape.h"
#include "package/format.h"

namespace bantam::compiler {
namespace {

using graph::kNone;
using graph::NodeId;
using graph::ValueId;

/// Two buffers that became one are rounded once.
constexpr std::int64_t kRounding = 2 * static_cast<std::int64_t>(format::kBufferAlignment);

class Costs {
 public:
  explicit Costs(const OrderSource& source) : s_(source), uses_(source.graph), steps_(source.graph.nodes.size()) {}

  OrderCosts run() {
    part_of_.assign(s_.views.storages.size(), -1);
    for (std::size_t n = 0; n < steps_.size(); ++n) join_parts(n);
    add_buffers();
    for (std::size_t n = 0; n < steps_.size(); ++n) add_step(n);
    for (std::size_t n = 0; n < steps_.size(); ++n) add_overlap(n);
    for (const Precedence& p : s_.precedences) steps_[static_cast<std::size_t>(p.after)].after.push_back(p.before);
    keep_states_in_place();
    add_control_flow();
    result_.problem = {std::move(buffers_), std::move(steps_)};
    result_.exact = result_.exact && overlaps_.empty() && s_.flow.kinds.empty();
    if (!result_.exact) relax();
    if (!s_.flow.kinds.empty()) result_.problem = {};
    return std::move(result_);
  }

 private:
  std::int32_t storage(ValueId id) const {
    std::int32_t index = id == kNone ? -1 : s_.views.members[static_cast<std::size_t>(id)].storage;
    while (index >= 0 && part_of_[static_cast<std::size_t>(index)] >= 0)
      index = part_of_[static_cast<std::size_t>(index)];
    return index;
  }

  void add_buffers() {
    for (std::size_t i = 0; i < s_.views.storages.size(); ++i) {
      const Storage& storage = s_.views.storages[i];
      const bool counts = !storage.members.empty() && s_.counted[i] && part_of_[i] < 0;
      const std::int64_t rounded = align_up(storage.bytes, static_cast<std::int64_t>(format::kBufferAlignment));
      if (counts) result_.rounding = std::max(result_.rounding, rounded - storage.bytes);
      buffers_.push_back({counts ? rounded : std::int64_t{0}, storage.kind == StorageKind::kInput,
                          storage.kind == StorageKind::kOutput});
    }
    for (const graph::Port& port : s_.graph.outputs)
      if (storage(port.value) >= 0) buffers_[static_cast<std::size_t>(storage(port.value))].to_end = true;
    within_.assign(buffers_.size(), false);
  }

  void add_step(std::size_t n) {
    const graph::Node& node = s_.graph.nodes[n];
    plan::OrderStep& step = steps_[n];
    for (const ValueId id : node.inputs) {
      if (storage(id) >= 0) step.reads.push_back(storage(id));
      if (id != kNone && s_.graph.value(id).producer != kNone) step.after.push_back(s_.graph.value(id).producer);
    }
    if (s_.views.elided[n]) return;
    for (const ValueId id : node.outputs)
      if (storage(id) >= 0) step.writes.push_back(storage(id));
    step.scratch = s_.scratch[n];
    add_overwrites(n);
  }

  /// Calls `visit` with each operand and result of a node that the kernel permits to lie on one another.
  template <typename Visit>
  void for_each_overwrite(std::size_t n, const Visit& visit) const {
    const graph::Node& node = s_.graph.nodes[n];
    if (s_.views.elided[n] || s_.variants[n] == nullptr) return;
    const graph::OperandTables tables = graph::operand_tables(s_.graph, node);
    const ops::Footprint footprint = ops::footprint(*s_.variants[n], tables.call(node), s_.threads);
    for (std::size_t o = 0; o < node.outputs.size() && o < std::size(footprint.overwrites); ++o) {
      for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        if (!permits(node, footprint.overwrites[o], i)) continue;
        const std::int32_t read = storage(node.inputs[i]);
        const std::int32_t written = storage(node.outputs[o]);
        if (read < 0 || written < 0 || read == written || both_anchored(read, written)) continue;
        visit(node.inputs[i], read, node.outputs[o], written);
      }
    }
  }

  /// Is overwriting a matter of two whole buffers?
  bool is_whole(ValueId input, std::int32_t read, ValueId output, std::int32_t written) const {
    return counted(read) && counted(written) && fills(input, read) && fills(output, written);
  }

  /// What the plan writes over an operand that has no other reader is a part of the operand's buffer in every order.
  void join_parts(std::size_t n) {
    for_each_overwrite(n, [&](ValueId input, std::int32_t read, ValueId output, std::int32_t written) {
      if (is_whole(input, read, output, written) || uses_.of(input).size() != 1 || uses_.is_external(input)) return;
      const auto place = [&](ValueId id) { return s_.shared.members[static_cast<std::size_t>(id)].storage; };
      if (place(input) != place(output) || storage(input) == storage(output)) return;
      const auto can_join = [&](std::int32_t index, ValueId whole) {
        const Storage& joining = s_.views.storages[static_cast<std::size_t>(index)];
        return joining.kind == StorageKind::kActivation && fills(whole, index);
      };
      if (can_join(written, output)) {
        part_of_[static_cast<std::size_t>(written)] = read;
      } else if (can_join(read, input)) {
        part_of_[static_cast<std::size_t>(read)] = written;
      }
    });
  }

  void add_overwrites(std::size_t n) {
    for_each_overwrite(n, [&](ValueId input, std::int32_t read, ValueId output, std::int32_t written) {
      if (counted(read) && counted(written)) steps_[n].overwrites.push_back({written, read});
      if (is_whole(input, read, output, written)) return;
      // One may lie within the other for as long as it lives.
      result_.exact = false;
      within_[static_cast<std::size_t>(written)] = true;
      if (!counted(written)) within_[static_cast<std::size_t>(read)] = true;
    });
  }

  /// A value that is an operand twice must be permitted as both.
  static bool permits(const graph::Node& node, std::uint64_t overwrites, std::size_t i) {
    for (std::size_t other = 0; other < node.inputs.size(); ++other)
      if (node.inputs[other] == node.inputs[i] && ((overwrites >> other) & 1U) == 0) return false;
    return true;
  }

  bool counted(std::int32_t index) const { return s_.counted[static_cast<std::size_t>(index)]; }

  /// Two ports or states never share memory.
  bool both_anchored(std::int32_t a, std::int32_t b) const {
    return s_.views.storages[static_cast<std::size_t>(a)].kind != StorageKind::kActivation &&
           s_.views.storages[static_cast<std::size_t>(b)].kind != StorageKind::kActivation;
  }

  /// Is the value all that its buffer holds?
  bool fills(ValueId id, std::int32_t index) const {
    const Member& member = s_.views.members[static_cast<std::size_t>(id)];
    return member.offset == 0 && member.desc.bytes() == s_.views.storages[static_cast<std::size_t>(index)].bytes;
  }

  /// What results save that begin before their operand and overwrite it (StorageOptions::overlaps).
  void add_overlap(std::size_t n) {
    const graph::Node& node = s_.graph.nodes[n];
    if (s_.views.elided[n] || s_.variants[n] == nullptr || node.inputs.empty() || node.outputs.empty()) return;
    const std::int32_t read = storage(node.inputs[0]);
    const std::int32_t written = storage(node.outputs[0]);
    if (read < 0 || written < 0 || read == written || both_anchored(read, written)) return;
    const graph::OperandTables tables = graph::operand_tables(s_.graph, node);
    const std::int64_t lead = ops::footprint(*s_.variants[n], tables.call(node), s_.threads).lead_bytes;
    if (lead == ops::Footprint::kNoOverlap) return;
    if (!is_whole(node.inputs[0], read, node.outputs[0], written)) {
      result_.exact = false;
      within_[static_cast<std::size_t>(written)] = true;
      return;
    }
    const std::int64_t in = s_.graph.value(node.inputs[0]).desc.bytes();
    const std::int64_t out = s_.graph.value(node.outputs[0]).desc.bytes();
    const std::int64_t together = std::max(std::max<std::int64_t>(lead, 0) + in, out);
    overlaps_.push_back({n, {written, read, std::max<std::int64_t>(in + out - together, 0) + kRounding}});
  }

  /// States that this order updates where they lie stay so: whoever touches their memory does it in the same order.
  void keep_states_in_place() {
    for (std::size_t i = 0; i < s_.views.storages.size(); ++i) {
      if (s_.views.storages[i].kind != StorageKind::kState) continue;
      const auto index = static_cast<std::int32_t>(i);
      std::optional<std::int32_t> writer;
      std::vector<std::int32_t> readers;
      for (std::size_t n = 0; n < steps_.size(); ++n) {
        const auto step = static_cast<std::int32_t>(n);
        const bool writes = std::ranges::find(steps_[n].writes, index) != steps_[n].writes.end();
        const bool reads = std::ranges::find(steps_[n].reads, index) != steps_[n].reads.end();
        if (!writes && !reads) continue;
        if (writer) steps_[n].after.push_back(*writer);
        if (writes) {
          for (const std::int32_t reader : readers) steps_[n].after.push_back(reader);
          readers.clear();
          writer = step;
        } else {
          readers.push_back(step);
        }
      }
    }
  }

  /// Keeps bodies between their jumps, and marks what branches and loops hand on.
  void add_control_flow() {
    for (const Exclusion& x : s_.flow.exclusions) enclose(x.first - 1, x.end);
    for (const LoopRange& loop : s_.flow.loops) enclose(loop.first, loop.last);
    const auto mark = [&](ValueId id) {
      if (storage(id) >= 0) within_[static_cast<std::size_t>(storage(id))] = true;
    };
    for (const std::vector<ValueId>& same : s_.flow.shared) std::ranges::for_each(same, mark);
    for (const ControlCopy& copy : s_.flow.copies) mark(s_.graph.node(copy.node).outputs[0]);
  }

  /// What stands between two steps stays there: a branch and its join, or a loop's enter and end.
  void enclose(std::int32_t begin, std::int32_t end) {
    for (std::int32_t n = begin + 1; n < end; ++n) {
      steps_[static_cast<std::size_t>(n)].after.push_back(begin);
      steps_[static_cast<std::size_t>(end)].after.push_back(n);
    }
  }

  void relax() {
    result_.relaxed = result_.problem;
    for (std::size_t b = 0; b < within_.size(); ++b)
      if (within_[b]) result_.relaxed.buffers[b].bytes = 0;
    for (const auto& [step, overlap] : overlaps_) result_.relaxed.steps[step].overwrites.push_back(overlap);
  }

  const OrderSource& s_;
  graph::Uses uses_;
  std::vector<std::int32_t> part_of_;  ///< by storage: the one that it lies in; -1 for none
  std::vector<plan::OrderBuffer> buffers_;
  std::vector<plan::OrderStep> steps_;
  std::vector<bool> within_;  ///< by buffer: may be written into a part of another, or be written over in part
  std::vector<std::pair<std::size_t, plan::OrderStep::Overwrite>> overlaps_;  ///< by node
  OrderCosts result_;
};

}  // namespace

OrderCosts order_costs(const OrderSource& source) { return Costs(source).run(); }

}  // namespace bantam::compiler
