#include "compiler/emit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <utility>

#include "base/shape.h"
#include "compiler/weight_streams.h"
#include "ops/data/copy/copy.h"
#include "package/control_flow.h"
#include "package/size_patches.h"

namespace bantam::compiler {
namespace {

using graph::kNone;
using graph::ValueId;

class Emitter {
 public:
  Emitter(const PlannedModel& model, format::PackageData& package) : model_(model), package_(package) {
    for (const PlannedInstance& instance : model.instances) sizes_.push_back(instance.sized.sizes);
  }

  Result<std::int64_t> run(const std::string& name) {
    data_.name = name;
    data_.threads = static_cast<std::uint16_t>(model_.threads);
    data_.state_bytes = static_cast<std::uint64_t>(model_.state_bytes);
    data_.swap_bytes = static_cast<std::uint64_t>(model_.swap_bytes);
    data_.activation_bytes = static_cast<std::uint64_t>(model_.activation_bytes);
    data_.tier_bytes.assign(model_.tier_bytes.begin(), model_.tier_bytes.end());
    if (!model_.tier_bytes.empty())
      for (const PlannedStep& step : model_.steps)
        data_.scratch_tiers.push_back(static_cast<std::uint8_t>(step.scratch_tier));
    data_.metadata = model_.graph.metadata;
    add_ports(model_.inputs, data_.inputs);
    add_ports(model_.outputs, data_.outputs);
    add_initial_states();
    if (auto added = add_all_params(); !added) return fail(std::move(added.error()));
    for (const PlannedStep& step : model_.steps) {
      auto added = add_step(step);
      if (!added) return fail(std::move(added.error()));
    }
    if (auto added = add_dimensions(); !added) return fail(std::move(added.error()));
    add_branches();
    package_.models.push_back(std::move(data_));
    return weights_bytes_;
  }

 private:
  /// A word, by position, and what it follows.
  using Patch = std::pair<std::uint32_t, SizeExpression>;

  void add_ports(const std::vector<PlannedPort>& planned, std::vector<format::PortData>& out) {
    for (const PlannedPort& port : planned) {
      format::PortData p;
      p.name = port.name;
      p.value = value_index(port.value);
      p.slot = format::kFirstPort + next_port_++;
      p.default_slot = port.external ? format::kUnplaced : activation_slot(model_, port.tier);
      p.default_offset = static_cast<std::uint64_t>(port.default_offset);
      p.bytes = static_cast<std::uint64_t>(port.bytes);
      p.quantization = model_.graph.value(port.value).quantization.value_or(Quantization{});
      out.push_back(std::move(p));
    }
  }

  void add_initial_states() {
    for (std::size_t i = 0; i < model_.graph.states.size(); ++i) {
      const auto& initial = model_.graph.states[i].initial;
      if (!initial ||
          std::all_of(initial->bytes.begin(), initial->bytes.end(), [](std::byte b) { return b == std::byte{0}; }))
        continue;
      data_.state_init.emplace_back(static_cast<std::uint64_t>(model_.state_offsets[i]), store(initial->bytes),
                                    initial->bytes.size(),
                                    model_.state_swapped[i] ? format::kSwapRead : format::kState);
    }
  }

  /// Marks are worth their bytes only where some output can do without some step.
  void add_branches() {
    OutputSet all;
    for (std::size_t o = 0; o < model_.outputs.size(); ++o) all.add(o);
    if (std::ranges::all_of(model_.steps, [&](const auto& s) { return (all.marks() & ~s.outputs) == 0; })) return;
    for (const PlannedStep& step : model_.steps) data_.step_outputs.push_back(step.outputs);
  }

  std::uint64_t store(std::span<const std::byte> bytes) {
    const std::uint64_t offset = package_.weights.add(bytes);
    if (!bytes.empty() && stored_.insert(offset).second) weights_bytes_ += static_cast<std::int64_t>(bytes.size());
    return offset;
  }

  std::uint32_t append_value(const format::Value& value) {
    data_.values.push_back(value);
    return static_cast<std::uint32_t>(data_.values.size()) - 1;
  }

  /// Index of a value that lives in memory.
  std::uint32_t value_index(ValueId id) {
    const auto [it, fresh] = indices_.try_emplace({id, 0}, 0);
    if (fresh) {
      const ValuePlace& place = model_.places[static_cast<std::size_t>(id)];
      const std::int64_t bytes = storage_span(place.desc) * element_size(place.desc.type);
      it->second = append_value(format::make_value(place.desc, place.slot, static_cast<std::uint64_t>(place.offset),
                                                   static_cast<std::uint64_t>(bytes)));
    }
    return it->second;
  }

