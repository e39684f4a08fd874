// ONNX files rewritten in memory for a peer engine: everything but what the function's name says stays byte for byte.
//
// Bytes are untrusted: damaged ones give an Error. Functions are re-entrant.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "bantam/error.h"

namespace bantam::peer {

/// The model without those graph inputs that are initializers. Files of IR version 3 list initializers as graph inputs
/// too; from version 4 on, that makes them overridable, and an engine that honours it cannot fold or pack them.
Result<std::string> with_fixed_initializers(std::span<const std::byte> model);

/// The model with every result of its nodes as an output too, those of nested graphs excepted. The added outputs
/// declare no type: engines infer it.
Result<std::string> with_exposed_tensors(std::span<const std::byte> model);

}  // namespace bantam::peer
