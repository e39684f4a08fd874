// Takes the weights out of an ONNX file, so that a fuzzer's mutations meet the structure.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace bantam::fuzz {

/// The model with every large raw initializer replaced by a ConstantOfShape node of the same name, type and shape.
/// Bytes that are no well-formed model come back as they are.
std::string thin_onnx(std::span<const std::byte> model);

}  // namespace bantam::fuzz
