// A package as plain host data, and its serialisation. Whoever compiles fills PackageData; write_package makes the file
// image. No decisions are taken here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bantam/tensor.h"
#include "package/tables.h"
#include "package/writer/blob_store.h"

namespace bantam::format {

struct KernelData {
  std::string op;
  std::string variant;

  bool operator==(const KernelData&) const = default;
};

struct PortData {
  std::string name;
  std::uint32_t value = 0;
  std::uint32_t slot = 0;
  std::uint32_t default_slot = kUnplaced;
  std::uint64_t default_offset = 0;
  std::uint64_t bytes = 0;
  bantam::Quantization quantization;
};

struct DimensionData {
  std::string name;
  std::int32_t least = 1;
  std::int32_t bound = 1;
};

struct ModelData {
  std::string name;
  std::vector<Step> steps;
  std::vector<std::string> step_names;
  std::vector<std::uint64_t> step_work;
  std::vector<std::uint64_t> step_outputs;  ///< empty: every step is needed for every output
  std::vector<std::uint32_t> operands;
  std::vector<std::uint32_t> params;
  std::vector<Value> values;
  std::vector<PortData> inputs;
  std::vector<PortData> outputs;
  std::vector<StateInit> state_init;
  std::uint64_t state_bytes = 0;
  std::uint64_t swap_bytes = 0;
  std::uint64_t activation_bytes = 0;
  std::uint16_t threads = 1;
  std::vector<std::pair<std::string, std::string>> metadata;
  std::vector<DimensionData> dimensions;
  std::vector<SizePatch> patches;
  std::vector<Measure> measures;
  std::vector<std::uint64_t> tier_bytes;    ///< of the tiers behind the first
  std::vector<std::uint8_t> scratch_tiers;  ///< by step; empty: all in the first
  std::vector<StreamedConstant> streamed;   ///< in the order of their values
};

struct SessionData {
  SessionData(std::string session, std::uint16_t its_model) : name(std::move(session)), model(its_model) {}

  std::string name;
  std::uint16_t model = 0;
  std::uint16_t group = 0;
  std::uint8_t state_tier = 0;
};

struct TierData {
  std::string name;
  std::uint64_t bytes = 0;
  float cost = 1;
};

struct PackageData {
  std::vector<KernelData> kernels;
  std::vector<ModelData> models;
  std::vector<SessionData> fleet;
  std::vector<Link> links;
  std::uint64_t link_bytes = 0;
  std::vector<std::string> lanes;  ///< empty, as groups and areas: one group
  std::vector<Group> groups;
  std::vector<Area> areas;
  std::vector<TierData> tiers;  ///< empty: one
  std::uint8_t link_tier = 0;
  BlobStore weights;
};

/// Bytes aligned for use in place.
class PackageBytes {
 public:
  PackageBytes() = default;
  /// Zeroed. Throws nothing; `data()` is null when memory is exhausted.
  explicit PackageBytes(std::size_t size);

  std::byte* data() noexcept { return memory_.get(); }
  std::span<const std::byte> bytes() const noexcept { return {memory_.get(), size_}; }

 private:
  struct Free {
    void operator()(std::byte* memory) const noexcept;
  };
  std::unique_ptr<std::byte, Free> memory_;
  std::size_t size_ = 0;
};

/// The file image: header, tables, weights.
PackageBytes write_package(const PackageData& data);

}  // namespace bantam::format