  /// Index of a constant as one kernel wants it; the same bytes give the same index.
  std::uint32_t constant_index(ValueId id, std::span<const std::byte> bytes) {
    const std::uint64_t offset = store(bytes);
    const auto [it, fresh] = indices_.try_emplace({id, offset + 1}, 0);
    if (fresh)
      it->second =
          append_value(format::make_value(model_.graph.value(id).desc, format::kWeights, offset, bytes.size()));
    return it->second;
  }

  std::uint16_t kernel_index(const ops::OpDef& op, const ops::KernelVariant& variant) {
    const format::KernelData kernel{std::string(op.name), std::string(variant.name)};
    auto& kernels = package_.kernels;
    const auto index = static_cast<std::size_t>(std::find(kernels.begin(), kernels.end(), kernel) - kernels.begin());
    if (index == kernels.size()) kernels.push_back(kernel);
    return static_cast<std::uint16_t>(index);
  }

  static std::vector<std::uint32_t> words_of(const graph::Params& params) {
    std::vector<std::uint32_t> words(params.size() / 4);
    if (!words.empty()) std::memcpy(words.data(), params.data(), params.size());
    return words;
  }

  std::uint32_t append_params(const std::vector<std::uint32_t>& block) {
    const auto first = static_cast<std::uint32_t>(data_.params.size());
    data_.params.insert(data_.params.end(), block.begin(), block.end());
    return first;
  }

  /// Layers of one kind often have equal parameters: reuses a stretch that is already there.
  std::uint32_t share_params(const std::vector<std::uint32_t>& block) {
    const auto it = std::search(data_.params.begin(), data_.params.end(), block.begin(), block.end());
    if (it == data_.params.end()) return append_params(block);
    return block.empty() ? 0 : static_cast<std::uint32_t>(it - data_.params.begin());
  }

  /// The parameters of all steps; those that follow sizes last, shared only among steps that follow them alike.
  Result<void> add_all_params() {
    using Block = std::pair<std::vector<std::uint32_t>, std::vector<Patch>>;
    std::vector<Block> blocks;
    for (const PlannedStep& step : model_.steps) {
      if (step.stream >= 0) {
        blocks.emplace_back();
        first_params_.push_back(0);
        continue;
      }
      if (step.variant == nullptr) {
        blocks.emplace_back(control_words(step.node), std::vector<Patch>());
        first_params_.push_back(share_params(blocks.back().first));
        continue;
      }
      auto patches = param_patches(step.node);
      if (!patches) return fail(std::move(patches.error()));
      blocks.emplace_back(words_of(model_.graph.node(step.node).params), std::move(*patches));
      first_params_.push_back(blocks.back().second.empty() ? share_params(blocks.back().first) : 0);
    }
    std::map<Block, std::uint32_t> following;
    for (std::size_t s = 0; s < blocks.size(); ++s) {
      if (blocks[s].second.empty()) continue;
      const auto [it, fresh] = following.try_emplace(blocks[s], static_cast<std::uint32_t>(data_.params.size()));
      first_params_[s] = it->second;
      if (!fresh) continue;
      append_params(blocks[s].first);
      for (const Patch& patch : blocks[s].second)
        add_patch(it->second + patch.first, format::kParamField, patch.second);
    }
    return {};
  }

  /// The words of a node's parameters that follow sizes, by position.
  Result<std::vector<Patch>> param_patches(graph::NodeId n) const {
    std::vector<Patch> patches;
    const std::size_t words = model_.instances.empty() ? 0 : model_.graph.node(n).params.size() / 4;
    std::vector<std::int64_t> numbers;
    for (std::size_t w = 0; w < words; ++w) {
      numbers.clear();
      for (const PlannedInstance& instance : model_.instances) {
        std::int32_t word = 0;
        std::memcpy(&word, instance.sized.graph.node(n).params.data() + 4 * w, 4);
        numbers.push_back(word);
      }
      const auto expression = fit_sizes(numbers, sizes_);
      if (!expression) return follows_nothing(model_.graph.node(n).name);
      if (!expression->is_constant()) patches.emplace_back(static_cast<std::uint32_t>(w), *expression);
    }
    return patches;
  }

  static tl::unexpected<Error> follows_nothing(const std::string& name) {
    return fail(StatusCode::kUnsupported,
                fmt::format("'{}': its shape does not follow the model's sizes in a way that can be recomputed", name),
                "fix the dimension with --dim instead of --bound");
  }

