#include "compiler/planned_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/shape.h"
#include "compiler/body_orders.h"
#include "compiler/branches.h"
#include "compiler/composites.h"
#include "compiler/legalize.h"
#include "compiler/measured_sizes.h"
#include "compiler/order.h"
#include "compiler/order_costs.h"
#include "compiler/scratch.h"
#include "compiler/strips.h"
#include "compiler/ways.h"
#include "compiler/windows.h"
#include "package/control_flow.h"
#include "package/format.h"
#include "plan/problem.h"
#include "plan/verify.h"

namespace bantam::compiler {
namespace {

using graph::NodeId;

bool flag(const std::vector<bool>& flags, std::size_t i) { return i < flags.size() && flags[i]; }

std::int64_t buffer_alignment(std::int64_t bytes) {
  return static_cast<std::int64_t>(bytes >= static_cast<std::int64_t>(format::kBigBufferBytes)
                                       ? format::kBigBufferAlignment
                                       : format::kBufferAlignment);
}

/// Appends `bytes` to a region that grows to `total`; returns the offset.
std::int64_t append(std::int64_t& total, std::int64_t bytes) {
  const std::int64_t offset = align_up(total, buffer_alignment(bytes));
  total = offset + bytes;
  return offset;
}

/// What must wait for what besides its operands.
std::vector<Precedence> precedences_of(const graph::Graph& graph, const std::vector<SizedGraph>& instances,
                                       const PlanOptions& options) {
  std::vector<Precedence> precedences = size_precedences(graph, instances, options.dimensions);
  if (!instances.empty()) return precedences;
  const std::vector<Precedence> of_windows = window_precedences(graph);
  precedences.insert(precedences.end(), of_windows.begin(), of_windows.end());
  return precedences;
}

/// One attempt: a graph in a fixed order with fixed sharing.
class Attempt {
 public:
  Attempt(const graph::Graph& graph, std::vector<SizedGraph> instances, const PlanOptions& options,
          StorageOptions storage, bool strips)
      : options_(options), strips_(strips), instances_(std::move(instances)) {
    const std::vector<std::uint64_t> marks = output_marks(graph);
    FlatGraph flat = flatten(graph);
    for (std::size_t n = 0; n < flat.graph.nodes.size(); ++n)
      marks_.push_back(marks[flat.sources.empty() ? n : static_cast<std::size_t>(flat.sources[n])]);
    model_.graph = std::move(flat.graph);
    model_.flow = std::move(flat.flow);
    model_.threads = options.threads;
    model_.dimensions = options.dimensions;
    storage_options_ = std::move(storage);
    storage_options_.instances = instances_;
    model_.measures = planned_measures(model_.graph, options.dimensions);
    storage_options_.measured_by.resize(options.dimensions.size());
    for (const PlannedMeasure& m : model_.measures) storage_options_.measured_by[m.dimension] = m.by;
  }

  /// `costs`, unless null, receives what other orders of the graph would cost.
  Result<PlannedModel> run(const plan::SolveOptions& search, std::optional<OrderCosts>* costs) {
    std::vector<const graph::Graph*> sizes = {&model_.graph};
    for (std::size_t k = 1; k < instances_.size(); ++k) sizes.push_back(&instances_[k].graph);
    KernelPolicy policy = kernel_policy(options_);
    policy.marks = marks_;
    auto selected = select_kernels(sizes, policy);
    if (!selected) return fail(std::move(selected.error()));
    selected_ = std::move(*selected);
    variants_ = variants_of(selected_);
    storage_options_.flow = &model_.flow;
    map_ = map_storage(model_.graph, variants_, storage_options_);
    if (auto sound = check_shared(); !sound) return fail(std::move(sound.error()));
    add_steps();
    if (auto ends = check_step_runs(); !ends) return fail(std::move(ends.error()));
    add_ports();
    place_states();
    auto placed = place_activations(search);
    if (!placed) return fail(std::move(placed.error()));
    if (costs != nullptr) *costs = costs_of_orders();
    model_.places = place_values(0);
    for (std::size_t k = 0; k < instances_.size(); ++k)
      model_.instances.push_back({std::move(instances_[k]), place_values(k)});
    place_ports();
    note_blocks();
    return std::move(model_);
  }

