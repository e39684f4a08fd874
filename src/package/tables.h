// The generated FlatBuffers accessors of the package format, with asserts that do nothing and cost nothing: the reader
// verifies the buffer once and then only uses indices that were checked. Include this, never package_generated.h.
#pragma once

#ifndef FLATBUFFERS_ASSERT
#define FLATBUFFERS_ASSERT(condition) static_cast<void>(0)
#endif
#ifndef FLATBUFFERS_LOCALE_INDEPENDENT
#define FLATBUFFERS_LOCALE_INDEPENDENT 0
#endif

#include <string_view>

#include "bantam/runtime.h"
#include "bantam/tensor.h"
#include "package/format.h"
#include "package/package_generated.h"

namespace bantam::format {

inline std::string_view view(const flatbuffers::String* text) {
  return text != nullptr ? std::string_view(text->c_str(), text->size()) : std::string_view();
}

/// The desc as the vocabulary type; the layouts agree (package.fbs).
inline const TensorDesc* desc_of(const Value& value) {
  static_assert(sizeof(Desc) == sizeof(TensorDesc) && alignof(Desc) == alignof(TensorDesc));
  return reinterpret_cast<const TensorDesc*>(&value.desc());
}

inline Value make_value(const TensorDesc& desc, std::uint32_t slot, std::uint64_t offset, std::uint64_t bytes) {
  const Desc d(static_cast<std::uint8_t>(desc.type), desc.rank, 0,
               flatbuffers::span<const std::int32_t, kMaxRank>(desc.dims),
               flatbuffers::span<const std::int32_t, kMaxRank>(desc.strides));
  return {d, slot, offset, bytes};
}

inline std::uint32_t dimension_count(const Model& model) {
  return model.dimensions() != nullptr ? model.dimensions()->size() : 0;
}

inline std::uint32_t measure_count(const Model& model) {
  return model.measures() != nullptr ? model.measures()->size() : 0;
}

/// True when a tensor has no elements. A step whose results all have none is not run.
inline bool is_empty(const TensorDesc& desc) {
  for (int i = 0; i < desc.rank; ++i)
    if (desc.dims[i] == 0) return true;
  return false;
}

inline std::uint32_t port_count(const Model& model) { return model.inputs()->size() + model.outputs()->size(); }

inline std::uint32_t tier_count(const Package& package) {
  return package.tiers() != nullptr ? package.tiers()->size() : 1;
}

/// Tiers that the model has activations in; the slots of those behind the first follow the ports'.
inline std::uint32_t tier_count(const Model& model) {
  return model.tier_bytes() != nullptr ? 1 + model.tier_bytes()->size() : 1;
}

inline std::uint32_t slot_count(const Model& model) { return kFirstPort + port_count(model) + tier_count(model) - 1; }

inline std::uint32_t tier_slot(const Model& model, std::uint32_t tier) {
  return tier == 0 ? std::uint32_t{kActivations} : kFirstPort + port_count(model) + tier - 1;
}

/// The tier whose activations a slot is; tier_count for any other slot.
inline std::uint32_t tier_of(const Model& model, std::uint32_t slot) {
  for (std::uint32_t tier = 0; tier < tier_count(model); ++tier)
    if (slot == tier_slot(model, tier)) return tier;
  return tier_count(model);
}

/// Requires tier < tier_count.
inline std::uint64_t activation_bytes(const Model& model, std::uint32_t tier) {
  return tier == 0 ? model.activation_bytes() : model.tier_bytes()->Get(tier - 1);
}

/// The slot of a step's scratch.
inline std::uint32_t scratch_slot(const Model& model, std::uint32_t step) {
  return model.scratch_tiers() == nullptr ? std::uint32_t{kActivations}
                                          : tier_slot(model, model.scratch_tiers()->Get(step));
}

/// The constant that a value in the arena is a packed copy of; null for any other value.
inline const StreamedConstant* streamed_constant(const Model& model, std::uint32_t value) {
  if (model.streamed() == nullptr) return nullptr;
  std::uint32_t first = 0;
  for (std::uint32_t last = model.streamed()->size(); first < last;) {
    const std::uint32_t middle = first + (last - first) / 2;
    const StreamedConstant* found = model.streamed()->Get(middle);
    if (found->value() == value) return found;
    if (found->value() < value) {
      first = middle + 1;
    } else {
      last = middle;
    }
  }
  return nullptr;
}

/// Bytes before a group's area in the activations of a tier. Requires valid indices.
inline std::uint64_t area_offset(const Package& package, std::uint32_t group, std::uint32_t tier) {
  return package.areas() == nullptr ? 0 : package.areas()->Get(group * tier_count(package) + tier)->offset();
}

/// Port by slot order: inputs, then outputs. Requires i < port_count.
inline const Port& port_at(const Model& model, std::uint32_t i) {
  const std::uint32_t inputs = model.inputs()->size();
  return i < inputs ? *model.inputs()->Get(i) : *model.outputs()->Get(i - inputs);
}

/// Port `i` by slot order, with the shape that it has in `values`: the package's, or a session's own.
inline PortInfo port_info(const Model& model, std::uint32_t i, const void* values) {
  const Port& port = port_at(model, i);
  const Value& value = static_cast<const Value*>(values)[port.value()];
  const Quantization* q = port.quantization();
  return {view(port.name()), desc_of(value), value.bytes(),
          q != nullptr ? bantam::Quantization{q->scale(), q->zero_point()} : bantam::Quantization{}};
}

}  // namespace bantam::format