  void add_patch(std::uint32_t index, std::uint8_t field, const SizeExpression& e) {
    data_.patches.emplace_back(index, e.base, e.scale, e.divisor, field,
                               static_cast<std::uint8_t>(e.first | (e.second << 4U)));
  }

  /// What follows sizes about the values in memory, in the order of their indices.
  Result<void> add_dimensions() {
    for (const Dimension& d : model_.dimensions)
      data_.dimensions.push_back({d.name, static_cast<std::int32_t>(d.least), static_cast<std::int32_t>(d.bound)});
    if (model_.instances.empty()) return {};
    add_measures();
    for (const auto& [key, index] : indices_) {
      if (key.second != 0) continue;
      if (auto added = add_value_patches(key.first, index); !added) return added;
    }
    return {};
  }

  /// Each as soon as its node has run.
  void add_measures() {
    for (const PlannedMeasure& m : model_.measures) {
      const auto done = std::ranges::count_if(model_.steps, [&](const PlannedStep& s) { return s.node <= m.by; });
      data_.measures.emplace_back(static_cast<std::uint32_t>(done), value_index(m.value),
                                  static_cast<std::uint32_t>(m.dimension));
    }
  }

  Result<void> add_value_patches(ValueId id, std::uint32_t index) {
    const auto place = [&](std::size_t k) -> const ValuePlace& {
      return model_.instances[k].places[static_cast<std::size_t>(id)];
    };
    // Where a tensor is empty, nobody asks where its rows lie.
    std::vector<bool> has_elements;
    bool dense = true;
    for (std::size_t k = 0; k < model_.instances.size(); ++k) {
      has_elements.push_back(place(k).desc.elements() != 0);
      dense = dense && place(k).desc.is_dense();
    }
    const std::vector<bool> always(model_.instances.size(), true);
    bool resized = false;
    const auto add = [&](std::uint8_t field, const std::vector<bool>& matters, auto number_of) {
      std::vector<std::int64_t> numbers;
      for (std::size_t k = 0; k < model_.instances.size(); ++k) numbers.push_back(number_of(place(k)));
      const auto expression = fit_sizes(numbers, sizes_, matters);
      if (!expression) return false;
      if (!expression->is_constant()) add_patch(index, field, *expression);
      resized = resized || !expression->is_constant();
      return true;
    };
    bool follows = true;
    const auto rank = static_cast<std::uint8_t>(place(0).desc.rank);
    for (std::uint8_t d = 0; d < rank && follows; ++d)
      follows = add(static_cast<std::uint8_t>(format::kDimField + d), always,
                    [&](const ValuePlace& p) { return p.desc.dims[d]; });
    if (dense && resized) add_patch(index, format::kDenseField, {});
    for (std::uint8_t d = 0; d < rank && follows && !dense; ++d) {
      std::vector<bool> matters;
      for (std::size_t k = 0; k < model_.instances.size(); ++k) matters.push_back(stride_matters(place(k).desc, d));
      follows = add(static_cast<std::uint8_t>(format::kStrideField + d), matters,
                    [&](const ValuePlace& p) { return p.desc.strides[d]; });
    }
    follows = follows && add(format::kOffsetField, has_elements, [](const ValuePlace& p) { return p.offset; });
    return follows ? Result<void>() : follows_nothing(model_.graph.value(id).name);
  }

  /// A call whose constants are aligned for the kernels that pack them.
  struct AlignedCall {
    graph::OperandTables tables;
    std::vector<format::PackageBytes> copies;
  };

  Result<AlignedCall> aligned_call(const graph::Node& node) {
    AlignedCall result{graph::operand_tables(model_.graph, node), {}};
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId id = node.inputs[i];
      if (id == kNone) continue;
      if (!model_.graph.is_constant(id)) {
        result.tables.inputs[i].desc = &model_.places[static_cast<std::size_t>(id)].desc;
        continue;
      }
      const auto bytes = model_.graph.value(id).constant->bytes;
      format::PackageBytes copy(bytes.size());
      if (copy.data() == nullptr)
        return fail(StatusCode::kUnsupported,
                    fmt::format("the host has no {} bytes left to pack weights", bytes.size()));
      if (!bytes.empty()) std::memcpy(copy.data(), bytes.data(), bytes.size());
      result.tables.inputs[i].data = copy.data();
      result.copies.push_back(std::move(copy));
    }
    for (std::size_t i = 0; i < node.outputs.size(); ++i)
      if (node.outputs[i] != kNone)
        result.tables.outputs[i].desc = &model_.places[static_cast<std::size_t>(node.outputs[i])].desc;
    return result;
  }