 private:
  /// What control flow relies on; anything else is a defect of the storage rules, never of the model.
  Result<void> check_shared() const {
    for (const std::vector<graph::ValueId>& same : model_.flow.shared) {
      const Member& first = map_.members[static_cast<std::size_t>(same.front())];
      for (const graph::ValueId id : same) {
        const Member& other = map_.members[static_cast<std::size_t>(id)];
        if (other.storage != first.storage || other.offset != first.offset || !other.desc.is_dense())
          return fail(StatusCode::kUnsupported, "the values of a branch or loop could not be planned together",
                      "report this model: the compiler lost the place of a value");
      }
    }
    return {};
  }

  void add_steps() {
    least_scratch_.assign(model_.graph.nodes.size(), 0);
    for (std::size_t n = 0; n < model_.graph.nodes.size(); ++n) {
      if (map_.elided[n]) continue;
      PlannedStep step;
      step.node = static_cast<graph::NodeId>(n);
      step.variant = variants_[n];
      step.outputs = marks_[n];
      step.fallback = std::move(selected_[n].fallback);
      step.copies = map_.copies[n];
      if (step.copies != CopyReason::kNone) model_.moved_bytes += moved_bytes(n);
      std::int64_t useful = 0;
      for (std::size_t k = 0; k < std::max<std::size_t>(instances_.size(), 1); ++k) {
        const ops::Footprint f = footprint_of(k == 0 ? model_.graph : instances_[k].graph, n, k);
        step.scratch_bytes = std::max(step.scratch_bytes, f.scratch_bytes);
        useful = std::max(useful, f.useful_scratch_bytes);
      }
      model_.scratch_bytes = std::max(model_.scratch_bytes, step.scratch_bytes);
      least_scratch_[n] = step.scratch_bytes;
      model_.steps.push_back(step);
      useful_scratch_.push_back(useful);
    }
  }

  /// By a step that might have been a view: operands that lie in their places within the result stay there.
  std::int64_t moved_bytes(std::size_t n) const {
    const graph::Node& node = model_.graph.nodes[n];
    if (node.op->input_view == nullptr) return model_.graph.value(node.outputs[0]).desc.bytes();
    std::int64_t bytes = 0;
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      if (node.inputs[i] != graph::kNone && ((map_.within[n] >> i) & 1U) == 0)
        bytes += model_.graph.value(node.inputs[i]).desc.bytes();
    return bytes;
  }

  /// What the package's reader asks of loops inside one another.
  Result<void> check_step_runs() const {
    std::vector<double> runs = {1};  // of a step, by how many loops are around it
    std::vector<graph::NodeId> ends;
    double sum = 0;
    for (const PlannedStep& step : model_.steps) {
      while (!ends.empty() && ends.back() < step.node) {
        ends.pop_back();
        runs.pop_back();
      }
      sum += runs.back();
      const auto n = static_cast<std::size_t>(step.node);
      if (model_.flow.kind(n) != FlatKind::kLoopBegin) continue;
      ends.push_back(model_.flow.targets[n] - 1);
      runs.push_back(runs.back() * model_.flow.limits[n]);
      if (runs.back() <= static_cast<double>(format::kMaxStepRuns)) continue;
      return too_many_runs(model_.graph.node(step.node).name, runs.back());
    }
    return sum <= static_cast<double>(format::kMaxStepRuns) ? Result<void>() : too_many_runs(model_.graph.name, sum);
  }

  static tl::unexpected<Error> too_many_runs(const std::string& what, double runs) {
    return fail(StatusCode::kUnsupported,
                fmt::format("'{}': the limits of its loops allow {:.0f} steps in one invoke, at most {} are supported",
                            what, runs, format::kMaxStepRuns),
                "give a smaller limit with --iterations");
  }

