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