  /// The number of the first step from this node on.
  std::uint32_t step_at_node(graph::NodeId node) const {
    const auto it = std::ranges::lower_bound(model_.steps, node, {}, &PlannedStep::node);
    return static_cast<std::uint32_t>(it - model_.steps.begin());
  }

  std::vector<std::uint32_t> control_words(graph::NodeId n) const {
    const auto i = static_cast<std::size_t>(n);
    format::ControlParams p{control_kind(model_.flow.kinds[i]), step_at_node(model_.flow.targets[i]),
                            static_cast<std::uint32_t>(model_.flow.limits[i]), 0};
    if (is_loop(p.kind)) {
      // The loops around: a loop's begin lies outside its range, its end inside.
      for (const LoopRange& loop : model_.flow.loops) p.depth += loop.first <= n && n < loop.last ? 1U : 0U;
    }
    std::vector<std::uint32_t> words(format::kControlWords);
    std::memcpy(words.data(), &p, sizeof p);
    return words;
  }

  static format::StepControl control_kind(FlatKind kind) {
    switch (kind) {
      case FlatKind::kBranch: return format::StepControl::kBranch;
      case FlatKind::kJump: return format::StepControl::kJump;
      case FlatKind::kLoopBegin: return format::StepControl::kLoopBegin;
      default: return format::StepControl::kLoopEnd;
    }
  }
  static bool is_loop(format::StepControl kind) {
    return kind == format::StepControl::kLoopBegin || kind == format::StepControl::kLoopEnd;
  }

  void add_control_step(const PlannedStep& step) {
    const graph::Node& node = model_.graph.node(step.node);
    const format::StepControl kind = control_kind(model_.flow.kinds[static_cast<std::size_t>(step.node)]);
    const std::uint32_t first_param = first_params_[data_.steps.size()];
    const auto first_operand = static_cast<std::uint32_t>(data_.operands.size());
    for (std::size_t i = 0; i < format::control_inputs(kind); ++i) {
      const ValueId id = node.inputs[i];
      const bool constant = model_.graph.is_constant(id);
      data_.operands.push_back(id == kNone ? format::kAbsent
                               : constant  ? constant_index(id, model_.graph.value(id).constant->bytes)
                                           : value_index(id));
    }
    if (is_loop(kind))
      data_.operands.push_back(value_index(node.outputs.empty() ? node.inputs[kIterationOperand] : node.outputs[0]));
    data_.steps.emplace_back(first_operand, first_param, 0, 0, format::kControl,
                             static_cast<std::uint8_t>(format::control_inputs(kind)),
                             static_cast<std::uint8_t>(format::control_outputs(kind)));
    data_.step_names.push_back(node.name);
    data_.step_work.push_back(0);
  }

  Result<void> add_step(const PlannedStep& step) {
    if (step.variant == nullptr) {
      add_control_step(step);
      return {};
    }
    if (step.stream >= 0) {
      add_copy_step(step);
      return {};
    }
    const std::uint32_t first_param = first_params_[data_.steps.size()];
    const graph::Node& node = model_.graph.node(step.node);
    auto aligned = aligned_call(node);
    if (!aligned) return fail(std::move(aligned.error()));
    const ops::OpCall call = aligned->tables.call(node);

    std::vector<std::uint32_t> operands;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      auto index = operand_index(node, i, *step.variant, call);
      if (!index) return fail(std::move(index.error()));
      operands.push_back(copied_operand(step.node, i, *index));
    }
    for (const ValueId id : node.outputs) operands.push_back(id == kNone ? format::kAbsent : value_index(id));
    const auto first_operand = static_cast<std::uint32_t>(data_.operands.size());
    data_.operands.insert(data_.operands.end(), operands.begin(), operands.end());
    data_.steps.emplace_back(first_operand, first_param, static_cast<std::uint64_t>(step.scratch_offset),
                             static_cast<std::uint64_t>(step.scratch_bytes), kernel_index(*node.op, *step.variant),
                             static_cast<std::uint8_t>(node.inputs.size()),
                             static_cast<std::uint8_t>(node.outputs.size()));
    data_.step_names.push_back(node.name);
    data_.step_work.push_back(node.op->work != nullptr ? static_cast<std::uint64_t>(node.op->work(call)) : 0);
    return {};
  }

