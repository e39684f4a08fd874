// What a model file says about itself, before any option is applied: ports, dimensions, operators, metadata.
//
//   auto declared = bantam::declare("encoder.onnx");
//   if (declared && declared->metadata_value("chunk_size") == "16") ...
//
// Works for models that the compiler refuses. Called by `bantam inspect` and by programs that choose a ModelSpec by
// what a model brings. Texts come from the file and are not trusted. Host only; re-entrant.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bantam/error.h"
#include "bantam/tensor.h"

namespace bantam {

struct DeclaredPort {
  std::string name;
  ElementType type = ElementType::kNone;
  std::vector<std::string> dims;  ///< a number, a symbol, "?" where the file names none; only "..." for unknown rank
  std::optional<Quantization> quantization;
};

struct Declaration {
  std::string format;   ///< "ONNX" or "TFLite"
  std::string version;  ///< e.g. "opset 13, IR 7" or "schema 3"
  std::string producer;
  std::vector<DeclaredPort> inputs;
  std::vector<DeclaredPort> outputs;
  std::vector<std::pair<std::string, std::int64_t>> operators;  ///< source operator -> count, sorted by name
  std::vector<std::pair<std::string, std::string>> metadata;

  /// The input of that name, or null.
  const DeclaredPort* input(std::string_view name) const noexcept {
    for (const DeclaredPort& port : inputs)
      if (port.name == name) return &port;
    return nullptr;
  }
  /// The first value of a metadata key.
  std::optional<std::string_view> metadata_value(std::string_view key) const noexcept {
    for (const auto& [name, value] : metadata)
      if (name == key) return value;
    return std::nullopt;
  }
};

Result<Declaration> declare(const std::filesystem::path& model);

}  // namespace bantam