  ops::Footprint footprint_of(const graph::Graph& graph, std::size_t n, std::size_t instance) const {
    if (variants_[n] == nullptr) return {};
    const graph::Node& node = graph.nodes[n];
    if (instance > 0 && is_idle(graph, node)) return {};
    graph::OperandTables tables = graph::operand_tables(graph, node);
    const auto desc = [&](graph::ValueId id) { return &map_.members[static_cast<std::size_t>(id)].at(instance).desc; };
    // The runtime asks again with the strides that the values have in memory.
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      if (node.inputs[i] != graph::kNone && !graph.is_constant(node.inputs[i]))
        tables.inputs[i].desc = desc(node.inputs[i]);
    for (std::size_t i = 0; i < node.outputs.size(); ++i)
      if (node.outputs[i] != graph::kNone) tables.outputs[i].desc = desc(node.outputs[i]);
    return ops::footprint(*variants_[n], tables.call(node), options_.threads);
  }

  void add_ports() {
    const auto add = [&](const std::vector<graph::Port>& ports, const std::vector<bool>& external,
                         std::vector<PlannedPort>& out) {
      for (std::size_t i = 0; i < ports.size(); ++i)
        out.push_back(
            {ports[i].name, ports[i].value, flag(external, i), 0, model_.graph.value(ports[i].value).desc.bytes()});
    };
    add(model_.graph.inputs, options_.external_inputs, model_.inputs);
    add(model_.graph.outputs, options_.external_outputs, model_.outputs);
  }

  void place_states() {
    const std::size_t count = model_.graph.states.size();
    model_.state_offsets.assign(count, 0);
    model_.state_swapped.assign(count, false);
    for (const Storage& s : map_.storages) {
      if (s.members.empty()) continue;
      const auto i = static_cast<std::size_t>(s.index);
      if (s.kind == StorageKind::kState) model_.state_offsets[i] = append(model_.state_bytes, s.bytes);
      if (s.kind == StorageKind::kSwapRead) {
        const std::int64_t bytes = model_.graph.value(model_.graph.states[i].in).desc.bytes();
        model_.state_offsets[i] = append(model_.swap_bytes, bytes);
        model_.state_swapped[i] = true;
      }
    }
  }

  bool in_activations(const Storage& s) const {
    if (s.members.empty()) return false;
    const auto i = static_cast<std::size_t>(s.index);
    switch (s.kind) {
      case StorageKind::kActivation: return true;
      case StorageKind::kInput: return !model_.inputs[i].external;
      case StorageKind::kOutput: return !model_.outputs[i].external;
      default: return false;
    }
  }

  std::string storage_name(const Storage& s) const {
    // The widest member says most about what the buffer is for.
    graph::ValueId best = s.members.front();
    for (const graph::ValueId id : s.members)
      if (model_.graph.value(id).desc.bytes() > model_.graph.value(best).desc.bytes()) best = id;
    const graph::Value& v = model_.graph.value(best);
    if (!v.name.empty()) return v.name;
    return v.producer != graph::kNone ? model_.graph.node(v.producer).name : fmt::format("value {}", best);
  }

  std::string storage_detail(const Storage& s) const {
    std::string text;
    for (const graph::ValueId id : s.members) {
      const graph::Value& v = model_.graph.value(id);
      if (!text.empty()) text += "; ";
      text += graph::format_desc(v.desc);
      if (v.producer != graph::kNone) text += fmt::format(" by {}", model_.graph.node(v.producer).op->name);
    }
    return text;
  }

  static PlanBlock::Kind block_kind(const Storage& s) {
    if (s.kind == StorageKind::kInput) return PlanBlock::Kind::kInput;
    return s.kind == StorageKind::kOutput ? PlanBlock::Kind::kOutput : PlanBlock::Kind::kActivation;
  }

  std::vector<StripedStorage> striped_storages() const {
    if (!strips_ || !instances_.empty() || !model_.flow.kinds.empty()) return {};
    std::vector<std::size_t> candidates;
    for (std::size_t i = 0; i < map_.storages.size(); ++i)
      if (in_activations(map_.storages[i])) candidates.push_back(i);
    return fix_strips(model_.graph, map_, candidates, options_.external_inputs);
  }

