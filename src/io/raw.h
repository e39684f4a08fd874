// Raw binary files: nothing but the elements, row-major, little endian. The shape comes from the caller.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "bantam/error.h"
#include "io/array.h"

namespace bantam::io {

/// The bytes as a dense tensor of `desc`. Fails unless their number is exactly the tensor's; bools become 0 or 1.
Result<Array> parse_raw(std::span<const std::byte> bytes, const TensorDesc& desc);

Result<Array> read_raw(const std::string& path, const TensorDesc& desc);

}  // namespace bantam::io
