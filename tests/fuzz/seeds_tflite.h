// Small TFLite models, the first inputs of the importer's fuzzer.
#pragma once

#include <cstdint>
#include <vector>

namespace bantam::fuzz {

/// Every built-in operator on a few common kinds of operands, whether it accepts them or not, and typical calls of the
/// operators that need options or weights.
std::vector<std::vector<std::uint8_t>> tflite_seeds();

}  // namespace bantam::fuzz