  OrderCosts costs_of_orders() {
    storage_options_.in_place = false;
    const StorageMap views = map_storage(model_.graph, variants_, storage_options_);
    std::vector<bool> counted;
    for (const Storage& s : views.storages) counted.push_back(in_activations(s));
    const auto precedences = precedences_of(model_.graph, instances_, options_);
    return order_costs(
        {model_.graph, model_.flow, variants_, least_scratch_, views, map_, counted, precedences, options_.threads});
  }

  Result<void> place_activations(const plan::SolveOptions& search) {
    plan::Problem problem;
    const auto add = [&](PlanBlock block, std::int64_t alignment) {
      problem.buffers.push_back({block.name, block.lower, block.upper, block.bytes, alignment, {}});
      model_.blocks.push_back(std::move(block));
    };
    std::vector<std::int32_t> storage_of_block;
    const std::vector<StripedStorage> striped = striped_storages();
    model_.has_strips = !striped.empty();
    for (std::size_t i = 0; i < map_.storages.size(); ++i) {
      const Storage& s = map_.storages[i];
      if (!in_activations(s) || std::ranges::find(striped, i, &StripedStorage::storage) != striped.end()) continue;
      add({storage_name(s), block_kind(s), storage_detail(s), s.lower, s.upper, 0, s.bytes}, buffer_alignment(s.bytes));
      storage_of_block.push_back(static_cast<std::int32_t>(i));
    }
    for (const StripedStorage& s : striped) {
      const Storage& whole = map_.storages[s.storage];
      for (const Strip& strip : s.strips) {
        add({storage_name(whole), block_kind(whole), storage_detail(whole), strip.lower, strip.upper, 0,
             strip.end - strip.begin},
            1);
        problem.buffers.back().fixed = s.offset + strip.begin;
      }
    }
    const std::size_t first_scratch = model_.blocks.size();
    for (const PlannedStep& step : model_.steps) {
      if (step.scratch_bytes == 0) continue;
      const graph::Node& node = model_.graph.node(step.node);
      add({node.name, PlanBlock::Kind::kScratch, fmt::format("scratch of {}", node.op->name), step.node, step.node + 1,
           0, step.scratch_bytes},
          static_cast<std::int64_t>(ops::kAlignment));
    }
    if (is_hopeless(problem)) return {};
    const auto solved = plan::solve(problem, search);
    if (!solved) return fail(Error(solved.error()).in(model_.graph.name));
    const plan::LowerBound& bound = solved->lower_bound;
    const plan::Solution& solution = solved->solution;

    model_.activation_bytes = solution.peak;
    model_.lower_bound_bytes = bound.bytes;
    model_.peak_step = bound.peaks.empty() ? 0 : bound.peaks.front().lower;
    model_.method = solution.method;
    std::vector<std::int64_t> offsets = solution.offsets;
    const bool in_parts = striped.empty() && place_parts(problem, storage_of_block, search.step_budget, &offsets);
    for (std::size_t b = 0; b < model_.blocks.size(); ++b) model_.blocks[b].offset = offsets[b];
    storage_blocks_.assign(map_.storages.size(), -1);
    for (std::size_t b = 0; b < storage_of_block.size(); ++b)
      storage_blocks_[static_cast<std::size_t>(storage_of_block[b])] = static_cast<std::int32_t>(b);
    storage_offsets_.assign(map_.storages.size(), 0);
    for (std::size_t b = 0; b < storage_of_block.size(); ++b)
      storage_offsets_[static_cast<std::size_t>(storage_of_block[b])] = offsets[b];
    for (const StripedStorage& s : striped) storage_offsets_[s.storage] = s.offset;
    std::size_t scratch = first_scratch;
    for (PlannedStep& step : model_.steps)
      if (step.scratch_bytes != 0) {
        step.scratch_block = static_cast<std::int32_t>(scratch);
        step.scratch_offset = offsets[scratch++];
      }
    if (in_parts) {
      if (auto sound = split_blocks(storage_of_block); !sound) return sound;
    }
    model_.useful_scratch = useful_scratch_;
    grow_scratch(&model_);
    return {};
  }

