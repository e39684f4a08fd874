// ONNX files of IR version 3 list initializers as graph inputs too; from version 4 on, that makes them overridable,
// and an engine that honours it cannot fold or pack them. This makes the usual cleaned copy of such a file.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "bantam/error.h"

namespace bantam::bench {

/// The bytes of an ONNX model without those graph inputs that are initializers; everything else byte for byte.
Result<std::string> with_fixed_initializers(std::span<const std::byte> model);

}  // namespace bantam::bench
