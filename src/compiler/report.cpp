#include "compiler/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "compiler/cost_model.h"
#include "compiler/narrow_weights.h"
#include "compiler/select.h"
#include "ops/data/copy/copy.h"

namespace bantam::compiler {
namespace {

std::int64_t alive_at(const std::vector<PlanBlock>& blocks, std::int64_t step) {
  std::int64_t bytes = 0;
  for (const PlanBlock& block : blocks)
    if (block.lower <= step && step < block.upper) bytes += block.bytes;
  return bytes;
}

std::int64_t packed_weight_bytes(const graph::Graph& graph, const graph::Node& node, const ops::KernelVariant& variant,
                                 const ops::OpCall& call) {
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    if (!graph.is_constant(node.inputs[i])) continue;
    const std::int64_t packed = ops::packed_bytes(variant, call, static_cast<int>(i));
    bytes += packed > 0 ? packed : graph.value(node.inputs[i]).desc.bytes();
  }
  return bytes;
}

/// What values are in the source model, and which steps their contents come from.
class Origins {
 public:
  explicit Origins(const PlannedModel& model)
      : graph_(model.graph), steps_(graph_.values.size()), in_body_(graph_.nodes.size(), false) {
    find_bodies(model.flow);
    std::size_t next = 0;
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      while (next < model.steps.size() && model.steps[next].stream >= 0) ++next;
      const bool runs = next < model.steps.size() && static_cast<std::size_t>(model.steps[next].node) == n;
      std::set<std::size_t> steps;
      if (runs) {
        steps.insert(next++);
      } else {
        // A view: its contents are those of its operands.
        for (const graph::ValueId id : graph_.nodes[n].inputs)
          if (id != graph::kNone) steps.insert(steps_[at(id)].begin(), steps_[at(id)].end());
      }
      if (model.flow.is_mark(n)) {
        set_shared(model.flow, graph_.nodes[n].outputs);
        continue;
      }
      for (const graph::ValueId id : graph_.nodes[n].outputs)
        if (id != graph::kNone) steps_[at(id)].assign(steps.begin(), steps.end());
    }
  }

  OperandReport of(graph::ValueId id) const {
    if (id == graph::kNone || graph_.is_constant(id)) return {};
    const graph::Value& value = graph_.value(id);
    // What a body computes is nothing that the source model has once per invoke.
    const bool inside = value.producer != graph::kNone && in_body_[at(value.producer)];
    return {inside ? std::string() : value.name, {value.layout.v, value.layout.v + value.layout.size}, steps_[at(id)]};
  }

 private:
  static std::size_t at(graph::ValueId id) { return static_cast<std::size_t>(id); }

  void find_bodies(const ControlFlow& flow) {
    for (const LoopRange& loop : flow.loops)
      std::fill(in_body_.begin() + loop.first, in_body_.begin() + loop.last + 1, true);
    for (const Exclusion& x : flow.exclusions) std::fill(in_body_.begin() + x.first, in_body_.begin() + x.end, true);
  }

  /// What control flow makes of several values comes from the steps that any of them comes from.
  void set_shared(const ControlFlow& flow, const std::vector<graph::ValueId>& results) {
    for (const std::vector<graph::ValueId>& same : flow.shared) {
      if (std::ranges::find(results, same.front()) == results.end()) continue;
      std::set<std::size_t> steps;
      for (const graph::ValueId id : same) steps.insert(steps_[at(id)].begin(), steps_[at(id)].end());
      steps_[at(same.front())].assign(steps.begin(), steps.end());
    }
  }

  const graph::Graph& graph_;
  std::vector<std::vector<std::size_t>> steps_;  ///< by value
  std::vector<bool> in_body_;                    ///< by node
};

}  // namespace

namespace {

StepReport report_copy(const PlannedModel& model, const PlannedStep& step) {
  const PlannedStream& stream = model.streams[static_cast<std::size_t>(step.stream)];
  const graph::Node& node = model.graph.node(step.node);
  StepReport s;
  s.name = node.name + " weights";
  s.origin = "copy";
  s.op = ops::kCopy.name;
  s.variant = step.variant->name;
  s.index = step.node;
  s.output = fmt::format("u8[{}]", stream.bytes);
  s.output_bytes = stream.bytes;
  s.alive_bytes = alive_at(model.blocks, step.node);
  s.operands.resize(2);
  return s;
}

void report_streams(const PlannedModel& model, ModelReport& report) {
  for (const PlannedStream& stream : model.streams) {
    const PlanBlock& block = model.blocks[static_cast<std::size_t>(stream.block)];
    report.streams.push_back({block.name, stream.bytes, stream.reads, block.tier, block.offset});
  }
  for (const PlannedStream& resident : model.residents)
    report.residents.push_back(
        {model.graph.node(resident.node).name, resident.bytes, resident.reads, model.state_tier, resident.offset});
}

}  // namespace

