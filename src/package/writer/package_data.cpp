#include "package/writer/package_data.h"

#include <cstdlib>
#include <cstring>

#include "base/hash.h"

namespace bantam::format {
namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;

std::vector<Offset<Port>> write_ports(FlatBufferBuilder& builder, const std::vector<PortData>& ports) {
  std::vector<Offset<Port>> result;
  for (const PortData& port : ports) {
    const format::Quantization quantization(port.quantization.scale, port.quantization.zero_point);
    result.push_back(CreatePortDirect(builder, port.name.c_str(), port.value, port.slot, port.default_slot,
                                      port.default_offset, port.bytes,
                                      port.quantization.scale != 0.0F ? &quantization : nullptr));
  }
  return result;
}

Offset<Model> write_model(FlatBufferBuilder& builder, const ModelData& model) {
  const auto inputs = write_ports(builder, model.inputs);
  const auto outputs = write_ports(builder, model.outputs);
  std::vector<Offset<flatbuffers::String>> step_names;
  // Layers of one block often share names; the same string is stored once.
  for (const std::string& name : model.step_names) step_names.push_back(builder.CreateSharedString(name));
  std::vector<Offset<flatbuffers::String>> metadata;
  for (const auto& [key, value] : model.metadata) {
    metadata.push_back(builder.CreateSharedString(key));
    metadata.push_back(builder.CreateSharedString(value));
  }
  std::vector<Offset<Dimension>> dimensions;
  for (const DimensionData& d : model.dimensions)
    dimensions.push_back(CreateDimensionDirect(builder, d.name.c_str(), d.least, d.bound));
  const bool resizable = !dimensions.empty();
  return CreateModelDirect(
      builder, model.name.c_str(), &model.steps, &model.operands, &model.params, &model.values, &inputs, &outputs,
      &model.state_init, model.state_bytes, model.swap_bytes, model.activation_bytes, model.threads, &step_names,
      &metadata, resizable ? &dimensions : nullptr, resizable ? &model.patches : nullptr, &model.step_work,
      model.step_outputs.empty() ? nullptr : &model.step_outputs, model.measures.empty() ? nullptr : &model.measures,
      model.tier_bytes.empty() ? nullptr : &model.tier_bytes,
      model.scratch_tiers.empty() ? nullptr : &model.scratch_tiers, model.streamed.empty() ? nullptr : &model.streamed);
}

void write_tables(FlatBufferBuilder& builder, const PackageData& data) {
  std::vector<Offset<Kernel>> kernels;
  for (const KernelData& kernel : data.kernels)
    kernels.push_back(CreateKernelDirect(builder, kernel.op.c_str(), kernel.variant.c_str()));
  std::vector<Offset<Model>> models;
  for (const ModelData& model : data.models) models.push_back(write_model(builder, model));
  std::vector<Offset<FleetEntry>> fleet;
  for (const SessionData& session : data.fleet)
    fleet.push_back(
        CreateFleetEntryDirect(builder, session.name.c_str(), session.model, session.group, session.state_tier));
  std::vector<Offset<flatbuffers::String>> lanes;
  for (const std::string& lane : data.lanes) lanes.push_back(builder.CreateString(lane));
  std::vector<Offset<Tier>> tiers;
  for (const TierData& tier : data.tiers)
    tiers.push_back(CreateTierDirect(builder, tier.name.c_str(), tier.bytes, tier.cost));
  FinishPackageBuffer(
      builder, CreatePackageDirect(builder, &kernels, &models, &fleet, &data.links, data.link_bytes,
                                   lanes.empty() ? nullptr : &lanes, data.groups.empty() ? nullptr : &data.groups,
                                   data.areas.empty() ? nullptr : &data.areas, tiers.empty() ? nullptr : &tiers,
                                   data.link_tier));
}

std::size_t align_weights(std::size_t size) {
  return (size + kWeightAlignment - 1) / kWeightAlignment * kWeightAlignment;
}

}  // namespace

void PackageBytes::Free::operator()(std::byte* memory) const noexcept { std::free(memory); }

PackageBytes::PackageBytes(std::size_t size)
    : memory_(static_cast<std::byte*>(std::aligned_alloc(kWeightAlignment, align_weights(size + 1)))), size_(size) {
  if (memory_) std::memset(memory_.get(), 0, align_weights(size + 1));
}

PackageBytes write_package(const PackageData& data) {
  FlatBufferBuilder builder(1 << 16);
  write_tables(builder, data);
  const auto weights = data.weights.bytes();

  Header header{};
  std::memcpy(header.magic, kMagic, sizeof header.magic);
  header.version = kVersion;
  header.meta_bytes = builder.GetSize();
  header.weights_offset = align_weights(sizeof header + builder.GetSize());
  header.file_bytes = header.weights_offset + weights.size();
  header.meta_hash = hash64(builder.GetBufferPointer(), builder.GetSize());
  header.weights_hash = hash64(weights.data(), weights.size());
  header.header_hash = hash64(&header, sizeof header - sizeof header.header_hash);

  PackageBytes file(static_cast<std::size_t>(header.file_bytes));
  if (file.data() == nullptr) return file;
  std::memcpy(file.data(), &header, sizeof header);
  std::memcpy(file.data() + sizeof header, builder.GetBufferPointer(), builder.GetSize());
  if (!weights.empty()) std::memcpy(file.data() + header.weights_offset, weights.data(), weights.size());
  return file;
}

}  // namespace bantam::format
