// Decoded data on the way into a model's inputs, for the targets that decode.
#pragma once

#include "io/preprocess.h"

namespace bantam::fuzz {

/// Preprocesses `source` by `spec` for a few typical inputs: waveform, picture and vector; float and quantised. Arrays
/// that come out must be what the input needs.
void preprocess_for_typical_inputs(const io::InputSpec& spec, const io::Source& source);

}  // namespace bantam::fuzz
