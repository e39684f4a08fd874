// From decoded data to the tensor a model takes, by an input specification (input_spec.h).
//
// Pure functions: the same data, specification and target give the same bytes on every machine. The target comes from
// the model; a result of another shape is an Error that names both shapes and the keys that would fit.
//
//   pictures  colour, then size (planes.h), then y = (x - mean) * scale on values 0..255, then layout. The target has
//             rank 4 (batch 1), 3 or 2 (one channel, more than one row), with 1 or 3 channels. Without options: the
//             whole picture, stretched, rgb or gray, values 0..255.
//   sounds    all channels mixed to one, unless the target has a dimension equal to the sound's channels; a window of
//             frames; frames beyond the end are silence; then y = (x - mean) * scale.
//   arrays    shapes must agree apart from dimensions of size 1. `offset` and `samples` cut a window along the first
//             dimension larger than 1. An array of the very element type of the target, without mean and scale, is
//             taken as stored (already quantised); numbers of any other type are real values.
//   raw       elements of `type` (default: the target's) in exactly the target's shape, then like arrays.
//   element type: float targets take the values; quantised integers the stored value round(y / scale) + zero_point,
//             half away from zero, saturated; plain integers (or quantize=no) y rounded and saturated likewise.
#pragma once

#include <cstddef>
#include <string>
#include <variant>
#include <vector>

#include "bantam/error.h"
#include "bantam/tensor.h"
#include "io/array.h"
#include "io/image.h"
#include "io/input_spec.h"
#include "io/wav.h"

namespace bantam::io {

struct InputTarget {
  std::string name;           ///< for messages
  TensorDesc desc;            ///< every dimension known
  Quantization quantization;  ///< scale 0: none
};

struct RawBytes {
  std::vector<std::byte> bytes;
};

using Source = std::variant<Image, Sound, Array, RawBytes>;

/// The tensor that `source` gives; spec.kind must be kFile.
Result<Array> preprocess(const InputSpec& spec, const Source& source, const InputTarget& target);

/// The tensor of zeros, fill:X or random:SEED. zeros and fill are real values, stored as the target stores them (zeros
/// of a quantised input are its zero point). random gives floats uniform in [-1, 1), integers of 8 and 16 bits uniform
/// over their range, and 0 or 1 for bool and wider integers, which are usually indexes or lengths.
Result<Array> generate(const InputSpec& spec, const InputTarget& target);

}  // namespace bantam::io