  /// Then the bound is all that becomes known of the plan.
  bool is_hopeless(const plan::Problem& problem) {
    if (options_.hopeless == std::numeric_limits<std::int64_t>::max()) return false;
    const plan::LowerBound bound = plan::lower_bound(problem);
    if (bound.bytes < options_.hopeless) return false;
    model_.activation_bytes = model_.lower_bound_bytes = bound.bytes;
    model_.peak_step = bound.peaks.empty() ? 0 : bound.peaks.front().lower;
    model_.method = "given up";
    storage_blocks_.assign(map_.storages.size(), -1);
    storage_offsets_.assign(map_.storages.size(), 0);
    return true;
  }

  /// Places storages that do not need all their bytes all the time as what they are, where that takes less.
  bool place_parts(const plan::Problem& problem, const std::vector<std::int32_t>& storage_of_block,
                   std::int64_t search_steps, std::vector<std::int64_t>* offsets) {
    constexpr int kRounds = 300;
    std::vector<Composite> composites;
    bool several = false;
    for (std::size_t b = 0; b < problem.buffers.size(); ++b) {
      const plan::Buffer& buffer = problem.buffers[b];
      composites.push_back({{{buffer.lower, buffer.upper, 0, buffer.size}}, buffer.alignment});
      if (b >= storage_of_block.size() || parts_of(storage_of_block[b]).empty()) continue;
      composites.back().parts = parts_of(storage_of_block[b]);
      several = true;
    }
    if (!several || options_.whole_blocks) return false;
    CompositePlan placed = place_composites(composites, search_steps > 0 ? kRounds : 0);
    if (placed.peak >= model_.activation_bytes) return false;
    model_.activation_bytes = placed.peak;
    model_.lower_bound_bytes = placed.bound;
    model_.peak_step = placed.peak_step;
    model_.method = "first fit of overlapping buffers";
    *offsets = std::move(placed.offsets);
    return true;
  }

  const std::vector<Part>& parts_of(std::int32_t storage) const {
    return map_.storages[static_cast<std::size_t>(storage)].parts;
  }

  /// One block for each part of a storage; scratch stays last. What refers to a block refers to its first part.
  Result<void> split_blocks(const std::vector<std::int32_t>& storage_of_block) {
    std::vector<PlanBlock> blocks;
    std::vector<std::int32_t> first;
    plan::Problem problem;
    plan::Solution solution;
    for (std::size_t b = 0; b < model_.blocks.size(); ++b) {
      std::vector<Part> parts{{model_.blocks[b].lower, model_.blocks[b].upper, 0, model_.blocks[b].bytes}};
      if (b < storage_of_block.size() && !parts_of(storage_of_block[b]).empty()) parts = parts_of(storage_of_block[b]);
      first.push_back(static_cast<std::int32_t>(blocks.size()));
      for (const Part& part : parts) {
        PlanBlock block = model_.blocks[b];
        block.lower = part.lower;
        block.upper = part.upper;
        block.offset += part.offset;
        block.bytes = part.bytes;
        problem.buffers.push_back({block.name, block.lower, block.upper, block.bytes, 1, {}});
        solution.offsets.push_back(block.offset);
        if (block.bytes > 0) solution.peak = std::max(solution.peak, block.offset + block.bytes);
        blocks.push_back(std::move(block));
      }
    }
    model_.blocks = std::move(blocks);
    for (std::int32_t& block : storage_blocks_)
      if (block >= 0) block = first[static_cast<std::size_t>(block)];
    for (PlannedStep& step : model_.steps)
      if (step.scratch_block >= 0) step.scratch_block = first[static_cast<std::size_t>(step.scratch_block)];
    auto verified = plan::verify(problem, solution);
    return verified ? Result<void>() : fail(Error(verified.error()).in(model_.graph.name));
  }

  /// Which block each value and port is in, for those who move blocks.
  void note_blocks() {
    for (const Member& m : map_.members)
      model_.value_blocks.push_back(m.storage < 0 ? -1 : storage_blocks_[static_cast<std::size_t>(m.storage)]);
    for (auto* ports : {&model_.inputs, &model_.outputs})
      for (PlannedPort& port : *ports)
        if (!port.external) port.block = model_.value_blocks[static_cast<std::size_t>(port.value)];
  }

