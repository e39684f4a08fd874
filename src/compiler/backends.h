// The backends that kernels belong to, as a table: a further one is a row here and kernels of its own.
//
// A kernel variant's name ends in the backend that it belongs to ("f32_gemm__simd", "any__ref"), which packages keep.
// Host only; constant data.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "bantam/compiler.h"
#include "ops/op.h"

namespace bantam::compiler {

struct BackendDef {
  Backend id = Backend::kFast;
  std::string_view name;     ///< for the command line and fleet files
  std::string_view summary;  ///< one line
  bool (*owns)(const ops::KernelVariant& variant) = nullptr;
};

/// In the order in which an operator falls back.
std::span<const BackendDef> all_backends();

const BackendDef& backend_def(Backend id);
std::optional<Backend> backend_from_name(std::string_view name);
/// "fast, reference"
std::string backend_names();

}  // namespace bantam::compiler
