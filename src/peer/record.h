// A run of ONNX Runtime with every intermediate tensor kept: the reference of `bantam compare --against onnxruntime`.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "bantam/error.h"
#include "io/npz.h"
#include "peer/onnxruntime.h"

namespace bantam::peer {

/// One run of the model, its graph unoptimised, on `inputs`. Inputs that are missing there are taken from `fixed` (one
/// element for all, or one each), and are zero otherwise: states that the caller keeps. Gives all tensors that nodes of
/// the outer graph compute. Models with external data cannot be rewritten in memory and are refused by the library.
Result<std::vector<io::NamedArray>> record_all_tensors(const Library& library, const std::filesystem::path& model,
                                                       const std::vector<io::NamedArray>& inputs,
                                                       const std::map<std::string, std::vector<double>>& fixed,
                                                       const std::map<std::string, std::int64_t>& dims);

}  // namespace bantam::peer