  std::vector<ValuePlace> place_values(std::size_t instance) const {
    std::vector<ValuePlace> places(model_.graph.values.size());
    const auto input_count = static_cast<std::uint32_t>(model_.inputs.size());
    for (std::size_t v = 0; v < places.size(); ++v) {
      const Member& m = map_.members[v];
      ValuePlace& place = places[v];
      place.desc = m.at(instance).desc;
      place.offset = m.at(instance).offset;
      if (m.storage < 0) continue;
      const Storage& s = map_.storages[static_cast<std::size_t>(m.storage)];
      const auto i = static_cast<std::uint32_t>(s.index);
      switch (s.kind) {
        case StorageKind::kActivation:
          place.slot = format::kActivations;
          place.offset += storage_offsets_[static_cast<std::size_t>(m.storage)];
          break;
        case StorageKind::kInput: place.slot = format::kFirstPort + i; break;
        case StorageKind::kOutput: place.slot = format::kFirstPort + input_count + i; break;
        case StorageKind::kState:
          place.slot = format::kState;
          place.offset += model_.state_offsets[i];
          break;
        case StorageKind::kSwapRead:
        case StorageKind::kSwapWrite:
          place.slot = s.kind == StorageKind::kSwapRead ? format::kSwapRead : format::kSwapWrite;
          place.offset += model_.state_offsets[i];
          break;
      }
    }
    return places;
  }

  void place_ports() {
    for (std::size_t i = 0; i < map_.storages.size(); ++i) {
      const Storage& s = map_.storages[i];
      if (s.members.empty()) continue;
      if (s.kind == StorageKind::kInput)
        model_.inputs[static_cast<std::size_t>(s.index)].default_offset = storage_offsets_[i];
      if (s.kind == StorageKind::kOutput)
        model_.outputs[static_cast<std::size_t>(s.index)].default_offset = storage_offsets_[i];
    }
  }

