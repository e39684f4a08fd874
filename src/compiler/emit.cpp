#include "compiler/emit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <utility>

#include "base/shape.h"

namespace bantam::compiler {
namespace {

using graph::kNone;
using graph::ValueId;

class Emitter {
 public:
  Emitter(const PlannedModel& model, format::PackageData& package) : model_(model), package_(package) {}

  Result<std::int64_t> run(const std::string& name) {
    data_.name = name;
    data_.threads = static_cast<std::uint16_t>(model_.threads);
    data_.state_bytes = static_cast<std::uint64_t>(model_.state_bytes);
    data_.swap_bytes = static_cast<std::uint64_t>(model_.swap_bytes);
    data_.activation_bytes = static_cast<std::uint64_t>(model_.activation_bytes);
    data_.metadata = model_.graph.metadata;
    add_ports(model_.inputs, data_.inputs);
    add_ports(model_.outputs, data_.outputs);
    add_initial_states();
    for (const PlannedStep& step : model_.steps) {
      auto added = add_step(step);
      if (!added) return fail(std::move(added.error()));
    }
    package_.models.push_back(std::move(data_));
    return weights_bytes_;
  }

 private:
  void add_ports(const std::vector<PlannedPort>& planned, std::vector<format::PortData>& out) {
    for (const PlannedPort& port : planned) {
      format::PortData p;
      p.name = port.name;
      p.value = value_index(port.value);
      p.slot = format::kFirstPort + next_port_++;
      p.default_slot = port.external ? format::kUnplaced : std::uint32_t{format::kActivations};
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

  std::uint64_t store(std::span<const std::byte> bytes) {
    const std::uint64_t offset = package_.weights.add(bytes);
    if (!bytes.empty() && stored_.insert(offset).second) weights_bytes_ += static_cast<std::int64_t>(bytes.size());
    return offset;
  }

  static format::Value make_value(const TensorDesc& desc, std::uint32_t slot, std::uint64_t offset,
                                  std::uint64_t bytes) {
    format::Desc d(desc.type == ElementType::kNone ? 0 : static_cast<std::uint8_t>(desc.type), desc.rank, 0,
                   flatbuffers::span<const std::int32_t, kMaxRank>(desc.dims),
                   flatbuffers::span<const std::int32_t, kMaxRank>(desc.strides));
    return {d, slot, offset, bytes};
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
      it->second = append_value(make_value(place.desc, place.slot, static_cast<std::uint64_t>(place.offset),
                                           static_cast<std::uint64_t>(bytes)));
    }
    return it->second;
  }

  /// Index of a constant as one kernel wants it; the same bytes give the same index.
  std::uint32_t constant_index(ValueId id, std::span<const std::byte> bytes) {
    const std::uint64_t offset = store(bytes);
    const auto [it, fresh] = indices_.try_emplace({id, offset + 1}, 0);
    if (fresh)
      it->second = append_value(make_value(model_.graph.value(id).desc, format::kWeights, offset, bytes.size()));
    return it->second;
  }

  std::uint16_t kernel_index(const PlannedStep& step) {
    const format::KernelData kernel{std::string(model_.graph.node(step.node).op->name),
                                    std::string(step.variant->name)};
    auto& kernels = package_.kernels;
    const auto index = static_cast<std::size_t>(std::find(kernels.begin(), kernels.end(), kernel) - kernels.begin());
    if (index == kernels.size()) kernels.push_back(kernel);
    return static_cast<std::uint16_t>(index);
  }

  std::uint32_t add_params(const graph::Params& params) {
    const std::size_t words = params.size() / 4;
    std::vector<std::uint32_t> block(words);
    if (words != 0) std::memcpy(block.data(), params.data(), params.size());
    // Layers of one kind often have equal parameters: reuse a stretch that is already there.
    auto& all = data_.params;
    const auto it = std::search(all.begin(), all.end(), block.begin(), block.end());
    const auto first = static_cast<std::uint32_t>(it - all.begin());
    if (it == all.end()) all.insert(all.end(), block.begin(), block.end());
    return words == 0 ? 0 : first;
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

  Result<void> add_step(const PlannedStep& step) {
    const graph::Node& node = model_.graph.node(step.node);
    auto aligned = aligned_call(node);
    if (!aligned) return fail(std::move(aligned.error()));
    const ops::OpCall call = aligned->tables.call(node);

    std::vector<std::uint32_t> operands;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      auto index = operand_index(node, i, *step.variant, call);
      if (!index) return fail(std::move(index.error()));
      operands.push_back(*index);
    }
    for (const ValueId id : node.outputs) operands.push_back(id == kNone ? format::kAbsent : value_index(id));
    const auto first_operand = static_cast<std::uint32_t>(data_.operands.size());
    data_.operands.insert(data_.operands.end(), operands.begin(), operands.end());
    data_.steps.emplace_back(first_operand, add_params(node.params), static_cast<std::uint64_t>(step.scratch_offset),
                             static_cast<std::uint64_t>(step.scratch_bytes), kernel_index(step),
                             static_cast<std::uint8_t>(node.inputs.size()),
                             static_cast<std::uint8_t>(node.outputs.size()));
    data_.step_names.push_back(node.name);
    return {};
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
  format::ModelData data_;
  std::uint32_t next_port_ = 0;
  std::int64_t weights_bytes_ = 0;
  std::set<std::uint64_t> stored_;
  std::map<std::pair<ValueId, std::uint64_t>, std::uint32_t> indices_;  ///< (value, blob offset + 1 or 0) -> index
};

}  // namespace

Result<std::int64_t> emit_model(const PlannedModel& model, const std::string& name, format::PackageData& package) {
  return Emitter(model, package).run(name);
}

}  // namespace bantam::compiler