ModelReport report_model(const PlannedModel& model, const std::string& name, std::int64_t weights_bytes,
                         const Target& target) {
  ModelReport report;
  report.name = name;
  report.activation_bytes = std::accumulate(model.tier_bytes.begin(), model.tier_bytes.end(), model.activation_bytes);
  report.lower_bound_bytes = model.lower_bound_bytes;
  report.scratch_bytes = model.scratch_bytes;
  report.added_scratch_bytes = model.added_scratch_bytes;
  report.state_bytes = model.state_bytes + 2 * model.swap_bytes;
  report.copied_bytes = model.copied_bytes;
  report.weights_bytes = weights_bytes;
  report.peak_step = model.peak_step;
  report.order_bound_bytes = model.order_bound_bytes;
  report.method = model.method;
  report.trials = model.trials;
  report.blocks = model.blocks;
  for (const Dimension& d : model.dimensions) report.dimensions.push_back({d.name, d.least, d.bound, false, {}});
  for (const PlannedMeasure& m : model.measures) {
    report.dimensions[m.dimension].measured = true;
    if (m.by != graph::kNone) report.dimensions[m.dimension].set_by = model.graph.node(m.by).name;
  }
  const Origins origins(model);
  for (const graph::Port& port : model.graph.outputs) {
    report.outputs.push_back(origins.of(port.value));
    report.outputs.back().tensor = port.name;
  }
  report_streams(model, report);
  const Machine machine = machine_of(target, graph::constant_bytes(model.graph));
  for (const PlannedStep& step : model.steps) {
    if (step.stream >= 0) {
      report.steps.push_back(report_copy(model, step));
      continue;
    }
    const graph::Node& node = model.graph.node(step.node);
    const graph::OperandTables tables = graph::operand_tables(model.graph, node);
    const ops::OpCall call = tables.call(node);
    StepReport s;
    s.name = node.name;
    s.origin = node.origin;
    s.op = node.op->name;
    if (step.variant != nullptr) s.variant = step.variant->name;
    s.fallback = step.fallback;
    if (step.variant != nullptr)
      for (const ops::KernelVariant* other : alternatives(model.graph, node, *step.variant, target))
        s.alternatives.emplace_back(other->name);
    s.copies = describe(step.copies);
    s.index = step.node;
    if (!node.outputs.empty() && node.outputs.front() != graph::kNone) {
      const TensorDesc& desc = model.graph.value(node.outputs.front()).desc;
      s.output = graph::format_desc(desc);
      s.output_bytes = desc.bytes();
    }
    if (step.variant != nullptr) s.weights_bytes = packed_weight_bytes(model.graph, node, *step.variant, call);
    if (const auto* narrowing = step.variant != nullptr ? ops::find_narrowing(*node.op, *step.variant) : nullptr) {
      const NarrowingEffect effect = narrowing_effect(call, *step.variant, *narrowing);
      s.stored_as = narrowing->form.type;
      s.narrowed_bytes = effect.saved_bytes;
      s.narrowing_error = effect.error;
    }
    s.scratch_bytes = step.scratch_bytes;
    s.alive_bytes = alive_at(model.blocks, step.node);
    s.work = node.op->work != nullptr ? node.op->work(call) : 0;
    if (step.variant != nullptr) {
      s.predicted_us = predicted_ns(*node.op, *step.variant, call, machine) / 1000;
      const IntegerTimes times = integer_times(*node.op, *step.variant, call, machine);
      report.integer_us += times.integer_ns / 1000;
      report.float_us += times.float_ns / 1000;
    }
    for (const auto* operands : {&node.inputs, &node.outputs})
      for (const graph::ValueId id : *operands)
        if (step.variant != nullptr) s.operands.push_back(origins.of(id));
    report.steps.push_back(std::move(s));
  }
  return report;
}

}  // namespace bantam::compiler
