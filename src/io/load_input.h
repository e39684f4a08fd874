// Input specifications applied to real files: what `bantam run` and fleet files call.
//
// The kind of a file is told by its first bytes (npy, npz, PNG, JPEG), else by its name (.raw, .bin), else it is taken
// as a sound. No shared state.
#pragma once

#include <string_view>

#include "bantam/error.h"
#include "io/preprocess.h"

namespace bantam::io {

/// Reads and decodes the file of a specification of kind kFile, so that several windows or inputs can be cut from it.
Result<Source> open_source(const InputSpec& spec);

/// Decodes or generates, and preprocesses, in one call.
Result<Array> load_input(const InputSpec& spec, const InputTarget& target);
Result<Array> load_input(std::string_view spec_text, const InputTarget& target);

}  // namespace bantam::io