  /// The operands of the next steps that copy are given when their reader's are known.
  void add_copy_step(const PlannedStep& step) {
    const auto first_operand = static_cast<std::uint32_t>(data_.operands.size());
    data_.operands.insert(data_.operands.end(), {format::kAbsent, format::kAbsent});
    copy_operands_.push_back(first_operand);
    data_.steps.emplace_back(first_operand, 0, 0, 0, kernel_index(ops::kCopy, *step.variant), 1, 1);
    data_.step_names.push_back(model_.graph.node(step.node).name + " weights");
    data_.step_work.push_back(0);
  }

  /// The operand that a step reads in the place of constant `source`: its copy, where the plan has one.
  std::uint32_t copied_operand(graph::NodeId node, std::size_t input, std::uint32_t source) {
    PlannedStream wanted;
    wanted.node = node;
    wanted.input = static_cast<std::int32_t>(input);
    const auto is_it = [&](const PlannedStream& s) { return same_operand(s, wanted); };
    if (const auto kept = std::ranges::find_if(model_.residents, is_it); kept != model_.residents.end()) {
      const auto offset = static_cast<std::uint64_t>(kept->offset);
      const format::Value& constant = data_.values[source];
      data_.state_init.emplace_back(offset, constant.offset(), constant.bytes(), format::kState);
      return append_copy(*kept, source, format::kState, offset);
    }
    const auto stream = std::ranges::find_if(model_.streams, is_it);
    if (stream == model_.streams.end()) return source;
    const format::Value constant = data_.values[source];
    const PlanBlock& block = model_.blocks[static_cast<std::size_t>(stream->block)];
    const std::uint32_t slot = activation_slot(model_, block.tier);
    const auto offset = static_cast<std::uint64_t>(block.offset);
    const std::uint32_t copy = append_copy(*stream, source, slot, offset);
    std::uint32_t from = source;
    std::uint32_t to = copy;
    if (stream->packed) {
      // The step moves bytes: what they mean only the reader knows.
      TensorDesc bytes;
      bytes.type = ElementType::kU8;
      bytes.rank = 1;
      bytes.dims[0] = static_cast<std::int32_t>(constant.bytes());
      bytes.set_dense_strides();
      from = append_value(format::make_value(bytes, format::kWeights, constant.offset(), constant.bytes()));
      to = append_value(format::make_value(bytes, slot, offset, constant.bytes()));
    }
    const std::uint32_t operands = copy_operands_[static_cast<std::size_t>(stream - model_.streams.begin())];
    data_.operands[operands] = from;
    data_.operands[operands + 1] = to;
    return copy;
  }

  /// A value like `source` elsewhere.
  std::uint32_t append_copy(const PlannedStream& stream, std::uint32_t source, std::uint32_t slot,
                            std::uint64_t offset) {
    const format::Value constant = data_.values[source];
    const std::uint32_t copy =
        append_value(format::make_value(*format::desc_of(constant), slot, offset, constant.bytes()));
    if (stream.packed) data_.streamed.emplace_back(copy, source);
    return copy;
  }

  Result<std::uint32_t> operand_index(const graph::Node& node, std::size_t i, const ops::KernelVariant& variant,
                                      const ops::OpCall& call) {
    const ValueId id = node.inputs[i];
    if (id == kNone) return format::kAbsent;
    if (!model_.graph.is_constant(id)) return value_index(id);
    const std::int64_t packed_bytes = ops::packed_bytes(variant, call, static_cast<int>(i));
    if (packed_bytes <= 0) {
      const auto bytes = model_.graph.value(id).constant->bytes;
      return constant_index(id, bytes);
    }
    format::PackageBytes packed(static_cast<std::size_t>(packed_bytes));
    if (packed.data() == nullptr)
      return fail(StatusCode::kUnsupported, fmt::format("the host has no {} bytes left to pack weights", packed_bytes));
    variant.pack(call, static_cast<int>(i), packed.data());
    return constant_index(id, packed.bytes());
  }

  const PlannedModel& model_;
  format::PackageData& package_;
  std::vector<Sizes> sizes_;                 ///< of the model's instances
  std::vector<std::uint32_t> first_params_;  ///< by step
  format::ModelData data_;
  std::uint32_t next_port_ = 0;
  std::int64_t weights_bytes_ = 0;
  std::set<std::uint64_t> stored_;
  std::vector<std::uint32_t> copy_operands_;  ///< by stream: where the operands of its copy are
  std::map<std::pair<ValueId, std::uint64_t>, std::uint32_t> indices_;  ///< (value, blob offset + 1 or 0) -> index
};

}  // namespace

Result<std::int64_t> emit_model(const PlannedModel& model, const std::string& name, format::PackageData& package) {
  return Emitter(model, package).run(name);
}

}  // namespace bantam::compiler