  const PlanOptions& options_;
  bool strips_;
  std::vector<SizedGraph> instances_;  ///< none for a model without dimensions
  StorageOptions storage_options_;
  std::vector<std::uint64_t> marks_;                 ///< by node
  std::vector<Selection> selected_;                  ///< by node
  std::vector<const ops::KernelVariant*> variants_;  ///< the same, kernels only
  std::vector<std::int64_t> useful_scratch_;         ///< by step
  std::vector<std::int64_t> least_scratch_;          ///< by node: what the kernel cannot do without
  StorageMap map_;
  std::vector<std::int64_t> storage_offsets_;  ///< by storage, within the activations
  std::vector<std::int32_t> storage_blocks_;   ///< by storage: index into the model's blocks, or -1
  PlannedModel model_;
};

}  // namespace

KernelPolicy kernel_policy(const PlanOptions& options) {
  return {.backend = options.backend,
          .rules = options.backends,
          .kernels = options.kernels,
          .target = options.target,
          .sparing = options.sparing,
          .threads = options.threads,
          .stores = options.stores};
}

Result<std::vector<NodeId>> order_of(const graph::Graph& graph, const PlanOptions& options, const Way& way) {
  if (!way.order.empty()) return way.order;
  if (!way.named.empty()) return way.named;
  const std::vector<Precedence> precedences = precedences_of(graph, options.instances, options);
  auto order = way.choice.by_memory ? order_by_memory(graph, precedences) : order_of_model(graph, precedences);
  if (order.size() == graph.nodes.size()) return order;
  return fail(StatusCode::kUnsupported, "a size that the model computes depends on itself",
              "report this model: no order of its steps fits");
}

Result<PlannedModel> plan_in_one_way(const graph::Graph& graph, const PlanOptions& options, const Way& way,
                                     const plan::SolveOptions& search, std::optional<OrderCosts>* costs) {
  const auto order = order_of(graph, options, way);
  if (!order) return fail(order.error());
  graph::Graph ordered = graph;
  std::vector<SizedGraph> instances = options.instances;
  reorder_bodies(ordered, way.body_orders);
  reorder(ordered, *order);
  if (way.choice.by_memory && way.body_orders.empty()) order_bodies_by_memory(ordered);
  for (SizedGraph& instance : instances) reorder(instance.graph, *order);
  StorageOptions storage;
  storage.concat_views = way.choice.concat_views;
  storage.in_place = way.choice.in_place;
  storage.other_views = way.other_views;
  storage.windows = way.windows;
  storage.apart = way.apart;
  storage.overlaps = way.overlaps;
  storage.preserved_inputs = options.external_inputs;
  storage.threads = options.threads;
  return Attempt(ordered, std::move(instances), options, std::move(storage), way.choice.strips).run(search, costs);
}

namespace {

/// Is a value empty that has elements at the bounds?
bool loses_elements(const SizedGraph& instance, const SizedGraph& bounds) {
  return !std::ranges::equal(instance.graph.values, bounds.graph.values, [](const auto& a, const auto& b) {
    return a.desc.elements() != 0 || b.desc.elements() == 0;
  });
}

/// Makes the model work from the next size on, for the dimension that alone is not at its bound here.
void raise_least(PlanOptions& options, const Sizes& sizes) {
  const Sizes& bounds = options.instances.front().sizes;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    Sizes others = sizes;
    others[d] = bounds[d];
    if (others == bounds) options.dimensions[d].least = std::max(options.dimensions[d].least, sizes[d] + 1);
  }
}

/// Is it only what the model measures that is zero?
bool finds_nothing(const PlanOptions& options, const SizedGraph& instance) {
  std::vector<bool> measured(options.dimensions.size(), false);
  for (const PlannedMeasure& m : planned_measures(instance.graph, options.dimensions)) measured[m.dimension] = true;
  for (std::size_t d = 0; d < measured.size(); ++d)
    if (instance.sizes[d] == 0 && !measured[d]) return false;
  return std::ranges::find(measured, true) != measured.end();
}

/// Most fast kernels leave out tensors without elements. A model whose kernels do works from the size on at which
/// nothing is empty; slower kernels are not taken for the sake of smaller sizes, unless the model itself may find
/// nothing: that is no choice of the application's.
Result<void> settle_empty_sizes(PlanOptions& options) {
  std::vector<const graph::Graph*> full;
  for (const SizedGraph& instance : options.instances)
    if (!loses_elements(instance, options.instances.front())) full.push_back(&instance.graph);
  if (full.size() == options.instances.size()) return {};
  const auto selected = select_kernels(full, {.backend = options.backend,
                                              .rules = options.backends,
                                              .kernels = options.kernels,
                                              .target = options.target,
                                              .stores = options.stores});
  if (!selected) return fail(selected.error());
  const std::vector<const ops::KernelVariant*> variants = variants_of(*selected);
  std::vector<SizedGraph> kept;
  for (SizedGraph& instance : options.instances) {
    if (supported(variants, instance.graph) || finds_nothing(options, instance)) {
      kept.push_back(instance);
    } else {
      raise_least(options, instance.sizes);
    }
  }
  options.instances = std::move(kept);
  return {};
}

void compact_all(graph::Graph& graph) {
  for (graph::Node& node : graph.nodes)
    for (graph::Graph& body : node.bodies) compact_all(body);
  graph::compact(graph);
}

}  // namespace

Result<PlannedModel> plan_model(graph::Graph graph, const PlanOptions& given) {
  if (auto legal = legalize(graph); !legal) return fail(std::move(legal.error()));
  compact_all(graph);
  PlanOptions options = given;
  if (auto settled = settle_empty_sizes(options); !settled) return fail(std::move(settled.error()));
  return plan_in_the_best_way(graph, options);
}

graph::Graph with_kernels(const PlannedModel& model) {
  graph::Graph graph = model.graph;
  for (const PlannedStep& step : model.steps)
    if (step.stream < 0) graph.node(step.node).kernel = step.variant;
  return graph;
}

}  // namespace bantam::compiler
